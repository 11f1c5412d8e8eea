"""The pane summary: all that anything downstream needs of a span of requests, and it merges.

One message on the panes topic carries one `Summary`, the audit agent merges them, and a row group
in ClickHouse stores one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.cohorts import Cohort

TOTAL: Final = "total"
FAILED: Final = "failed"
UNATTRIBUTED: Final = "unattributed"
FIXED_STAGES: Final = (TOTAL, FAILED, UNATTRIBUTED)
"""The first three stages of every summary; a record's own stages follow, sorted."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Tail profile: sums by coarse bucket of the total, sparse, sorted by (group, bucket).

    Attributes:
        group: [R] index of the group.
        bucket: [R] sketch bucket of the total, shifted right by 3: 8 an octave.
        n: [R] successful requests, weighted.
        stage_ns: [R, S] sums of each stage, nanoseconds (the column of "failed" is 0).
        covariate: [R, C] sums of each covariate.
    """

    group: NDArray[np.int32]
    bucket: NDArray[np.int16]
    n: NDArray[np.int64]
    stage_ns: NDArray[np.int64]
    covariate: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Moments:
    """Co-moments of covariates and stages over successful requests, per group.

    For every (covariate, stage) pair over the rows where both are present (and positive, for the
    logarithms): means and centred products of the vectors (x, x², y) and (ln x, ln y).

    Attributes:
        n: [G, C, S] rows of the pair, weighted.
        mean: [G, C, S, 3] means of x, x², y.
        product: [G, C, S, 6] centred products xx, xx², x²x², xy, x²y, yy.
        log_n: [G, C, S] rows where both logarithms exist.
        log_mean: [G, C, S, 2] means of ln x, ln y.
        log_product: [G, C, S, 3] centred products of the logarithms: xx, xy, yy.
        pair_n: [G, C, C] rows where both covariates are present.
        pair_mean: [G, C, C, 2] means of the first and the second covariate over those rows.
        pair_product: [G, C, C, 3] centred products aa, ab, bb.
    """

    n: NDArray[np.int64]
    mean: NDArray[np.float64]
    product: NDArray[np.float64]
    log_n: NDArray[np.int64]
    log_mean: NDArray[np.float64]
    log_product: NDArray[np.float64]
    pair_n: NDArray[np.int64]
    pair_mean: NDArray[np.float64]
    pair_product: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sample:
    """Whole records: a uniform sample and the slowest few of each group.

    The sample of a group is every record whose hash is below `tau`, so that merging two groups
    (the union below the smaller tau, cut to the wanted size) keeps it uniform.

    Attributes:
        tau: [G] hash threshold of each group.
        group: [M] index of the group, ascending.
        hash: [M] hash of the request id, ascending within the group.
        ids: [M] request ids, cut to 64 characters.
        ts_ns: [M] event time.
        slowest: [M] kept as one of the slowest of its group.
        values: [M, S + C] stages in milliseconds, then covariates; NaN is missing.
    """

    tau: NDArray[np.uint64]
    group: NDArray[np.int32]
    hash: NDArray[np.uint64]
    ids: tuple[str, ...]
    ts_ns: NDArray[np.int64]
    slowest: NDArray[np.bool_]
    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Summary:
    """Pane summaries of one service; group g is one (pane, cohort).

    Attributes:
        service: the service's name.
        stages: [S] `FIXED_STAGES`, then the record's stages, sorted.
        covariates: [C] names, sorted.
        thresholds_ms: [T] ascending; requests slower than each are counted exactly.
        pane_ns: [G] start of the pane; groups are sorted by (pane, cohort text) and unique.
        cohorts: [G] the cohort of each group.
        requests: [G] accepted requests including failures, weighted.
        failed: [G] requests that failed, weighted.
        over: [G, T] requests that are bad for that threshold: slower than it, or failed.
        n: [G, S] values in each sketch, weighted.
        sum_ns: [G, S] exact sum in nanoseconds, each value rounded to one, so that merging is
            exact in any order.
        min_ms: [G, S] +inf where n is 0.
        max_ms: [G, S] -inf where n is 0.
        cell: [K] g * S + s, sorted by (cell, bucket), unique.
        bucket: [K] sketch bucket.
        count: [K] weighted values in that bucket, never 0.
        profile: the tail profile.
        moments: the co-moments.
        sample: sampled whole records.
        ledger: (pane_ns, reason) to count.
    """

    service: str
    stages: tuple[str, ...]
    covariates: tuple[str, ...]
    thresholds_ms: tuple[float, ...]
    pane_ns: NDArray[np.int64]
    cohorts: tuple[Cohort, ...]
    requests: NDArray[np.int64]
    failed: NDArray[np.int64]
    over: NDArray[np.int64]
    n: NDArray[np.int64]
    sum_ns: NDArray[np.int64]
    min_ms: NDArray[np.float64]
    max_ms: NDArray[np.float64]
    cell: NDArray[np.int32]
    bucket: NDArray[np.int16]
    count: NDArray[np.int64]
    profile: Profile
    moments: Moments
    sample: Sample
    ledger: Mapping[tuple[int, str], int]
