"""Anomalies, shape models, cold windows and signals: there once, however often they are written."""

from __future__ import annotations

from dataclasses import replace

from random_records import SECOND_NS, T0_NS

from tailbudget.schemas.anomaly_rows import AnomalyRow, ShapeModelRow, SignalRow
from tailbudget.schemas.audit_rows import AuditCauseRow, AuditRow, AuditShapeRow
from tailbudget.schemas.rows import DeployRow
from tailbudget.sinks.clickhouse import ClickHouse

T0_MS = T0_NS // 1_000_000
STARTED = AnomalyRow(
    "chat", "prefill", ("route=chat",), "started", "mean", T0_NS + 1, T0_NS + SECOND_NS,
    T0_NS + SECOND_NS, 30.0, 25.0, 35.0, 9.0, 8.0, 10.5, 30.0, 39.0, 120, "v2", "contention",
)  # fmt: skip
ENDED = replace(STARTED, phase="ended", at_ns=T0_NS + 60 * SECOND_NS, cohorts=("route=a", "b"))
MODEL = ShapeModelRow(
    "chat", "prefill", "route=chat", T0_MS, "ready", ("1", "input_tokens"), (5.0, 0.03), 400.5,
    0.9, 0.1,
)  # fmt: skip


def test_an_anomaly_is_there_once_a_phase(clickhouse: ClickHouse) -> None:
    """Written again after a restart it replaces itself, and its span is one row of a view."""
    clickhouse.write_anomalies([STARTED])
    clickhouse.write_anomalies([STARTED, ENDED])
    clickhouse.write_anomalies([])
    found = clickhouse.anomalies_between("chat", T0_NS, T0_NS + 3600 * SECOND_NS)
    assert found == [STARTED, ENDED]
    (span,) = clickhouse.query("SELECT * FROM regressions").records()
    assert (span["stage"], span["state"], span["effect_pct"]) == ("prefill", "ended", 30.0)
    assert list(span["cohorts"]) == ["route=a", "b"]
    assert span["ended_at"] is not None


def test_what_went_on_in_a_range_is_found(clickhouse: ClickHouse) -> None:
    """One that ended before it is not, one that is still open is, whenever it began."""
    still = replace(STARTED, stage="decode", effect_pct=None)
    clickhouse.write_anomalies([STARTED, ENDED, still])
    later = T0_NS + 100 * SECOND_NS
    assert clickhouse.anomalies_between("chat", later, later + SECOND_NS) == [still]
    assert clickhouse.anomalies_between("chat", T0_NS - SECOND_NS, T0_NS) == []
    (span,) = clickhouse.query("SELECT * FROM regressions WHERE stage = 'decode'").records()
    assert (span["state"], span["ended_at"], span["effect_pct"]) == ("started", None, None)


def test_a_model_is_there_once_a_time(clickhouse: ClickHouse) -> None:
    """With its terms in order; what is not known is NULL."""
    other = replace(MODEL, cohort="route=b", state="learning", terms=(), coefficients=(), r2=None)
    clickhouse.write_shape_models([MODEL, other])
    clickhouse.write_shape_models([MODEL])
    rows = clickhouse.query(
        "SELECT cohort, state, terms, coefficients, r2 FROM shape_models FINAL ORDER BY cohort"
    ).rows
    assert [(row[0], row[1], list(row[2]), list(row[3]), row[4]) for row in rows] == [
        ("route=b", "learning", [], [], None),
        ("route=chat", "ready", ["1", "input_tokens"], [5.0, 0.03], 0.9),
    ]


def test_causes_and_fits_are_of_the_newest_report(clickhouse: ClickHouse) -> None:
    """By stage; what is older than asked for is not taken, nor what an anomaly cannot be."""
    cause = AuditCauseRow("contention", "queue", "", "", 0.8, ("92 %",))
    inputs = replace(cause, cause="input_shape", stage="prefill", score=0.9)
    fit = AuditShapeRow("prefill", "input_tokens", 900, 0.7, 0.02, 3.0)
    old = AuditRow(
        service="chat", window_s=300, end_ns=T0_NS, version=1, verdict="ok", requests=900,
        failed=0, causes=(cause,), shape=(fit, replace(fit, covariate="batch_size", r2=0.2)),
    )  # fmt: skip
    new = replace(
        old, end_ns=T0_NS + 300 * SECOND_NS, causes=(replace(cause, cause="cache_miss"), inputs),
        shape=(),
    )  # fmt: skip
    clickhouse.write_audits([old, new])
    assert clickhouse.newest_causes("chat", T0_MS) == {"queue": "cache_miss"}
    assert clickhouse.newest_fits("chat", T0_MS) == {"prefill": 0.7}
    assert clickhouse.newest_fits("chat", T0_MS + 1) == {}


def test_signals_and_deploys_come_back(clickhouse: ClickHouse) -> None:
    """In order of name, instance and time, each once; deploys by service."""
    signal = SignalRow("chat", "a", "gpu_temperature", T0_MS, 81.5)
    before = replace(signal, at_ms=T0_MS - 1000, value=70.0)
    clickhouse.write_signals([signal, before])
    clickhouse.write_signals([signal])
    assert clickhouse.signals_between("chat", T0_MS - 1000, T0_MS + 1) == [before, signal]
    deploys = [DeployRow(s, "prod", "v2", T0_NS, T0_NS, "deploy") for s in ("chat", "rag", "x")]
    clickhouse.write_deploys(deploys)
    assert clickhouse.deploys_of(["chat", "rag", "none"], T0_NS) == {
        "chat": [deploys[0]],
        "rag": [deploys[1]],
    }
