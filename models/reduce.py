"""Smaller summaries, for what needs less than everything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tailbudget.models.moments import empty_moments
from tailbudget.models.select import take
from tailbudget.schemas.cohorts import ALL
from tailbudget.schemas.summary import Sample, Summary


def bare(summary: Summary) -> Summary:
    """Return the summary without covariates, co-moments and sample: what windows keep."""
    groups, stages = len(summary.pane_ns), len(summary.stages)
    return replace(
        summary,
        covariates=(),
        profile=replace(
            summary.profile, covariate=np.zeros((len(summary.profile.group), 0), np.float64)
        ),
        moments=empty_moments(groups, 0, stages),
        sample=Sample(
            tau=np.zeros(groups, np.uint64),  # nothing is in it, whatever the hash
            group=np.zeros(0, np.int32),
            hash=np.zeros(0, np.uint64),
            ids=(),
            ts_ns=np.zeros(0, np.int64),
            slowest=np.zeros(0, np.bool_),
            values=np.zeros((0, stages)),
        ),
    )


def flatten(summary: Summary, pane_ns: int, end_ns: int) -> Summary:
    """Return the groups of [pane_ns, end_ns), all called the pane `pane_ns` of all cohorts.

    The result has several groups of one key, which `merge` puts into one; nothing else reads it.
    """
    inside = (summary.pane_ns >= pane_ns) & (summary.pane_ns < end_ns)
    current = take(summary, np.flatnonzero(inside), {})
    groups = len(current.pane_ns)
    return replace(current, pane_ns=np.full(groups, pane_ns, np.int64), cohorts=(ALL,) * groups)
