"""The levels of every key, and of every stage over its cohorts, which share one jitter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.anomaly.jitter import Jitter, Means
from tailbudget.models.anomaly.levels import LEAST_STEP, Seen
from tailbudget.models.anomaly.tick import POINTS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

UNIT: Final = 0.1
"""Levels of stages are counted in so much of the logarithm: a usual spread of one row."""


@dataclass(frozen=True, slots=True)
class Cohorts:
    """One tick of every key.

    Attributes:
        mean: [K] mean score.
        rows: [K] independent rows.
        unsure: [K] how far off the expectation may be, in scores.
        spread: [K] standard deviation of the residual's logarithm.
        stage: [K] index of the key's stage.
        idle: [K] not watched now; its whole stage is not, then.
    """

    mean: Floats
    rows: Floats
    unsure: Floats
    spread: Floats
    stage: Integers
    idle: Mask


def alone(cohorts: Cohorts, jitter: Floats) -> Seen:
    """Return what each key says of its level, given the variance of its jitter [K]."""
    return Seen(
        mean=cohorts.mean,
        rows=cohorts.rows,
        jitter=jitter,
        unsure=cohorts.unsure,
        spread=cohorts.spread,
        least=LEAST_STEP / cohorts.spread,
        idle=cohorts.idle,
    )


def together(cohorts: Cohorts, jitter: Floats) -> Seen:
    """Return what all cohorts of each stage say, weighed by how exact they are.

    Args:
        cohorts: one tick of every key.
        jitter: [S] variance of each stage's jitter, in units of `UNIT` squared.
    """
    stages = len(jitter)
    unit = cohorts.spread / UNIT
    weight = cohorts.rows / unit**2
    total: Floats = np.bincount(cohorts.stage, weight, stages).astype(np.float64)
    each = np.maximum(total, 1e-9)
    return Seen(
        mean=np.bincount(cohorts.stage, weight * unit * cohorts.mean, stages) / each,
        rows=total,
        jitter=jitter,
        unsure=np.bincount(cohorts.stage, weight * unit * cohorts.unsure, stages) / each,
        spread=np.full(stages, UNIT),
        least=np.full(stages, LEAST_STEP / UNIT),
        idle=np.bincount(cohorts.stage, cohorts.idle, stages) > 0,
    )


def add_together(now_s: float, jitter: Jitter, tick: Seen) -> None:
    """Let the jitter of stages follow a tick."""
    jitter.add(now_s, Means(tick.rows, tick.mean, np.zeros((len(tick.rows), POINTS))), tick.idle)


def settle_together(
    now_s: float, delay_s: float, jitter: Jitter, keys: tuple[Integers, Mask, Floats]
) -> None:
    """Count the windows of stages that were sound.

    Args:
        now_s: time.
        delay_s: how long windows wait.
        jitter: of the stages.
        keys: of each key [K] its stage, whether it is sound, and when its last alarm ended.
    """
    stage, sound, ended_s = keys
    last_s = np.full(jitter.size, -np.inf)
    np.maximum.at(last_s, stage, ended_s)
    jitter.settle(now_s, delay_s, np.bincount(stage, ~sound, jitter.size) == 0, last_s)
