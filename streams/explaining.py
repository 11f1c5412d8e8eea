"""What an alert of an owned service says beside its figures."""

from __future__ import annotations

from dataclasses import replace

from tailbudget.models.alert_context import alert_context
from tailbudget.schemas.alert_context import AlertContext
from tailbudget.schemas.verdicts import Audit
from tailbudget.streams.owned_service import OwnedService


def explained(service: OwnedService, report: Audit | None) -> AlertContext:
    """Return where slow requests are slow by the newest audit, and why by the newest report.

    A report is up to minutes older than the audit: its cause and its fixes are told where both
    find the same tail driver, so that nothing is said of a fault that is over.

    Args:
        service: the service.
        report: its newest full report; None before the first.
    """
    newest = service.audit.newest
    context = alert_context(newest, service.newest, link=service.link)
    if report is None or _driver(report) != _driver(newest):
        return context
    found = alert_context(report)
    return replace(context, cause=found.cause, evidence=found.evidence, first_step=found.first_step)


def _driver(audit: Audit | None) -> str | None:
    return audit.tail_driver.stage if audit is not None and audit.tail_driver else None
