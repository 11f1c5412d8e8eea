"""The last sections: what became of every record, and what limits the figures."""

from __future__ import annotations

from collections.abc import Mapping

from tailbudget.schemas.ledger import MEANING
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.document import Name, Section, Table, bullets, columns, paragraph, say
from tailbudget.sinks.report.figures import count


def ledger(audit: Audit) -> Section:
    """Return the counts of the ledger with their meaning, in the ledger's order."""
    if not audit.ledger:
        return Section("ledger", "Ledger", (paragraph("Not measured: no ledger was kept."),))
    rows = tuple(
        say(Name(reason), count(n), MEANING.get(reason, "a reason of a newer version"))
        for reason, n in _in_order(audit.ledger)
    )
    table = Table("What became of the records", columns("Reason | Count > | Meaning"), rows)
    return Section("ledger", "Ledger", (table,))


def warnings(audit: Audit) -> Section:
    """Return what a reader must know before trusting the figures."""
    if not audit.warnings:
        return Section("warnings", "Warnings", (paragraph("None."),))
    return Section("warnings", "Warnings", (bullets("", audit.warnings),))


def _in_order(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    known = [reason for reason in MEANING if reason in counts]
    return [(reason, counts[reason]) for reason in [*known, *sorted(set(counts) - set(known))]]
