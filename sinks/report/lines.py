"""From an audit to the document that every format lays out."""

from __future__ import annotations

from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.document import Document, Section, say
from tailbudget.sinks.report.headline import headline
from tailbudget.sinks.report.sections.baseline import baseline
from tailbudget.sinks.report.sections.bounds import bounds_sections
from tailbudget.sinks.report.sections.brief import brief
from tailbudget.sinks.report.sections.budgets import budgets
from tailbudget.sinks.report.sections.causes import causes
from tailbudget.sinks.report.sections.cohorts import cohorts
from tailbudget.sinks.report.sections.cold_start import cold_start
from tailbudget.sinks.report.sections.latency import end_to_end
from tailbudget.sinks.report.sections.optimizations import optimizations
from tailbudget.sinks.report.sections.provenance import provenance, service_name
from tailbudget.sinks.report.sections.recommendation import recommendation
from tailbudget.sinks.report.sections.records import ledger, warnings
from tailbudget.sinks.report.sections.regressions import regressions
from tailbudget.sinks.report.sections.shape import shape
from tailbudget.sinks.report.sections.slo_proposal import slo_proposal
from tailbudget.sinks.report.sections.stages import stages, tail_driver
from tailbudget.sinks.report.sections.token_timings import token_timings


def document(audit: Audit) -> Document:
    """Return the ten sections, then what was asked for besides, the ledger and warnings."""
    sections = (
        provenance(audit),
        *(bounds_sections(audit) if audit.bounds else _measured(audit)),
        token_timings(audit),
        regressions(audit),
        budgets(audit),
        baseline(audit),
        slo_proposal(audit),
        brief(audit),
        ledger(audit),
        warnings(audit),
    )
    return Document(
        headline=headline(audit),
        title=say("Latency audit of ", service_name(audit)),
        sections=tuple(section for section in sections if section is not None),
    )


def _measured(audit: Audit) -> tuple[Section, ...]:
    """Return sections 2 to 10 of a report of requests."""
    return (
        end_to_end(audit),
        stages(audit),
        tail_driver(audit),
        shape(audit),
        cohorts(audit),
        cold_start(audit),
        causes(audit),
        optimizations(audit),
        recommendation(audit),
    )
