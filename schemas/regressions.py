"""What a report says of stages that became slower than their shapes explain."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeptRegression:
    """An anomaly of a stage within the span of a report.

    Attributes:
        stage: which stage.
        state: "started" or "spread" while it goes on; "ended", "accepted", or "lost" when nobody
            watches it any more.
        onset: RFC 3339 time at which the stage became slower.
        started: when that was found.
        ended: when it was over; None while it goes on.
        cohorts: texts of the cohorts that were slower.
        effect_pct: per cent of the time expected for the same shapes; None when not measured.
        low_pct: lower end of its 95 % interval.
        high_pct: upper end.
        effect_ms: the same in milliseconds a request.
        expected_ms: mean time expected for the shapes that came.
        measured_ms: mean time measured.
        deploy: version of the nearest deploy before the onset; empty when there is none.
        cause: named by the report of that time; empty when none was.
        signals: what hardware, engines and platforms measured otherwise from the onset on.
    """

    stage: str
    state: str
    onset: str
    started: str
    ended: str | None
    cohorts: tuple[str, ...]
    effect_pct: float | None
    low_pct: float | None
    high_pct: float | None
    effect_ms: float | None
    expected_ms: float | None
    measured_ms: float | None
    deploy: str
    cause: str
    signals: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StageState:
    """How many cohorts of a stage are in a state, as it was last in the span of a report.

    Attributes:
        stage: which stage.
        state: "learning", "ready", "unseen_shape", "alarmed" or "accepted".
        cohorts: how many.
    """

    stage: str
    state: str
    cohorts: int
