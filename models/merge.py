"""Merge summaries: associative and commutative, whatever the order and the split of the records.

Counts, sums, extremes, samples and ledgers come out exactly the same; co-moments and sums of
fractional covariates to rounding error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from itertools import accumulate, chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.align import align
from tailbudget.models.cells import Cells, Slots, add_cells, count_keys, slots_of
from tailbudget.models.groups import Groups, compact, number_groups
from tailbudget.models.moments_merge import regroup_moments
from tailbudget.models.order import order, run_starts
from tailbudget.models.profile import regroup_profile
from tailbudget.models.sample import KEEP, Keep, Rows, choose
from tailbudget.models.sketch import BUCKETS
from tailbudget.schemas.cohorts import Cohort
from tailbudget.schemas.summary import Moments, Profile, Sample, Summary

_PLAIN = (
    "pane_ns", "requests", "failed", "over", "n", "sum_ns", "min_ms", "max_ms", "bucket", "count",
)  # fmt: skip

Ledger = Mapping[tuple[int, str], int]


def merge(parts: Sequence[Summary], *, keep: Keep = KEEP) -> Summary:
    """Return the summary of all records that the parts summarise.

    Stages and covariates are the union. Of the thresholds only those that every part with groups
    counts are kept: how many requests of another part lie above the rest is unknown.

    Args:
        parts: summaries of one service.
        keep: how many whole records to keep.

    Raises:
        ValueError: there is no part, or they are of several services.
    """
    if not parts:
        raise ValueError("nothing to merge")
    services = sorted({part.service for part in parts})
    if len(services) > 1:
        raise ValueError(f"cannot merge summaries of several services: {', '.join(services)}")
    aligned = align(parts)
    number: dict[Cohort, int] = {}
    loose = _concatenate(aligned)
    of = [number.setdefault(cohort, len(number)) for cohort in loose.cohorts]
    groups = number_groups(loose.pane_ns, np.array(of, np.int64), tuple(number))
    return regroup(loose, groups, keep=keep)


def regroup(loose: Summary, groups: Groups, *, keep: Keep = KEEP) -> Summary:
    """Move each group to its number in `groups` and add up those that fall together.

    Args:
        loose: like a summary, but groups (and what belongs to them) may stand in any order and
            occur several times.
        groups: the groups to be, and which of them each group of `loose` becomes.
        keep: how many whole records to keep.
    """
    if not len(groups):
        return loose
    of = groups.of
    at = order(of, len(groups))
    starts = run_starts(of[at])
    n = np.add.reduceat(loose.n[at], starts, axis=0)
    min_ms = np.minimum.reduceat(loose.min_ms[at], starts, axis=0)
    max_ms = np.maximum.reduceat(loose.max_ms[at], starts, axis=0)
    counted = _count(loose, of, slots_of(n.ravel(), min_ms.ravel(), max_ms.ravel()), n)
    return replace(
        loose,
        pane_ns=groups.pane_ns,
        cohorts=groups.cohorts,
        requests=np.add.reduceat(loose.requests[at], starts),
        failed=np.add.reduceat(loose.failed[at], starts),
        over=np.add.reduceat(loose.over[at], starts, axis=0),
        n=n,
        sum_ns=np.add.reduceat(loose.sum_ns[at], starts, axis=0),
        min_ms=min_ms,
        max_ms=max_ms,
        cell=counted.cell,
        bucket=counted.bucket,
        count=counted.count,
        profile=regroup_profile(loose.profile, of[loose.profile.group], len(groups)),
        moments=regroup_moments(loose.moments, of, len(groups)),
        sample=_regroup_sample(loose.sample, groups, keep),
    )


def _count(loose: Summary, of: NDArray[np.int64], slots: Slots, n: NDArray[np.int64]) -> Cells:
    """Add up the sketches of the groups that fall together."""
    cells = np.arange(n.size).reshape(n.shape)
    if slots.worthwhile(len(loose.cell)):
        sparse = Cells(loose.cell, loose.bucket, loose.count)
        return add_cells(sparse, slots.zero[cells][of].ravel(), slots)
    keys = (cells * BUCKETS)[of].ravel()[loose.cell] + loose.bucket
    return count_keys(keys, loose.count, n.size)


def _regroup_sample(sample: Sample, groups: Groups, keep: Keep) -> Sample:
    tau = np.full(len(groups), np.iinfo(np.uint64).max, np.uint64)
    np.minimum.at(tau, groups.of, sample.tau)
    of = groups.of[sample.group]
    ranked = order(of, len(groups))
    of, hashes, ts_ns = of[ranked], sample.hash[ranked], sample.ts_ns[ranked]
    values = sample.values[ranked]
    rows = Rows(
        groups=len(groups),
        pane=compact(groups.pane_ns)[1],
        group=of,
        hash=hashes,
        total_ms=values[:, 0],
        ties=(ts_ns, *values.T),
    )
    choice = choose(rows, tau, keep)
    return Sample(
        tau=choice.tau,
        group=of[choice.at].astype(np.int32),
        hash=hashes[choice.at],
        ids=tuple(map(sample.ids.__getitem__, ranked[choice.at].tolist())),
        ts_ns=ts_ns[choice.at],
        slowest=choice.slowest,
        values=values[choice.at],
    )


def _concatenate(parts: Sequence[Summary]) -> Summary:
    """Put aligned summaries behind each other, group indices moved along."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    stages = len(first.stages)
    offsets = list(accumulate((len(part.pane_ns) for part in parts[:-1]), initial=0))
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts]) for name in _PLAIN
    }
    cell = [part.cell + offset * stages for part, offset in zip(parts, offsets, strict=True)]
    ledger: dict[tuple[int, str], int] = {}
    for part in parts:
        for key, count in part.ledger.items():
            ledger[key] = ledger.get(key, 0) + count
    return replace(
        first,
        **joined,
        cohorts=tuple(chain.from_iterable(part.cohorts for part in parts)),
        cell=np.concatenate(cell),
        profile=_rows(Profile, [part.profile for part in parts], offsets),
        moments=_rows(Moments, [part.moments for part in parts], offsets),
        sample=_rows(Sample, [part.sample for part in parts], offsets),
        ledger=ledger,
    )


def _rows(kind: type[Any], parts: Sequence[Any], offsets: list[int]) -> Any:
    """Concatenate each field of the parts, moving the indices of groups."""
    joined: dict[str, Any] = {}
    for field in fields(kind):
        columns = [getattr(part, field.name) for part in parts]
        if field.name == "group":
            columns = [c + offset for c, offset in zip(columns, offsets, strict=True)]
        if field.name == "ids":
            joined[field.name] = tuple(chain.from_iterable(columns))
        else:
            joined[field.name] = np.concatenate(columns)
    return kind(**joined)
