"""The last hour of a service: from its audits, and from its panes where audits are missing."""

from __future__ import annotations

import pytest
from alerts import SECOND_NS, T0_NS, burn
from random_records import random_columns, stored_panes

from tailbudget.schemas.audit_rows import AuditRow
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.delivery.last_hour import last_hour

MINUTE_NS = 60 * SECOND_NS
FIRST_NS = T0_NS - 59 * MINUTE_NS
ALERT = burn(at_ns=T0_NS + 25 * SECOND_NS)


def audit(end_ns: int, p99_ms: float | None, max_ms: float | None = None) -> AuditRow:
    """Return the audit of the minute before a time."""
    return AuditRow("chat", 60, end_ns, 1, "ok", 100, 0, p99_ms=p99_ms, max_ms=max_ms)


def hour_of(minutes: int) -> list[AuditRow]:
    """Return two audits for each of the last minutes: one amid it, and one at its end."""
    rows = []
    for minute in range(60 - minutes, 59):
        end_ns = FIRST_NS + (minute + 1) * MINUTE_NS
        rows += [audit(end_ns - 20 * SECOND_NS, 1.0), audit(end_ns, 100.0 + minute)]
    return rows


def test_each_minute_is_its_newest_audit(clickhouse: ClickHouse) -> None:
    """A whole minute has the audit of its end, the one that runs the newest so far."""
    now = [audit(T0_NS + 10 * SECOND_NS, 7.0), audit(T0_NS + 20 * SECOND_NS, 8.0)]
    other = [AuditRow("chat", 300, T0_NS + 20 * SECOND_NS, 1, "ok", 100, 0, p99_ms=9.0)]
    clickhouse.write_audits([*hour_of(60), *now, *other])
    hour = last_hour(clickhouse, ALERT)
    assert list(hour.value_ms) == [100.0 + minute for minute in range(59)] + [8.0]
    assert list(hour.at_ns) == [FIRST_NS + minute * MINUTE_NS for minute in range(60)]


def test_failures_that_decide_the_percentile_break_no_line(clickhouse: ClickHouse) -> None:
    """A percentile among failures has no time of its own: the slowest success is its least."""
    clickhouse.write_audits([*hour_of(60), audit(T0_NS + 20 * SECOND_NS, None, max_ms=450.0)])
    assert last_hour(clickhouse, ALERT).value_ms[-2:] == [158.0, 450.0]


def test_where_audits_are_missing_panes_say_it(clickhouse: ClickHouse) -> None:
    """Audits of a part of the hour are no hour: the panes have all that there was."""
    clickhouse.write_audits(hour_of(5))
    clickhouse.write_panes(stored_panes(random_columns(1, 300)))
    sql = "SELECT p99_ms FROM latency(window = 60) WHERE stage = 'total'"
    ((known,),) = clickhouse.query(sql).rows
    values = last_hour(clickhouse, ALERT).value_ms
    assert values[:59] == [None] * 59
    assert values[59] == pytest.approx(known)
