"""Rolling audits, alerts, deploys and lives of topics: written once, whatever is repeated."""

from __future__ import annotations

from dataclasses import replace

from random_records import SECOND_NS, T0_NS

from tailbudget.schemas.audit_rows import AuditCohortRow, AuditRow, AuditStageRow
from tailbudget.schemas.rows import AlertRow, DeployRow
from tailbudget.sinks.clickhouse import ClickHouse

AUDIT = AuditRow(
    service="chat",
    window_s=60,
    end_ns=T0_NS,
    version=1,
    verdict="breach",
    requests=1200,
    failed=3,
    p50_ms=100.5,
    p95_ms=180.0,
    p99_ms=None,
    max_ms=900.0,
    slo_p99_ms=200.0,
    tail_driver="queue",
    payload='{"schema":"tailbudget.audit/1"}',
    stages=(AuditStageRow("queue", 1190, 1.0, 2.0, 3.0, 0.5, 2.5, 2.0, 80.0),),
    cohorts=(AuditCohortRow("route", "chat", 700, 190.0, 10.0, 90.0, 58.0),),
)
ALERT = AlertRow(
    "chat", "p99", T0_NS + 123_456_789, "firing", "p99 over", 310.5, 200.0, "queue", "id-1", "{}"
)
DEPLOY = DeployRow("chat", "prod", "v2", T0_NS, T0_NS, "deploy")


def test_an_audit_keeps_its_stages_and_cohorts(clickhouse: ClickHouse) -> None:
    """Numbers come back as they were; what could not be measured is NULL."""
    clickhouse.write_audits([AUDIT])
    audit = clickhouse.query("SELECT * FROM audits FINAL").records()[0]
    assert audit["end"] == "2026-03-02 10:00:00.000"
    for name in ("verdict", "requests", "p50_ms", "p99_ms", "slo_p95_ms", "slo_p99_ms", "payload"):
        assert audit[name] == getattr(AUDIT, name)
    stage = clickhouse.query("SELECT * FROM audit_stages FINAL").records()[0]
    assert (stage["stage"], stage["n"], stage["tail_share_pct"]) == ("queue", 1190, 80.0)
    cohort = clickhouse.query("SELECT * FROM audit_cohorts FINAL").records()[0]
    assert (cohort["dimension"], cohort["value"], cohort["slow_share_pct"]) == ("route", "chat", 90)


def test_a_rewritten_audit_replaces_the_older(clickhouse: ClickHouse) -> None:
    """A late record changes the audit of its window; there is still one."""
    newer = replace(AUDIT, version=2, requests=1300)
    clickhouse.write_audits([newer])
    clickhouse.write_audits([AUDIT, AUDIT])
    rows = clickhouse.query("SELECT version, requests FROM audits FINAL").rows
    assert rows == ((2, 1300),)


def test_nothing_to_write_is_nothing(clickhouse: ClickHouse) -> None:
    """Empty writes ask nothing of ClickHouse."""
    clickhouse.write_audits([])
    clickhouse.write_alerts([])
    clickhouse.write_deploys([])
    clickhouse.write_panes([])
    assert clickhouse.read_panes("chat", []) == {}


def test_a_change_of_an_alert_is_one_row(clickhouse: ClickHouse) -> None:
    """To the nanosecond, whatever the order and however often they were written."""
    resolved = replace(ALERT, at_ns=ALERT.at_ns + 1, state="resolved", measured_ms=None)
    clickhouse.write_alerts([resolved])
    clickhouse.write_alerts([ALERT, ALERT])
    sql = "SELECT toUnixTimestamp64Nano(at), state, measured_ms FROM alerts FINAL ORDER BY at"
    assert clickhouse.query(sql).rows == (
        (ALERT.at_ns, "firing", 310.5),
        (ALERT.at_ns + 1, "resolved", None),
    )


def test_a_deploy_is_remembered_with_its_last_announcement(clickhouse: ClickHouse) -> None:
    """Announced three times, it is one deploy; a later version is another."""
    later = replace(DEPLOY, last_ns=T0_NS + 40 * SECOND_NS)
    other = replace(
        DEPLOY, version="v3", at_ns=T0_NS + 600 * SECOND_NS, last_ns=T0_NS + 600 * SECOND_NS
    )
    clickhouse.write_deploys([later, other])
    clickhouse.write_deploys([DEPLOY])
    assert clickhouse.recent_deploys("chat", 0) == [later, other]
    assert clickhouse.recent_deploys("chat", later.last_ns + 1) == [other]
    assert clickhouse.recent_deploys("search", 0) == []


def test_a_topic_that_is_made_anew_has_a_new_number(clickhouse: ClickHouse) -> None:
    """Offsets of a topic's earlier life are not confused with those of this one."""
    assert clickhouse.incarnation("requests", "id-a") == 1
    assert clickhouse.incarnation("requests", "id-a") == 1
    assert clickhouse.incarnation("requests", "id-b") == 2
    assert clickhouse.incarnation("requests", "id-a") == 1
    assert clickhouse.incarnation("other", "id-c") == 1
