"""From a pane to its rows in the table `panes`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.cohorts import cohort_text
from tailbudget.schemas.rows import StoredPane
from tailbudget.schemas.summary import TOTAL, Summary
from tailbudget.sinks.clickhouse.columns import HEADER, Part, Ragged

_SECOND_NS = 1_000_000_000


def pack(pane: StoredPane) -> dict[str, Part]:
    """Return the columns of a pane: a row a (cohort, stage) that says something, and the header.

    The rows of the stage "total" are always there; another stage's are left out where they are
    what reading assumes of a missing one: no values.

    Raises:
        ValueError: the summary holds another pane, or the pane does not start on a whole second.
    """
    summary = pane.summary
    if np.any(summary.pane_ns != pane.pane_ns) or any(
        at != pane.pane_ns for at, _ in summary.ledger
    ):
        raise ValueError(f"the summary has other panes than {pane.pane_ns}")
    if pane.pane_ns % _SECOND_NS:
        raise ValueError(f"the pane does not start on a whole second: {pane.pane_ns}")
    rows = _Rows(summary)
    return (
        _identity(pane, rows)
        | _sketch(summary, rows)
        | _moments(summary, rows)
        | _counters(summary, rows)
        | _profile(summary, rows)
        | _sample(summary, rows)
        | _header(pane, rows)
    )


class _Rows:
    """Which (group, stage) cells become rows; one header row follows them."""

    def __init__(self, summary: Summary) -> None:
        groups, stages = summary.n.shape
        self.total = summary.stages.index(TOTAL)
        keep = summary.n != 0
        keep[:, self.total] = True
        for values in (summary.moments.n, summary.moments.log_n):
            keep |= values.any(axis=1)
        self.cells = np.flatnonzero(keep)
        self.group, self.stage = np.divmod(self.cells, max(stages, 1))
        self.is_total = self.stage == self.total
        self.groups = groups

    def scalar(self, cells: NDArray[Any], header: int = 0) -> NDArray[Any]:
        """Values of a [G, S] array, and the header's."""
        return np.append(cells.reshape(-1)[self.cells], cells.dtype.type(header))

    def on_total(self, groups: NDArray[Any]) -> NDArray[Any]:
        """Values of a [G] array on the rows of the total; 0 on the others."""
        zero = groups.dtype.type(0)
        return np.append(np.where(self.is_total, groups[self.group], zero), zero)

    def lists(self, cells: NDArray[Any]) -> Ragged:
        """Rows of a [G * S, width] array."""
        kept = cells[self.cells]
        return Ragged(kept.reshape(-1), self._lengths(np.full(len(kept), cells.shape[1])))

    def lists_on_total(self, values: Any, per_group: NDArray[np.int64]) -> Ragged:
        """Lists of the groups, on the rows of the total."""
        return Ragged(values, self._lengths(np.where(self.is_total, per_group[self.group], 0)))

    def repeated_on_total(self, values: tuple[Any, ...], *, header: bool = False) -> Ragged:
        """The same list on each row of the total, and on the header where asked."""
        times = self.groups + int(header)
        lengths = np.where(self.is_total, len(values), 0)
        return Ragged(values * times, self._lengths(lengths, len(values) if header else 0))

    def in_header(self, values: list[Any], keys: tuple[str, ...] = ()) -> Ragged:
        """A list of the header row alone."""
        return Ragged(values, self._lengths(np.zeros(len(self.cells), np.int64), len(values)), keys)

    def _lengths(self, lengths: NDArray[Any], header: int = 0) -> NDArray[np.int64]:
        return np.append(lengths, header).astype(np.int64)


