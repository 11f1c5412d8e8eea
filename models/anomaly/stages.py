"""What the cohorts of a stage say together: one level, with one jitter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.anomaly.jitter import Means
from tailbudget.models.anomaly.tick import POINTS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

UNIT: Final = 0.1
"""Levels of stages are counted in so much of the logarithm: a usual spread of one row."""


@dataclass(frozen=True, slots=True)
class Together:
    """One tick of every stage, its cohorts weighed by how exact they are.

    Attributes:
        means: rows and mean in units of `UNIT`.
        unsure: [S] how far off the expectation may be, in the same units.
    """

    means: Means
    unsure: Floats


@dataclass(frozen=True, slots=True)
class Cohorts:
    """One tick of every key.

    Attributes:
        mean: [K] mean score.
        rows: [K] independent rows.
        unsure: [K] how far off the expectation may be, in scores.
        spread: [K] standard deviation of the residual's logarithm.
        stage: [K] index of the key's stage.
    """

    mean: Floats
    rows: Floats
    unsure: Floats
    spread: Floats
    stage: Integers


def together(cohorts: Cohorts, stages: int) -> Together:
    """Return what all cohorts of each of so many stages say."""
    unit = cohorts.spread / UNIT
    weight = cohorts.rows / unit**2
    total = np.bincount(cohorts.stage, weight, stages)
    each = np.maximum(total, 1e-9)
    mean = np.bincount(cohorts.stage, weight * unit * cohorts.mean, stages) / each
    unsure = np.bincount(cohorts.stage, weight * unit * cohorts.unsure, stages) / each
    return Together(Means(total, mean, np.zeros((stages, POINTS))), unsure)
