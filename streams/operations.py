"""Joins the attempts of an operation, as they come from a decoder, to one request.

What names no operation passes at once, and so does a first attempt that ends it. The others are
held until an attempt ends the operation and none before it lacks; or until no further one can
come; or until more are held than may be. With the numbers of the attempts the result does not
hang on the order in which they come, or on the cut of the batches; attempts without numbers must
come in the order in which they ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.columns import concat, detached, pick, take
from tailbudget.models.operations import FINAL, Attempts, assemble, ends_ns, sequence
from tailbudget.schemas import ledger
from tailbudget.schemas.records import Columns, Decoded, Outcome
from tailbudget.streams.sources.tally import Key, Tally
from tailbudget.streams.sources.timetext import NS

HOLD_S: Final = 120.0
"""How long after the end of a failed attempt the next one may start."""

MOST_HELD: Final = 500_000
"""Attempts held while a log is read: a few hundred megabytes."""

_ODD: Final = np.uint64(0x9E3779B97F4A7C15)  # of splitmix64, as the next
_MIX: Final = np.uint64(0xBF58476D1CE4E5B9)
_COUNTED_ANEW: Final = frozenset({ledger.ACCEPTED, ledger.FAILED})


@dataclass(frozen=True, slots=True)
class Limits:
    """How long attempts wait for others of their operation.

    Attributes:
        hold_ns: how long after the end of a failed attempt the next one may start.
        disorder_ns: how much older than the newest record one may be; None holds to the end.
        most: attempts that are held at most.
    """

    hold_ns: int = int(HOLD_S * 1e9)
    disorder_ns: int | None = None
    most: int = MOST_HELD


def assembled(batches: Iterable[Decoded], limits: Limits | None = None) -> Iterator[Decoded]:
    """Yield the batches of a log with one row an operation; what is held at the end comes last.

    The ledger counts the requests as accepted, and the attempts that went into them as retries:
    together they are the rows that came.
    """
    operations = Operations(limits or Limits())
    for batch in batches:
        if not operations.held and all(columns.operation is None for columns in batch.services):
            yield batch
            continue
        ready = [operations.add(columns) for columns in batch.services]
        services = tuple(columns for columns in ready if columns is not None)
        yield replace(
            batch, services=services, ledger=_ledger(batch.ledger, services, operations.counts())
        )
    rest = tuple(operations.finish())
    if rest:
        yield Decoded(rest, (), _ledger({}, rest, operations.counts()), frozenset())


def _ledger(
    before: Mapping[Key, int], services: Sequence[Columns], counts: Mapping[Key, int]
) -> dict[Key, int]:
    """Return a batch's ledger with accepted and failed requests in place of rows."""
    tally = Tally()
    tally.counts.update({key: n for key, n in before.items() if key[2] not in _COUNTED_ANEW})
    tally.counts.update(counts)
    for columns in services:
        second = columns.ts_ns // NS
        tally.add_rows(columns.service, second, ledger.ACCEPTED)
        failed = columns.outcome != Outcome.OK
        tally.add_rows(columns.service, second[failed], ledger.FAILED)
    return dict(tally.counts)


