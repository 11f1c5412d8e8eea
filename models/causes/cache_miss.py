"""Cache miss: slow requests are those whose answer was not in a cache, by a flag that says so.

Share: how much more often slow requests miss than fast ones, so far as misses stay slower at equal
shape (of a flag in numbers: what it explains beside the other covariates). Established: 0.9, for
the flag is measured. Without a flag two modes of a stage are a hint at most (0.1): a dependency
that times out looks the same.
"""

from __future__ import annotations

from typing import Final

from tailbudget.models.causes.modes import Modes, two_modes
from tailbudget.models.causes.names import Role, is_external, is_miss, is_waiting, role
from tailbudget.models.causes.picture import Picture
from tailbudget.models.causes.values import Values
from tailbudget.models.causes.weighed import Weighed
from tailbudget.models.causes.words import in_ms, mean
from tailbudget.schemas.proposals import CauseName
from tailbudget.schemas.summary import TOTAL

_FLAGGED: Final = 0.9
_HINT: Final = 0.1


def weigh(picture: Picture) -> Weighed | None:
    """Return the cause, or the hint; None when nothing points to a cache."""
    by_dimension = [(flag_share(flag), flag) for flag in picture.flags]
    best = max(by_dimension, key=lambda pair: pair[0], default=None)
    if best and best[0] > 0:
        return _by_dimension(picture, *best)
    if (ms := flagged_ms(picture)) > 0:
        return _by_covariate(picture, ms)
    return None if picture.flags else _hint(picture)


def tied_share(picture: Picture) -> float:
    """Return the share of the gap that measured misses explain."""
    by_dimension = max((flag_share(flag) for flag in picture.flags), default=0.0)
    return max(by_dimension, picture.share(flagged_ms(picture)))


def stage_modes(picture: Picture, stage: str) -> Modes | None:
    """Return the two modes of a stage; None when it has not two."""
    return two_modes(picture.requests.stage_ms[:, picture.requests.stages.index(stage)])


def flag_share(flag: Values) -> float:
    """Return the share of the gap that is tied to the misses of a flag."""
    at = _miss(flag)
    if at is None:
        return 0.0
    raw, level = flag.excess(at)
    return flag.concentration(at) * min(level / raw, 1.0) if raw > 0 else 0.0


def flagged_ms(picture: Picture) -> float:
    """Return what flags in numbers explain, over all stages."""
    return sum(max(picture.explained_ms(part, Role.FLAG), 0.0) for part in picture.stages)


def _miss(flag: Values) -> int | None:
    """Return which value is the miss, where there are only a hit and a miss."""
    said = [is_miss(flag.dimension, name) for name in flag.names]
    return said.index(True) if sorted(map(str, said)) == ["False", "True"] else None


def _by_dimension(picture: Picture, share: float, flag: Values) -> Weighed:
    at = _miss(flag) or 0
    names = [part.stage for part in picture.stages]
    stage = max(names, key=lambda name: flag.excess(at, name)[1])
    raw, level = flag.excess(at, stage)
    whole_raw, whole = flag.excess(at, TOTAL)
    against: tuple[str, ...] = ()
    if whole < whole_raw / 2:
        against += (
            (
                f"of the {in_ms(whole_raw)} by which misses are slower, "
                f"inputs explain {in_ms(whole_raw - whole)}"
            ),
        )
    return Weighed(
        cause=CauseName.CACHE_MISS,
        stage=stage,
        share=share,
        established=_FLAGGED * picture.confidence,
        evidence=(
            (
                f"{100 * flag.slow[at]:.3g} % of the slow requests miss ({flag.dimension}), "
                f"{100 * flag.fast[at]:.3g} % of the fast ones, "
                f"{100 * flag.traffic[at]:.3g} % of all"
            ),
            f"a miss takes {in_ms(raw)} longer in {stage}, {in_ms(level)} at equal shape",
        ),
        against=against,
        cohort=f"{flag.dimension}={flag.names[at]}",
    )


def _by_covariate(picture: Picture, ms: float) -> Weighed:
    name, stage, most = max(
        (
            (name, part.stage, ms)
            for part in picture.stages
            for name, ms in part.by_covariate.items()
            if role(name) is Role.FLAG
        ),
        key=lambda row: row[2],
    )
    values, rows = picture.rows.of(name), picture.requests
    slow, fast = mean(values[rows.slow]), mean(values[rows.fast])
    return Weighed(
        cause=CauseName.CACHE_MISS,
        stage=stage,
        share=picture.share(ms),
        established=_FLAGGED * picture.confidence,
        evidence=(
            f"{name} is {slow} on average in slow requests and {fast} in fast ones",
            f"it explains {in_ms(most)} of the slow-minus-fast difference in {stage}",
        ),
        covariate=name,
    )


def _hint(picture: Picture) -> Weighed | None:
    found: list[tuple[float, str, Modes]] = []
    for part in picture.stages:
        if is_waiting(part.stage) or not is_external(part.stage, picture.external):
            continue
        modes = stage_modes(picture, part.stage)
        own = part.delta_ms - picture.explained_ms(part, Role.SHAPE, Role.FANOUT)
        if modes and picture.share(own) > 0:
            found.append((picture.share(own), part.stage, modes))
    if not found:
        return None
    share, stage, modes = max(found, key=lambda row: row[0])
    return Weighed(
        cause=CauseName.CACHE_MISS,
        stage=stage,
        share=share,
        established=_HINT,
        evidence=(
            (
                f"{stage} has two modes: about {in_ms(modes.low_ms)}, and about "
                f"{in_ms(modes.high_ms)} in {100 * modes.high_share:.2g} % of the requests"
            ),
        ),
        against=("nothing says whether a cache had the answer",),
        missing=(f"measure the hit ratio of {stage}: log a flag such as cache_hit per request",),
    )
