"""Per group and stage: how many values, their exact sum, the smallest and the largest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.cells import Cells, count_keys, count_slots, slots_of
from tailbudget.models.order import run_sizes
from tailbudget.models.sketch import BUCKETS, HIGHEST_MS, LOWEST_MS, bucket_index
from tailbudget.schemas.summary import FIXED_STAGES, UNATTRIBUTED

# A remainder of less than a microsecond is no value that anyone sent: not counted as clamped.
_UNATTRIBUTED = FIXED_STAGES.index(UNATTRIBUTED)


@dataclass(frozen=True, slots=True)
class Values:
    """Values of one stage, group by group; none missing.

    Attributes:
        stage: index of the stage.
        group: [n] group of each, ascending.
        starts: [g] first value of each group that has any.
        ms: [n] milliseconds.
        ns: [n] whole nanoseconds.
        weight: [n] or None for 1 each.
    """

    stage: int
    group: NDArray[np.int64]
    starts: NDArray[np.intp]
    ms: NDArray[np.float64]
    ns: NDArray[np.int64]
    weight: NDArray[np.int64] | None


@dataclass(frozen=True, slots=True)
class StageSums:
    """What a summary holds of each stage.

    Attributes:
        n: [G, S] values, weighted.
        sum_ns: [G, S] their sum.
        min_ms: [G, S] +inf where n is 0.
        max_ms: [G, S] -inf where n is 0.
        cells: the sketches.
        clamped: [G] values of records outside the sketch's range, not weighted.
    """

    n: NDArray[np.int64]
    sum_ns: NDArray[np.int64]
    min_ms: NDArray[np.float64]
    max_ms: NDArray[np.float64]
    cells: Cells
    clamped: NDArray[np.int64]


def add_up(values: Iterable[Values], groups: int, stages: int) -> StageSums:
    """Summarise the values of all stages."""
    shape = (groups, stages)
    sums = StageSums(
        n=np.zeros(shape, np.int64),
        sum_ns=np.zeros(shape, np.int64),
        min_ms=np.full(shape, np.inf),
        max_ms=np.full(shape, -np.inf),
        cells=Cells(np.zeros(0, np.int32), np.zeros(0, np.int16), np.zeros(0, np.int64)),
        clamped=np.zeros(groups, np.int64),
    )
    columns = [column for column in values if len(column.ms)]
    for column in columns:
        _add(sums, column)
    return replace(sums, cells=_count(sums, columns))


def _count(sums: StageSums, columns: list[Values]) -> Cells:
    """Count the values of all stages into sketches; cell g * S + s is of group g and stage s."""
    if not columns:
        return sums.cells
    weights = [column.weight for column in columns if column.weight is not None]
    every = np.concatenate(weights) if weights else None
    slots = slots_of(sums.n.ravel(), sums.min_ms.ravel(), sums.max_ms.ravel())
    fits = slots.worthwhile(sum(len(column.ms) for column in columns))
    cells = np.arange(sums.n.size).reshape(sums.n.shape)
    first = slots.zero[cells] if fits else cells * BUCKETS
    at = np.concatenate([_keys(column, first[:, column.stage]) for column in columns])
    return count_slots(at, every, slots) if fits else count_keys(at, every, sums.n.size)


def _keys(values: Values, first: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return bucket + first[group] of each value."""
    keys = bucket_index(values.ms)
    sizes = run_sizes(values.starts, len(values.ms))
    keys += np.repeat(first[values.group[values.starts]], sizes)
    return keys


def _add(sums: StageSums, values: Values) -> None:
    starts, stage = values.starts, values.stage
    present = values.group[starts]
    sums.min_ms[present, stage] = np.minimum.reduceat(values.ms, starts)
    sums.max_ms[present, stage] = np.maximum.reduceat(values.ms, starts)
    if values.weight is None:
        sums.n[present, stage] = run_sizes(starts, len(values.ms))
        sums.sum_ns[present, stage] = np.add.reduceat(values.ns, starts)
    else:
        sums.n[present, stage] = np.add.reduceat(values.weight, starts)
        sums.sum_ns[present, stage] = np.add.reduceat(values.ns * values.weight, starts)
    if stage != _UNATTRIBUTED and _clamps(values.ms):
        outside = ((values.ms < LOWEST_MS) & (values.ms != 0)) | (values.ms >= HIGHEST_MS)
        sums.clamped[:] += np.bincount(values.group[outside], minlength=len(sums.clamped))


def _clamps(ms: NDArray[np.float64]) -> bool:
    """Tell whether any value may lie outside the sketch's range (an exact 0 does not)."""
    return bool(ms.min() < LOWEST_MS or ms.max() >= HIGHEST_MS)
