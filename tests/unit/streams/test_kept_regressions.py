"""Regressions in a report: those that went on in its span, and the models at its end."""

from __future__ import annotations

from dataclasses import replace

from random_records import SECOND_NS, T0_NS
from requests_of import columns_of, summary_of

from tailbudget.models.evidence import Gathering
from tailbudget.models.report import Options, report
from tailbudget.schemas.anomaly_rows import AnomalyRow, ShapeModelRow
from tailbudget.schemas.catalogue import load_catalogue
from tailbudget.schemas.regressions import KeptRegression, StageState
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.history import Span
from tailbudget.streams.kept_regressions import with_regressions

HOUR_NS = 3600 * SECOND_NS
STARTED = AnomalyRow(
    "it's", "prefill", ("route=chat",), "started", "mean", T0_NS, T0_NS + SECOND_NS,
    T0_NS + SECOND_NS, 30.0, 25.0, 35.0, 9.0, 8.0, 10.5, 30.0, 39.0, 120, "v2", "contention",
)  # fmt: skip
ENDED = replace(STARTED, phase="ended", at_ns=T0_NS + 60 * SECOND_NS)
MODEL = ShapeModelRow(
    "it's", "prefill", "route=chat", T0_NS // 1_000_000, "ready", ("1",), (5.0,), 400.5, None, 0.1
)


def drawn(store: ClickHouse, span: Span) -> Audit:
    """Return a report of the service."""
    gathering = Gathering("it's", pane_ns=10 * SECOND_NS, cold_windows=None)
    gathering.add(replace(summary_of(columns_of([100.0] * 30)), service="it's"))
    audit = report(gathering.evidence(), Options(slo=None, catalogue=load_catalogue()))
    return with_regressions(audit, lambda sql: store.query(sql).rows, span)


def test_a_regression_is_in_the_reports_of_its_time(clickhouse: ClickHouse) -> None:
    """While it goes on and in the span in which it ended, with all that is known of it."""
    clickhouse.write_anomalies([STARTED, replace(STARTED, stage="decode", effect_pct=None), ENDED])
    audit = drawn(clickhouse, Span(T0_NS, T0_NS + HOUR_NS))
    assert [one.stage for one in audit.regressions] == ["decode", "prefill"]
    assert audit.regressions[1] == KeptRegression(
        stage="prefill", state="ended", onset="2026-03-02T10:00:00.000Z",
        started="2026-03-02T10:00:01.000Z", ended="2026-03-02T10:01:00.000Z",
        cohorts=("route=chat",), effect_pct=30.0, low_pct=25.0, high_pct=35.0, effect_ms=9.0,
        expected_ms=30.0, measured_ms=39.0, deploy="v2", cause="contention",
    )  # fmt: skip
    later = drawn(clickhouse, Span(T0_NS + HOUR_NS, T0_NS + 2 * HOUR_NS))
    assert [(one.stage, one.ended) for one in later.regressions] == [("decode", None)]


def test_the_states_are_those_of_the_end(clickhouse: ClickHouse) -> None:
    """The newest state of each cohort counts, and none that is long past."""
    alarmed = replace(MODEL, at_ms=MODEL.at_ms + 60_000, state="alarmed")
    clickhouse.write_shape_models([MODEL, alarmed, replace(MODEL, cohort="route=b")])
    audit = drawn(clickhouse, Span(T0_NS, T0_NS + 120 * SECOND_NS))
    assert audit.stage_states == (
        StageState("prefill", "alarmed", 1),
        StageState("prefill", "ready", 1),
    )
    assert drawn(clickhouse, Span(T0_NS, T0_NS + HOUR_NS)).stage_states == ()
