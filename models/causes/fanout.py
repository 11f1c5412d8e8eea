"""Fan-out: a request makes many calls, and is as slow as their number or their slowest.

Two kinds of evidence; the stronger gives the weight:
- a covariate that counts calls: what it explains of the gap, at equal time. Established as for
  input shape.
- parallel stages: by how much their maximum outgrows their mean in slow requests. That all are
  slower together is no fan-out. Established 0.8 (J. Dean and L. Barroso, The Tail at Scale, 2013:
  the slowest of many is slow often though each is slow seldom), a third of it when one and the
  same stage is the slowest in the larger part of slow requests.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.causes.gap import Part
from tailbudget.models.causes.input_shape import established
from tailbudget.models.causes.names import Role, role
from tailbudget.models.causes.picture import Picture
from tailbudget.models.causes.weighed import Weighed
from tailbudget.models.causes.words import in_ms, median
from tailbudget.schemas.proposals import CauseName
from tailbudget.schemas.sections import StageRole

_STRAGGLERS: Final = 0.8
_SAME: Final = 0.5
_FEWEST: Final = 3
"""Parallel stages from which one speaks of fan-out."""

_NUMBERED: Final = re.compile(r"^(.*?)[_.-]?\d+$")


@dataclass(frozen=True, slots=True)
class _Calls:
    """Parallel stages in the slow and the fast band.

    Attributes:
        stages: their names.
        max_ms: slow-minus-fast difference of their maximum.
        mean_ms: of their mean.
        slowest: the stage that is the slowest most often in slow requests.
        how_often: in which share of them.
    """

    stages: tuple[str, ...]
    max_ms: float
    mean_ms: float
    slowest: str
    how_often: float


def weigh(picture: Picture) -> Weighed | None:
    """Return the cause; None when nothing counts calls and none run in parallel."""
    kinds = (_counted(picture), _stragglers(picture))
    return max(filter(None, kinds), key=lambda kind: kind.score, default=None)


def straggler_share(picture: Picture) -> float:
    """Return the share of the gap by which the slowest of parallel calls outgrows their mean."""
    calls = _calls(picture)
    return picture.share(calls.max_ms - calls.mean_ms) if calls else 0.0


def _counted(picture: Picture) -> Weighed | None:
    found = [
        (ms, part, name)
        for part in picture.stages
        for name, ms in part.by_covariate.items()
        if role(name) is Role.FANOUT and ms > 0
    ]
    if not found:
        return None
    ms, part, name = max(found, key=lambda row: row[0])
    whole = sum(max(picture.explained_ms(p, Role.FANOUT), 0.0) for p in picture.stages)
    factor, against = established(picture, part.stage, name)
    values, rows = picture.rows.of(name), picture.requests
    slow, fast = median(values[rows.slow]), median(values[rows.fast])
    return Weighed(
        cause=CauseName.FANOUT,
        stage=part.stage,
        share=picture.share(whole),
        established=factor * picture.confidence,
        evidence=(
            (
                f"{name} explains {in_ms(ms)} of the {in_ms(part.delta_ms)} by which slow requests "
                f"are longer in {part.stage}, at equal time"
            ),
            f"the median of {name} is {slow} in slow requests and {fast} in fast ones",
        ),
        against=against,
        covariate=name,
    )


def _stragglers(picture: Picture) -> Weighed | None:
    calls = _calls(picture)
    if calls is None or calls.max_ms <= calls.mean_ms:
        return None
    same = calls.how_often > _SAME
    against = (
        (f"{calls.slowest} is the slowest in {100 * calls.how_often:.0f} % of the slow requests: "
        "it is that one, not their number"),
    ) if same else ()  # fmt: skip
    return Weighed(
        cause=CauseName.FANOUT,
        stage=calls.slowest,
        share=picture.share(calls.max_ms - calls.mean_ms),
        established=_STRAGGLERS / (3 if same else 1) * picture.confidence,
        evidence=(
            (
                f"the slowest of {len(calls.stages)} parallel stages takes {in_ms(calls.max_ms)} "
                f"longer in slow requests, their mean {in_ms(calls.mean_ms)}"
            ),
        ),
        against=against,
    )


def _calls(picture: Picture) -> _Calls | None:
    """Return the parallel stages; None when there are fewer than three."""
    rows = picture.requests
    names = _parallel(picture)
    if len(names) < _FEWEST:
        return None
    ms = rows.stage_ms[:, [rows.stages.index(name) for name in names]]
    most, mean = ms.max(axis=1), ms.mean(axis=1)
    which = np.bincount(ms[rows.slow].argmax(axis=1), minlength=len(names))
    at = int(which.argmax())
    return _Calls(
        names,
        _delta(picture, most),
        _delta(picture, mean),
        names[at],
        float(which[at] / which.sum()),
    )


def _delta(picture: Picture, values: NDArray[np.float64]) -> float:
    rows = picture.requests
    return float(values[rows.slow].mean() - values[rows.fast].mean())


def _parallel(picture: Picture) -> tuple[str, ...]:
    """Return the stages said to be parallel, else numbered ones that together exceed the total."""
    said = {row.stage for row in picture.found.stages if row.role is StageRole.PARALLEL}
    if len(said) >= _FEWEST:
        return tuple(sorted(said))
    rows = picture.requests
    for names in _numbered(picture.stages):
        together = rows.stage_ms[:, [rows.stages.index(name) for name in names]].sum(axis=1)
        if np.median(together) > np.median(rows.stage_ms[:, 0]):
            return names
    return ()


def _numbered(parts: Iterable[Part]) -> list[tuple[str, ...]]:
    families: dict[str, list[str]] = {}
    for part in parts:
        match = _NUMBERED.match(part.stage)
        if match:
            families.setdefault(match[1], []).append(part.stage)
    return [tuple(names) for _, names in sorted(families.items()) if len(names) >= _FEWEST]
