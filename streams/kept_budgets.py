"""Error budgets and silences of a report, as ClickHouse kept them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from tailbudget.models.instants import rfc3339
from tailbudget.schemas.budgets import KeptBudget, KeptSilence
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.history import Span
from tailbudget.streams.sql_text import sql_text

Rows = Sequence[Sequence[Any]]
Query = Callable[[str], Rows]
"""From one SELECT to its rows."""

_NS: Final = 1_000_000
_DAY_MS: Final = 86_400_000
"""How long before its span a report looks for budgets: those of a service that was silent."""

_BUDGETS: Final = """
SELECT
    objective, toUnixTimestamp64Milli(at), total, bad, target_pct, left_pct, corrected_pct,
    burn_rate, toUnixTimestamp64Milli(exhausted_at), status
FROM budgets FINAL
WHERE service = {service} AND at > fromUnixTimestamp64Milli({since})
    AND at <= fromUnixTimestamp64Milli({until})
ORDER BY objective, at DESC
LIMIT 1 BY objective
"""
_SILENCES: Final = """
SELECT alert, toUnixTimestamp64Milli(begins), toUnixTimestamp64Milli(ends), reason
FROM silences FINAL
WHERE service = {service} AND begins < fromUnixTimestamp64Milli({until})
    AND ends > fromUnixTimestamp64Milli({start})
ORDER BY begins, id
"""


def asking(store: ClickHouse) -> Query:
    """Return what asks a database of our own."""
    return lambda sql: store.query(sql).rows


def with_budgets(audit: Audit, query: Query, span: Span) -> Audit:
    """Return a report with what is left of error budgets, and with who was not to be told.

    Args:
        audit: the report of a service.
        query: asks ClickHouse.
        span: what it is of.

    Raises:
        ClickHouseError: it does not answer.
    """
    wanted = {
        "service": sql_text(audit.provenance.service),
        "since": span.start_ns // _NS - _DAY_MS,
        "start": span.start_ns // _NS,
        "until": span.end_ns // _NS,
    }
    return replace(
        audit,
        budgets=tuple(map(_budget, query(_BUDGETS.format(**wanted)))),
        silences=tuple(map(_silence, query(_SILENCES.format(**wanted)))),
    )


def _budget(row: Sequence[Any]) -> KeptBudget:
    objective, at_ms, total, bad, target_pct, left_pct, corrected_pct, rate, ends_ms, status = row
    return KeptBudget(
        objective=objective,
        at=_time(at_ms),
        total=total,
        bad=bad,
        target_pct=target_pct,
        left_pct=left_pct,
        corrected_pct=corrected_pct,
        burn_rate=rate,
        exhausted_at=None if ends_ms is None else _time(ends_ms),
        status=status,
    )


def _silence(row: Sequence[Any]) -> KeptSilence:
    alert, begins_ms, ends_ms, reason = row
    return KeptSilence(alert, _time(begins_ms), _time(ends_ms), reason)


def _time(at_ms: int) -> str:
    return rfc3339(int(at_ms) * _NS)
