"""A realistic SLO from a measured profile, before a service is launched."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tailbudget.models.evidence import Evidence
from tailbudget.models.load import load_slots
from tailbudget.models.ranks import requests_needed
from tailbudget.models.sizing import floor_ms, not_added, stage_budgets, supported_slo
from tailbudget.schemas.proposals import SloProposal, SupportedSlo
from tailbudget.schemas.sections import StageRow
from tailbudget.schemas.slo import QUANTILES, SloTarget


def proposal(evidence: Evidence, table: Sequence[StageRow] = ()) -> SloProposal:
    """Return the SLO that the profile supports, with confidence and the stages' budgets.

    Args:
        evidence: a measured profile, such as of a load test.
        table: the stages' roles; without, each follows the other.
    """
    supported = supported_slo(evidence)
    ms = {one.percentile: _rounded_up(one.supported_ms) for one in supported}
    slo = SloTarget(p50_ms=ms["p50"], p95_ms=ms["p95"], p99_ms=ms["p99"])
    requests, failed = int(evidence.total.requests.sum()), int(evidence.total.failed.sum())
    return SloProposal(
        slo=slo,
        supported=supported,
        budgets=() if slo.p99_ms is None else stage_budgets(evidence, slo.p99_ms, table),
        floor_ms=floor_ms(evidence, not_added(table)),
        failed_pct=100 * failed / requests if requests else None,
        notes=tuple(_notes(evidence, supported)),
    )


def _rounded_up(ms: float | None) -> float | None:
    """Round up to two significant digits: nobody promises 217.4 ms."""
    if ms is None or ms <= 0:
        return None
    step = 10.0 ** (math.floor(math.log10(ms)) - 1)
    return round(math.ceil(ms / step * (1 - 1e-12)) * step, 12)


def _notes(evidence: Evidence, supported: Sequence[SupportedSlo]) -> Iterator[str]:
    for one in supported:
        needed = requests_needed(QUANTILES[one.percentile])
        if one.supported_ms is None and one.n < needed:
            yield f"{one.percentile} takes {needed:,} requests; {one.n:,} were measured."
        elif one.supported_ms is None:
            yield f"Failures reach into the interval of {one.percentile}: no target holds."
    if load_slots(evidence) is None:
        yield "Load did not vary: the targets hold at the load that was measured."
    if not evidence.deploys_known:
        yield "No deploy is known: whether cold starts are in the profile cannot be told."
    yield "Requests that come in bursts make these intervals too narrow: measure several days."
