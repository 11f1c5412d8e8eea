"""Section 1: what was audited."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.schemas.bounds import REASON
from tailbudget.schemas.ledger import ACCEPTED, FAILED
from tailbudget.schemas.records import NO_SERVICE
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.verdicts import Audit, Provenance
from tailbudget.sinks.report.document import (
    Block,
    Line,
    Name,
    Section,
    Span,
    Table,
    bullets,
    columns,
    say,
)
from tailbudget.sinks.report.figures import NO_TARGET, count, ms, not_measured, pct, times

_UNTOLD: Final = not_measured("no label tells failures apart")
_COUNTING: Final = "since the counters began"


def provenance(audit: Audit) -> Section:
    """Return the service, its target, the window, the counts, and what was assumed."""
    blocks: list[Block] = [Table("What was audited", columns("What | Value"), tuple(_rows(audit)))]
    if audit.provenance.assumptions:
        blocks.append(bullets("Assumed, because nobody said:", audit.provenance.assumptions))
    return Section("provenance", "Provenance", tuple(blocks))


def _rows(audit: Audit) -> Iterator[Line]:
    what = audit.provenance
    yield say("Service", service_name(audit))
    yield say("SLO", slo_text(what.slo))
    yield say("Window", _COUNTING if audit.bounds else _window(what))
    yield say("Requests", count(what.n))
    yield say("Succeeded", _UNTOLD if what.n_ok is None else count(what.n_ok))
    yield say("Failed", _failed(what))
    yield say("Sampling", _sampling(audit))
    yield say("Records", _records(audit))
    yield say("Source", Name(what.source) if what.source else "the stream")
    yield say("Warnings", f"{len(audit.warnings)}, at the end" if audit.warnings else "none")


def _failed(what: Provenance) -> str:
    if what.n_failed is None:
        return _UNTOLD
    share = f" ({pct(100 * what.n_failed / what.n)})" if what.n else ""
    return f"{count(what.n_failed)}{share}"


def service_name(audit: Audit) -> Span:
    """Return the name of the service, or what stands in its place."""
    name = audit.provenance.service
    return "a service without a name" if name == NO_SERVICE else Name(name)


def _window(what: Provenance) -> str:
    if what.start is None or what.end is None:
        return "not known: no request has a time"
    return f"{what.start} to {what.end}"


def slo_text(slo: SloTarget | None) -> str:
    """Return a target in words."""
    if slo is None or not slo.items():
        return NO_TARGET
    targets = ", ".join(f"{name.upper()} {ms(value)}" for name, value in slo.items())
    return f"{targets}; error budget {pct(slo.error_budget_pct)}"


def _sampling(audit: Audit) -> str:
    if audit.provenance.weighted:
        return "sampled telemetry: each record counts as often as its weight says"
    return "every record counts once"


def _records(audit: Audit) -> str:
    if audit.bounds:
        return not_measured(REASON)
    if not audit.ledger:
        return not_measured("no ledger was kept")
    accepted = audit.ledger.get(ACCEPTED)
    noted = sum(1 for reason in audit.ledger if reason not in (ACCEPTED, FAILED))
    said = not_measured("accepted records") if accepted is None else f"{count(accepted)} accepted"
    return f"{said}; {times(noted, 'other reason')} in the ledger"
