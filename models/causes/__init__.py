"""Why are slow requests slow? Six causes, each weighed by one file.

Each file has `weigh(picture) -> Weighed | None`; the picture is what all share: the gap between
slow and fast requests, taken apart by stage (`gap`), by value of a dimension (`values`) and by
load (`load`). A score is the share of the gap that is tied to the cause, times how well that is
established (`weighed`), so scores of different causes compare, and several causes may hold.

What others see (an anomaly model, hardware signals) comes in as `Observation`s: it changes how
well a cause is established, never its measured share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from tailbudget.models.causes import (
    cache_miss,
    cold,
    contention,
    external_dependency,
    fanout,
    input_shape,
)
from tailbudget.models.causes.picture import Picture, picture_of
from tailbudget.models.causes.unknown import unknown, unmeasured
from tailbudget.models.causes.weighed import NAMED, Observation, Weighed, observed
from tailbudget.models.evidence import Evidence
from tailbudget.schemas.findings import Findings
from tailbudget.schemas.proposals import Cause

_WEIGH: Final[tuple[Callable[[Picture], Weighed | None], ...]] = (
    input_shape.weigh,
    cold.weigh,
    contention.weigh,
    external_dependency.weigh,
    cache_miss.weigh,
    fanout.weigh,
)


def causes(
    evidence: Evidence,
    found: Findings,
    *,
    external: Collection[str] = (),
    observations: Collection[Observation] = (),
) -> tuple[Cause, ...]:
    """Return the causes whose score reaches `NAMED`, the highest first; `unknown` without any.

    Args:
        evidence: of one service.
        found: the sections measured from it.
        external: stages that are calls to other processes though their name does not say so.
        observations: what others saw of causes.
    """
    picture = picture_of(evidence, found, external)
    if isinstance(picture, str):
        return (unmeasured(picture),)
    weighed = [
        observed(one, observations) for weigh in _WEIGH if (one := weigh(picture)) is not None
    ]
    weighed.sort(key=lambda one: -one.score)
    named = tuple(one.told() for one in weighed if one.score >= NAMED)
    return named or (unknown(picture, weighed),)


__all__ = ["NAMED", "Observation", "causes"]
