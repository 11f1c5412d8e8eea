"""The first line of every report: the verdict in one sentence that can be acted on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.schemas.records import NO_SERVICE
from tailbudget.schemas.verdicts import (
    Audit,
    Percentile,
    Verdict,
    is_refused,
    is_unjudged,
    leading,
)
from tailbudget.sinks.report.clean import SENTENCE_LENGTH, bare, clean
from tailbudget.sinks.report.document import Line, Mark, Name, Span, Tone, say
from tailbudget.sinks.report.figures import NO_TARGET, count, ms, pct, signed_ms, times, words
from tailbudget.sinks.report.sections.bounds import bounded
from tailbudget.sinks.report.sections.cohorts import cohort_name, share_text, worst
from tailbudget.sinks.report.sections.latency import TONES
from tailbudget.sinks.report.sections.optimizations import saved_text

_UNSURE: Final = (Verdict.INSUFFICIENT, Verdict.NO_DATA)
_JUDGED: Final = ("p99", "p95", "p50")  # what an engineer asks for first

_STEP_LENGTH: Final = 160  # so that the sentence stays one that is read at a glance


def headline(audit: Audit) -> Line:
    """Return what breaks and by how much, the tail driver, the worst cohort, the first fix."""
    if audit.bounds:
        return say(*bounded(audit), ".")
    if is_refused(audit) and audit.verdict not in _UNSURE:
        return _refused(audit)
    verdict = Mark(words(audit.verdict).upper(), TONES[audit.verdict])
    if is_unjudged(audit):
        verdict = Mark(NO_TARGET.upper(), Tone.WARN)
    spans: list[Span] = [verdict, ": ", *_subject(audit), *_state(audit)]
    for clause in _clauses(audit):
        spans += ["; ", *clause]
    return say(*spans, ".")


def _refused(audit: Audit) -> Line:
    return say(Mark("REFUSED", Tone.WARN), ": ", clean(bare(audit.refused), SENTENCE_LENGTH), ".")


def _subject(audit: Audit) -> Iterator[Span]:
    if audit.provenance.service != NO_SERVICE:
        yield from (Name(audit.provenance.service), " ")
    elif audit.verdict in _UNSURE and not is_unjudged(audit):
        yield "the service "


def _state(audit: Audit) -> Iterator[Span]:
    rows = leading(audit.end_to_end)
    judged = [rows[name] for name in _JUDGED if name in rows]
    same = [row for row in judged if row.status is audit.verdict]
    if is_unjudged(audit):
        yield _met(judged[0])
    elif audit.verdict is Verdict.NO_DATA or not same:
        yield f"has no judged percentile ({times(audit.provenance.n, 'request')})"
    elif audit.verdict is Verdict.INSUFFICIENT:
        yield f"had {times(audit.provenance.n, 'request')}, too few to judge {_names(same)}"
    elif audit.verdict is Verdict.BREACH:
        yield _broken(max(same, key=_excess), same)
    else:
        yield _met(max(same, key=_used))


def _broken(row: Percentile, all_rows: list[Percentile]) -> str:
    name = row.percentile.upper()
    others = [other for other in all_rows if other is not row]
    also = f" ({_names(others)} too)" if others else ""
    if row.measured_ms is None or row.headroom_ms is None:
        beyond = f"{count(row.over or 0)} of {count(row.n)} requests beyond it"
        return f"{name} breaks its {ms(row.slo_ms)} SLO{also}: {beyond}"
    over = ms(-row.headroom_ms)
    return f"{name} is {ms(row.measured_ms)}, {over} over its {ms(row.slo_ms)} SLO{also}"


def _met(row: Percentile) -> str:
    name = row.percentile.upper()
    if row.slo_ms is None or row.headroom_ms is None:
        return f"{name} is {ms(row.measured_ms)}, and no target is set"
    room = ms(row.headroom_ms)
    return f"{name} is {ms(row.measured_ms)}, {room} under its {ms(row.slo_ms)} SLO"


def _clauses(audit: Audit) -> Iterator[list[Span]]:
    driver, cohort = audit.tail_driver, worst(audit)
    if driver is not None:
        share = "" if driver.tail_share_pct is None else f" ({pct(driver.tail_share_pct)})"
        slower = f" {signed_ms(driver.delta_ms)} in slow requests{share}"
        yield ["tail driver ", Name(driver.stage), slower]
    if cohort is not None:
        yield ["worst cohort ", cohort_name(cohort), f", {share_text(cohort)}"]
    yield from _first(audit)


def _first(audit: Audit) -> Iterator[list[Span]]:
    if audit.optimizations:
        fix = audit.optimizations[0]
        yield ["first fix: ", f"{_step(fix.fix)} ({saved_text(fix)})"]
    elif audit.recommendation is not None and audit.recommendation.first_step:
        yield ["first step: ", _step(audit.recommendation.first_step)]
    elif audit.refused:
        yield ["no fix is recommended: ", _step(audit.refused)]


def _step(text: str) -> str:
    return clean(bare(text), _STEP_LENGTH)


def _excess(row: Percentile) -> float:
    """Return how many times the target was exceeded; what cannot be measured exceeds most."""
    if row.measured_ms is None or not row.slo_ms:
        return float("inf")
    return row.measured_ms / row.slo_ms


def _used(row: Percentile) -> float:
    return row.measured_ms / row.slo_ms if row.measured_ms is not None and row.slo_ms else 0.0


def _names(rows: list[Percentile]) -> str:
    *most, last = [row.percentile.upper() for row in rows]
    return f"{', '.join(most)} and {last}" if most else last
