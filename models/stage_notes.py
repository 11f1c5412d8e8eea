"""What a reader of the stage table must know about how the stages relate, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.models.attribution import Structure
from tailbudget.models.figures import figure
from tailbudget.models.overlap import OVERLAP
from tailbudget.models.stage_shares import Shares
from tailbudget.schemas.summary import TOTAL, Summary

_MOST_NAMES: Final = 8  # in one sentence


def stage_notes(total: Summary, relations: Structure, parts: Shares) -> Iterator[str]:
    """Yield one sentence for the overlap, each container and each parallel group."""
    factor = _together(total, relations)
    if factor > OVERLAP:
        yield f"stages overlap: together they are {factor:.2f} times the total"
    for one in relations.containers:
        verb = "is the sum of" if one.exact else "encloses"
        yield f"{one.stage} {verb} {_and(one.parts)}: it is a container and not added to them"
    for group in relations.groups:
        share = sum(parts.slow_share_pct(name) or 0.0 for name in group)
        gap = sum(parts.gap_ms(name) or 0.0 for name in group)
        yield (
            f"{_and(_few(group))} take place at the same time and count as the longest of them: "
            f"{share:.3g} % of slow requests, {figure(gap)} ms of the gap"
        )


def _together(total: Summary, relations: Structure) -> float:
    """Return the sum of all stages but containers, as a multiple of the total."""
    sums = dict(zip(total.stages, total.sum_ns[0].tolist(), strict=True))
    branches = [name for group in relations.groups for name in group]
    stages: int = sum(sums[name] for name in (*relations.serial, *branches))
    return stages / sums[TOTAL] if sums[TOTAL] else 0.0


def _few(names: tuple[str, ...]) -> tuple[str, ...]:
    return names if len(names) <= _MOST_NAMES else (*names[:3], f"{len(names) - 3} more")


def _and(names: tuple[str, ...]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
