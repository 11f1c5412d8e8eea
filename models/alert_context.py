"""What an alert tells beside its own figures, from the newest audit of the service."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from tailbudget.schemas.alert_context import AlertContext
from tailbudget.schemas.proposals import Cause, CauseName
from tailbudget.schemas.sections import CohortRow
from tailbudget.schemas.summary import Summary
from tailbudget.schemas.verdicts import Audit

MOST_EVIDENCE: Final = 2
"""Sentences of evidence that fit into a message; the report has all."""


def alert_context(
    audit: Audit | None, newest: Summary | None = None, *, link: str = ""
) -> AlertContext:
    """Return where to look and what to do; what is not known stays empty.

    Args:
        audit: the newest audit of the service; None when there is none yet.
        newest: summary with a sample, to name a slow request.
        link: where a person sees more.
    """
    context = AlertContext(link=link, request_id=slowest_request(newest) if newest else "")
    if audit is None:
        return context
    if audit.tail_driver is not None:
        driver = audit.tail_driver
        context = replace(
            context,
            tail_driver=driver.stage,
            tail_delta_ms=driver.delta_ms,
            tail_share_pct=driver.tail_share_pct,
        )
    if (worst := _worst(audit.cohorts)) is not None:
        context = replace(
            context,
            worst_cohort=_name(worst),
            worst_share_pct=worst.slow_share_pct,
            worst_traffic_pct=worst.traffic_share_pct,
        )
    named = next((one for one in audit.causes if one.cause is not CauseName.UNKNOWN), None)
    if named is not None:
        context = replace(context, cause=_cause(named), evidence=named.evidence[:MOST_EVIDENCE])
    return replace(context, first_step=_first_step(audit, named))


def slowest_request(summary: Summary) -> str:
    """Return the id of the slowest sampled request; empty when there is none."""
    total = summary.sample.values[:, 0]
    if not len(total) or np.isnan(total).all():
        return ""
    return summary.sample.ids[int(np.nanargmax(total))]


def _worst(rows: tuple[CohortRow, ...]) -> CohortRow | None:
    """Return the cohort that slow requests name most beyond its part of the traffic."""
    known = [
        row
        for row in rows
        if row.slow_share_pct is not None
        and row.traffic_share_pct is not None
        and row.slow_share_pct > row.traffic_share_pct
    ]
    return max(known, key=_excess, default=None)


def _excess(row: CohortRow) -> float:
    return (row.slow_share_pct or 0.0) - (row.traffic_share_pct or 0.0)


def _name(row: CohortRow) -> str:
    return row.value if row.dimension == "cohort" else f"{row.dimension}={row.value}"


def _cause(cause: Cause) -> str:
    where = " through ".join(part for part in (cause.covariate, cause.stage) if part)
    name = cause.cause.value.replace("_", " ")
    return f"{name} ({where})" if where else name


def _first_step(audit: Audit, named: Cause | None) -> str:
    """Return the best fix that helps today, else the best one, else what to measure next."""
    fixes = audit.optimizations
    short = next((one for one in fixes if one.horizon == "short"), None)
    chosen = short or next(iter(fixes), None)
    if chosen is not None:
        return chosen.fix
    if named is not None and named.missing:
        return f"measure {named.missing[0]}"
    unknown = next((one for one in audit.causes if one.missing), None)
    return f"measure {unknown.missing[0]}" if unknown is not None else ""
