"""From sums that ClickHouse took over cohorts and panes to summaries that windows add."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tailbudget.schemas.cohorts import ALL
from tailbudget.schemas.summary import TOTAL, Moments, Profile, Sample, Summary
from tailbudget.sinks.clickhouse.cells import FlatRows, column_numbers, signed
from tailbudget.sinks.clickhouse.unpack import cohort_of_text

_SECOND_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class StageTotal:
    """A stage of one span, over all cohorts; as in a summary."""

    n: int
    sum_ns: int
    min_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class Span:
    """A pane, or the panes of a minute.

    Attributes:
        start_s: when it starts.
        stages: the stages of its summary, in order.
        of_stage: what is known of each stage that has values.
        over: requests that are bad for each threshold.
        ledger: what became of the records, by reason.
        groups: how many (pane, cohort) it adds up.
    """

    start_s: int
    stages: tuple[str, ...]
    of_stage: Mapping[str, StageTotal]
    over: Mapping[float, int]
    ledger: Mapping[str, int]
    groups: int


@dataclass(frozen=True, slots=True)
class Tables:
    """Sums of several spans; each table is sorted by `start`, the span's, in seconds.

    Attributes:
        stages: the stages that `sketches` numbers.
        orders: the orders of stages that `profiles` numbers.
        cohorts: a row a cohort, by its text; a bucket may occur several times.
        sketches: a row a stage other than the total, and bucket.
        profiles: a row an order of stages and coarse bucket of the total.
    """

    stages: Sequence[str]
    orders: Sequence[Sequence[str]]
    cohorts: pa.Table
    sketches: pa.Table
    profiles: pa.Table


def collapsed(service: str, spans: Sequence[Span], tables: Tables) -> Iterator[Summary]:
    """Yield the summary of each span."""
    starts = [span.start_s for span in spans]
    cohorts, sketches, profiles = (
        _cut(table, starts) for table in (tables.cohorts, tables.sketches, tables.profiles)
    )
    cohort_rows = FlatRows(tables.cohorts)
    sketch_rows = _columns(tables.sketches, "number", "bucket", "count")
    profile_rows = FlatRows(tables.profiles)
    for span, at, cells, rows in zip(spans, cohorts, sketches, profiles, strict=True):
        groups = _Groups(span, cohort_rows, at)
        sketch = _sketch(groups, tables.stages, [column[cells] for column in sketch_rows])
        profile = _profile(span, tables.orders, profile_rows, rows)
        yield _summary(service, span, groups, sketch, profile)


class _Groups:
    """The groups of a span: the cohort (), then the others; and the rows they come from."""

    def __init__(self, span: Span, rows: FlatRows, at: slice) -> None:
        self.span = span
        texts = rows.texts("cohort", at.start, at.stop)
        self._rows, self._at = rows, at
        # Where the cohort () has requests of its own, its text comes first.
        self._first = 1 if texts and texts[0] else 0
        self.cohorts = (ALL,) * self._first + tuple(map(cohort_of_text, texts))
        self.shape = (len(self.cohorts), len(span.stages))
        self.total = span.stages.index(TOTAL)

    def of_cohort(self, name: str) -> NDArray[np.int64]:
        """A count a group."""
        found = signed(self._rows.numbers(name, self._at.start, self._at.stop))
        return np.concatenate([np.zeros(self._first, np.int64), found])

    def of_cell(self, name: str, missing: float = 0) -> NDArray[Any]:
        """A number a group and stage."""
        found = signed(self._rows.numbers(name, self._at.start, self._at.stop))
        cells = np.full(self.shape, missing, found.dtype)
        cells[self._first :, self.total] = found
        for stage, total in self.span.of_stage.items():
            if stage != TOTAL:
                cells[0, self.span.stages.index(stage)] = getattr(total, name)
        return cells

    def sketches(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Group, bucket and count of the totals; a bucket may occur several times in a group."""
        buckets, offsets = self._rows.lists("b")
        counts, _ = self._rows.lists("c")
        ends = offsets[self._at.start : self._at.stop + 1]
        group = np.repeat(np.arange(self._first, self.shape[0]), np.diff(ends))
        inside = slice(int(ends[0]), int(ends[-1]))
        return group, buckets[inside].astype(np.int64), signed(counts[inside])


_Sketch = tuple[NDArray[np.int32], NDArray[np.int16], NDArray[np.int64]]
"""Cell, bucket and count of a summary."""


