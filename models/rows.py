"""Successful requests in the order in which summaries add them up: by group, then by latency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.order import order, run_starts
from tailbudget.models.sketch import BUCKETS, bucket_index
from tailbudget.schemas.records import NO_PART, Columns

COARSE_SHIFT: Final = 3
COARSE: Final = BUCKETS >> COARSE_SHIFT
"""Coarse buckets of the tail profile: 8 an octave."""

NS_PER_MS: Final = 1e6
_MOST_NS: Final = 2.0**52  # 52 days; much beyond it sums would not fit into 64 bits
_OVERLAP_SHARE = 1.001
_OVERLAP_MS = 0.001


@dataclass(frozen=True, slots=True)
class Successes:
    """Successful requests sorted by (group, coarse bucket of the total).

    Attributes:
        at: [n] which rows of the batch these are.
        group: [n] group of each.
        bucket: [n] coarse bucket of the total.
        starts: [P] first row of each (group, coarse bucket).
        ms: [2 + k, n] total, unattributed, then the batch's stages; NaN is missing.
        ns: [2 + k, n] the same in whole nanoseconds, 0 where missing.
        complete: [2 + k] nothing is missing.
        covariate: [C, n] NaN is missing.
        weight: [n] or None for 1 each.
        overlap: [n] the stages add up to more than the total.
    """

    at: NDArray[np.intp]
    group: NDArray[np.int64]
    bucket: NDArray[np.int64]
    starts: NDArray[np.intp]
    ms: NDArray[np.float64]
    ns: NDArray[np.int64]
    complete: NDArray[np.bool_]
    covariate: NDArray[np.float64]
    weight: NDArray[np.int64] | None
    overlap: NDArray[np.bool_]


def successes(
    columns: Columns, ok: NDArray[np.bool_], group: NDArray[np.int64], groups: int
) -> Successes:
    """Gather the successful rows of a batch in order.

    Args:
        columns: the batch.
        ok: [rows] which succeeded and have a total.
        group: [rows] group of each row.
        groups: how many groups there are.
    """
    chosen = np.flatnonzero(ok)
    bucket = bucket_index(columns.total_ms[chosen]) >> COARSE_SHIFT
    keys = group[chosen] * COARSE + bucket
    ranked = order(keys, groups * COARSE)
    at, keys = chosen[ranked], keys[ranked]

    ms = np.empty((2 + len(columns.stages), len(at)))
    np.take(columns.total_ms, at, out=ms[0])
    ms[1] = 0.0
    np.take(columns.stage_ms, at, axis=1, out=ms[2:])
    complete = ~np.isnan(ms.sum(axis=1))
    ns = nanoseconds(ms, complete)
    covered = ns[2:].sum(axis=0)
    for index, stage in enumerate(columns.stages, 2):
        if stage in NO_PART:
            covered -= ns[index]
    np.maximum(ns[0] - covered, 0, out=ns[1])
    np.divide(ns[1], NS_PER_MS, out=ms[1])
    of = keys // COARSE
    return Successes(
        at=at,
        group=of,
        bucket=keys - of * COARSE,
        starts=run_starts(keys),
        ms=ms,
        ns=ns,
        complete=complete,
        covariate=np.take(columns.covariate, at, axis=1),
        weight=None if columns.weight is None else columns.weight[at],
        overlap=covered > ns[0] * _OVERLAP_SHARE + _OVERLAP_MS * NS_PER_MS,
    )


def nanoseconds(
    ms: NDArray[np.float64], complete: NDArray[np.bool_] | None = None
) -> NDArray[np.int64]:
    """Round milliseconds to whole nanoseconds, missing ones to 0."""
    scaled = ms * NS_PER_MS
    if complete is None or not complete.all():
        scaled[np.isnan(scaled)] = 0.0
    if scaled.size and scaled.max() > _MOST_NS:
        np.minimum(scaled, _MOST_NS, out=scaled)
    return np.rint(scaled, out=scaled).astype(np.int64)
