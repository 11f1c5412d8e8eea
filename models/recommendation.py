"""Fix the tail, negotiate the SLO anew, add capacity, measure first, or keep: one choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tailbudget.models.evidence import Evidence
from tailbudget.models.figures import figure
from tailbudget.models.load import load_slots, rises_with_load
from tailbudget.models.model_swap import why_no_swap
from tailbudget.models.optimizations import named
from tailbudget.models.sizing import (
    floor_ms,
    load_curve,
    not_added,
    stage_budgets,
    supported_slo,
)
from tailbudget.schemas.findings import Findings
from tailbudget.schemas.proposals import (
    Cause,
    CauseName,
    Optimization,
    Recommendation,
    StageBudget,
    SupportedSlo,
)
from tailbudget.schemas.summary import UNATTRIBUTED
from tailbudget.schemas.verdicts import Percentile, Verdict, leading


@dataclass(frozen=True, slots=True)
class _Choice:
    """A choice with its reason.

    Attributes:
        name: see `Recommendation.choice`.
        reason: why, with the figures.
        first_step: empty takes the first fix.
    """

    name: str
    reason: str
    first_step: str = ""


@dataclass(frozen=True, slots=True)
class _Facts:
    """What a choice is made from.

    Attributes:
        evidence: what was measured.
        found: the measuring sections.
        causes: those that clear the bar, the strongest first.
        missing: what to measure next.
        fixes: the highest-leverage one first.
        missed: the target that is missed, p99 before p95 before p50; None when none is.
    """

    evidence: Evidence
    found: Findings
    causes: tuple[Cause, ...]
    missing: tuple[str, ...]
    fixes: tuple[Optimization, ...]
    missed: Percentile | None


def recommendation(
    evidence: Evidence,
    found: Findings,
    causes: Sequence[Cause],
    optimizations: Sequence[Optimization],
) -> Recommendation:
    """Return the choice, with the numbers that it rests on."""
    rows = leading(found.end_to_end)
    missed = {name: row for name, row in rows.items() if row.status is Verdict.BREACH}
    facts = _Facts(
        evidence=evidence,
        found=found,
        causes=named(causes),
        missing=tuple(dict.fromkeys(text for cause in causes for text in cause.missing)),
        fixes=tuple(optimizations),
        missed=next((missed[name] for name in ("p99", "p95", "p50") if name in missed), None),
    )
    supported = supported_slo(evidence)
    choice = _choose(facts, supported)
    swap = why_no_swap(evidence, found, causes) if choice.name != "keep" else ""
    return Recommendation(
        choice=choice.name,
        reason=" ".join(filter(None, (choice.reason, swap))),
        first_step=choice.first_step or _first_step(choice, facts),
        mitigation=_mitigation(facts) if choice.name not in ("keep", "measure_first") else "",
        supported=supported,
        budgets=_budgets(facts, supported),
        load=load_curve(evidence),
    )


def _choose(facts: _Facts, supported: Sequence[SupportedSlo]) -> _Choice:
    found = facts.found
    if facts.missed is None and found.slo is not None and found.slo.items():
        return _not_missed(facts)
    if not any(row.stage != UNATTRIBUTED for row in found.stages):
        return _Choice("measure_first", "No stage of a request was timed.")
    if found.tail_driver is None:
        return _Choice("measure_first", "No stage takes longer in slow requests than in fast ones.")
    if not facts.causes:
        return _Choice("measure_first", "No cause was found that explains the tail.")
    if facts.missed is None:
        return _Choice("fix_tail", f"No target is set. {_tail(facts)} {_estimate(facts)}")
    return (
        _failures(facts, facts.missed)
        or _capacity(facts)
        or _renegotiate(facts, facts.missed, supported)
        or _Choice("fix_tail", f"{_miss(facts.missed)} {_tail(facts)} {_estimate(facts)}")
    )


def _not_missed(facts: _Facts) -> _Choice:
    promised = [row for row in leading(facts.found.end_to_end).values() if row.slo_ms]
    judged = [row for row in promised if row.status in (Verdict.OK, Verdict.AT_RISK)]
    unsure = "; ".join(f"{row.percentile}: {row.note}" for row in promised if row not in judged)
    if not judged:
        return _Choice("measure_first", f"Too few requests to judge ({unsure}).")
    rows = ", ".join(f"{r.percentile} {_ms(r.measured_ms)} of {_ms(r.slo_ms)}" for r in judged)
    tight = " Little of a target is left." if facts.found.verdict is Verdict.AT_RISK else ""
    rest = f" Not judged: {unsure}." if unsure else ""
    return _Choice("keep", f"Every target that can be judged is met: {rows}.{tight}{rest}")


def _failures(facts: _Facts, missed: Percentile) -> _Choice | None:
    """Say so where failures alone miss the target: no fix of latency mends that."""
    if missed.measured_ms is not None:
        return None
    requests = int(facts.evidence.total.requests[0])
    share = 100 * int(facts.evidence.total.failed[0]) / requests
    reason = (
        f"{share:.2f} % of the requests failed, more than {missed.percentile} allows:"
        f" no estimate here counts failures that a fix prevents. {_tail(facts)}"
    )
    return _Choice("fix_tail", reason)


def _capacity(facts: _Facts) -> _Choice | None:
    strongest = facts.causes[0].cause
    cold = facts.found.cold_start
    if strongest is CauseName.COLD_START and cold.verdict == "cold_start":
        reason = (
            f"Warm capacity is what lacks: p99 is {_ms(cold.unfiltered_p99_ms)}, and outside of"
            f" cold windows {_ms(cold.filtered_p99_ms)}. {_estimate(facts)}"
        )
        return _Choice("add_capacity", reason)
    slots = load_slots(facts.evidence)
    rise = rises_with_load(slots) if slots else None
    if strongest is not CauseName.CONTENTION or slots is None or rise is None:
        return None
    reason = (
        f"Requests wait for each other: p99 is {_ms(rise[0])} in the calmer half of the time and"
        f" {_ms(rise[1])} in the busier one (up to {figure(slots.rps[-1], 3)} requests a second,"
        f" {figure(slots.in_flight[-1], 3)} in flight). {_estimate(facts)}"
    )
    return _Choice("add_capacity", reason)


def _renegotiate(
    facts: _Facts, missed: Percentile, supported: Sequence[SupportedSlo]
) -> _Choice | None:
    if missed.percentile != "p99" or missed.measured_ms is None or missed.slo_ms is None:
        return None
    offer = next((one.supported_ms for one in supported if one.percentile == "p99"), None)
    said = f" The profile supports a p99 of {_ms(offer)}." if offer is not None else ""
    floor = floor_ms(facts.evidence, not_added(facts.found.stages))
    if floor is not None and floor > missed.slo_ms:
        reason = f"The stages' medians alone add up to {_ms(floor)}."
        return _Choice("renegotiate_slo", f"{_miss(missed)} {reason}{said}")
    known = [fix.p99_saved_ms for fix in facts.fixes if fix.p99_saved_ms is not None]
    left = missed.measured_ms - sum(known)
    if not known or left <= missed.slo_ms:
        return None
    silent = len(facts.fixes) - len(known)
    reason = (
        f"The {len(known)} fixes with an estimate save {_ms(sum(known))} together at most"
        f" (estimate), which leaves {_ms(left)}; {silent} more have no estimate."
    )
    return _Choice("renegotiate_slo", f"{_miss(missed)} {reason}{said}")


def _miss(missed: Percentile) -> str:
    return f"{missed.percentile} is {_ms(missed.measured_ms)} against {_ms(missed.slo_ms)}."


def _tail(facts: _Facts) -> str:
    strongest, driver = facts.causes[0], facts.found.tail_driver
    through = f" in {strongest.stage}" if strongest.stage else ""
    slower = f"; {driver.stage} is {_ms(driver.delta_ms)} slower in slow requests" if driver else ""
    return f"The tail has a cause: {strongest.cause.replace('_', ' ')}{through}{slower}."


def _estimate(facts: _Facts) -> str:
    first = facts.fixes[0] if facts.fixes else None
    if first is None:
        return "The catalogue has no fix for it."
    if first.p99_saved_ms is None:
        return "No fix has an estimate: see what each would have to measure."
    low, high = first.interval_ms or (first.p99_saved_ms, first.p99_saved_ms)
    return (
        f"The first fix saves {_ms(first.p99_saved_ms)} of p99"
        f" (estimate, {figure(low)} to {figure(high)})."
    )


def _first_step(choice: _Choice, facts: _Facts) -> str:
    if choice.name == "measure_first":
        return facts.missing[0] if facts.missing else "Record the stages of each request"
    if choice.name == "keep" or not facts.fixes:
        return ""
    return facts.fixes[0].fix


def _mitigation(facts: _Facts) -> str:
    """Return the first mitigation that has an estimate, else the first of all."""
    short = [fix for fix in facts.fixes if fix.horizon == "short"]
    helps = [fix for fix in short if fix.p99_saved_ms] or short
    return helps[0].fix if helps else ""


def _budgets(facts: _Facts, supported: Sequence[SupportedSlo]) -> tuple[StageBudget, ...]:
    """Divide the target that is set, else the one that the profile supports."""
    target = facts.found.slo.p99_ms if facts.found.slo else None
    offer = next((one.supported_ms for one in supported if one.percentile == "p99"), None)
    p99_ms = target or offer
    return stage_budgets(facts.evidence, p99_ms, facts.found.stages) if p99_ms else ()


def _ms(value: float | None) -> str:
    return "unknown" if value is None else f"{figure(value)} ms"
