"""When an alarm begins and ends: each by a sequential test, not by a moment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.anomaly.sequential import (
    POINT_OF,
    SLOPE,
    START,
    TAIL,
    PooledTests,
    Tests,
    Weighed,
    bernoulli,
)
from tailbudget.models.per_key import Field, PerKey

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

RESTART: Final = 12.0
"""After an alarm less evidence starts the next, for a while: faults come back."""
RESTART_S: Final = 30.0
_OWN_SHARE: Final = 4.5
"""A pooled alarm starts at keys that speak for it themselves by so much."""
END: Final = 9.0
_MOST_A_TICK: Final = 0.67 * END
_OWN_QUIET: Final = 2.0
"""An alarm ends together with those of the other cohorts if its own rows speak for it so much."""
_TAIL_TOO: Final = 1.5  # an alarm of the mean ends when the tail speaks for that, a little
_TAIL_SHARE: Final = 0.15
_LONG_AGO: Final = -1e12
_SHIFTS: Final = (0.3, 3.4)
_FOLLOW_ROWS: Final = 40.0
_FOLLOW_TAIL_ROWS: Final = 120.0


class Alarms(PerKey):
    """The alarms of every key.

    Attributes:
        on: [K] alarmed.
        since_s: [K] when the alarm began.
        onset_s: [K] when the change began, as far as the tests can tell.
        ended_s: [K] when the last alarm ended.
        muted_s: [K] no alarm begins before.
        test: [K] index of the test that began the alarm.
        shift: [K] estimated shift of the mean score.
        tail_share: [K] estimated share beyond the tail point.
        quiet: [K] evidence that the mean is normal again.
        quiet_tail: [K] evidence that the tail is.
        quiet_all: [K] evidence of the same kind over all alarmed cohorts of the stage.
    """

    FIELDS: ClassVar[Mapping[str, Field]] = {
        "on": ((), False),
        "since_s": ((), _LONG_AGO),
        "onset_s": ((), _LONG_AGO),
        "ended_s": ((), _LONG_AGO),
        "muted_s": ((), _LONG_AGO),
        "test": ((), 0),
        "shift": ((), 0.3),
        "tail_share": ((), _TAIL_SHARE),
        "quiet": ((), 0.0),
        "quiet_tail": ((), 0.0),
        "quiet_all": ((), 0.0),
    }
    on: Mask
    since_s: Floats
    onset_s: Floats
    ended_s: Floats
    muted_s: Floats
    test: Integers
    shift: Floats
    tail_share: Floats
    quiet: Floats
    quiet_tail: Floats
    quiet_all: Floats

    def begin(
        self, now_s: float, tests: Tests, pooled: PooledTests, stage: Integers, given: Weighed
    ) -> Mask:
        """Start alarms where the tests say so; return [K] which."""
        largest = tests.largest
        limit = np.where(now_s - self.ended_s < RESTART_S, RESTART, START)
        started = largest > limit
        started |= (pooled.largest > START)[stage] & (largest > _OWN_SHARE)
        started &= ~self.on & (now_s > self.muted_s) & (given.tick.rows > 0)
        at = np.flatnonzero(started)
        if len(at):
            self.on[at] = True
            self.test[at] = tests.sums[at].argmax(axis=1)
            self.since_s[at] = now_s
            self.onset_s[at] = tests.zero_s[at, self.test[at]]
            self.shift[at] = np.maximum(given.tick.mean[at], _SHIFTS[0])
            shares = tests.share(at)[np.arange(len(at)), POINT_OF[self.test[at]]]
            self.tail_share[at] = np.where(self._of_tail()[at], shares, _TAIL_SHARE)
            self.quiet[at] = self.quiet_tail[at] = self.quiet_all[at] = 0.0
        return started

    def end(self, now_s: float, given: Weighed, started: Mask, stage: Integers) -> Mask:
        """End alarms where their tests say so; return [K] which."""
        judged = self.on & (given.tick.rows > 0) & ~started
        if not judged.any():
            return judged
        by_mean = self._weigh_mean(judged, given)
        by_tail = self._weigh_tail(judged, given)
        of_tail = self._of_tail()
        own = np.where(of_tail, self.quiet_tail, self.quiet)
        self._pool(judged, stage, np.where(of_tail, by_tail, by_mean))
        over = (own > END) | ((self.quiet_all > END) & (own > _OWN_QUIET))
        ended: Mask = judged & over & (of_tail | (self.quiet_tail > _TAIL_TOO))
        self.on[ended] = False
        self.ended_s[ended] = now_s
        return ended

    def _of_tail(self) -> Mask:
        result: Mask = (self.test >= TAIL.start) & (self.test < SLOPE)
        return result

    def _pool(self, judged: Mask, stage: Integers, added: Floats) -> None:
        """Add up what the alarmed cohorts of each stage say: it ends for them together."""
        total = np.bincount(stage, np.where(judged, added, 0.0))[stage]
        quiet = np.maximum(0.0, self.quiet_all + np.minimum(total, _MOST_A_TICK))
        self.quiet_all = np.where(self.on, quiet, self.quiet_all)

    def _weigh_mean(self, judged: Mask, given: Weighed) -> Floats:
        """Add the evidence for no shift against the shift that the alarm has shown so far."""
        mean, rows = given.tick.mean, given.tick.rows
        # The estimate follows rows that look alarmed only: else it would follow them back.
        weight = np.minimum(rows / _FOLLOW_ROWS, 1.0) * (mean > 0.5 * self.shift)
        floor = np.maximum(_SHIFTS[0], given.allow.mean)
        moved = np.clip(self.shift + weight * (mean - self.shift), np.minimum(floor, 3.4), 3.4)
        self.shift = np.where(judged, moved, self.shift)
        shift = np.maximum(self.shift, 0.25)
        still = given.effective * (shift * np.clip(mean, -1.0, 4.0) - shift**2 / 2)
        quiet = np.maximum(0.0, self.quiet - np.maximum(still, -_MOST_A_TICK))
        self.quiet = np.where(judged, quiet, self.quiet)
        return -still

    def _weigh_tail(self, judged: Mask, given: Weighed) -> Floats:
        rows = given.tick.rows
        keys, point = np.arange(self.size), POINT_OF[self.test]
        hits, usual = given.tick.exceed[keys, point], given.allow.usual[keys, point]
        weight = np.minimum(rows / _FOLLOW_TAIL_ROWS, 1.0) * (self.quiet_tail < 1.0)
        moved = self.tail_share + weight * (hits / np.maximum(rows, 1.0) - self.tail_share)
        share = np.clip(moved, np.minimum(1.8 * usual, 0.6), 0.8)
        self.tail_share = np.where(judged, share, self.tail_share)
        worth = given.effective / np.maximum(rows, 1.0)
        still = worth * bernoulli(hits, rows, usual, self.tail_share - usual)
        quiet = np.maximum(0.0, self.quiet_tail + np.minimum(-still, _MOST_A_TICK))
        self.quiet_tail = np.where(judged, quiet, self.quiet_tail)
        return -still
