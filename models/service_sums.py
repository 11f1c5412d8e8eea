"""The sums of one service over a set of panes, all cohorts together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.counts import Counts, counts_of, sum_counts
from tailbudget.models.moments import empty_moments
from tailbudget.models.running import RunningSums, left_out
from tailbudget.models.sketch import BUCKETS
from tailbudget.schemas.cohorts import ALL
from tailbudget.schemas.summary import FIXED_STAGES, Profile, Sample, Summary

_COARSE: Final = BUCKETS >> 3
_PROFILE: Final = slice(BUCKETS, BUCKETS + _COARSE)
_N: Final = BUCKETS + _COARSE
_SUM: Final = _N + 1
_WIDTH: Final = _SUM + 1
# A row of the table is one stage: its sketch, its column of the profile, n and sum_ns.
# Row 0 is no stage: the profile's n, then requests and failed in the last two columns.


@dataclass(slots=True)
class _Pane:
    """What does not subtract: extremes, floats, names; indexed as in `ServiceSums`."""

    stages: set[str] = field(default_factory=set)
    covariates: set[str] = field(default_factory=set)
    counts: Counts | None = None
    min_ms: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    max_ms: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    covariate: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, _COARSE)))
    ledger: Counter[str] = field(default_factory=Counter)


class ServiceSums:
    """Running sums of a service; `total` is the collapsed summary of the panes in them."""

    def __init__(self) -> None:
        self._service = ""
        self._running = RunningSums(_WIDTH)
        self._row: dict[str, int] = {}
        self._covariate: dict[str, int] = {}
        self._panes: dict[int, _Pane] = {}

    @property
    def panes(self) -> tuple[int, ...]:
        """Starts of the panes that hold something, ascending."""
        return tuple(sorted(self._panes))

    def count(self, pane_ns: int, reason: str, count: int) -> None:
        """Add to the ledger of a pane."""
        self._panes.setdefault(pane_ns, _Pane()).ledger[reason] += count

    def remove(self, pane_ns: int) -> None:
        """Take a pane back."""
        self._running.remove(pane_ns)
        self._panes.pop(pane_ns, None)

    def until(self, end_ns: int) -> AbstractContextManager[None]:
        """Leave out the panes that start at `end_ns` or later for a while."""
        return self._without([at for at in self._panes if at >= end_ns])

    def since(self, start_ns: int) -> AbstractContextManager[None]:
        """Leave out the panes that start before `start_ns` for a while."""
        return self._without([at for at in self._panes if at < start_ns])

    @contextmanager
    def _without(self, out: list[int]) -> Iterator[None]:
        with left_out(self._panes, out) as taken, self._running.without(taken):
            yield

    def counts(self) -> Counts:
        """Return how many requests there are and how many are bad, at little cost."""
        return sum_counts(pane.counts for pane in self._panes.values())

    def add(self, pane_ns: int, summary: Summary, groups: slice) -> None:
        """Add consecutive groups of a summary to a pane."""
        self._service = summary.service
        pane = self._panes.setdefault(pane_ns, _Pane())
        rows = _numbers(self._row, summary.stages) + 1
        self._running.grow(len(self._row) + 1)
        change = self._table_of(summary, groups, rows).reshape(-1)
        key = np.flatnonzero(change)
        self._running.add(pane_ns, key, change[key])
        pane.stages.update(summary.stages)
        fresh = counts_of(summary, groups)
        pane.counts = fresh if pane.counts is None else sum_counts([pane.counts, fresh])
        _add_extremes(pane, summary, groups, rows - 1, len(self._row))
        pane.covariates.update(summary.covariates)
        columns = _numbers(self._covariate, summary.covariates)
        _add_covariates(pane, summary, groups, columns, len(self._covariate))

    def total(self, pane_ns: int) -> Summary:
        """Return all panes as one group that starts at `pane_ns`; moments and sample are empty."""
        panes = [self._panes[at] for at in self.panes]
        own = set[str]().union(*(pane.stages for pane in panes)) - set(FIXED_STAGES)
        stages = (*FIXED_STAGES, *sorted(own))
        covariates = tuple(sorted(set[str]().union(*(pane.covariates for pane in panes))))
        over = self.counts().over
        table = self._table(stages)
        used = table[1:, :BUCKETS].nonzero()
        ledger = Counter[str]()
        for pane in panes:
            ledger.update(pane.ledger)
        return Summary(
            service=self._service,
            stages=stages,
            covariates=covariates,
            thresholds_ms=tuple(over),
            pane_ns=np.array([pane_ns], np.int64),
            cohorts=(ALL,),
            requests=table[:1, _N],
            failed=table[:1, _SUM],
            over=np.array([list(over.values())], np.int64).reshape(1, len(over)),
            n=table[1:, _N][None],
            sum_ns=table[1:, _SUM][None],
            min_ms=self._extreme([pane.min_ms for pane in panes], stages, np.minimum)[None],
            max_ms=self._extreme([pane.max_ms for pane in panes], stages, np.maximum)[None],
            cell=used[0].astype(np.int32),
            bucket=used[1].astype(np.int16),
            count=table[1:, :BUCKETS][used],
            profile=self._profile(table, panes, covariates),
            moments=empty_moments(1, len(covariates), len(stages)),
            sample=_no_sample(len(covariates) + len(stages)),
            ledger={(pane_ns, reason): count for reason, count in ledger.items()},
        )

    def _table(self, stages: tuple[str, ...]) -> NDArray[np.int64]:
        """Return a copy of the table with its rows in the order of `stages`."""
        table = np.zeros((1 + len(stages), _WIDTH), np.int64)
        known = [(s, self._row[stage]) for s, stage in enumerate(stages, 1) if stage in self._row]
        if known:
            to, of = zip(*known, strict=True)
            table[[0, *to]] = self._running.table[[0, *(row + 1 for row in of)]]
        return table

    def _table_of(
        self, summary: Summary, groups: slice, rows: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return what some groups of a summary add to the table."""
        size = self._running.table.size
        stages = len(summary.stages)
        cells = slice(*np.searchsorted(summary.cell, [groups.start * stages, groups.stop * stages]))
        key = (rows * _WIDTH)[summary.cell[cells] % stages] + summary.bucket[cells]
        # Counts pass through float64: whole numbers, exact below 2^53.
        table = np.bincount(key, summary.count[cells], size).astype(np.int64)
        profile = _profile_rows(summary, groups)
        column = BUCKETS + summary.profile.bucket[profile].astype(np.int64)
        np.add.at(table, column, summary.profile.n[profile])
        key = (column[:, None] + rows * _WIDTH).reshape(-1)
        np.add.at(table, key, summary.profile.stage_ns[profile].reshape(-1))
        table = table.reshape(-1, _WIDTH)
        table[0, _N] = summary.requests[groups].sum()
        table[0, _SUM] = summary.failed[groups].sum()
        table[rows, _N] = summary.n[groups].sum(axis=0)
        table[rows, _SUM] = summary.sum_ns[groups].sum(axis=0)
        return table

    def _extreme(
        self, of_panes: list[NDArray[np.float64]], stages: tuple[str, ...], pick: np.ufunc
    ) -> NDArray[np.float64]:
        none = np.inf if pick is np.minimum else -np.inf
        found = np.full(len(self._row), none)
        for values in of_panes:
            pick(found[: len(values)], values, out=found[: len(values)])
        return np.array([found[self._row[s]] if s in self._row else none for s in stages])

    def _profile(
        self, table: NDArray[np.int64], panes: list[_Pane], covariates: tuple[str, ...]
    ) -> Profile:
        sums = np.zeros((len(self._covariate), _COARSE))
        for pane in panes:
            sums[: len(pane.covariate)] += pane.covariate
        bucket = np.flatnonzero(table[0, _PROFILE])
        order = [self._covariate[name] for name in covariates]
        return Profile(
            group=np.zeros(len(bucket), np.int32),
            bucket=bucket.astype(np.int16),
            n=table[0, _PROFILE][bucket],
            stage_ns=table[1:, _PROFILE][:, bucket].T,
            covariate=sums[order][:, bucket].T,
        )


