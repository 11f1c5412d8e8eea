"""Cold start: slow requests lie in the windows after deploys and scale-ups.

Share: how much more of the slow band than of the fast band lies in cold windows, so far as cold
requests stay slower at equal shape, and so far as that fades: a process that started only gets
faster, so what is slower later in a window than before is something else.
Established: 0.95 with announced deploys (an event is no inference), 0.6 with suspected starts only.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.causes.picture import Picture
from tailbudget.models.causes.weighed import Weighed
from tailbudget.models.causes.words import in_ms
from tailbudget.schemas.proposals import CauseName

Floats = NDArray[np.float64]

_ANNOUNCED: Final = 0.95
_SUSPECTED: Final = 0.6
_AGES: Final = 10
"""Parts of the cold requests by their age, equally many in each."""
_ERRORS: Final = 2.0
"""Standard errors by which a mean may be larger than an earlier one by chance."""


class _Fading(NamedTuple):
    """How what cold requests take longer fades.

    Attributes:
        share: of it that fades.
        peak_s: where the rest is most, seconds after the start of the window.
    """

    share: float
    peak_s: float


_ALL_FADES: Final = _Fading(1.0, 0.0)


def weigh(picture: Picture) -> Weighed | None:
    """Return the cause; None when nothing started."""
    announced, fading = _tied(picture)
    suspected = _suspected_share(picture)
    if announced >= suspected and announced > 0:
        return _announced(picture, announced, fading)
    return _suspected(picture, suspected) if suspected > 0 else None


def cold_share(picture: Picture) -> float:
    """Return the share of the gap that is tied to announced cold windows."""
    return _tied(picture)[0]


def _tied(picture: Picture) -> tuple[float, _Fading]:
    """Return the share of the gap that is tied to announced cold windows, and how it fades."""
    rows = picture.requests
    if not rows.cold.any() or rows.cold.all():
        return 0.0, _ALL_FADES
    slow, fast = float(rows.cold[rows.slow].mean()), float(rows.cold[rows.fast].mean())
    raw, level = _excess(picture, 0)
    if raw <= 0 or fast >= 1:
        return 0.0, _ALL_FADES
    tied = max((slow - fast) / (1 - fast), 0.0) * min(max(level / raw, 0.0), 1.0)
    fading = _fading(picture)
    return tied * fading.share, fading


def _fading(picture: Picture) -> _Fading:
    """Return the share of what cold requests take longer that fades, and where the rest peaks."""
    cold = picture.requests.cold
    ms = picture.split.adjusted_ms[:, 0]
    age_s = _age_s(picture)[cold]
    order = np.argsort(age_s, kind="stable")
    excess = (ms[cold] - ms[~cold].mean())[order]
    parts = [part for part in np.array_split(np.arange(len(excess)), _AGES) if len(part)]
    means = np.array([excess[part].mean() for part in parts])
    errors = np.array([excess[part].std() / len(part) ** 0.5 for part in parts])
    longer = np.maximum(means, 0.0)
    most = np.minimum.accumulate(means + _ERRORS * errors)
    fading = np.clip(most, 0.0, longer)
    peak = parts[int(np.argmax(longer - fading))]
    share = float(fading.sum() / longer.sum()) if longer.any() else 1.0
    return _Fading(share, float(age_s[order][peak].mean()))


def _age_s(picture: Picture) -> Floats:
    """Return [M] seconds since the newest start of a cold window; NaN before the first."""
    starts_ns = np.array([window.start_ns for window in picture.evidence.cold_windows])
    ts_ns = picture.requests.ts_ns
    newest = np.searchsorted(starts_ns, ts_ns, side="right") - 1
    age_s: Floats = (ts_ns - starts_ns[np.maximum(newest, 0)]) / 1e9
    return np.where(newest >= 0, age_s, np.nan)


def _excess(picture: Picture, stage: int) -> tuple[float, float]:
    """Return by how much cold requests are slower: as measured, and at equal shape."""
    cold = picture.requests.cold
    raw, level = (
        values[cold, stage].mean() - values[~cold, stage].mean()
        for values in (picture.requests.stage_ms, picture.split.adjusted_ms)
    )
    return float(raw), float(level)


def _announced(picture: Picture, share: float, fading: _Fading) -> Weighed:
    rows, start = picture.requests, picture.found.cold_start
    slow, traffic = 100 * rows.cold[rows.slow].mean(), 100 * rows.cold.mean()
    raw, level = _excess(picture, 0)
    excess = {name: _excess(picture, s + 1)[1] for s, name in enumerate(rows.stages[1:])}
    stage = max(excess, key=lambda name: excess[name])
    evidence = [
        f"{slow:.0f} % of the slow requests lie in cold windows, which hold {traffic:.2g} % of all",
        (
            f"at equal shape a request in a cold window takes {in_ms(level)} longer, "
            f"{in_ms(excess[stage])} of it in {stage}"
        ),
    ]
    against: list[str] = []
    if start.filtered_p99_ms is not None and start.unfiltered_p99_ms is not None:
        text = f"p99 {in_ms(start.unfiltered_p99_ms)} with cold windows, "
        text += f"{in_ms(start.filtered_p99_ms)} without"
        better = start.filtered_p99_ms < start.unfiltered_p99_ms
        (evidence if better else against).append(text)
    if level < raw / 2:
        against.append(f"of {in_ms(raw)} in cold windows inputs explain {in_ms(raw - level)}")
    if fading.share < 1:
        against.append(
            f"{100 * (1 - fading.share):.0f} % of what requests in cold windows take longer does "
            f"not fade after the start: it is most {fading.peak_s:,.0f} s later"
        )
    return Weighed(
        cause=CauseName.COLD_START,
        stage=stage,
        share=share,
        established=_ANNOUNCED * picture.confidence,
        evidence=tuple(evidence),
        against=tuple(against),
    )


def _suspected_share(picture: Picture) -> float:
    """Return the requests of suspected starts as a share of all that are slower than the fast."""
    slow_n = 0.05 * sum(row.n for row in picture.found.end_to_end[:1])
    waves = sum(row.n for row in picture.found.cold_start.suspected)
    return min(waves / slow_n, 1.0) if slow_n else 0.0


def _suspected(picture: Picture, share: float) -> Weighed:
    found = picture.found.cold_start.suspected
    n = sum(row.n for row in found)
    worst = max(found, key=lambda row: row.worst_ms)
    named = f" of {worst.instance}" if worst.instance else ""
    most = max(picture.stages, key=lambda part: part.delta_ms)
    return Weighed(
        cause=CauseName.COLD_START,
        stage=most.stage,
        share=share,
        established=_SUSPECTED * picture.confidence,
        evidence=(
            (
                f"{len(found)} suspected start{'s' * (len(found) > 1)} with {n:,} slow requests "
                f"({100 * share:.2g} % of the slowest twentieth); the worst{named} at "
                f"{worst.at}: {in_ms(worst.worst_ms)}, {in_ms(worst.usual_ms)} is usual"
            ),
        ),
        against=("no deploy or scale-up event confirms them",),
        missing=("send deploy and scale-up events (`--deploys`, or the deploys topic)",),
    )
