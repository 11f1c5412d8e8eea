"""The data behind the pages, of real rows: they are what the views and the reports say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alerts import burn
from clickhouse_store import fresh_store
from dashboard_site import Site
from past import PastService
from random_records import AWKWARD, SECOND_NS, T0_NS, random_columns

from tailbudget.schemas.alert_rows import NoticeRow
from tailbudget.schemas.anomaly_rows import ColdWindowRow
from tailbudget.schemas.audit_rows import AuditRow
from tailbudget.schemas.rows import DeployRow
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.alert_log import change_row
from tailbudget.streams.audit_rows import audit_row
from tailbudget.streams.dashboard.queries import READY
from tailbudget.streams.history import Span
from tailbudget.streams.service_report import Past, service_report

T0_S = T0_NS // SECOND_NS
SPAN_S = 600
N = 4_000
SLO = {"services": {"chat": {"slo": {"p50_ms": 40, "p99_ms": 100}}}}
COLUMNS = random_columns(7, N, span_s=SPAN_S)


@pytest.fixture(scope="module")
def store(clickhouse_path: Path) -> Iterator[ClickHouse]:
    """A service with ten minutes of requests, an audit, a deploy, an alert and a notice."""
    with fresh_store(clickhouse_path) as opened:
        PastService(opened, "chat").write(COLUMNS)
        settings = Settings.model_validate(SLO)
        end_ns = T0_NS + SPAN_S * SECOND_NS
        span = Span(T0_NS, end_ns)
        audit = service_report(settings, opened, Past("chat", span, now_ns=end_ns))
        opened.write_audits([audit_row(audit, window_s=60, end_ns=end_ns)])
        deploy = T0_NS + 100 * SECOND_NS
        opened.write_deploys([DeployRow("chat", "prod", "v2", deploy, deploy, "deploy")])
        opened.write_changes([change_row(burn(at_ns=T0_NS + 300 * SECOND_NS))])
        notice = NoticeRow("chat", "slo:latency", 1, "ops", T0_NS, "firing", "page", "delivered", 2)
        opened.write_notices([notice])
        yield opened


@pytest.fixture(scope="module")
def site(store: ClickHouse) -> Iterator[Site]:
    """The dashboard over those rows."""
    with Site(store, **SLO) as running:
        yield running


def series(site: Site, **params: Any) -> dict[str, Any]:
    """Return the series of the whole range."""
    found: dict[str, Any] = site.data(
        "/data/series", service="chat", **{"from": T0_S, "to": T0_S + SPAN_S, **params}
    )
    return found


def analysis(site: Site, **params: Any) -> dict[str, Any]:
    """Return the report of the whole range."""
    found: dict[str, Any] = site.data(
        "/data/analysis", service="chat", **{"from": T0_S, "to": T0_S + SPAN_S, **params}
    )
    return found


def of_route(route: str) -> int:
    """Return how many of the requests have a route."""
    routes = [dict(cohort)["route"] for cohort in COLUMNS.cohorts]
    return int(np.isin(COLUMNS.cohort, [at for at, own in enumerate(routes) if own == route]).sum())


def test_overview_tells_of_each_service(site: Site) -> None:
    """A service has its newest audit, its firing alerts, and points of a sparkline."""
    (row,) = site.data("/data/services")["services"]
    assert row["service"] == "chat"
    assert row["verdict"] == "breach"
    assert (row["slo_p50_ms"], row["slo_p95_ms"], row["slo_p99_ms"]) == (40, None, 100)
    assert row["firing"] == 1
    assert row["budget"] is None
    assert row["newest_s"] == T0_S + SPAN_S - 10
    assert [point[3] for point in row["spark"]] == [row["p99_ms"]]


def test_percentiles_are_those_of_the_view(site: Site, store: ClickHouse) -> None:
    """A point of the chart is a row of `end_to_end`, failures slower than all others."""
    found = series(site)
    asked = (
        "SELECT toUnixTimestamp(start) AS start, requests, failed, p50_ms, p95_ms, p99_ms"
        f" FROM end_to_end(window = {found['step_s']}) WHERE service = 'chat' ORDER BY start"
    )
    assert found["percentiles"] == store.query(asked).records()
    assert sum(row["requests"] for row in found["percentiles"]) == N
    assert any(row["p99_ms"] is None for row in found["percentiles"])


def test_stages_are_those_of_the_view(site: Site, store: ClickHouse) -> None:
    """Where one point is the whole range, its stages are those of the view `tail`."""
    start = T0_S // 604_800 * 604_800
    found = series(site, **{"from": start, "to": start + 180 * 604_800})
    assert found["step_s"] == 604_800
    rows = store.query(
        "SELECT stage, mean_slow_ms FROM tail(service = 'chat', from = '2000-01-01', to = now())"
    ).rows
    assert {row["stage"]: pytest.approx(row["mean_ms"]) for row in found["stages"]} == dict(rows)


def test_heat_map_holds_every_success(site: Site) -> None:
    """Cells add up to the successful requests, and lie between the fastest and the slowest."""
    found = series(site)
    ok = N - sum(row["failed"] for row in found["percentiles"])
    assert sum(cell["requests"] for cell in found["heat"]) == ok
    edges = [
        found["least_ms"] * 2 ** (cell["band"] / found["bands_an_octave"]) for cell in found["heat"]
    ]
    assert 2 * max(edges) > found["requests"][0]["total_ms"] >= max(edges) / 1.1


def test_burn_rate_is_the_share_beyond_the_target(site: Site, store: ClickHouse) -> None:
    """Only promised latencies that panes counted are told, each against what it allows."""
    found = series(site)
    assert {row["name"] for row in found["missed"]} == {"p99"}
    row = found["missed"][0]
    asked = (
        "SELECT burn_rate FROM"
        f" slo_compliance(window = {found['step_s']}, budget_pct = 1)"
        f" WHERE service = 'chat' AND threshold_ms = 100 ORDER BY start LIMIT 1"
    )
    assert row["burn"] == pytest.approx(store.query(asked).rows[0][0])


@pytest.mark.parametrize("route", AWKWARD)
def test_a_cohort_filters_everything(site: Site, route: str) -> None:
    """Series and report count the requests of that route alone, however it is called."""
    wanted = of_route(route)
    found = series(site, where=f"route={route}")
    assert sum(row["requests"] for row in found["percentiles"]) == wanted
    assert {row["dims"]["route"] for row in found["requests"]} == {route}
    told = analysis(site, where=f"route={route}")
    assert told["provenance"]["n"] == wanted
    both = analysis(site, where=[f"route={route}", "region=eu"])
    assert 0 < both["provenance"]["n"] < wanted


def test_a_cohort_that_nobody_has_is_empty(site: Site) -> None:
    """It has no point, no report, and is no error."""
    assert series(site, where="route=nobody")["percentiles"] == []
    assert analysis(site, where="route=nobody")["verdict"] == "no_data"


def test_analysis_is_the_report(site: Site, store: ClickHouse) -> None:
    """Without a filter it says what `tailbudget report` does, with sampled requests."""
    found = analysis(site)
    span = Span(T0_NS, T0_NS + SPAN_S * SECOND_NS)
    report = service_report(Settings.model_validate(SLO), store, Past("chat", span, now_ns=T0_NS))
    assert found["verdict"] == report.verdict
    assert [row["p99_ms"] for row in found["stages"]] == pytest.approx(
        [row.p99_ms for row in report.stages], rel=1e-5
    )
    assert found["ledger"] == report.ledger
    assert 0 < len(found["sample"]) <= 500
    assert set(found["sample"][0]["stages"]) <= {
        "total",
        "unattributed",
        "decode",
        "prefill",
        "queue",
    }


def test_happenings_lie_in_the_range(site: Site) -> None:
    """The deploy with its cold window, and the alert; what no table holds is not measured."""
    found = series(site)["happenings"]
    assert [row["version"] for row in found["deploys"]] == ["v2"]
    assert [row["end_ns"] - row["start_ns"] for row in found["cold"]] == [300 * SECOND_NS]
    assert [(row["alert"], row["after"]) for row in found["alerts"]] == [("slo:latency", "firing")]
    assert found["anomalies"] is None
    assert found["suspected"] is None
    late = series(site, **{"from": T0_S + 590})["happenings"]
    assert late["deploys"] == late["alerts"] == late["cold"] == []


@pytest.mark.parametrize(
    ("said", "held"),
    [(("breach", "ok", "breach", "breach", "breach"), 3), (("ok",), 1), (("ok", "breach"), 1)],
    ids=["again", "always", "just now"],
)
def test_a_verdict_is_told_since_when(
    clickhouse: ClickHouse, said: tuple[str, ...], held: int
) -> None:
    """From the first audit after the last one that said otherwise."""
    PastService(clickhouse, "chat").write(COLUMNS)
    end_ns = [T0_NS + 10 * (at + 1) * SECOND_NS for at in range(len(said))]
    clickhouse.write_audits(
        [
            AuditRow("chat", 60, at_ns, 1, verdict, 10, 0)
            for at_ns, verdict in zip(end_ns, said, strict=True)
        ]
    )
    with Site(clickhouse) as site:
        latest = series(site)["latest"]
    assert latest["verdict"] == said[-1]
    assert latest["verdict_since_ms"] * 1_000_000 == end_ns[-held]


def test_cold_windows_are_as_long_as_the_report_takes_them(clickhouse: ClickHouse) -> None:
    """Once the deploys taught how long it takes to be warm, bands and report follow them."""
    PastService(clickhouse, "chat").write(COLUMNS)
    at_ns = T0_NS + 100 * SECOND_NS
    clickhouse.write_deploys([DeployRow("chat", "prod", "v2", at_ns, at_ns, "deploy")])
    start_ms = at_ns // 1_000_000
    learnt = ColdWindowRow("chat", "v2", start_ms, start_ms + 300_000, "deploy", 0.5)
    clickhouse.write_cold_windows([learnt, replace(learnt, version="i-1", source="suspected")])
    with Site(clickhouse, **SLO) as site:
        found = series(site)["happenings"]
        told = analysis(site)
    (window,) = found["cold"]
    assert (window["start_ns"], window["end_ns"]) == (at_ns, at_ns + 30 * SECOND_NS)
    assert found["cold_min"] == 0.5
    assert found["suspected"] == [{"instance": "i-1", "at_ms": start_ms}]
    inside = (COLUMNS.ts_ns >= at_ns) & (COLUMNS.ts_ns < at_ns + 30 * SECOND_NS)
    assert told["cold_start"]["excluded"] == int(inside.sum())


def test_alerts_say_why(site: Site) -> None:
    """How each stands comes with its evidence; its notice says what became of it."""
    found = site.data("/data/alerts")
    (row,) = found["alerts"]
    assert (row["after"], row["tail_driver"], row["cause"]) == (
        "firing",
        "retrieve",
        "cache miss (retrieve)",
    )
    assert row["evidence"] == ["hit ratio 20 % in slow requests, 80 % in fast ones"]
    assert [change["reason"] for change in found["changes"]] == ["condition_met"]
    assert [(one["channel"], one["outcome"], one["attempts"]) for one in found["notices"]] == [
        ("ops", "delivered", 2)
    ]


def test_the_newest_range_ends_with_the_newest_pane(site: Site) -> None:
    """However old the records are, the last five minutes are theirs."""
    found = site.data("/data/series", service="chat", last="5m")
    assert (found["since_s"], found["until_s"]) == (T0_S + SPAN_S - 300, T0_S + SPAN_S)
    assert {row["start"] for row in found["percentiles"]} == set(range(T0_S + 300, T0_S + 600, 10))


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"service": "nobody"}, "nothing was recorded"),
        ({"service": "chat", "last": "soon"}, "no range is called"),
        ({"service": "chat", "from": "5", "to": "5"}, "ends before it begins"),
        ({"service": "chat", "from": "x", "to": "5"}, "no time"),
        ({"service": "chat", "from": "5"}, "no time"),
        ({"service": "chat", "from": "1", "to": "99999999999"}, "no time"),
        ({"service": "chat", "where": "route"}, "names no cohort"),
    ],
)
def test_a_wrong_address_says_what_is_the_matter(
    site: Site, params: dict[str, str], said: str
) -> None:
    """The answer names what is wrong and the remedy, and is no server error."""
    for path in ("/data/series", "/data/analysis"):
        response = site.get(path, params=params)
        assert response.status_code == 400
        assert said in response.json()["error"]
        assert response.json()["remedy"]


@pytest.mark.parametrize("ready", READY, ids=lambda ready: ready.question[:40])
def test_ready_queries_run(store: ClickHouse, ready: Any) -> None:
    """Each of the ten has an answer of the rows that there are."""
    sql = ready.sql
    for name, value in (
        ("SERVICE", "chat"),
        ("FROM", "2026-03-02 10:00:00"),
        ("TO", "2026-03-02 11:00:00"),
    ):
        sql = sql.replace(f"{{{name}}}", f"'{value}'")
    assert "{" not in sql
    assert store.query(sql).rows or "ledger" in sql
