"""Grafana's files taken apart, and their queries as its ClickHouse plugin sends them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

PLACE: Final = Path(__file__).resolve().parents[2] / "deploy" / "grafana"
DASHBOARD: Final[dict[str, Any]] = json.loads(
    (PLACE / "dashboards" / "tailbudget.json").read_text(encoding="utf-8")
)
ALERTING: Final[dict[str, Any]] = yaml.safe_load(
    (PLACE / "alerting" / "tailbudget.yaml").read_text(encoding="utf-8")
)
RULES: Final[list[dict[str, Any]]] = [
    rule for group in ALERTING["groups"] for rule in group["rules"]
]
PLUGIN: Final = "grafana-clickhouse-datasource"

_MACRO: Final = re.compile(r"\$__(\w+)(?:\(([^()]*)\))?")
_VARIABLE: Final = re.compile(r"\$\{?(\w+)\}?")


@dataclass(frozen=True)
class Query:
    """A query of a file.

    Attributes:
        kind: "timeseries", "table", "annotation", "variable" or "alert".
        name: of the panel, annotation, variable or rule, and of the query in it.
        sql: as it stands in the file.
    """

    kind: str
    name: str
    sql: str


@dataclass(frozen=True)
class Range:
    """What a viewer has chosen, in seconds since 1970, and how long an interval then is."""

    from_s: int
    to_s: int
    interval_s: int


def queries() -> Iterator[Query]:
    """Yield every query of the dashboard and of the alert rules."""
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            name = f"{panel['title']} {target['refId']}"
            yield Query(target["queryType"], name, target["rawSql"])
    for one in DASHBOARD["annotations"]["list"]:
        if "target" in one and not one.get("builtIn"):
            yield Query("annotation", one["name"], one["target"]["rawSql"])
    for one in DASHBOARD["templating"]["list"]:
        if one["type"] == "query":
            yield Query("variable", one["name"], one["query"])
    for rule in RULES:
        for data in rule["data"]:
            if data["datasourceUid"] != "__expr__":
                yield Query("alert", rule["title"], data["model"]["rawSql"])


def sent(sql: str, chosen: Range, variables: Mapping[str, str]) -> str:
    """Return what reaches ClickHouse: variables are put in by the page, macros by the plugin.

    The macros are those of the plugin's pkg/macros/macros.go.

    Raises:
        KeyError: a variable that the dashboard does not have, or a macro that the plugin has not.
    """
    filled = _VARIABLE.sub(
        lambda found: found[0] if found[1].startswith("__") else variables[found[1]], sql
    )
    return _MACRO.sub(lambda found: _macro(found[1], found[2], chosen), filled)


def _macro(name: str, argument: str | None, chosen: Range) -> str:
    start, end = f"toDateTime({chosen.from_s})", f"toDateTime({chosen.to_s})"
    seconds = max(chosen.interval_s, 1)
    return {
        "fromTime": start,
        "toTime": end,
        "interval_s": str(seconds),
        "timeFilter": f"{argument} >= {start} AND {argument} <= {end}",
        "timeInterval": f"toStartOfInterval(toDateTime({argument}), INTERVAL {seconds} second)",
    }[name]
