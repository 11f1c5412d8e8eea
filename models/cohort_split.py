"""Which cohorts are slow? Every dimension value and every whole cohort against all requests."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.ranks import requests_needed
from tailbudget.models.sketch import nearest_rank, representative
from tailbudget.schemas.cohorts import ALL, OTHER, Cohort, cohort_text
from tailbudget.schemas.sections import CohortRow
from tailbudget.schemas.slo import QUANTILES

WHOLE: Final = "cohort"
"""The dimension of a row that stands for a whole cohort of several dimensions."""

_P95: Final = QUANTILES["p95"]
_P99: Final = QUANTILES["p99"]


@dataclass(frozen=True, slots=True)
class CohortTotals:
    """How each cohort fared over a span: counts and the sketch of the total.

    Attributes:
        cohorts: [H] distinct, in any order.
        requests: [H] failures included.
        failed: [H] those that failed.
        first_bucket: sketch bucket of the first column of `counts`.
        counts: [H, B] successful requests by bucket of their total.
        min_ms: [H] fastest success; +inf when there is none.
        max_ms: [H] slowest success; -inf when there is none.
    """

    cohorts: tuple[Cohort, ...]
    requests: NDArray[np.int64]
    failed: NDArray[np.int64]
    first_bucket: int
    counts: NDArray[np.int64]
    min_ms: NDArray[np.float64]
    max_ms: NDArray[np.float64]


def cohort_split(totals: CohortTotals) -> tuple[CohortRow, ...]:
    """Return a row for each value of each dimension and each cohort of several dimensions.

    The most over-represented among slow requests come first. Slow is above the p95 of all
    requests, failures being the slowest; the bucket in which that p95 lies is shared out.
    """
    parts = _parts(totals.cohorts)
    if not parts or not totals.requests.sum():
        return ()
    of_parts = _gather(totals, list(parts.values()))
    everything = _gather(totals, [range(len(totals.cohorts))])
    all_p99 = _p99_ms(everything)[0]
    columns = (
        of_parts.requests.tolist(),
        _p99_ms(of_parts),
        _share_pct(_slow(of_parts, everything), float(_slow(everything, everything)[0])),
        _share_pct(of_parts.requests, float(everything.requests[0])),
    )
    rows = [
        CohortRow(
            dimension=dimension,
            value=value,
            n=n,
            p99_ms=p99,
            delta_ms=None if p99 is None or all_p99 is None else p99 - all_p99,
            slow_share_pct=slow,
            traffic_share_pct=traffic,
        )
        for (dimension, value), n, p99, slow, traffic in zip(parts, *columns, strict=True)
    ]
    return tuple(sorted(rows, key=_most_over_represented))


def other_share_pct(totals: CohortTotals) -> float | None:
    """Return the share of requests whose cohort was folded into "(other)"; None without any."""
    everything = int(totals.requests.sum())
    if OTHER not in totals.cohorts or not everything:
        return None
    return 100 * int(totals.requests[totals.cohorts.index(OTHER)]) / everything


def _parts(cohorts: tuple[Cohort, ...]) -> Mapping[tuple[str, str], Sequence[int]]:
    """Return (dimension, value) to the cohorts that have it, whole cohorts among them."""
    members: dict[tuple[str, str], list[int]] = defaultdict(list)
    for at, cohort in enumerate(cohorts):
        for pair in cohort:
            members[pair].append(at)
        if len(cohort) > 1:
            members[WHOLE, cohort_text(cohort)].append(at)
    return members


def _gather(totals: CohortTotals, parts: Sequence[Sequence[int]]) -> CohortTotals:
    """Add up the cohorts of each part; no part is empty."""
    at = np.concatenate([np.asarray(part, np.intp) for part in parts])
    starts = np.cumsum([0, *(len(part) for part in parts[:-1])])
    return CohortTotals(
        cohorts=(ALL,) * len(parts),
        requests=np.add.reduceat(totals.requests[at], starts),
        failed=np.add.reduceat(totals.failed[at], starts),
        first_bucket=totals.first_bucket,
        # Along the first axis, reduceat takes five times as long as a sum for each part.
        counts=np.array([totals.counts[part].sum(axis=0) for part in parts]),
        min_ms=np.minimum.reduceat(totals.min_ms[at], starts),
        max_ms=np.maximum.reduceat(totals.max_ms[at], starts),
    )


def _p99_ms(totals: CohortTotals) -> list[float | None]:
    """Return the p99 of the successes of each row, None where they are too few."""
    cumulated = np.cumsum(totals.counts, axis=1)
    n = totals.counts.sum(axis=1)
    rank = -(-n * _P99.numerator // _P99.denominator)
    at = (cumulated < rank[:, None]).sum(axis=1) + totals.first_bucket
    p99 = np.clip(representative(at), totals.min_ms, totals.max_ms)
    enough = n >= requests_needed(_P99)
    return [value if fits else None for value, fits in zip(p99.tolist(), enough, strict=True)]


def _slow(totals: CohortTotals, everything: CohortTotals) -> NDArray[np.float64]:
    """Return how many requests of each row are above the p95 of `everything`."""
    counts = everything.counts[0]
    n = int(everything.requests[0])
    wanted = n - nearest_rank(n, _P95)
    failed = int(everything.failed[0])
    if wanted <= failed:
        return totals.failed.astype(np.float64) * (wanted / failed if failed else 0.0)
    slower = np.cumsum(counts[::-1])[::-1] + failed
    bucket = int(np.flatnonzero(slower >= wanted)[-1])
    above = slower[bucket] - counts[bucket]
    share = (wanted - above) / counts[bucket]
    slow: NDArray[np.float64] = totals.counts[:, bucket + 1 :].sum(axis=1) + totals.failed * 1.0
    slow += totals.counts[:, bucket] * share
    return slow


def _share_pct(part: NDArray[np.number], whole: float) -> list[float | None]:
    if not whole:
        return [None] * len(part)
    return [100 * value / whole for value in part.tolist()]


def _most_over_represented(row: CohortRow) -> tuple[float, str, str]:
    return (row.traffic_share_pct or 0) - (row.slow_share_pct or 0), row.dimension, row.value
