"""What was measured of one span, before anything is concluded from it."""

from __future__ import annotations

from dataclasses import dataclass

from tailbudget.schemas.sections import (
    CohortRow,
    ColdStart,
    Collinear,
    PerUnit,
    ShapeBand,
    ShapeRow,
    StageRow,
)
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.verdicts import Percentile, TailDriver, Verdict


@dataclass(frozen=True, slots=True)
class Findings:
    """The measuring sections of a report; see `verdicts.Audit` for each.

    Attributes:
        verdict: the worst of `end_to_end`.
        end_to_end: percentiles against their targets.
        stages: one row a stage.
        tail_driver: the stage that makes slow requests slow.
        shape: fits of stages on input-shape dimensions.
        shape_bands: spread of those dimensions in the slow and the fast band.
        collinear: dimensions that move together.
        per_unit: latency a unit of length.
        cohorts: the most over-represented first.
        cold_start: with and without cold windows.
        slo: the target.
        slow_request_threshold: "p95", "p99" or milliseconds: where slow begins.
    """

    verdict: Verdict
    end_to_end: tuple[Percentile, ...]
    stages: tuple[StageRow, ...]
    tail_driver: TailDriver | None
    shape: tuple[ShapeRow, ...]
    shape_bands: tuple[ShapeBand, ...]
    collinear: tuple[Collinear, ...]
    per_unit: tuple[PerUnit, ...]
    cohorts: tuple[CohortRow, ...]
    cold_start: ColdStart
    slo: SloTarget | None
    slow_request_threshold: str | float