class Operations:
    """Holds the attempts of one source.

    Args:
        limits: how long, and how many.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._held: dict[str, Columns] = {}
        self._newest_ns: dict[str, int] = {}
        self._tally = Tally()

    @property
    def held(self) -> Sequence[Columns]:
        """The attempts that are held, by service."""
        return tuple(self._held.values())

    def counts(self) -> Mapping[Key, int]:
        """Return what became of attempts since the last call, for the ledger."""
        tally, self._tally = self._tally, Tally()
        return tally.counts

    def add(self, columns: Columns) -> Columns | None:
        """Take records of a service; return what is ready, None when nothing is."""
        service = columns.service
        newest_ns = max(self._newest_ns.get(service, 0), int(columns.ts_ns.max(initial=0)))
        self._newest_ns[service] = newest_ns
        if columns.operation is None and service not in self._held:
            return columns
        waits = self._waits(columns)
        direct = take(columns, ~waits) if waits.any() else columns
        ready = [replace(direct, operation=None, attempt=None)]
        self.hold(take(columns, waits))
        ready += self._settle(service, _operation(columns)[waits])
        ready = [part for part in ready if len(part)]
        return concat(ready) if ready else None

    def hold(self, columns: Columns) -> None:
        """Take attempts that shall wait, whatever they are; one that came before is dropped."""
        if not len(columns):
            return
        parts = [detached(columns)]
        if columns.service in self._held:
            parts.insert(0, self._held[columns.service])
        both = concat(parts)
        keep = _first_of_each(both)
        second = both.ts_ns[~keep] // NS
        self._tally.add_rows(columns.service, second, ledger.DUPLICATE)
        self._held[columns.service] = detached(take(both, keep))

    def finish(self) -> Iterator[Columns]:
        """Return what is held, as it is."""
        for held in self.held:
            requests = [
                one
                for rows in _groups(held, np.ones(len(held), np.bool_))
                for one in self._sequence(held, rows)
            ]
            yield self._joined(held, requests)
        self._held.clear()

    def _waits(self, columns: Columns) -> NDArray[np.bool_]:
        """Return which rows may be one of several attempts."""
        if columns.operation is None or columns.attempt is None:
            return np.zeros(len(columns), np.bool_)
        held = self._held.get(columns.service)
        known = np.zeros(0, np.uint64) if held is None else _operation(held)
        _, place, times = np.unique(columns.operation, return_inverse=True, return_counts=True)
        alone = (times[place] == 1) & ~np.isin(columns.operation, known)
        final = np.isin(columns.outcome, FINAL)
        done = final & ((columns.attempt == 1) | ((columns.attempt == 0) & alone))
        waits: NDArray[np.bool_] = (columns.operation != 0) & ~done
        return waits

    def _settle(self, service: str, fresh: NDArray[np.uint64]) -> list[Columns]:
        """Let go of what is complete, of what waited long enough, and of what is too much."""
        held = self._held.get(service)
        if held is None:
            return []
        over = self._over(held)
        touched = np.isin(_operation(held), fresh) | over
        requests: list[Attempts] = []
        for rows in _groups(held, touched):
            for one in self._sequence(held, rows):
                if not (one.complete or over[list(one.rows)].all()):
                    break
                requests.append(one)
        return self._let_go(service, requests)

    def _let_go(self, service: str, requests: list[Attempts]) -> list[Columns]:
        held = self._held[service]
        stays = np.ones(len(held), np.bool_)
        stays[[row for one in requests for row in one.rows]] = False
        surplus = self._surplus(held, stays)
        requests += surplus
        stays[[row for one in surplus for row in one.rows]] = False
        if not requests:
            return []
        del self._held[service]
        if stays.any():
            self._held[service] = detached(take(held, stays))
        return [self._joined(held, requests)]

    def _over(self, held: Columns) -> NDArray[np.bool_]:
        """Return for which attempts no next one can come any more."""
        if self._limits.disorder_ns is None:
            return np.zeros(len(held), np.bool_)
        patience_ns = self._limits.hold_ns + self._limits.disorder_ns
        over: NDArray[np.bool_] = ends_ns(held) + patience_ns < self._newest_ns[held.service]
        return over

    def _surplus(self, held: Columns, stays: NDArray[np.bool_]) -> list[Attempts]:
        """Return requests to let go of, the oldest operations first, so that the rest may stay."""
        others = sum(len(one) for one in self.held) - len(held)
        excess = others + int(stays.sum()) - self._limits.most
        if excess <= 0:
            return []
        surplus: list[Attempts] = []
        for rows in sorted(_groups(held, stays), key=lambda rows: int(held.ts_ns[rows].min())):
            if excess <= 0:
                break
            excess -= len(rows)
            surplus += self._sequence(held, rows)
            self._tally.add_rows(held.service, held.ts_ns[rows] // NS, ledger.UNHELD)
        return surplus

    def _sequence(self, held: Columns, rows: NDArray[np.intp]) -> list[Attempts]:
        """Return the requests that attempts of one operation make, by their rows in `held`."""
        found = sequence(pick(held, rows), self._limits.hold_ns)
        return [replace(one, rows=rows[list(one.rows)].tolist()) for one in found]

    def _joined(self, held: Columns, requests: Sequence[Attempts]) -> Columns:
        merged = [row for one in requests for row in one.rows[:-1]]
        self._tally.add_rows(held.service, held.ts_ns[merged] // NS, ledger.RETRY)
        return assemble(held, requests)


def _operation(columns: Columns) -> NDArray[np.uint64]:
    return np.zeros(len(columns), np.uint64) if columns.operation is None else columns.operation


def _groups(columns: Columns, chosen: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """Return the chosen rows by operation."""
    at = np.flatnonzero(chosen)
    operation = _operation(columns)[at]
    order = np.argsort(operation, kind="stable")
    at, operation = at[order], operation[order]
    return np.split(at, np.flatnonzero(operation[1:] != operation[:-1]) + 1) if len(at) else []


def _first_of_each(columns: Columns) -> NDArray[np.bool_]:
    """Return which rows are no copy of an earlier one."""
    # One number of three: that two differ and agree in it, of a million, is once in 10^7 logs.
    key = _operation(columns) ^ columns.id_hash * _ODD ^ columns.ts_ns.astype(np.uint64) * _MIX
    _, first = np.unique(key, return_index=True)
    keep = np.zeros(len(columns), np.bool_)
    keep[first] = True
    return keep
