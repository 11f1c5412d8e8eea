"""The two sides of a comparison: requests by rank, failures being slower than all others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.evidence import Evidence
from tailbudget.models.ranks import Ranks, ranks, requests_needed
from tailbudget.models.sketch import BUCKETS, nearest_rank
from tailbudget.schemas.ledger import ACCEPTED
from tailbudget.schemas.summary import TOTAL, Summary


@dataclass(frozen=True, slots=True)
class Side:
    """Requests of one side of a comparison.

    Attributes:
        ranks: those that were measured.
        failed: those that failed: slower than all of `ranks`.
        scale: records behind one request, at most 1: a sampled request that stands for 100 is
            evidence of one.
    """

    ranks: Ranks
    failed: int = 0
    scale: float = 1.0

    @property
    def n(self) -> int:
        """Return how many requests there are."""
        return self.ranks.n + self.failed

    def quantile_ms(self, quantile: Fraction) -> float | None:
        """Return the nearest-rank quantile; None when it is a failure, or there is nothing."""
        return self.ranks.value_ms(nearest_rank(self.n, quantile))

    def measures(self, quantile: Fraction) -> bool:
        """Tell whether there are enough records for a quantile."""
        return self.n * self.scale >= requests_needed(quantile)

    def counts(self) -> NDArray[np.float64]:
        """Return [BUCKETS + 1] records in each bucket, and that failed."""
        counts = np.zeros(BUCKETS + 1)
        counts[self.ranks.bucket] = np.diff(self.ranks.cumulated, prepend=0)
        counts[BUCKETS] = self.failed
        return counts * self.scale


def all_requests(evidence: Evidence) -> Side:
    """Return all requests."""
    total = evidence.total
    requests, ok = int(total.requests.sum()), answered(total)
    return Side(ok.ranks, max(requests - ok.ranks.n, 0), records_a_request(total))


def answered(total: Summary, stage: str = TOTAL, scale: float = 1.0) -> Side:
    """Return the successful requests that carry a stage; none where the summary has no group."""
    if not len(total.cohorts) or stage not in total.stages:
        nothing = np.zeros(0, np.int64)
        return Side(Ranks(nothing.astype(np.int16), nothing, 0, np.inf, -np.inf, {}))
    return Side(ranks(total, stage), scale=scale)


def records_a_request(total: Summary) -> float:
    """Return how many records there are for a request: 1, or the sampling rate of the log."""
    requests = int(total.requests.sum())
    records = sum(count for (_, reason), count in total.ledger.items() if reason == ACCEPTED)
    return min(records / requests, 1.0) if records and requests else 1.0


def cohort_sides(cohorts: Summary, scale: float) -> Mapping[tuple[str, str], Side]:
    """Return the successful requests of every (dimension, value)."""
    groups: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for group, cohort in enumerate(cohorts.cohorts):
        for pair in cohort:
            groups[pair].append(group)
    stages, stage = len(cohorts.stages), cohorts.stages.index(TOTAL)
    mine = np.flatnonzero(cohorts.cell % stages == stage)
    first = np.searchsorted(cohorts.cell[mine] // stages, np.arange(len(cohorts.cohorts) + 1))
    sides = {}
    for pair, members in groups.items():
        at = np.concatenate([mine[first[g] : first[g + 1]] for g in members])
        counts = np.bincount(cohorts.bucket[at], cohorts.count[at], BUCKETS)
        bucket = np.flatnonzero(counts)
        found = Ranks(
            bucket=bucket.astype(np.int16),
            cumulated=np.cumsum(counts[bucket]).astype(np.int64),
            n=int(counts.sum()),
            min_ms=float(cohorts.min_ms[members, stage].min()),
            max_ms=float(cohorts.max_ms[members, stage].max()),
            slower={},
        )
        sides[pair] = Side(found, scale=scale)
    return sides
