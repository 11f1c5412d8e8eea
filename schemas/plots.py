"""Points for the charts of a report; not part of the JSON report."""

from __future__ import annotations

from dataclasses import dataclass

from tailbudget.schemas.sections import ColdWindow


@dataclass(frozen=True, slots=True)
class Slot:
    """One point of the timeline.

    Attributes:
        start: RFC 3339 time.
        n: requests, failures included.
        failed: those that failed.
        p50_ms: of the successful ones; None when there are none.
        p99_ms: likewise.
    """

    start: str
    n: int
    failed: int
    p50_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True)
class Plots:
    """What charts need beyond the sections.

    Attributes:
        histogram: (upper edge in milliseconds, successful requests) of the total, ascending.
        timeline: ascending in time.
        scatter_stage: the stage of `scatter`; empty when there is none.
        scatter_covariate: the input-shape dimension of `scatter`.
        scatter: (covariate, milliseconds, request id) of sampled requests.
        cold_windows: spans to shade.
    """

    histogram: tuple[tuple[float, int], ...]
    timeline: tuple[Slot, ...]
    scatter_stage: str
    scatter_covariate: str
    scatter: tuple[tuple[float, float, str], ...]
    cold_windows: tuple[ColdWindow, ...]
