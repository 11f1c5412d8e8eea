"""The stages of a service: percentiles, parts of the tail, and which of them drives it.

What adds up is the parts of a request (`attribution`): each stage once, a container not at all,
parallel stages as long as the longest of them. So shares of the slow band are never above 100 %
together, and the parts of the gap between slow and fast requests add up to the gap.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tailbudget.models.attribution import Structure, structure_of
from tailbudget.models.bootstrap import FEWEST_ROWS, RESAMPLES, mean_difference
from tailbudget.models.breakdown import Breakdown, Floats, breakdown, components
from tailbudget.models.ranks import ranks, requests_needed
from tailbudget.models.sketch import nearest_rank
from tailbudget.models.stage_notes import stage_notes
from tailbudget.models.stage_shares import Shares, shares
from tailbudget.models.tail import FAST, slow_band, slow_fast
from tailbudget.models.tail_only import tail_only
from tailbudget.schemas.sections import StageRole, StageRow
from tailbudget.schemas.slo import QUANTILES
from tailbudget.schemas.summary import UNATTRIBUTED, Summary
from tailbudget.schemas.verdicts import TailDriver, TailRow, TailTable


@dataclass(frozen=True, slots=True)
class StageTable:
    """What is to say about the stages.

    Attributes:
        rows: one row a stage that any request carries, unattributed time among them.
        driver: the part with the largest slow-minus-fast difference; of a group of parallel
            stages the branch that grows most. None when nothing grows, or a band is empty.
        notes: what a reader must know, in sentences.
        structure: how the stages relate.
    """

    rows: tuple[StageRow, ...]
    driver: TailDriver | None
    notes: tuple[str, ...]
    structure: Structure


def stage_table(total: Summary, threshold: str | float) -> StageTable:
    """Return the stages of a one-group summary (or of an empty one), with intervals.

    The intervals are `delta_ms` plus and minus what `bootstrap` says of the sampled requests of
    the bands: seeded, and as wide as the sample is small, not as the whole. Beside parallel stages
    unattributed time has none.

    Raises:
        ValueError: the summary has several groups, or the threshold names no percentile.
    """
    if not len(total.cohorts):
        return _NOTHING
    rows = breakdown(total, slow_band(threshold), FAST)
    table = _table(total, threshold, rows)
    reach, note = _reach(table, rows)
    return replace(
        table,
        rows=tuple(_with_interval(row, reach) for row in table.rows),
        notes=(*table.notes, *note),
    )


def light_stage_table(total: Summary, threshold: str | float) -> StageTable:
    """Return the same without intervals, for what is asked every few seconds.

    Raises:
        ValueError: as `stage_table`.
    """
    if not len(total.cohorts):
        return _NOTHING
    return _table(total, threshold, breakdown(total, slow_band(threshold), FAST))


_NOTHING: Final = StageTable((), None, (), Structure((), (), ()))


def _table(total: Summary, threshold: str | float, rows: Breakdown) -> StageTable:
    relations = structure_of(rows)
    table = slow_fast(total, slow_band(threshold))
    if table is None:
        found = tuple(_plain_row(total, name, relations, rows) for name in _named(total))
        return StageTable(found, None, (), relations)
    parts = shares(table, relations, rows)
    tail = {row.stage: row for row in table.rows} | {UNATTRIBUTED: _unattributed(table, parts)}
    found = tuple(
        replace(
            _tail_row(_plain_row(total, name, relations, rows), tail[name], parts),
            tail_only=tail_only(total, name, parts) if _recorded(name, relations) else None,
        )
        for name in _named(total)
    )
    driver = _driver(tail, relations, parts)
    return StageTable(found, driver, tuple(stage_notes(total, relations, parts)), relations)


def _named(total: Summary) -> tuple[str, ...]:
    own = components(total)
    timed = int(total.n[0, total.stages.index(UNATTRIBUTED)])
    return (UNATTRIBUTED, *own) if timed else own


def _role(name: str, relations: Structure) -> tuple[StageRole, tuple[str, ...]]:
    if name == UNATTRIBUTED:
        return StageRole.UNATTRIBUTED, ()
    for one in relations.containers:
        if one.stage == name:
            return StageRole.CONTAINER, one.parts
    for group in relations.groups:
        if name in group:
            return StageRole.PARALLEL, tuple(other for other in group if other != name)
    return StageRole.STAGE, ()


def _plain_row(total: Summary, name: str, relations: Structure, rows: Breakdown) -> StageRow:
    role, related = _role(name, relations)
    order = ranks(total, name)
    values = [order.quantile_ms(q) for q in QUANTILES.values()]
    if not _recorded(name, relations):
        values = _quantiles(_left_over(rows, relations), order.n) if rows.requests else [None] * 3
    return StageRow(
        stage=name,
        n=order.n,
        p50_ms=values[0],
        p95_ms=values[1],
        p99_ms=values[2],
        mean_fast_ms=None,
        mean_slow_ms=None,
        delta_ms=None,
        tail_share_pct=None,
        role=role,
        related=related,
    )


def _recorded(name: str, relations: Structure) -> bool:
    """Tell whether the sketch of a part is right: that of unattributed time knows no relations.

    It was taken as the total less all stages, containers and parallel ones too.
    """
    return name != UNATTRIBUTED or relations.plain


def _left_over(rows: Breakdown, relations: Structure) -> Floats:
    return np.maximum(rows.total_ms - relations.covered_ms(rows.names, rows.ms), 0.0)


def _quantiles(values: Floats, n: int) -> list[float | None]:
    """Return percentiles of sampled values, None where they are too few of the n to tell."""
    ordered = np.sort(values)
    return [
        float(ordered[nearest_rank(len(ordered), q) - 1])
        if len(ordered) >= min(requests_needed(q), n)
        else None
        for q in QUANTILES.values()
    ]


def _unattributed(table: TailTable, parts: Shares) -> TailRow:
    low, high = parts.fast[UNATTRIBUTED], parts.slow[UNATTRIBUTED]
    gap, delta = table.total.delta_ms, high - low
    return TailRow(
        UNATTRIBUTED, low, high, delta, min(100 * delta / gap, 100.0) if gap > 0 else None
    )


def _tail_row(row: StageRow, tail: TailRow, parts: Shares) -> StageRow:
    return replace(
        row,
        mean_fast_ms=tail.mean_fast_ms,
        mean_slow_ms=tail.mean_slow_ms,
        delta_ms=tail.delta_ms,
        tail_share_pct=tail.tail_share_pct,
        p99_share_pct=parts.slow_share_pct(row.stage),
        gap_ms=parts.gap_ms(row.stage),
    )


def _driver(tail: dict[str, TailRow], relations: Structure, parts: Shares) -> TailDriver | None:
    """Return the part that grows most; of a group the branch that does."""
    sizes: dict[tuple[str, ...], float] = {
        (name,): tail[name].delta_ms for name in (UNATTRIBUTED, *relations.serial)
    }
    for group in relations.groups:
        sizes[group] = sum(parts.gap_ms(name) or 0.0 for name in group)
    for names in sorted(sizes, key=lambda names: -sizes[names]):
        most = max((tail[name] for name in names), key=lambda row: row.delta_ms)
        if most.delta_ms > 0 and sizes[names] > 0:
            return TailDriver(
                stage=most.stage,
                mean_fast_ms=most.mean_fast_ms,
                mean_slow_ms=most.mean_slow_ms,
                delta_ms=most.delta_ms,
                tail_share_pct=most.tail_share_pct,
            )
    return None


def _reach(table: StageTable, rows: Breakdown) -> tuple[dict[str, Floats], tuple[str, ...]]:
    """Return how far the interval of each stage reaches, and how that was found out."""
    slow, fast = rows.slow > 0, rows.fast > 0
    if not rows.requests or not table.rows or table.rows[0].delta_ms is None:
        return {}, ()
    names, values = rows.names, rows.ms
    if not table.structure.groups:  # else what is left over is an estimate, of unknown spread
        names = (*names, UNATTRIBUTED)
        values = np.column_stack([values, _left_over(rows, table.structure)])
    found = mean_difference(values[slow], values[fast])
    sizes = f"{int(slow.sum()):,} slow and {int(fast.sum()):,} fast sampled requests"
    if found is None:
        return {}, (f"no intervals of the differences: {sizes}, wants {FEWEST_ROWS} of each",)
    note = f"intervals of the differences: {RESAMPLES:,} bootstrap resamples of {sizes}"
    return dict(zip(names, found.T, strict=True)), (note,)


def _with_interval(row: StageRow, reach: dict[str, Floats]) -> StageRow:
    if row.stage not in reach or row.delta_ms is None:
        return row
    low, high = reach[row.stage].tolist()
    return replace(row, delta_interval_ms=(row.delta_ms + low, row.delta_ms + high))
