"""Sequential tests of every key, and pooled over the cohorts of a stage.

Each is a cumulative sum of log-likelihood ratios that never falls below zero (Page 1954): it
grows while the rows speak for a change of one kind, however small, and forgets while they don't.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.anomaly.allowance import Allowance
from tailbudget.models.anomaly.tick import POINTS, Tick
from tailbudget.models.per_key import Field, PerKey
from tailbudget.schemas.anomalies import Test

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

START: Final = 18.0
"""Log-likelihood ratio at which an alarm starts: chance alone gives e^18 to 1 once in a while."""
MOST_A_TICK: Final = 0.6 * START
"""One tick alone starts no alarm."""

SHIFTS: Final = np.array([0.35, 0.8, 1.6, 2.5])
"""Shifts of the mean that are tested for, in standard deviations beyond the allowance."""
TAILS: Final = ((0, 0.05), (0, 0.10), (1, 0.08), (2, 0.10), (3, 0.03), (3, 0.10))
"""(point, share added to the allowance) that are tested for."""
_SLOPE: Final = 0.7
_SLOPE_SLACK: Final = 0.1

TAIL: Final = slice(len(SHIFTS), len(SHIFTS) + len(TAILS))
SLOPE: Final = TAIL.stop
NAMES: Final[tuple[Test, ...]] = (*("mean",) * 4, *("tail",) * 3, *("share",) * 3, "slope")
_TESTS: Final = len(NAMES)
POINT_OF: Final = np.array([0] * len(SHIFTS) + [point for point, _ in TAILS] + [0])
"""Which tail point each test counts; the others have the first beside them."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A tick with what it is worth.

    Attributes:
        tick: the sums.
        effective: [K] independent rows.
        allow: what is no news.
    """

    tick: Tick
    effective: Floats
    allow: Allowance


class Tests(PerKey):
    """The sums of every key.

    Attributes:
        sums: [K, 11] log-likelihood ratios, in the order of `NAMES`.
        down: [K] the sum for a key that became faster.
        down_s: [K] when it last began to grow.
        zero_s: [K, 11] when each last began to grow.
        hits: [K, 4] rows beyond each point since the tests of it were last zero.
        rows: [K, 4] all rows since then.
    """

    FIELDS: ClassVar[Mapping[str, Field]] = {
        "sums": ((_TESTS,), 0.0),
        "down": ((), 0.0),
        "down_s": ((), 0.0),
        "zero_s": ((_TESTS,), 0.0),
        "hits": ((POINTS,), 0.0),
        "rows": ((POINTS,), 0.0),
    }
    sums: Floats
    down: Floats
    down_s: Floats
    zero_s: Floats
    hits: Floats
    rows: Floats

    def update(self, now_s: float, given: Weighed) -> Floats:
        """Add a tick; return [K, 11] what it added, for pooling."""
        added = increments(given)
        self.zero_s = np.where(self.sums <= 0, now_s, self.zero_s)
        self.sums = np.maximum(0.0, self.sums + np.minimum(added, MOST_A_TICK))
        self._count(given.tick)
        self.down_s = np.where(self.down <= 0, now_s, self.down_s)
        faster = 0.8 * (-given.tick.mean - given.allow.mean) - 0.32
        self.down = np.clip(self.down + given.effective * faster, 0.0, 2 * START)
        return added

    def share(self, keys: Integers) -> Floats:
        """Return [k, 4] the share of rows beyond each point since the change began."""
        share: Floats = self.hits[keys] / np.maximum(self.rows[keys], 1.0)
        return share

    def _count(self, tick: Tick) -> None:
        self.hits += tick.exceed
        self.rows += tick.rows[:, None]
        over = np.ones((self.size, POINTS), np.bool_)
        for j, (point, _) in enumerate(TAILS):
            over[:, point] &= self.sums[:, TAIL.start + j] <= 0
        self.hits[over] = self.rows[over] = 0.0

    @property
    def largest(self) -> Floats:
        """Return [K] the largest sum of each key."""
        result: Floats = self.sums.max(axis=1, initial=0.0)
        return result


class PooledTests(PerKey):
    """The sums of every stage, over its cohorts: a fault of the stage is found sooner.

    Attributes:
        sums: [S, 10] log-likelihood ratios of mean and tail.
    """

    FIELDS: ClassVar[Mapping[str, Field]] = {"sums": ((_TESTS - 1,), 0.0)}
    sums: Floats

    def update(self, added: Floats, stage: Integers) -> None:
        """Add what a tick added to the keys [K, 11]."""
        total = np.zeros((self.size, _TESTS - 1))
        np.add.at(total, stage, added[:, : _TESTS - 1])
        self.sums = np.maximum(0.0, self.sums + np.minimum(total, MOST_A_TICK))

    @property
    def largest(self) -> Floats:
        """Return [S] the largest sum of each stage."""
        result: Floats = self.sums.max(axis=1, initial=0.0)
        return result


def increments(given: Weighed) -> Floats:
    """Return [K, 11] the log-likelihood ratio that a tick gives to each test."""
    tick, rows = given.tick, given.tick.rows
    beyond = (tick.mean - given.allow.mean)[:, None]
    mean = given.effective[:, None] * (SHIFTS * beyond - SHIFTS**2 / 2)
    worth = given.effective / np.maximum(rows, 1.0)
    tail = [
        worth * bernoulli(tick.exceed[:, point], rows, given.allow.tail[:, point], more)
        for point, more in TAILS
    ]
    allowed = (given.allow.mean + _SLOPE_SLACK) * tick.size
    slope = worth * (_SLOPE * (tick.size_score - allowed) - _SLOPE**2 / 2 * tick.size_square)
    return np.column_stack([mean, *tail, slope])


def bernoulli(hits: Floats, rows: Floats, usual: Floats, more: Floats | float) -> Floats:
    """Return the log-likelihood ratio of a share larger by `more` than the usual one."""
    raised = np.minimum(usual + more, 0.9)
    missed = (rows - hits) * np.log((1 - raised) / (1 - usual))
    ratio: Floats = hits * np.log(raised / usual) + missed
    return ratio
