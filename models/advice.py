"""The optimisation brief of an audit: under 700 words, every figure measured or an estimate."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.models.brief_options import batching, caching, reductions
from tailbudget.models.brief_places import places, unmapped
from tailbudget.models.figures import figure
from tailbudget.models.hit_ratio import tells_hits
from tailbudget.models.places import FORWARD
from tailbudget.schemas.brief import Brief, RankedRow
from tailbudget.schemas.context import Context
from tailbudget.schemas.proposals import CauseName, Optimization
from tailbudget.schemas.records import NO_SERVICE
from tailbudget.schemas.summary import UNATTRIBUTED
from tailbudget.schemas.verdicts import Audit, leading

ROWS: Final = 5
"""Lines of the ranked table that 700 words have room for."""

WORDS: Final = 15
"""Words that are shown of a text, which may come from a user's file."""

_UNMAPPED: Final = 4


def brief(audit: Audit, context: Context) -> Brief:
    """Return the brief: what is known, what is missing, what to do and how to check it."""
    where = places(audit.stages)
    measured = {place.place: place.share_pct for place in where}
    return Brief(
        problem=_problem(audit, context),
        missing=tuple(_missing(audit, context)),
        places=where,
        unmapped=unmapped(audit.stages)[:_UNMAPPED],
        places_note="" if audit.stages else "No stage was measured: nothing can be said.",
        batching=batching(audit, measured["queueing"]),
        caching=caching(miss_measured=_miss_measured(audit)),
        reductions=reductions(audit, measured[FORWARD]),
        ranked=_ranked(audit),
        measurement=_measurement(audit),
        first_week=_first_week(audit),
        caveat=_caveat(context),
    )


def _problem(audit: Audit, context: Context) -> str:
    at = leading(audit.end_to_end).get("p99")
    measured = None if at is None else at.measured_ms
    service = audit.provenance.service
    text = f"{'The service' if service == NO_SERVICE else service} has "
    text += "no measured p99" if measured is None else f"a p99 of {figure(measured)} ms"
    if at is not None and at.slo_ms is not None:
        text += f" against a target of {figure(at.slo_ms)} ms"
    if audit.tail_driver:
        text += f", driven by {audit.tail_driver.stage}"
    cause = audit.causes[0] if audit.causes else None
    if cause is not None and cause.cause is not CauseName.UNKNOWN:
        through = cause.covariate or _cut(cause.cohort, 6)
        text += f", because of {cause.cause.replace('_', ' ')}{f' ({through})' if through else ''}"
    held = f"; constraints: {_cut(', '.join(context.constraints))}" if context.constraints else ""
    return f"{text}{held}."


def _missing(audit: Audit, context: Context) -> Iterator[str]:
    """Yield what nobody said, then what was not measured."""
    for name in type(context).model_fields:
        if not getattr(context, name):
            yield name.replace("_", " ")
    cold, slo = audit.cold_start, audit.provenance.slo
    measured = {
        "SLO": slo is not None and bool(slo.items()),
        "stage timings": any(row.stage != UNATTRIBUTED for row in audit.stages),
        "input shape": bool(audit.shape),
        "deploy times": cold is not None and cold.filtered_p99_ms is not None,
        "cache hit ratio": _miss_measured(audit),
        "latency under varying load": audit.recommendation is not None
        and bool(audit.recommendation.load),
    }
    yield from (name for name, known in measured.items() if not known)


def _miss_measured(audit: Audit) -> bool:
    named = [row.covariate for row in audit.shape] + [row.dimension for row in audit.cohorts]
    return any(tells_hits(name) for name in named)


def _ranked(audit: Audit) -> tuple[RankedRow, ...]:
    rows = tuple(_row(fix) for fix in _chosen(audit.optimizations))
    if rows:
        return rows
    why = _cut(audit.refused) if audit.refused else "no cause with a fix was found"
    step = audit.recommendation.first_step if audit.recommendation else ""
    action = _cut(step) if step else "Measure what is missing"
    return (RankedRow(action, f"not measured: {why}", "not known", "none", "audit again"),)


def _chosen(fixes: tuple[Optimization, ...]) -> tuple[Optimization, ...]:
    """Return the first few, the first mitigation among them."""
    kept = list(fixes[:ROWS])
    lacking = all(fix.horizon != "short" for fix in kept)
    if lacking and (later := [fix for fix in fixes[ROWS:] if fix.horizon == "short"]):
        kept[-1] = later[0]
    return tuple(kept)


def _row(fix: Optimization) -> RankedRow:
    if fix.p99_saved_ms is None:
        impact = "not measured"
    else:
        low, high = fix.interval_ms or (fix.p99_saved_ms, fix.p99_saved_ms)
        impact = f"{figure(fix.p99_saved_ms)} ms ({figure(low)} to {figure(high)}), estimate"
    return RankedRow(
        action=_cut(fix.fix),
        impact=impact,
        effort=f"{fix.hours:g} h",
        risk=f"{fix.quality_risk}; {'reversible' if fix.reversible else 'not reversible'}",
        verify=_cut(fix.verify),
    )


def _measurement(audit: Audit) -> tuple[str, ...]:
    driver = audit.tail_driver.stage if audit.tail_driver else "each stage"
    return (
        f"Baseline: keep this audit's log of {audit.provenance.n:,} requests.",
        "Change one thing at a time; same traffic mix, same load, warm replicas.",
        f"Compare p50, p95 and p99 of the total and of {driver} with `--baseline`, never means.",
        "Take at least 1,000 requests a side for p99; check answers on a held-out set.",
    )


def _first_week(audit: Audit) -> tuple[str, str, str]:
    fixes = audit.optimizations
    advice = audit.recommendation
    first = advice.first_step if advice and advice.first_step else ""
    first = first or (fixes[0].fix if fixes else "Record what is missing above")
    stopgap = advice.mitigation if advice else ""
    before = f"Day 1: baseline and {'mitigation: ' + _cut(stopgap) if stopgap else 'dashboards'}."
    middle = f"Days 2 to 4: {_cut(first)}."
    if _cut(first) == _cut(stopgap):
        middle = "Days 2 to 4: the next row of the table."
    return before, middle, "Day 5: audit again, compare, keep or undo, and choose the next row."


def _caveat(context: Context) -> str:
    on = f" ({_cut(context.hardware, 8)})" if context.hardware else ""
    named = [name for name in (context.serving_runtime, context.framework) if name]
    of = f" of {_cut(' and '.join(named), 8)}" if named else ""
    return (
        f"Estimates come from replaying measured requests: gains must be measured on the target"
        f" hardware{on}, and flags checked against the version{of} in use."
    )


def _cut(text: str, words: int = WORDS) -> str:
    """Shorten a text that a user may have written at any length."""
    parts = text.split()
    return " ".join(parts[:words]) + (" …" if len(parts) > words else "")
