"""The tail profile: where the time went, by how slow the request was."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.order import order, run_sizes, run_starts
from tailbudget.models.rows import COARSE, Successes
from tailbudget.schemas.summary import Profile


def empty_profile(stages: int, covariates: int) -> Profile:
    """Return the profile of no request."""
    return Profile(
        group=np.zeros(0, np.int32),
        bucket=np.zeros(0, np.int16),
        n=np.zeros(0, np.int64),
        stage_ns=np.zeros((0, stages), np.int64),
        covariate=np.zeros((0, covariates), np.float64),
    )


def profile_of_rows(rows: Successes) -> Profile:
    """Return the profile of a batch's successes."""
    stages, covariates = len(rows.ms) + 1, len(rows.covariate)
    starts = rows.starts
    if not len(starts):
        return empty_profile(stages, covariates)
    weight = rows.weight
    stage_ns = np.zeros((len(starts), stages), np.int64)
    ns = rows.ns if weight is None else rows.ns * weight
    columns = [0, *range(2, stages)]
    stage_ns[:, columns] = _sums(ns, starts).T
    sizes = run_sizes(starts, len(rows.at))
    of = np.repeat(np.arange(len(starts)), sizes)
    covariate = np.empty((len(starts), covariates))
    present = rows.covariate
    if np.isnan(present.sum()):
        present = np.where(np.isnan(present), 0.0, present)
    for c, values in enumerate(present):
        covariate[:, c] = np.bincount(of, values if weight is None else values * weight)
    return Profile(
        group=rows.group[starts].astype(np.int32),
        bucket=rows.bucket[starts].astype(np.int16),
        n=sizes if weight is None else np.add.reduceat(weight, starts),
        stage_ns=stage_ns,
        covariate=covariate,
    )


def _sums(values: NDArray[np.int64], starts: NDArray[np.intp]) -> NDArray[np.int64]:
    """Sum rows [k, n] over short runs: differences of running sums, exact in whole numbers."""
    running = np.cumsum(values, axis=1)
    ends = np.append(starts[1:], values.shape[1]) - 1
    return np.diff(running[:, ends], axis=1, prepend=0)


def regroup_profile(profile: Profile, group: NDArray[np.int64], groups: int) -> Profile:
    """Move every row to the group given for it, and add up rows that fall together."""
    keys = group * COARSE + profile.bucket
    at = order(keys, groups * COARSE)
    keys = keys[at]
    starts = run_starts(keys)
    if not len(starts):
        return profile
    return Profile(
        group=(keys[starts] // COARSE).astype(np.int32),
        bucket=(keys[starts] % COARSE).astype(np.int16),
        n=np.add.reduceat(profile.n[at], starts),
        stage_ns=np.add.reduceat(profile.stage_ns[at], starts, axis=0),
        covariate=np.add.reduceat(profile.covariate[at], starts, axis=0),
    )
