"""The files for Grafana: whole, consistent with each other, and with docker-compose.yml."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import combinations
from typing import Any

import pytest
import yaml
from grafana import DASHBOARD, PLACE, PLUGIN, RULES, Query, Range, queries, sent
from pages import DOCS, ROOT, rows, text

from tailbudget.schemas.verdicts import Verdict

PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
CHARTS = [panel for panel in PANELS if panel["type"] != "row"]
VARIABLES = {one["name"]: one for one in DASHBOARD["templating"]["list"]}
SOURCE: dict[str, Any] = yaml.safe_load(
    (PLACE / "datasources" / "clickhouse.yaml").read_text(encoding="utf-8")
)["datasources"][0]
USERS = ET.parse(ROOT / "deploy" / "clickhouse" / "grafana.xml").getroot()  # noqa: S314 (ours)
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))


def test_panels_do_not_overlap() -> None:
    """Each has its own number and its own place within 24 columns."""
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)
    for panel in PANELS:
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
    for one, other in combinations([panel["gridPos"] for panel in PANELS], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below


@pytest.mark.parametrize("panel", CHARTS, ids=lambda panel: panel["title"])
def test_a_panel_says_what_it_shows(panel: dict[str, Any]) -> None:
    """It has a title, a description, and queries of the chosen ClickHouse with names of theirs."""
    assert panel["title"]
    assert panel["description"].endswith(".")
    wanted = {"type": PLUGIN, "uid": "${datasource}"}
    assert panel["datasource"] == wanted
    targets = panel["targets"]
    assert len({target["refId"] for target in targets}) == len(targets)
    for target in targets:
        assert target["datasource"] == wanted
        assert (target["queryType"], target["format"]) in {("timeseries", 0), ("table", 1)}
        assert (target["queryType"] == "timeseries") == (panel["type"] == "timeseries")


def test_only_names_in_hexadecimal_are_put_into_sql() -> None:
    """No query takes a variable as text: a name may hold quotes and backslashes."""
    for query in queries():
        for name in re.findall(r"\$\{?(?!__)(\w+)", query.sql):
            assert name in VARIABLES
            assert f"unhex('${name}')" in query.sql
            assert VARIABLES[name]["query"].startswith("SELECT lower(hex(")


def test_every_verdict_has_a_colour() -> None:
    """The table of services says each verdict in words and colours."""
    (panel,) = (panel for panel in PANELS if panel["title"] == "Services")
    (mapping,) = (
        entry["value"][0]["options"]
        for override in panel["fieldConfig"]["overrides"]
        for entry in override["properties"]
        if entry["id"] == "mappings"
    )
    assert set(Verdict) <= mapping.keys()


def test_rules_lead_to_their_queries() -> None:
    """Each has its own uid, a condition on a query of its own, and a panel to look at."""
    assert len({rule["uid"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        steps = {data["refId"]: data for data in rule["data"]}
        condition = steps[rule["condition"]]
        assert condition["datasourceUid"] == "__expr__"
        asked = steps[condition["model"]["expression"]]
        assert asked["datasourceUid"] == SOURCE["uid"]
        assert asked["model"]["refId"] == asked["refId"]
        assert asked["relativeTimeRange"]["from"] > asked["relativeTimeRange"]["to"] == 0
        assert rule["labels"]["severity"] in {"page", "ticket"}
        assert rule["panelId"] in {one["id"] for one in CHARTS}
        assert rule["annotations"]["__panelId__"] == str(rule["panelId"])
        assert rule["annotations"]["__dashboardUid__"] == rule["dashboardUid"] == DASHBOARD["uid"]


def test_the_user_of_the_data_source_reads_only() -> None:
    """ClickHouse knows it, by the password that Compose gives both, and lets it only read."""
    name = SOURCE["jsonData"]["username"]
    user = USERS.find(f"users/{name}")
    assert user is not None
    profile = user.findtext("profile")
    assert USERS.findtext(f"profiles/{profile}/readonly") == "2"
    database = SOURCE["jsonData"]["defaultDatabase"]
    assert user.findtext("grants/query") == f"GRANT SELECT ON {database}.*"
    password = user.find("password")
    assert password is not None
    variable = password.get("from_env")
    assert SOURCE["secureJsonData"]["password"] == f"${variable}"
    for service in ("clickhouse", "grafana"):
        assert variable in COMPOSE["services"][service]["environment"]


def test_compose_puts_every_file_in_its_place() -> None:
    """Grafana finds data source, dashboard and rules, with the plugin that they are for."""
    grafana = COMPOSE["services"]["grafana"]
    mounted = {
        COMPOSE["configs"][entry["source"]]["file"]: entry["target"]
        for service in ("grafana", "clickhouse")
        for entry in COMPOSE["services"][service]["configs"]
    }
    files = {f"./{path.relative_to(ROOT)}" for path in PLACE.rglob("*.*") if path.is_file()}
    assert set(mounted) == files | {"./deploy/clickhouse/grafana.xml"}
    assert all((ROOT / file).is_file() for file in mounted)
    provider = yaml.safe_load((PLACE / "dashboards" / "provider.yaml").read_text(encoding="utf-8"))
    path = provider["providers"][0]["options"]["path"]
    home = mounted["./deploy/grafana/dashboards/tailbudget.json"]
    assert home == f"{path}/tailbudget.json"
    assert grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == home
    plugin, _, version = grafana["environment"]["GF_PLUGINS_PREINSTALL_SYNC"].partition("@")
    assert plugin == PLUGIN == SOURCE["type"]
    assert {t["pluginVersion"] for panel in CHARTS for t in panel["targets"]} == {version}


def test_the_page_lists_the_rows_of_the_dashboard() -> None:
    """docs/grafana.md says what each part of the dashboard answers, and what each rule means."""
    table = rows(DOCS / "grafana.md", "| Part | Question |")
    assert [row[0] for row in table] == [one["title"] for one in PANELS if one["type"] == "row"]
    said = rows(DOCS / "grafana.md", "| Rule | When |")
    assert [row[0] for row in said] == [rule["title"] for rule in RULES]
    assert COMPOSE["services"]["grafana"]["image"].split(":")[1] in text(DOCS / "grafana.md")


def test_a_macro_that_the_plugin_lacks_is_found() -> None:
    """The stand-in for the plugin refuses what it does not know."""
    chosen = Range(0, 60, 5)
    assert sent("$__interval_s $x", chosen, {"x": "1"}) == "5 1"
    for sql in ("$__nothing(a)", "$nothing"):
        with pytest.raises(KeyError, match="nothing"):
            sent(Query("table", "x", sql).sql, chosen, {})
