"""The watch over one service: shape models, scores, tests and alarms, one call a tick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.anomaly import saved
from tailbudget.models.anomaly.alarms import Alarms
from tailbudget.models.anomaly.allowance import Doubt, allowance
from tailbudget.models.anomaly.calibration import Calibration, stratum_of
from tailbudget.models.anomaly.clumps import Clumps
from tailbudget.models.anomaly.coverage import Coverage
from tailbudget.models.anomaly.effect import Effects
from tailbudget.models.anomaly.jitter import Jitter
from tailbudget.models.anomaly.pending import DELAY_S, Batch, Pending, joined
from tailbudget.models.anomaly.said import Said
from tailbudget.models.anomaly.sequential import START, PooledTests, Tests, Weighed
from tailbudget.models.anomaly.sizes import Sizes
from tailbudget.models.anomaly.tick import Scored, tick_of
from tailbudget.models.shape.roles import role_of
from tailbudget.models.shape.rows import some
from tailbudget.models.shape.service import Learnt, ServiceShapes
from tailbudget.models.shape.terms import terms
from tailbudget.schemas.anomalies import Anomaly, StageCohort, State, TickRows

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

LEARN_EVERY_S: Final = 1.0
REFIT_EVERY_S: Final = 4.0
SUSPICIOUS: Final = 0.6 * START
"""From this sum on a key is not learnt, though no alarm began yet."""
FASTER_FOR_S: Final = 600.0
"""A stage that became faster is not learnt at first: it may be back soon."""
ACCEPT_AFTER_S: Final = 6 * 3600.0
"""An alarm that lasts so long is accepted as the new normal, and that is said."""
_QUIET: Final = 1.0
_LONG_AGO: Final = -1e12
_MOST_FADE_S: Final = 10.0


class Guard:
    """Says which stages of a service became slower than their shapes explain.

    Attributes:
        shapes: the shape models.
        counts: rows that were not scored, by reason.
        said: the anomalies that go on.
    """

    def __init__(self) -> None:
        self.shapes = ServiceShapes()
        self.counts: Counter[str] = Counter()
        self.calibration, self.tests, self.pooled = Calibration(), Tests(), PooledTests()
        self.jitter, self.clumps, self.sizes = Jitter(), Clumps(), Sizes()
        self.alarms, self.effects, self.coverage = Alarms(), Effects(), Coverage()
        self.waiting = np.zeros(0, np.bool_)
        self.ticked_s = self.learnt_s = self.refit_s = self.cold_until_s = _LONG_AGO
        self._pending = Pending()
        self.said = Said()

    def step(self, now_ns: int, rows: TickRows) -> list[Anomaly]:
        """Score the rows of a tick, then learn what has waited; return what changed.

        Times of `now_ns` must not go back. Rows that come before the end of a cold window are
        neither scored nor learnt.
        """
        now_s = now_ns / 1e9
        if now_s < self.cold_until_s:
            self.counts["cold"] += len(rows.key)
            return []
        key, rows = self._known(rows)
        before = self.alarms.on.copy()
        self._score(now_s, key, rows)
        self._pending.add(Batch(np.full(len(key), now_s), key, rows))
        accepted = self._learn_and_refit(now_s)
        return self.said.changes(now_ns, before, accepted, self)

    def cold(self, until_ns: int) -> None:
        """Neither score nor learn before a time: replicas are cold after a deploy."""
        self.cold_until_s = max(self.cold_until_s, until_ns / 1e9)

    def residuals(self, rows: TickRows) -> tuple[list[str], Floats]:
        """Return stage and ln(measured / expected) of each row that is expected; learn nothing.

        What is usual for the key is subtracted, so that 0 is normal.
        """
        index = self.shapes.resolve(rows.keys)
        self.grow(len(self.shapes.keys))
        bank = self.shapes.bank
        at = np.flatnonzero(np.isfinite(rows.ms) & (rows.ms > 0))
        at = at[index[rows.key[at]] >= 0]
        at = at[bank.ready[index[rows.key[at]]]]
        key, read = index[rows.key[at]], self.shapes.read(index[rows.key[at]], some(rows, at))
        key, slots, ms = key[read.complete], read.values[read.complete], rows.ms[at][read.complete]
        residual = np.log(ms / bank.predict(key, slots, terms(slots))) - bank.middle[key]
        return [self.shapes.keys[k].stage for k in key.tolist()], residual

    def accept(self, now_ns: int, stage: str, cohorts: Sequence[str] = ()) -> list[Anomaly]:
        """Declare the present latency of a stage normal, for some cohorts or (none given) all."""
        wanted = [
            k
            for k, key in enumerate(self.shapes.keys)
            if key.stage == stage and (not cohorts or key.cohort in cohorts)
        ]
        before = self.alarms.on.copy()
        at = np.array(wanted, np.int64)
        self._accept(now_ns / 1e9, at)
        return self.said.changes(now_ns, before, at, self)

    def states(self) -> dict[StageCohort, State]:
        """Return what is known of every key."""
        bank = self.shapes.bank
        order: list[tuple[Mask, State]] = [
            (self.alarms.on, "alarmed"),
            (self.coverage.accepted, "accepted"),
            (~bank.ready, "learning"),
            (self.coverage.unseen > 0.5, "unseen_shape"),
        ]
        return {
            key: next((name for mask, name in order if mask[k]), "ready")
            for k, key in enumerate(self.shapes.keys)
        }

    def active(self, now_ns: int) -> list[Anomaly]:
        """Return the anomalies that go on, as they are now."""
        return self.said.active(now_ns, self)

    def dump(self) -> bytes:
        """Return the state, to the bit; rows that wait to be learnt are not part of it."""
        return saved.dump(self)

    @classmethod
    def load(cls, body: bytes) -> Guard:
        """Return what was dumped.

        Raises:
            WireError: it is damaged, or of another version.
        """
        return saved.load(cls(), body)

    def grow(self, size: int) -> None:
        """Make room for so many keys."""
        for part in saved.PER_KEY:
            getattr(self, part).grow(size)
        self.pooled.grow(len(self.shapes.stages))
        stages = [role_of(key.stage) == "wait" for key in self.shapes.keys]
        self.waiting = np.array(stages, np.bool_)

    def _known(self, rows: TickRows) -> tuple[Integers, TickRows]:
        """Return the index of each row's key, and the rows without those that can't be judged."""
        index = self.shapes.resolve(rows.keys)
        if len(self.shapes.keys) > self.alarms.size:
            self.grow(len(self.shapes.keys))
        key = index[rows.key] if len(rows.key) else np.zeros(0, np.int64)
        sound = np.isfinite(rows.ms) & (rows.ms > 0)
        self.counts["no time"] += int((~sound).sum())
        self.counts["too many keys"] += int((sound & (key < 0)).sum())
        sound &= key >= 0
        return key[sound], some(rows, sound)

    def _score(self, now_s: float, key: Integers, rows: TickRows) -> None:
        bank = self.shapes.bank
        ready = bank.ready[key]
        read = self.shapes.read(key, rows)
        self.counts["learning"] += int((~ready).sum())
        self.counts["missing covariate"] += int((ready & ~read.complete).sum())
        usable = ready & read.complete
        key, slots, ms = key[usable], read.values[usable], rows.ms[usable]
        seen = bank.seen(key, slots)
        shown = self.coverage.judge(key, seen)
        self.counts["unseen shape"] += int((~shown).sum())
        key, slots, ms, seen = key[shown], slots[shown], ms[shown], seen[shown]
        term = terms(slots)
        expected = bank.predict(key, slots, term)
        quiet = (self.tests.largest < _QUIET) & ~self.alarms.on
        self.effects.add(key, ms, expected, quiet)
        log = np.log(ms / expected)
        scored = Scored(
            key=key,
            score=self.calibration.score(key, stratum_of(slots[:, 5]), log),
            distance=self.calibration.distance(key, log),
            size=self.sizes.standard(key, slots[:, 0]),
            relative=term / expected[:, None],
            novelty=Coverage.novelty(seen),
        )
        self._test(now_s, scored)

    def _test(self, now_s: float, scored: Scored) -> None:
        bank, alarms = self.shapes.bank, self.alarms
        tick = tick_of(scored, bank.size)
        doubt = Doubt(
            spread=self.calibration.spread,
            jitter=self.jitter.mean,
            tail_jitter=self.jitter.tail,
            leverage=bank.leverage(tick.relative),
            waiting=self.waiting,
            calibration=self.calibration,
            rows=bank.rows,
        )
        effective = self.clumps.effective(tick.rows, now_s - self.ticked_s)
        self.ticked_s = now_s
        given = Weighed(tick, effective, allowance(tick, doubt))
        added = self.tests.update(now_s, given)
        self.pooled.update(added, bank.stage)
        started = alarms.begin(now_s, self.tests, self.pooled, bank.stage, given)
        ended = alarms.end(now_s, given, started, bank.stage)
        self.tests.sums[ended] = 0.0
        self.pooled.sums[np.unique(bank.stage[ended])] = 0.0
        self.jitter.add(now_s, tick, alarms.on)
        self.clumps.add(now_s, tick)

    def _learn_and_refit(self, now_s: float) -> Integers:
        if now_s - self.learnt_s < LEARN_EVERY_S:
            return np.zeros(0, np.int64)
        self.learnt_s = now_s
        sound = ~self.alarms.on
        self.jitter.settle(now_s, DELAY_S, sound, self.alarms.ended_s)
        self.clumps.settle(now_s, DELAY_S, sound, self.alarms.ended_s)
        self._learn(now_s)
        if now_s - self.refit_s >= REFIT_EVERY_S:
            elapsed_s = min(now_s - self.refit_s, _MOST_FADE_S)
            self.refit_s = now_s
            due = self.shapes.refit(elapsed_s)
            self.calibration.histogram *= 0.5 ** (elapsed_s / 3600.0)
            self.calibration.refresh(due)
        long = self.alarms.on & (now_s - self.alarms.since_s > ACCEPT_AFTER_S)
        accepted: Integers = np.flatnonzero(long)
        self._accept(now_s, accepted)
        return accepted

    def _learn(self, now_s: float) -> None:
        suspicious = (self.tests.largest > SUSPICIOUS) & (now_s > self.alarms.muted_s)
        lately = now_s - self.tests.down_s < FASTER_FOR_S
        barred = self.alarms.on | suspicious | ((self.tests.down > START) & lately)
        kept = set(self.shapes.bank.stage[self.alarms.on].tolist())
        for batch in joined(self._pending.due(now_s)):
            ok = ~barred[batch.key] & (batch.at_s > self.alarms.ended_s[batch.key])
            if ok.any():
                self._note(self.shapes.learn(batch.key[ok], some(batch.rows, ok), kept))

    def _note(self, learnt: Learnt) -> None:
        """Calibrate by what was learnt, keys that have just begun from the start."""
        started = np.array(learnt.started, np.int64)
        for part in (self.calibration, self.tests, self.effects, self.sizes, self.jitter):
            part.reset(started)
        log = np.log(learnt.ms / learnt.expected_ms)
        self.calibration.learn(learnt.key, stratum_of(learnt.slots[:, 5]), log)
        self.effects.learn(learnt.key, learnt.ms, learnt.expected_ms)
        self.sizes.learn(learnt.key, learnt.slots[:, 0])
        self.calibration.refresh(started)
        self.coverage.accepted &= ~self.shapes.bank.ready

    def _accept(self, now_s: float, keys: Integers) -> None:
        bank, alarms = self.shapes.bank, self.alarms
        bank.forget(keys)
        alarms.on[keys] = False
        alarms.ended_s[keys] = now_s
        alarms.muted_s[keys] = now_s + DELAY_S
        self.tests.reset(keys)
        self.pooled.sums[np.unique(bank.stage[keys])] = 0.0
        self.coverage.accepted[keys] = True
