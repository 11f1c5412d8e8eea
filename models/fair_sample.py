"""The sample of a whole as its panes give it, however the panes were cut on the way.

A pane keeps the `SAMPLE_SIZE` smallest hashes of each cohort, and a whole keeps what lies below
the least limit of its panes. Parts of a pane that were never together have larger limits each; of
what lies below them, this finds the limit that the pane itself would have had.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.sample import NO_LIMIT, SAMPLE_SIZE
from tailbudget.schemas.cohorts import Cohort
from tailbudget.schemas.summary import Sample, Summary


def fair_sample(whole: Summary, pane_ns: int, cohort_of: Mapping[int, Cohort]) -> Summary:
    """Return a summary of one group with at most `SAMPLE_SIZE` requests of a pane and cohort.

    The slowest few stay besides.

    Args:
        whole: of one group, or of none.
        pane_ns: length of a pane.
        cohort_of: cohort of each sampled request, by the hash of its id.
    """
    sample = whole.sample
    if not len(sample.tau):
        return whole
    low = np.flatnonzero((sample.hash < sample.tau[0]) | (sample.tau[0] == NO_LIMIT))
    rank = _ranks(_keys(sample, low, pane_ns, cohort_of))
    beyond = sample.hash[low[rank >= SAMPLE_SIZE]]
    if not len(beyond):
        return whole
    limit = beyond.min()
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


def _keys(
    sample: Sample, low: NDArray[np.intp], pane_ns: int, cohort_of: Mapping[int, Cohort]
) -> NDArray[np.int64]:
    """Return a number for the pane and cohort of each of these requests."""
    number: dict[tuple[int, Cohort | None], int] = {}
    panes = (sample.ts_ns[low] // pane_ns).tolist()
    cohorts = [cohort_of.get(id_hash) for id_hash in sample.hash[low].tolist()]
    keys = [number.setdefault(key, len(number)) for key in zip(panes, cohorts, strict=True)]
    return np.array(keys, np.int64)


def _ranks(keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each key how many equal ones stand before it."""
    order = np.argsort(keys, kind="stable")
    ranked = keys[order]
    starts = np.flatnonzero(np.r_[True, ranked[1:] != ranked[:-1]]) if len(keys) else order
    sizes = np.diff(np.r_[starts, len(keys)])
    rank = np.empty(len(keys), np.int64)
    rank[order] = np.arange(len(keys)) - np.repeat(starts, sizes)
    return rank
