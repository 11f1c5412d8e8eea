"""Take summaries apart: by pane, by cohort, by size; and put cohorts together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.groups import number_groups
from tailbudget.models.merge import Ledger, regroup
from tailbudget.models.moments import empty_moments
from tailbudget.models.moments_merge import take_moments
from tailbudget.models.profile import empty_profile
from tailbudget.models.sample import KEEP, Keep
from tailbudget.schemas.cohorts import ALL, Cohort
from tailbudget.schemas.summary import FIXED_STAGES, Profile, Sample, Summary
from tailbudget.schemas.wire import encode


def empty(
    service: str, *, thresholds_ms: Sequence[float] = (), ledger: Ledger | None = None
) -> Summary:
    """Return a summary without groups: of no request, or of a ledger alone."""
    stages, thresholds = len(FIXED_STAGES), tuple(sorted(thresholds_ms))
    return Summary(
        service=service,
        stages=FIXED_STAGES,
        covariates=(),
        thresholds_ms=thresholds,
        pane_ns=np.zeros(0, np.int64),
        cohorts=(),
        requests=np.zeros(0, np.int64),
        failed=np.zeros(0, np.int64),
        over=np.zeros((0, len(thresholds)), np.int64),
        n=np.zeros((0, stages), np.int64),
        sum_ns=np.zeros((0, stages), np.int64),
        min_ms=np.zeros((0, stages)),
        max_ms=np.zeros((0, stages)),
        cell=np.zeros(0, np.int32),
        bucket=np.zeros(0, np.int16),
        count=np.zeros(0, np.int64),
        profile=empty_profile(stages, 0),
        moments=empty_moments(0, 0, stages),
        sample=Sample(
            tau=np.zeros(0, np.uint64),
            group=np.zeros(0, np.int32),
            hash=np.zeros(0, np.uint64),
            ids=(),
            ts_ns=np.zeros(0, np.int64),
            slowest=np.zeros(0, np.bool_),
            values=np.zeros((0, stages)),
        ),
        ledger=dict(ledger or {}),
    )


def collapse(summary: Summary, *, keep: Keep = KEEP) -> Summary:
    """Put all cohorts of each pane together, as the cohort ()."""
    return renamed(summary, [ALL] * len(summary.cohorts), keep=keep)


def renamed(summary: Summary, cohorts: Sequence[Cohort], *, keep: Keep = KEEP) -> Summary:
    """Give each group another cohort; what becomes the same is put together."""
    number: dict[Cohort, int] = {}
    of = [number.setdefault(cohort, len(number)) for cohort in cohorts]
    groups = number_groups(summary.pane_ns, np.array(of, np.int64), tuple(number))
    return regroup(summary, groups, keep=keep)


def split_panes(summary: Summary) -> dict[int, Summary]:
    """Return each pane on its own, by its start; a pane may consist of a ledger alone."""
    ledgers: dict[int, dict[tuple[int, str], int]] = {}
    for key, count in summary.ledger.items():
        ledgers.setdefault(key[0], {})[key] = count
    panes = sorted(ledgers.keys() | set(np.unique(summary.pane_ns).tolist()))
    lows = np.searchsorted(summary.pane_ns, panes, "left")
    highs = np.searchsorted(summary.pane_ns, panes, "right")
    return {
        pane: take(summary, np.arange(low, high), ledgers.get(pane, {}))
        for pane, low, high in zip(panes, lows.tolist(), highs.tolist(), strict=True)
    }


def encode_parts(summary: Summary, max_bytes: int) -> list[bytes]:
    """Encode the summary, cut by groups until each part has at most `max_bytes`.

    The ledger goes with the first part. A single group is never cut, however large.
    """
    groups = len(summary.pane_ns)
    whole = encode(summary)
    if len(whole) <= max_bytes or groups <= 1:
        return [whole]
    parts = min(groups, -(-len(whole) * 9 // (8 * max_bytes)))  # slack, to spare a second cut
    ends = (np.arange(1, parts + 1) * groups) // parts
    result, low = [], 0
    for high in ends.tolist():
        ledger = summary.ledger if low == 0 else {}
        result += encode_parts(take(summary, np.arange(low, high), ledger), max_bytes)
        low = high
    return result


def take(summary: Summary, at: NDArray[np.intp], ledger: Ledger) -> Summary:
    """Return the groups at ascending indices `at`, with this ledger."""
    stages = len(summary.stages)
    number = np.full(len(summary.pane_ns), -1, np.int64)
    number[at] = np.arange(len(at))
    cells = np.where(number[:, None] < 0, -1, number[:, None] * stages + np.arange(stages))
    cell = cells.ravel()[summary.cell]
    kept = cell >= 0
    return replace(
        summary,
        pane_ns=summary.pane_ns[at],
        cohorts=tuple(summary.cohorts[g] for g in at.tolist()),
        requests=summary.requests[at],
        failed=summary.failed[at],
        over=summary.over[at],
        n=summary.n[at],
        sum_ns=summary.sum_ns[at],
        min_ms=summary.min_ms[at],
        max_ms=summary.max_ms[at],
        cell=cell[kept].astype(np.int32),
        bucket=summary.bucket[kept],
        count=summary.count[kept],
        profile=_take_profile(summary.profile, number),
        moments=take_moments(summary.moments, at),
        sample=_take_sample(summary.sample, at, number),
        ledger=ledger,
    )


def _take_profile(profile: Profile, number: NDArray[np.int64]) -> Profile:
    group = number[profile.group]
    kept = group >= 0
    return Profile(
        group=group[kept].astype(np.int32),
        bucket=profile.bucket[kept],
        n=profile.n[kept],
        stage_ns=profile.stage_ns[kept],
        covariate=profile.covariate[kept],
    )


def _take_sample(sample: Sample, at: NDArray[np.intp], number: NDArray[np.int64]) -> Sample:
    group = number[sample.group]
    kept = group >= 0
    return Sample(
        tau=sample.tau[at],
        group=group[kept].astype(np.int32),
        hash=sample.hash[kept],
        ids=tuple(sample.ids[i] for i in np.flatnonzero(kept).tolist()),
        ts_ns=sample.ts_ns[kept],
        slowest=sample.slowest[kept],
        values=sample.values[kept],
    )