def _numbers(known: dict[str, int], names: tuple[str, ...]) -> NDArray[np.int64]:
    """Return the number of each name, numbering new ones in order of appearance."""
    return np.array([known.setdefault(name, len(known)) for name in names], np.int64)


def _profile_rows(summary: Summary, groups: slice) -> slice:
    return slice(*np.searchsorted(summary.profile.group, [groups.start, groups.stop]))


def _add_extremes(
    pane: _Pane, summary: Summary, groups: slice, rows: NDArray[np.int64], size: int
) -> None:
    more = size - len(pane.min_ms)
    pane.min_ms = np.pad(pane.min_ms, (0, more), constant_values=np.inf)
    pane.max_ms = np.pad(pane.max_ms, (0, more), constant_values=-np.inf)
    pane.min_ms[rows] = np.minimum(pane.min_ms[rows], summary.min_ms[groups].min(axis=0))
    pane.max_ms[rows] = np.maximum(pane.max_ms[rows], summary.max_ms[groups].max(axis=0))


def _add_covariates(
    pane: _Pane, summary: Summary, groups: slice, columns: NDArray[np.int64], size: int
) -> None:
    pane.covariate = np.pad(pane.covariate, ((0, size - len(pane.covariate)), (0, 0)))
    profile = _profile_rows(summary, groups)
    at = (columns[:, None], summary.profile.bucket[profile].astype(np.int64))
    np.add.at(pane.covariate, at, summary.profile.covariate[profile].T)


def _no_sample(width: int) -> Sample:
    return Sample(
        tau=np.zeros(1, np.uint64),
        group=np.zeros(0, np.int32),
        hash=np.zeros(0, np.uint64),
        ids=(),
        ts_ns=np.zeros(0, np.int64),
        slowest=np.zeros(0, np.bool_),
        values=np.zeros((0, width)),
    )
