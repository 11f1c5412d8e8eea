"""From rows of the table `panes` back to panes, exactly."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tailbudget.schemas.cohorts import cohort_parse
from tailbudget.schemas.rows import StoredPane
from tailbudget.schemas.summary import TOTAL, Moments, Profile, Sample, Summary
from tailbudget.sinks.clickhouse.columns import HEADER

_SECOND_NS = 1_000_000_000


def unpack(table: pa.Table) -> list[StoredPane]:
    """Return the panes of a table that is sorted by pane.

    Rows whose version is not that of their pane's header are left out: they belong to an older
    writing of it.
    """
    table = table.combine_chunks()
    seconds = _numbers(table, "pane")
    edges = np.flatnonzero(np.diff(seconds, prepend=-1, append=-1))
    return [_pane(table.slice(start, stop - start)) for start, stop in pairwise(edges)]


def _pane(table: pa.Table) -> StoredPane:
    stage = table["stage"].to_pylist()
    at = stage.index(HEADER)
    header = table.slice(at, 1)
    version = _values(_chunk(table, "version"))
    current = np.flatnonzero(version == version[at])
    rows = _Cells(header, table.take(current[current != at]))
    pane_ns = int(_numbers(header, "pane")[0]) * _SECOND_NS
    return StoredPane(
        pane_ns=pane_ns,
        pane_s=int(_numbers(header, "pane_s")[0]),
        summary=_summary(header, rows, pane_ns),
        frontier=dict(
            zip(header["sources"][0].as_py(), header["frontiers"][0].as_py(), strict=True)
        ),
        version=int(version[at]),
    )


class _Cells:
    """The rows of one pane in the order of their cells, and where they go in [G, S] arrays."""

    def __init__(self, header: pa.Table, rows: pa.Table) -> None:
        self.service: str = header["service"][0].as_py()
        self.stages = tuple(header["stages"][0].as_py())
        self.covariates = tuple(header["covariates"][0].as_py())
        self.thresholds_ms = tuple(header["thresholds_ms"][0].as_py())
        texts = rows["cohort"].to_pylist()
        self.texts = sorted(set(texts))
        groups = {text: group for group, text in enumerate(self.texts)}
        places = {stage: place for place, stage in enumerate(self.stages)}
        cell = np.array(
            [
                groups[text] * len(places) + places[stage]
                for text, stage in zip(texts, rows["stage"].to_pylist(), strict=True)
            ],
            np.int64,
        )
        order = np.argsort(cell, kind="stable")
        self.cell = cell[order]
        self.table = rows.take(order)
        self.total = self.cell % max(len(places), 1) == places.get(TOTAL, 0)
        self.shape = (len(self.texts), len(self.stages))

    def spread(self, name: str, missing: float = 0) -> NDArray[Any]:
        """A number a row, as [G, S]."""
        values = _numbers(self.table, name)
        cells = np.full(self.shape[0] * self.shape[1], missing, values.dtype)
        cells[self.cell] = values
        return cells.reshape(self.shape)

    def of_total(self, name: str) -> NDArray[Any]:
        """A number a group, from the rows of the total."""
        return _numbers(self.table, name)[np.flatnonzero(self.total)]

    def flat(self, name: str) -> NDArray[Any]:
        """All values of a column of lists, in the order of the cells."""
        return _signed(_values(_chunk(self.table, name).flatten()))

    def lengths(self, name: str) -> NDArray[np.int64]:
        """How many values each row has in a column of lists."""
        offsets = _values(_chunk(self.table, name).offsets)
        return np.diff(offsets).astype(np.int64)

    def by_covariate(self, name: str, *inner: int) -> NDArray[Any]:
        """Lists a row, as [G, C, S, …]."""
        groups, stages = self.shape
        width = len(self.covariates)
        values = self.flat(name)
        cells = np.zeros((groups * stages, width, *inner), values.dtype)
        cells[self.cell] = values.reshape(len(self.cell), width, *inner)
        turned = np.swapaxes(cells.reshape(groups, stages, width, *inner), 1, 2)
        return np.ascontiguousarray(turned)


def _summary(header: pa.Table, rows: _Cells, pane_ns: int) -> Summary:
    groups = rows.shape[0]
    return Summary(
        service=rows.service,
        stages=rows.stages,
        covariates=rows.covariates,
        thresholds_ms=rows.thresholds_ms,
        pane_ns=np.full(groups, pane_ns, np.int64),
        cohorts=tuple(cohort_parse(text) for text in rows.texts),
        requests=rows.of_total("requests"),
        failed=rows.of_total("failed"),
        over=rows.flat("over").reshape(groups, len(rows.thresholds_ms)),
        n=rows.spread("n"),
        sum_ns=rows.spread("sum_ns"),
        min_ms=rows.spread("min_ms", np.inf),
        max_ms=rows.spread("max_ms", -np.inf),
        cell=np.repeat(rows.cell, rows.lengths("b")).astype(np.int32),
        bucket=rows.flat("b"),
        count=rows.flat("c"),
        profile=_profile(rows),
        moments=_moments(rows),
        sample=_sample(rows),
        ledger={(pane_ns, reason): count for reason, count in header["ledger"][0].as_py()},
    )


def _profile(rows: _Cells) -> Profile:
    sizes = rows.lengths("profile_b")[rows.total]
    count = int(sizes.sum())
    return Profile(
        group=np.repeat(np.arange(rows.shape[0], dtype=np.int32), sizes),
        bucket=rows.flat("profile_b"),
        n=rows.flat("profile_n"),
        stage_ns=rows.flat("profile_ns").reshape(count, len(rows.stages)),
        covariate=rows.flat("profile_x").reshape(count, len(rows.covariates)),
    )


def _moments(rows: _Cells) -> Moments:
    square = (rows.shape[0], len(rows.covariates), len(rows.covariates))
    return Moments(
        n=rows.by_covariate("moment_n"),
        mean=rows.by_covariate("moment_mean", 3),
        product=rows.by_covariate("moment_product", 6),
        log_n=rows.by_covariate("log_n"),
        log_mean=rows.by_covariate("log_mean", 2),
        log_product=rows.by_covariate("log_product", 3),
        pair_n=rows.flat("pair_n").reshape(square),
        pair_mean=rows.flat("pair_mean").reshape(*square, 2),
        pair_product=rows.flat("pair_product").reshape(*square, 3),
    )


def _sample(rows: _Cells) -> Sample:
    sizes = rows.lengths("sample_hash")[rows.total]
    width = len(rows.stages) + len(rows.covariates)
    return Sample(
        tau=_values(_chunk(rows.table, "tau"))[rows.total],
        group=np.repeat(np.arange(rows.shape[0], dtype=np.int32), sizes),
        hash=_values(_chunk(rows.table, "sample_hash").flatten()),
        ids=tuple(_chunk(rows.table, "sample_id").flatten().to_pylist()),
        ts_ns=rows.flat("sample_ts_ns"),
        slowest=rows.flat("sample_slowest").astype(np.bool_),
        values=rows.flat("sample_values").reshape(int(sizes.sum()), width),
    )


def _chunk(table: pa.Table, name: str) -> pa.Array:
    column = table[name].combine_chunks()
    return column.chunk(0) if isinstance(column, pa.ChunkedArray) else column


def _numbers(table: pa.Table, name: str) -> NDArray[Any]:
    return _signed(_values(_chunk(table, name)))


def _values(array: pa.Array) -> NDArray[Any]:
    return np.asarray(array.to_numpy(zero_copy_only=False))


def _signed(values: NDArray[Any]) -> NDArray[Any]:
    """Counts are unsigned in ClickHouse and signed here, where they are subtracted."""
    return np.asarray(values, np.int64) if values.dtype == np.uint64 else values
