"""Joins the attempts of an operation to one request in a stream, so that it can be done again.

What is held at an offset depends on nothing but the records from the first attempt that is held
there: so a worker that starts at that attempt, and passes over what was counted, holds the same
as the one that died. Therefore it is stricter than `streams.operations`: attempts must come in
order in one source partition, and be numbered from 1; an attempt whose first one is not held
counts for itself. And every reason to let go is one of the records that came after the first
attempt: the clock of those records, or how many of them failed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.columns import concat, detached, pick, take
from tailbudget.models.operations import FINAL, Attempts, assemble, ends_ns
from tailbudget.schemas import ledger
from tailbudget.schemas.records import Columns
from tailbudget.streams.operations import Limits
from tailbudget.streams.sources.tally import Key, Tally
from tailbudget.streams.sources.timetext import NS

MOST_FAILED: Final = 20_000
"""Failed attempts of a service after which a held one counts as it is."""

Ints = NDArray[np.int64]
_BEFORE_ALL: Final = np.iinfo(np.int64).min


@dataclass(slots=True)
class _Chain:
    """Attempts of one operation, all of which failed.

    Attributes:
        rows: in the service's pool of held records.
        last: position of the last one in the present batch, -1 when it came before.
        seen_ns: newest record after the last attempt, as far as earlier batches tell.
        born: failed attempts of the service up to the first one.
    """

    rows: list[int]
    last: int
    seen_ns: int
    born: int


@dataclass(slots=True)
class _Service:
    """What is held of one service.

    Attributes:
        pool: the held records; None when there are none.
        chains: by operation.
        failed: failed attempts so far.
    """

    pool: Columns | None = None
    chains: dict[int, _Chain] = field(default_factory=dict)
    failed: int = 0


@dataclass(frozen=True, slots=True)
class _Batch:
    """One batch of a service, and the held records before its own candidates.

    Attributes:
        pool: held records, then candidates.
        at: [candidates] position of each in the batch.
        first: row of the first candidate in `pool`.
        ts_ns: [n] times of the whole batch.
        ends_ns: [pool] when each attempt ended.
        failed: [n + 1] failed attempts of the service before each record, and after all.
    """

    pool: Columns
    at: Ints
    first: int
    ts_ns: Ints
    ends_ns: Ints
    failed: Ints


class HeldAttempts:
    """Holds the failed attempts of one source partition.

    Args:
        limits: how long, and how many; a hold of 0 joins nothing.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._services: dict[str, _Service] = {}
        self._tally = Tally()

    @property
    def first_offset(self) -> int | None:
        """Source offset of the oldest attempt that is held; None when none is."""
        pools = [service.pool for service in self._services.values() if service.pool is not None]
        return min((int(pool.offset.min()) for pool in pools), default=None)

    def counts(self) -> dict[Key, int]:
        """Return what became of attempts since the last call, for the ledger."""
        tally, self._tally = self._tally, Tally()
        return dict(tally.counts)

    def add(self, columns: Columns) -> Columns | None:
        """Take the next records of a service; return what counts now, None when nothing does."""
        if self._limits.hold_ns <= 0:
            return columns
        service = self._services.get(columns.service)
        if columns.operation is None and (service is None or not service.chains):
            return columns
        service = self._services.setdefault(columns.service, _Service())
        batch, direct = self._prepare(service, columns)
        requests = list(self._walk(service, batch))
        requests += self._expired(service, batch)
        return self._take_out(service, batch, requests, direct)

    def _prepare(self, service: _Service, columns: Columns) -> tuple[_Batch, Columns]:
        """Part what may be held, or join what is held, from the rest."""
        operation, number = _identity(columns)
        tried = (operation != 0) & (number >= 1) & ~np.isin(columns.outcome, FINAL)
        known = np.fromiter(service.chains, np.uint64, len(service.chains))
        mine = (operation != 0) & (number >= 1)
        mine &= np.isin(operation, np.concatenate([known, operation[tried & (number == 1)]]))
        candidates = detached(take(columns, mine))
        pool = candidates if service.pool is None else concat([service.pool, candidates])
        failed = service.failed + np.cumsum(np.append(0, tried))
        service.failed = int(failed[-1])
        first = len(pool) - len(candidates)
        batch = _Batch(pool, np.flatnonzero(mine), first, columns.ts_ns, ends_ns(pool), failed)
        return batch, take(columns, ~mine) if mine.any() else columns

    def _walk(self, service: _Service, batch: _Batch) -> Iterator[Attempts]:
        """Take the candidates in order; yield requests that end."""
        operation, number = (values.tolist() for values in _identity(batch.pool))
        final = np.isin(batch.pool.outcome, FINAL).tolist()
        chains = service.chains
        for row, at in enumerate(batch.at.tolist(), batch.first):
            chain = chains.get(operation[row])
            if chain is not None and self._is_over(chain, batch, at):
                yield Attempts(chains.pop(operation[row]).rows, complete=False)
                chain = None
            if chain is not None and self._follows(chain, batch, number, row):
                chain.rows.append(row)
                chain.last, chain.seen_ns = at, _BEFORE_ALL
                if final[row]:
                    yield Attempts(chains.pop(operation[row]).rows, complete=True)
            elif chain is None and number[row] == 1 and not final[row]:
                born = int(batch.failed[at + 1])
                chains[operation[row]] = _Chain([row], at, _BEFORE_ALL, born)
            else:
                yield Attempts([row], complete=True)

    def _follows(self, chain: _Chain, batch: _Batch, number: Sequence[int], row: int) -> bool:
        before = chain.rows[-1]
        starts_ns = int(batch.pool.ts_ns[row])
        in_time = starts_ns <= batch.ends_ns[before] + self._limits.hold_ns
        return number[row] > number[before] and bool(in_time)

    def _is_over(self, chain: _Chain, batch: _Batch, at: int) -> bool:
        """Tell whether the records before position `at` let a chain go."""
        between = batch.ts_ns[chain.last + 1 : at]
        seen_ns = max(chain.seen_ns, int(between.max(initial=_BEFORE_ALL)))
        return self._lets_go(chain, batch, seen_ns, int(batch.failed[at]))

    def _lets_go(self, chain: _Chain, batch: _Batch, seen_ns: int, failed: int) -> bool:
        patience_ns = self._limits.hold_ns + (self._limits.disorder_ns or 0)
        ended_ns = int(batch.ends_ns[chain.rows[-1]])
        return ended_ns + patience_ns < seen_ns or failed - chain.born > self._limits.most

    def _expired(self, service: _Service, batch: _Batch) -> Iterator[Attempts]:
        """Yield what the records of the batch let go, and note the clock for the rest."""
        later = np.full(len(batch.ts_ns) + 1, _BEFORE_ALL)
        later[:-1] = np.maximum.accumulate(batch.ts_ns[::-1])[::-1]
        for operation, chain in list(service.chains.items()):
            chain.seen_ns = max(chain.seen_ns, int(later[chain.last + 1]))
            chain.last = -1
            if self._lets_go(chain, batch, chain.seen_ns, service.failed):
                del service.chains[operation]
                if service.failed - chain.born > self._limits.most:
                    second = batch.pool.ts_ns[chain.rows] // NS
                    self._tally.add_rows(batch.pool.service, second, ledger.UNHELD)
                yield Attempts(chain.rows, complete=False)

    def _take_out(
        self, service: _Service, batch: _Batch, requests: list[Attempts], direct: Columns
    ) -> Columns | None:
        """Return the requests and what was never held; keep the rest."""
        pool = batch.pool
        merged = [row for one in requests for row in one.rows[:-1]]
        self._tally.add_rows(pool.service, pool.ts_ns[merged] // NS, ledger.RETRY)
        stays = [row for chain in service.chains.values() for row in chain.rows]
        service.pool = detached(pick(pool, np.array(stays, np.intp))) if stays else None
        place = iter(range(len(stays)))
        for chain in service.chains.values():
            chain.rows = [next(place) for _ in chain.rows]
        parts = [replace(direct, operation=None, attempt=None)] if len(direct) else []
        if requests:
            parts.append(assemble(pool, requests))
        return concat(parts) if parts else None


def _identity(columns: Columns) -> tuple[NDArray[np.uint64], Ints]:
    """Return [n] operations and numbers of attempts, 0 where there are none."""
    if columns.operation is None or columns.attempt is None:
        return np.zeros(len(columns), np.uint64), np.zeros(len(columns), np.int64)
    return columns.operation, columns.attempt
