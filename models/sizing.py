"""Which SLO does the measured profile support, and how does it divide over the stages?"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.evidence import Evidence
from tailbudget.models.load import Slots, load_slots
from tailbudget.models.rank_interval import CONFIDENCE_PCT, upper_rank
from tailbudget.models.ranks import Ranks, ranks, requests_needed
from tailbudget.models.sampled import sampled
from tailbudget.models.sketch import nearest_rank, quantiles
from tailbudget.models.snapshot import AT_RISK_SHARE
from tailbudget.models.tail import slow_fast
from tailbudget.schemas.proposals import LoadPoint, StageBudget, SupportedSlo
from tailbudget.schemas.sections import StageRole, StageRow
from tailbudget.schemas.slo import QUANTILES
from tailbudget.schemas.summary import UNATTRIBUTED, Summary

MARGIN_PCT: Final = 100 * (1 / AT_RISK_SHARE - 1)
"""With this on top, what was measured lies within the share of the target that is not at risk."""

_LEVELS: Final = 10
_HASHES: Final = 2.0**64
_SURELY: Final = 5.0  # standard deviations of the estimate from so many hashes


def supported_slo(evidence: Evidence) -> tuple[SupportedSlo, ...]:
    """Return the tightest target of each percentile; failures are slower than all.

    It is the upper end of the percentile's interval (`rank_interval`) with the margin on top.
    Records that stand for several requests count once in the width of the interval.
    """
    total = evidence.total
    if not len(total.cohorts):
        return tuple(_supported(name, None, 0, 0) for name in QUANTILES)
    order, n = ranks(total), int(total.requests[0])
    records = min(n, max(round(n * _records_share(total, order.n)), 1))
    return tuple(_supported(name, order, n, records) for name in QUANTILES)


def stage_budgets(
    evidence: Evidence, p99_ms: float, table: Sequence[StageRow] = ()
) -> tuple[StageBudget, ...]:
    """Return how a p99 target divides over the stages; the parts add up to it.

    Each gets its share of the mean slow request. Stages that hold others get none, and those that
    run at the same time one budget together, which each of them may use up.

    Args:
        evidence: what was measured.
        p99_ms: the target.
        table: the stages' roles; without, each follows the other.
    """
    band = slow_fast(evidence.total) if len(evidence.total.cohorts) else None
    if band is None:
        return ()
    means = {row.stage: row.mean_slow_ms for row in band.rows}
    weights = _weights(means, band.total.mean_slow_ms, {row.stage: row.role for row in table})
    whole = sum(weights.values())
    if whole <= 0:
        return ()
    return tuple(
        StageBudget(stage, p99_ms * weight / whole, 100 * weight / whole)
        for stage, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0]))
        if weight > 0
    )


def load_curve(evidence: Evidence) -> tuple[LoadPoint, ...]:
    """Return p99 at each tenth of the load, ascending; empty when load did not vary."""
    slots = load_slots(evidence)
    if slots is None:
        return ()
    parts = np.array_split(np.arange(len(slots.rps)), min(_LEVELS, len(slots.rps)))
    return tuple(_point(slots, part) for part in parts)


def floor_ms(evidence: Evidence, leave_out: Collection[str] = ()) -> float | None:
    """Return the sum of the stages' medians: what a request takes when nothing is slow.

    Args:
        evidence: what was measured.
        leave_out: stages that are not added to the others.

    Returns:
        None without stages. Of a stage that not every request has, the median counts in the
        share of requests that have it.
    """
    total = evidence.total
    own = [s for s in total.stages[2:] if s not in leave_out] if len(total.cohorts) else []
    if set(own) <= {UNATTRIBUTED}:
        return None
    requests = ranks(total).n
    medians = ((ranks(total, stage), stage) for stage in own)
    parts = [(order.quantile_ms(QUANTILES["p50"]), order.n) for order, _ in medians]
    return sum(ms * n / requests for ms, n in parts if ms is not None) if requests else None


def not_added(table: Sequence[StageRow]) -> tuple[str, ...]:
    """Return the stages that hold others, and of parallel ones all but the longest."""
    beside = [row for row in table if row.role is StageRole.PARALLEL]
    longest = max(beside, key=lambda row: row.p50_ms or 0.0, default=None)
    holding = [row for row in table if row.role is StageRole.CONTAINER]
    return tuple(row.stage for row in (*beside, *holding) if row is not longest)


def _supported(name: str, order: Ranks | None, n: int, records: int) -> SupportedSlo:
    quantile = QUANTILES[name]
    measured = order.value_ms(nearest_rank(n, quantile)) if order else None
    upper = None
    if order is not None and records >= requests_needed(quantile):
        rank = upper_rank(records, quantile)
        upper = None if rank is None else order.value_ms(-(-rank * n // records))
    return SupportedSlo(
        percentile=name,
        measured_ms=measured,
        supported_ms=None if upper is None else upper * (1 + MARGIN_PCT / 100),
        margin_pct=MARGIN_PCT,
        confidence_pct=CONFIDENCE_PCT,
        n=n,
    )


def _records_share(total: Summary, n: int) -> float:
    """Return how many records there are for each request that they stand for, at most 1.

    Of hashes that are uniform, the share below the sample's limit is that limit's.
    """
    limit, kept = float(total.sample.tau[0]) / _HASHES, len(sampled(total))
    share = kept / limit / n if n and limit else 1.0
    return share if share * (1 + _SURELY / max(kept, 1) ** 0.5) < 1 else 1.0


def _weights(
    means: Mapping[str, float], total_ms: float, roles: Mapping[str, StageRole]
) -> Mapping[str, float]:
    """Return what each budget is to be in proportion to."""
    serial = {
        stage: mean
        for stage, mean in means.items()
        if stage != UNATTRIBUTED and roles.get(stage, StageRole.STAGE) is StageRole.STAGE
    }
    beside = {stage: mean for stage, mean in means.items() if roles.get(stage) == "parallel"}
    if beside:
        serial[" || ".join(sorted(beside))] = max(beside.values())
    return serial | {UNATTRIBUTED: max(total_ms - sum(serial.values()), 0.0)}


def _point(slots: Slots, at: NDArray[np.intp]) -> LoadPoint:
    counts = slots.counts[at].sum(axis=0)
    bucket, n = np.flatnonzero(counts), int(counts.sum())
    enough = n >= requests_needed(QUANTILES["p99"])
    p99 = quantiles(bucket, counts[bucket], [QUANTILES["p99"]], 0.0, np.inf) if enough else None
    return LoadPoint(
        load_rps=float(slots.rps[at].max()),
        in_flight=float(slots.in_flight[at].mean()),
        n=int(slots.requests[at].sum()),
        p99_ms=None if p99 is None else float(p99[0]),
    )
