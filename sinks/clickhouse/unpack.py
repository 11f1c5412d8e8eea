"""From rows of the table `panes` back to panes, exactly."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np
import pyarrow as pa

from tailbudget.schemas.cohorts import Cohort, cohort_parse
from tailbudget.schemas.rows import StoredPane
from tailbudget.schemas.summary import FIXED_STAGES, Moments, Profile, Sample, Summary
from tailbudget.sinks.clickhouse.cells import (
    Cells,
    FlatRows,
    column_numbers,
    column_texts,
    signed,
)
from tailbudget.sinks.clickhouse.columns import HEADER

_SECOND_NS = 1_000_000_000


def unpack(table: pa.Table) -> list[StoredPane]:
    """Return the panes of a table of one service, oldest first; rows may come in any order.

    Rows whose version is not that of their pane's header are left out: they belong to an older
    writing of it.
    """
    stage = column_texts(table, "stage")
    at = np.flatnonzero(stage.equal(HEADER))
    seconds, version = column_numbers(table, "pane"), column_numbers(table, "version")
    at = at[np.argsort(seconds[at])]
    starts = seconds[at]
    rows = np.flatnonzero(np.isin(seconds, starts) & ~stage.equal(HEADER))
    place = np.searchsorted(starts, seconds[rows])
    current = version[rows] == version[at[place]]
    rows, place = rows[current], place[current]
    cohort = column_texts(table, "cohort").ranks(str)[rows]
    order = np.lexsort((stage.ranks(_stage_key)[rows], cohort, place))
    cells = FlatRows(table.take(rows[order]))
    ends = np.searchsorted(place[order], np.arange(len(starts) + 1))
    headers = table.take(at)
    return [
        _pane(headers.slice(number, 1), cells, slice(int(first), int(last)))
        for number, (first, last) in enumerate(pairwise(ends))
    ]


def _stage_key(stage: str) -> tuple[int, str]:
    """Order of the stages of a summary: ours first, the record's sorted."""
    fixed = FIXED_STAGES.index(stage) if stage in FIXED_STAGES else len(FIXED_STAGES)
    return fixed, stage


def _pane(header: pa.Table, cells: FlatRows, at: slice) -> StoredPane:
    rows = Cells(header, cells, at)
    pane_ns = int(header["pane"][0].as_py()) * _SECOND_NS
    frontiers = zip(header["sources"][0].as_py(), header["frontiers"][0].as_py(), strict=True)
    ledger = header["ledger"][0].as_py()
    return StoredPane(
        pane_ns=pane_ns,
        pane_s=header["pane_s"][0].as_py(),
        summary=_summary(rows, pane_ns, {(pane_ns, reason): count for reason, count in ledger}),
        frontier=dict(frontiers),
        version=header["version"][0].as_py(),
    )


def _summary(rows: Cells, pane_ns: int, ledger: dict[tuple[int, str], int]) -> Summary:
    groups = rows.shape[0]
    return Summary(
        service=rows.service,
        stages=rows.stages,
        covariates=rows.covariates,
        thresholds_ms=rows.thresholds_ms,
        pane_ns=np.full(groups, pane_ns, np.int64),
        cohorts=tuple(cohort_of_text(text) for text in rows.texts),
        requests=signed(rows.of_total("requests")),
        failed=signed(rows.of_total("failed")),
        over=rows.counts("over").reshape(groups, len(rows.thresholds_ms)),
        n=rows.spread("n"),
        sum_ns=rows.spread("sum_ns"),
        min_ms=rows.spread("min_ms", np.inf),
        max_ms=rows.spread("max_ms", -np.inf),
        cell=np.repeat(rows.cell, rows.lengths("b")).astype(np.int32),
        bucket=rows.flat("b"),
        count=rows.counts("c"),
        profile=_profile(rows),
        moments=_moments(rows),
        sample=_sample(rows),
        ledger=ledger,
    )


def _profile(rows: Cells) -> Profile:
    sizes = rows.lengths("profile_b")[rows.total]
    count = int(sizes.sum())
    return Profile(
        group=np.repeat(np.arange(rows.shape[0], dtype=np.int32), sizes),
        bucket=rows.flat("profile_b"),
        n=rows.counts("profile_n"),
        stage_ns=rows.flat("profile_ns").reshape(count, len(rows.stages)),
        covariate=rows.flat("profile_x").reshape(count, len(rows.covariates)),
    )


def _moments(rows: Cells) -> Moments:
    square = (rows.shape[0], len(rows.covariates), len(rows.covariates))
    return Moments(
        n=rows.by_covariate("moment_n"),
        mean=rows.by_covariate("moment_mean", 3),
        product=rows.by_covariate("moment_product", 6),
        log_n=rows.by_covariate("log_n"),
        log_mean=rows.by_covariate("log_mean", 2),
        log_product=rows.by_covariate("log_product", 3),
        pair_n=rows.counts("pair_n").reshape(square),
        pair_mean=rows.flat("pair_mean").reshape(*square, 2),
        pair_product=rows.flat("pair_product").reshape(*square, 3),
    )


def _sample(rows: Cells) -> Sample:
    sizes = rows.lengths("sample_hash")[rows.total]
    width = len(rows.stages) + len(rows.covariates)
    return Sample(
        tau=rows.of_total("tau"),
        group=np.repeat(np.arange(rows.shape[0], dtype=np.int32), sizes),
        hash=rows.flat("sample_hash"),
        ids=tuple(rows.flat("sample_id").tolist()),
        ts_ns=rows.flat("sample_ts_ns"),
        slowest=rows.flat("sample_slowest").astype(np.bool_),
        values=rows.flat("sample_values").reshape(int(sizes.sum()), width),
    )


@lru_cache(maxsize=10_000)
def cohort_of_text(text: str) -> Cohort:
    """Return the cohort of a text; panes repeat the same ones."""
    return cohort_parse(text)