def _identity(pane: StoredPane, rows: _Rows) -> dict[str, Part]:
    count, summary = len(rows.cells) + 1, pane.summary
    texts = [cohort_text(cohort) for cohort in summary.cohorts]
    cohorts = [summary.cohorts[group] for group in rows.group]
    pairs = [pair for cohort in cohorts for pair in cohort]
    return {
        "service": [summary.service] * count,
        "stage": [*(summary.stages[stage] for stage in rows.stage), HEADER],
        "pane": np.full(count, pane.pane_ns // _SECOND_NS, np.uint32),
        "cohort": [*(texts[group] for group in rows.group), ""],
        "version": np.full(count, pane.version, np.uint64),
        "pane_s": np.full(count, pane.pane_s, np.uint32),
        "dims": Ragged(
            [value for _, value in pairs],
            np.array([*map(len, cohorts), 0], np.int64),
            [name for name, _ in pairs],
        ),
    }


def _sketch(summary: Summary, rows: _Rows) -> dict[str, Part]:
    sizes = np.bincount(summary.cell, minlength=summary.n.size)[rows.cells]
    lengths = np.append(sizes, 0).astype(np.int64)
    return {
        "n": rows.scalar(summary.n),
        "sum_ns": rows.scalar(summary.sum_ns),
        "min_ms": rows.scalar(summary.min_ms),
        "max_ms": rows.scalar(summary.max_ms),
        "b": Ragged(summary.bucket, lengths),
        "c": Ragged(summary.count, lengths),
    }


def _moments(summary: Summary, rows: _Rows) -> dict[str, Part]:
    moments, (groups, stages) = summary.moments, summary.n.shape
    width = len(summary.covariates)

    def by_cell(values: NDArray[Any]) -> Ragged:
        """[G, C, S, …] to one list a (group, stage), covariate by covariate."""
        turned = np.swapaxes(values, 1, 2)
        per_cell = width * int(np.prod(values.shape[3:]))
        return rows.lists(turned.reshape(groups * stages, per_cell))

    def by_group(values: NDArray[Any]) -> Ragged:
        per_group = int(np.prod(values.shape[1:]))
        return rows.lists_on_total(values.reshape(-1), np.full(groups, per_group))

    names = Ragged(
        summary.covariates * (len(rows.cells) + 1), np.full(len(rows.cells) + 1, width, np.int64)
    )
    return {
        "covariates": names,
        "moment_n": by_cell(moments.n),
        "moment_mean": by_cell(moments.mean),
        "moment_product": by_cell(moments.product),
        "log_n": by_cell(moments.log_n),
        "log_mean": by_cell(moments.log_mean),
        "log_product": by_cell(moments.log_product),
        "pair_n": by_group(moments.pair_n),
        "pair_mean": by_group(moments.pair_mean),
        "pair_product": by_group(moments.pair_product),
    }


def _counters(summary: Summary, rows: _Rows) -> dict[str, Part]:
    thresholds = np.full(rows.groups, len(summary.thresholds_ms))
    return {
        "requests": rows.on_total(summary.requests),
        "failed": rows.on_total(summary.failed),
        "thresholds_ms": rows.repeated_on_total(summary.thresholds_ms, header=True),
        "over": rows.lists_on_total(summary.over.reshape(-1), thresholds),
        "stages": rows.repeated_on_total(summary.stages, header=True),
    }


def _profile(summary: Summary, rows: _Rows) -> dict[str, Part]:
    profile = summary.profile
    sizes = np.bincount(profile.group, minlength=rows.groups)
    return {
        "profile_b": rows.lists_on_total(profile.bucket, sizes),
        "profile_n": rows.lists_on_total(profile.n, sizes),
        "profile_ns": rows.lists_on_total(
            profile.stage_ns.reshape(-1), sizes * len(summary.stages)
        ),
        "profile_x": rows.lists_on_total(
            profile.covariate.reshape(-1), sizes * len(summary.covariates)
        ),
    }


def _sample(summary: Summary, rows: _Rows) -> dict[str, Part]:
    sample = summary.sample
    sizes = np.bincount(sample.group, minlength=rows.groups)
    width = len(summary.stages) + len(summary.covariates)
    return {
        "tau": rows.on_total(sample.tau),
        "sample_hash": rows.lists_on_total(sample.hash, sizes),
        "sample_id": rows.lists_on_total(sample.ids, sizes),
        "sample_ts_ns": rows.lists_on_total(sample.ts_ns, sizes),
        "sample_slowest": rows.lists_on_total(sample.slowest.astype(np.uint8), sizes),
        "sample_values": rows.lists_on_total(sample.values.reshape(-1), sizes * width),
    }


def _header(pane: StoredPane, rows: _Rows) -> dict[str, Part]:
    ledger = {reason: count for (_, reason), count in pane.summary.ledger.items()}
    return {
        "ledger": rows.in_header(list(ledger.values()), tuple(ledger)),
        "sources": rows.in_header(list(pane.frontier)),
        "frontiers": rows.in_header(list(pane.frontier.values())),
    }
