"""Where slow requests spend their time, by the names of their stages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tailbudget.models.places import FORWARD, place_of
from tailbudget.schemas.brief import Place
from tailbudget.schemas.sections import StageRole, StageRow

ORDER: Final = (
    "preprocessing", "tokenisation", FORWARD, "postprocessing", "network", "queueing",
)  # fmt: skip


def places(table: Sequence[StageRow]) -> tuple[Place, ...]:
    """Return the six places in the order of a request."""
    shares = shares_pct(table)
    return tuple(
        _place(place, [stage for stage in shares if place_of(stage) == place], shares)
        for place in ORDER
    )


def unmapped(table: Sequence[StageRow]) -> tuple[Place, ...]:
    """Return the stages whose names tell no place, the largest share first."""
    shares = shares_pct(table)
    left = [_place(stage, [stage], shares) for stage in shares if place_of(stage) is None]
    return tuple(sorted(left, key=lambda place: -(place.share_pct or 0.0)))


def shares_pct(table: Sequence[StageRow]) -> Mapping[str, float | None]:
    """Return each stage's share of slow requests' time; stages that hold others are left out.

    Without the share of the table it is the stage's part of the slow means, where known.
    """
    own = [row for row in table if row.role is not StageRole.CONTAINER]
    whole = sum(row.mean_slow_ms or 0.0 for row in own)

    def share(row: StageRow) -> float | None:
        if row.p99_share_pct is not None or row.mean_slow_ms is None or not whole:
            return row.p99_share_pct
        return 100 * row.mean_slow_ms / whole

    return {row.stage: share(row) for row in own}


def _place(name: str, stages: Sequence[str], shares: Mapping[str, float | None]) -> Place:
    known = [share for share in (shares[stage] for stage in stages) if share is not None]
    return Place(name, sum(known) if known else None, tuple(stages))
