"""The optimisation brief: one page on what to do first, and how to see that it worked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where a slow request spends time.

    Attributes:
        place: such as "tokenisation" or "queueing".
        share_pct: of the slow requests' time; None when no stage stands for it, or none was
            measured.
        stages: the stages that stand for it.
    """

    place: str
    share_pct: float | None
    stages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Option:
    """One way to batch, to cache or to make the model smaller.

    Attributes:
        name: such as "continuous".
        text: what it does; of a cache, what invalidates it.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class RankedRow:
    """One line of the ranked table.

    Attributes:
        action: what to do.
        impact: milliseconds of p99 as an estimate, or that it is not measured.
        effort: engineering hours, as the catalogue estimates them.
        risk: to quality, and whether it can be undone.
        verify: how to see that it worked.
    """

    action: str
    impact: str
    effort: str
    risk: str
    verify: str


@dataclass(frozen=True, slots=True)
class Brief:
    """What is known, what is missing, what to do.

    Attributes:
        problem: the problem in one sentence.
        missing: inputs that nobody gave or measured.
        places: where slow requests spend time, in the order of a request.
        unmapped: stages whose name says nothing about their place, with their share.
        places_note: where figures are absent, why.
        batching: ways to batch, with their effect on P95.
        caching: caches, with what invalidates each.
        reductions: ways to make the model smaller, and what bounds their effect.
        ranked: the one ranked table.
        measurement: how to measure before and after.
        first_week: three steps.
        caveat: what to distrust.
    """

    problem: str
    missing: tuple[str, ...]
    places: tuple[Place, ...]
    unmapped: tuple[Place, ...]
    places_note: str
    batching: tuple[Option, ...]
    caching: tuple[Option, ...]
    reductions: tuple[Option, ...]
    ranked: tuple[RankedRow, ...]
    measurement: tuple[str, ...]
    first_week: tuple[str, str, str]
    caveat: str
