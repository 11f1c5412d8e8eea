"""The shape models of one service: which keys there are, and what each expects of a row."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.shape.bank import ShapeBank, keys_due
from tailbudget.models.shape.newcomers import Held, Newcomers
from tailbudget.models.shape.roles import Choice, choose
from tailbudget.models.shape.rows import some
from tailbudget.models.shape.slots import Slotted, needed_of, raw, slotted
from tailbudget.models.shape.terms import terms
from tailbudget.models.shape.watch import CovariateWatch
from tailbudget.models.state_bytes import pack, unpack
from tailbudget.schemas.anomalies import StageCohort, TickRows
from tailbudget.schemas.errors import WireError

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

SCHEMA: Final = "tailbudget.shapes/1"
ROWS_TO_BEGIN: Final = 200
"""A key is learnt from so many rows of its own."""
ROWS_TO_JOIN: Final = 40
"""Or from so few, where another cohort of its stage has learnt already."""
MOST_STARTS: Final = 6
"""Keys that begin with one call: a first fit takes about 20 ms."""
MOST_KEYS: Final = 512
"""Stages times cohorts; rows of further ones are counted and left out."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """Rows that were learnt, with what was expected of them.

    Attributes:
        key: [N].
        slots: [N, 7].
        ms: [N].
        expected_ms: [N] before they were learnt, or by the first fit of a new key.
        started: keys that predict from now on.
    """

    key: Integers
    slots: Floats
    ms: Floats
    expected_ms: Floats
    started: tuple[int, ...]


class ServiceShapes:
    """Shape models of every (stage, cohort) of a service.

    Attributes:
        bank: the regressions, by index of the key.
        keys: the stage and cohort of each index.
        stages: names by index of the stage.
        choice: covariates of each stage's regression, None until there are enough rows.
    """

    def __init__(self) -> None:
        self.bank = ShapeBank()
        self.keys: list[StageCohort] = []
        self.stages: list[str] = []
        self.choice: list[Choice | None] = []
        self._index: dict[StageCohort, int] = {}
        self._newcomers = Newcomers()
        self._watch = CovariateWatch()

    def resolve(self, keys: Sequence[StageCohort]) -> Integers:
        """Return the index of each key, making new ones; -1 for one too many."""
        index = np.array([self._resolve(key) for key in keys], np.int64)
        first = self.bank.size
        self.bank.grow(len(self.keys))
        self.bank.stage[first:] = [self.stages.index(key.stage) for key in self.keys[first:]]
        return index

    def read(self, key: Integers, rows: TickRows) -> Slotted:
        """Put rows, whose key has the index [N], into the slots of their stages."""
        stage = self.bank.stage[key]
        needed = self.bank.needed[key]
        return slotted(rows.covariates, rows.covariate, self.choice, stage, needed)

    def learn(self, key: Integers, rows: TickRows, kept: Collection[int] = ()) -> Learnt:
        """Learn rows with finite positive times, whose key has the index [N].

        Args:
            key: index of each row's key.
            rows: the rows.
            kept: stages whose covariates are not chosen anew now, though they changed.
        """
        self._watch_covariates(key, rows, kept)
        ready = self.bank.ready[key]
        parts = [self._learn_ready(key[ready], some(rows, ready))]
        if not ready.all():
            self._hold(key[~ready], some(rows, ~ready))
            left = MOST_STARTS
            for stage in self._newcomers.stages():
                parts += self._start(stage, left)
                left = MOST_STARTS - sum(len(part.started) for part in parts)
        return _joined(parts)

    def refit(self, elapsed_s: float) -> Integers:
        """Forget for so many seconds, and solve again where enough was learnt; return where."""
        self.bank.fade(elapsed_s)
        due = keys_due(self.bank)
        self.bank.refit(due)
        return due

    def dump(self) -> bytes:
        """Return the state; rows held for new keys are not part of it."""
        return pack(SCHEMA, self.small(), self.bank.arrays())

    @classmethod
    def load(cls, body: bytes) -> ServiceShapes:
        """Return what was dumped.

        Raises:
            WireError: it is damaged, or of another version.
        """
        shapes = cls()
        small, arrays = unpack(SCHEMA, body)
        try:
            shapes.restore(small, arrays)
        except (KeyError, TypeError, ValueError) as error:
            raise WireError(f"the state of shape models lacks {error}") from error
        return shapes

    def small(self) -> dict[str, Any]:
        """Return the part of the state that is not arrays."""
        chosen = [None if choice is None else asdict(choice) for choice in self.choice]
        keys = [[key.stage, key.cohort] for key in self.keys]
        return {"keys": keys, "stages": self.stages, "choice": chosen}

    def restore(self, small: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
        """Take back what `small` and the arrays of the bank were."""
        self.keys = [StageCohort(stage, cohort) for stage, cohort in small["keys"]]
        self._index = {key: i for i, key in enumerate(self.keys)}
        self.stages = list(small["stages"])
        self.choice = [None if c is None else _choice(c) for c in small["choice"]]
        self.bank.restore(arrays, len(self.keys))

    def _resolve(self, key: StageCohort) -> int:
        found = self._index.get(key)
        if found is not None:
            return found
        if len(self.keys) >= MOST_KEYS:
            return -1
        if key.stage not in self.stages:
            self.stages.append(key.stage)
            self.choice.append(None)
        self._index[key] = len(self.keys)
        self.keys.append(key)
        return len(self.keys) - 1

    def _watch_covariates(self, key: Integers, rows: TickRows, kept: Collection[int]) -> None:
        """Forget the stages whose covariates went, or got company."""
        complete = self.read(key, rows).complete
        of_stage = np.where(self.bank.ready[key], self.bank.stage[key], -1)
        for stage in np.unique(of_stage[of_stage >= 0]).tolist():
            choice, mine = self.choice[stage], of_stage == stage
            given = (rows.covariate[mine], complete[mine])
            if choice is None or not self._watch.outdated(stage, choice, rows.covariates, given):
                continue
            if stage not in kept:
                self.choice[stage] = None
                self._watch.forget(stage)
                self.bank.forget(np.flatnonzero(self.bank.stage == stage))

    def _learn_ready(self, key: Integers, rows: TickRows) -> Learnt:
        read = self.read(key, rows)
        key, slots, ms = key[read.complete], read.values[read.complete], rows.ms[read.complete]
        expected = self.bank.predict(key, slots, terms(slots))
        if len(key):
            self.bank.learn(key, slots, ms)
        return Learnt(key, slots, ms, expected, ())

    def _hold(self, key: Integers, rows: TickRows) -> None:
        stages = self.bank.stage[key]
        for stage in np.unique(stages).tolist():
            mine = stages == stage
            part = some(rows, mine)
            held = Held(rows.covariates, key[mine], part.covariate, part.ms)
            self._newcomers.add(stage, held)

    def _start(self, stage: int, most: int) -> list[Learnt]:
        """Start keys of a stage that have enough rows, at most so many."""
        mature = self.bank.ready & (self.bank.stage == stage) & (self.bank.rows >= ROWS_TO_BEGIN)
        enough = ROWS_TO_JOIN if mature.any() else ROWS_TO_BEGIN
        if self._newcomers.count(stage) < enough:
            return []
        held = self._newcomers.rows(stage)
        counts = np.bincount(held.key, minlength=self.bank.size)
        due = np.flatnonzero(counts >= enough)[:most]
        if not len(due):
            return []
        choice = self.choice[stage] or choose(held.names, held.covariate, held.ms)
        self.choice[stage] = choice
        for key in due.tolist():
            self.bank.needed[key] = needed_of(
                raw(held.names, held.covariate[held.key == key], choice)
            )
        self._newcomers.drop(stage, due)
        return [self._start_keys(due, held)]

    def _start_keys(self, due: Integers, held: Held) -> Learnt:
        mine = np.flatnonzero(np.isin(held.key, due))
        rows = TickRows((), held.key[mine], held.ms[mine], held.names, held.covariate[mine])
        read = self.read(rows.key, rows)
        key, slots, ms = rows.key[read.complete], read.values[read.complete], rows.ms[read.complete]
        self.bank.start(due, key, slots, ms)
        expected_ms = self.bank.predict(key, slots, terms(slots))
        return Learnt(key, slots, ms, expected_ms, tuple(due.tolist()))


def _choice(small: Mapping[str, Any]) -> Choice:
    return Choice(tuple(small["names"]), tuple(small["scales"]), tuple(small["offered"]))


def _joined(parts: Sequence[Learnt]) -> Learnt:
    return Learnt(
        np.concatenate([part.key for part in parts]),
        np.concatenate([part.slots for part in parts]),
        np.concatenate([part.ms for part in parts]),
        np.concatenate([part.expected_ms for part in parts]),
        tuple(key for part in parts for key in part.started),
    )