def _sketch(groups: _Groups, names: Sequence[str], rows: Sequence[NDArray[Any]]) -> _Sketch:
    """Add up the sketches in a dense table: a row a stage of (), then the total of each cohort."""
    size, stages = groups.shape
    if not size:
        return np.zeros(0, np.int32), np.zeros(0, np.int16), np.zeros(0, np.int64)
    place = {stage: place for place, stage in enumerate(groups.span.stages)}
    row_of_number = np.array([place.get(name, 0) for name in names], np.int64)
    group, total_bucket, total_count = groups.sketches()
    number, stage_bucket, stage_count = rows
    row = np.concatenate(
        [np.where(group, group + stages - 1, groups.total), row_of_number[number.astype(np.int64)]]
    )
    bucket = np.concatenate([total_bucket, stage_bucket.astype(np.int64)])
    first = int(bucket.min()) if len(bucket) else 0
    width = int(bucket.max(initial=first)) - first + 1
    table = np.zeros((stages + size - 1) * width, np.int64)
    key = row * width + bucket - first
    np.add.at(table, key, np.concatenate([total_count, signed(stage_count)]))
    of_cohorts = np.arange(1, size) * stages + groups.total
    cell = np.concatenate([np.arange(stages), of_cohorts]).astype(np.int32)
    used = np.flatnonzero(table)
    row, bucket = np.divmod(used, width)
    return cell[row], (bucket + first).astype(np.int16), table[used]


def _profile(span: Span, orders: Sequence[Sequence[str]], rows: FlatRows, at: slice) -> Profile:
    """Add up the profiles of panes that store their stages in different orders."""
    number, bucket, n = (
        signed(rows.numbers(name, at.start, at.stop)) for name in ("number", "bucket", "n")
    )
    values, offsets = rows.lists("ns")
    buckets = np.unique(bucket)
    of_n = np.zeros(len(buckets), np.int64)
    stage_ns = np.zeros((len(buckets), len(span.stages)), np.int64)
    for order in np.unique(number).tolist():
        mine = np.flatnonzero(number == order)
        to = np.searchsorted(buckets, bucket[mine])
        stages = np.array([span.stages.index(stage) for stage in orders[order]])
        starts = offsets[at.start + mine].astype(np.int64)
        of_n[to] += n[mine]
        stage_ns[np.ix_(to, stages)] += values[starts[:, None] + np.arange(len(stages))]
    return Profile(
        group=np.zeros(len(buckets), np.int32),
        bucket=buckets.astype(np.int16),
        n=of_n,
        stage_ns=stage_ns,
        covariate=np.zeros((len(buckets), 0)),
    )


def _summary(
    service: str, span: Span, groups: _Groups, sketch: _Sketch, profile: Profile
) -> Summary:
    size, stages = groups.shape
    start_ns = span.start_s * _SECOND_NS
    over = np.zeros((size, len(span.over)), np.int64)
    over[:1] = list(span.over.values())
    cell, bucket, count = sketch
    return Summary(
        service=service,
        stages=span.stages,
        covariates=(),
        thresholds_ms=tuple(span.over),
        pane_ns=np.full(size, start_ns, np.int64),
        cohorts=groups.cohorts,
        requests=groups.of_cohort("requests"),
        failed=groups.of_cohort("failed"),
        over=over,
        n=groups.of_cell("n"),
        sum_ns=groups.of_cell("sum_ns"),
        min_ms=groups.of_cell("min_ms", np.inf),
        max_ms=groups.of_cell("max_ms", -np.inf),
        cell=cell,
        bucket=bucket,
        count=count,
        profile=profile,
        moments=_no_moments(size, stages),
        sample=_no_sample(size, stages),
        ledger={(start_ns, reason): number for reason, number in span.ledger.items()},
    )


def _no_moments(groups: int, stages: int) -> Moments:
    return Moments(
        n=np.zeros((groups, 0, stages), np.int64),
        mean=np.zeros((groups, 0, stages, 3)),
        product=np.zeros((groups, 0, stages, 6)),
        log_n=np.zeros((groups, 0, stages), np.int64),
        log_mean=np.zeros((groups, 0, stages, 2)),
        log_product=np.zeros((groups, 0, stages, 3)),
        pair_n=np.zeros((groups, 0, 0), np.int64),
        pair_mean=np.zeros((groups, 0, 0, 2)),
        pair_product=np.zeros((groups, 0, 0, 3)),
    )


def _no_sample(groups: int, stages: int) -> Sample:
    return Sample(
        tau=np.zeros(groups, np.uint64),
        group=np.zeros(0, np.int32),
        hash=np.zeros(0, np.uint64),
        ids=(),
        ts_ns=np.zeros(0, np.int64),
        slowest=np.zeros(0, np.bool_),
        values=np.zeros((0, stages)),
    )


def _columns(table: pa.Table, *names: str) -> list[NDArray[Any]]:
    return [column_numbers(table, name) for name in names]


def _cut(table: pa.Table, starts: Sequence[int]) -> list[slice]:
    """Return where the rows of each span are."""
    found = column_numbers(table, "start")
    bounds = np.searchsorted(found, [*starts, np.iinfo(np.uint32).max]).tolist()
    return [slice(first, end) for first, end in pairwise(bounds)]
