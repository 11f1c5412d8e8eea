"""The sample of a whole as its panes give it, however the panes were cut on the way.

A whole keeps what lies below the least threshold of its panes. Parts of a pane that were never
together have larger thresholds each; of what lies below them, this finds the threshold that the
pane itself would have had (see `models.sample`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.sample import KEEP, NO_LIMIT, fair
from tailbudget.schemas.cohorts import Cohort
from tailbudget.schemas.summary import Sample, Summary


def fair_sample(whole: Summary, pane_ns: int, cohort_of: Mapping[int, Cohort]) -> Summary:
    """Return a summary of one group with what its panes keep, and the slowest few.

    Args:
        whole: of one group, or of none.
        pane_ns: length of a pane.
        cohort_of: cohort of each sampled request, by the hash of its id.
    """
    sample = whole.sample
    if not len(sample.tau):
        return whole
    low = fair(sample)
    limit = _limit(sample, low, pane_ns, cohort_of)
    if limit >= sample.tau[0]:
        return whole
    at = np.flatnonzero((sample.hash < limit) | sample.slowest)
    fewer = Sample(
        tau=np.array([limit], np.uint64),
        group=sample.group[at],
        hash=sample.hash[at],
        ids=tuple(map(sample.ids.__getitem__, at.tolist())),
        ts_ns=sample.ts_ns[at],
        slowest=sample.slowest[at],
        values=sample.values[at],
    )
    return replace(whole, sample=fewer)


def _limit(
    sample: Sample, low: NDArray[np.intp], pane_ns: int, cohort_of: Mapping[int, Cohort]
) -> np.uint64:
    """Return the least threshold of the panes: that of a pane's strictest group, or its own."""
    hashes = sample.hash[low]
    panes = (sample.ts_ns[low] // pane_ns).tolist()
    cohorts = [cohort_of.get(id_hash) for id_hash in hashes.tolist()]
    pane = _numbered(panes)
    group = _numbered(list(zip(panes, cohorts, strict=True)))
    by_group = np.full(len(low) + 1, NO_LIMIT)
    by_pane = by_group.copy()
    beyond = np.flatnonzero(_ranks(group) == KEEP.group)
    np.minimum.at(by_group, pane[beyond], hashes[beyond])
    beyond = np.flatnonzero(_ranks(pane) == KEEP.pane)
    by_pane[pane[beyond]] = hashes[beyond]
    return np.uint64(np.maximum(by_group, by_pane).min())


def _numbered(keys: list[object]) -> NDArray[np.int64]:
    """Return a number for each key; equal keys have equal numbers."""
    number: dict[object, int] = {}
    return np.array([number.setdefault(key, len(number)) for key in keys], np.int64)


def _ranks(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each key how many equal ones stand before it."""
    order = np.argsort(keys, kind="stable")
    ranked = keys[order]
    first = np.searchsorted(ranked, ranked)
    rank = np.empty(len(keys), np.int64)
    rank[order] = np.arange(len(keys)) - first
    return rank
