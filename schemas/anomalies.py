"""What a detector takes and says: the rows of a tick, and stages that became slower."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

State = Literal["learning", "ready", "unseen_shape", "alarmed", "accepted"]
"""learning: too little was seen to judge. ready: judged, and normal. unseen_shape: what comes now
was hardly ever seen here, so it is not judged. alarmed: slower than its shapes explain. accepted:
the new latency was declared normal, and is being learnt."""

Phase = Literal["started", "spread", "ended", "accepted"]
"""started: a stage became slower. spread: to further cohorts. ended: it is itself again. accepted:
it stays slower, and that is normal from now on."""

Test = Literal["mean", "tail", "slope", "share"]
"""Which kind of change was found: all requests slower, more slow ones, long inputs slower than
short ones, or a larger share in a second mode."""


@dataclass(frozen=True, slots=True, order=True)
class StageCohort:
    """What is judged by itself: one stage of one cohort of a service.

    Attributes:
        stage: without "_ms".
        cohort: text of the cohort.
    """

    stage: str
    cohort: str


@dataclass(frozen=True, slots=True)
class TickRows:
    """Sampled stage times that came in one tick.

    Attributes:
        keys: what `key` refers to.
        key: [N] index into `keys`.
        ms: [N] the stage's time.
        covariates: names of the columns of `covariate`.
        covariate: [N, C] NaN is missing.
    """

    keys: tuple[StageCohort, ...]
    key: NDArray[np.int64]
    ms: NDArray[np.float64]
    covariates: tuple[str, ...]
    covariate: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Effect:
    """How much slower a stage is than its shapes explain.

    Attributes:
        pct: per cent of the expected time; the interval holds with 95 %.
        low_pct: its lower end.
        high_pct: its upper end.
        ms: the same in milliseconds a request, at the shapes that came.
        low_ms: its lower end.
        high_ms: its upper end.
        expected_ms: mean time expected for the same shapes.
        measured_ms: mean time measured.
        n: rows since the onset, faded, that it is read off.
    """

    pct: float
    low_pct: float
    high_pct: float
    ms: float
    low_ms: float
    high_ms: float
    expected_ms: float
    measured_ms: float
    n: int


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A stage of a service that takes longer than the shapes of its requests explain.

    Attributes:
        phase: what happened now.
        stage: which stage.
        cohorts: all that are alarmed, or were until now, sorted.
        test: what kind of change was found first.
        onset_ns: when the change began, as far as the tests can tell.
        started_ns: when the alarm began; with the stage it identifies the anomaly.
        at_ns: when this was said.
        effect: None where no row tells it.
    """

    phase: Phase
    stage: str
    cohorts: tuple[str, ...]
    test: Test
    onset_ns: int
    started_ns: int
    at_ns: int
    effect: Effect | None
