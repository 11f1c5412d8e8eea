"""The alert rules for Prometheus: well-formed, about metrics that exist, and tried by promtool."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser as promql
import pytest
import yaml
from pages import ROOT

from tailbudget.schemas import ledger
from tailbudget.schemas.metrics import BY_NAME, PROCESS_METRICS
from tailbudget.streams.flush_times import BOUNDS_S

PLACE = ROOT / "deploy" / "prometheus"
RULES_FILE = PLACE / "tailbudget-rules.yaml"
GROUPS: list[dict[str, Any]] = yaml.safe_load(RULES_FILE.read_text(encoding="utf-8"))["groups"]
RULES: list[dict[str, Any]] = [rule for group in GROUPS for rule in group["rules"]]
OF_PROMETHEUS = {"job", "instance"}
"""Labels that each scraped sample has."""

every_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])


def selectors(expression: Any) -> Iterator[Any]:
    """Yield the selectors of metrics in an expression."""
    if isinstance(expression, promql.VectorSelector):
        yield expression
    for name in ("vector_selector", "lhs", "rhs", "expr", "args", "param"):
        below = getattr(expression, name, None)
        for each in below if isinstance(below, list) else [below]:
            if each is not None and not isinstance(each, str | float | int):
                yield from selectors(each)


def known_labels(name: str) -> set[str] | None:
    """Return the labels of a metric; None when there is no such metric."""
    if name == "up" or name in PROCESS_METRICS:
        return OF_PROMETHEUS
    plain = re.sub(r"_(bucket|sum|count)$", "", name)
    metric = BY_NAME.get(name) or BY_NAME.get(plain)
    if metric is None or (metric.kind == "histogram") != (plain != name and name not in BY_NAME):
        return None
    return OF_PROMETHEUS | set(metric.labels) | ({"le"} if name.endswith("_bucket") else set())


@every_rule
def test_a_rule_is_about_metrics_that_exist(rule: dict[str, Any]) -> None:
    """Prometheus's grammar takes it, and every metric and label in it is one that is scraped."""
    found = list(selectors(promql.parse(rule["expr"])))
    assert found
    for selector in found:
        labels = known_labels(selector.name)
        assert labels is not None, selector.name
        assert {matcher.name for matcher in selector.matchers.matchers} <= labels


@every_rule
def test_a_rule_matches_values_that_occur(rule: dict[str, Any]) -> None:
    """Every value of a label that it asks for is one that the worker says."""
    values = {
        "reason": set(ledger.MEANING),
        "step": {"ingest", "audit"},
        "outcome": {"delivered", "undelivered"},
        "window_seconds": {"60", "300", "3600"},
        "job": {"tailbudget"},
    }
    for selector in selectors(promql.parse(rule["expr"])):
        for matcher in selector.matchers.matchers:
            regular = matcher.op == promql.MatchOp.Re
            wanted = matcher.value if regular else re.escape(matcher.value)
            assert any(re.fullmatch(wanted, value) for value in values[matcher.name]), matcher.value


@every_rule
def test_a_rule_says_whom_and_what(rule: dict[str, Any]) -> None:
    """It has a name of ours, an urgency, a headline and what to do; it waits a known time."""
    assert re.fullmatch(r"Tailbudget[A-Z]\w+", rule["alert"])
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert set(rule["annotations"]) == {"summary", "description"}
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "0s"))
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}


def test_a_misspelt_metric_is_found() -> None:
    """The check of names tells ours from others, a histogram from its parts, and reads ranges."""
    (selector,) = selectors(promql.parse("sum by (job) (rate(tailbudget_nothing_total[5m])) > 0"))
    assert known_labels(selector.name) is None
    assert known_labels("tailbudget_flush_duration_seconds") is None
    assert known_labels("tailbudget_pending_bytes_sum") is None
    assert "le" in (known_labels("tailbudget_flush_duration_seconds_bucket") or ())


def test_slow_flushes_can_be_seen() -> None:
    """The bound of the rule about flushes is a bound of the histogram."""
    rule = next(rule for rule in RULES if rule["alert"] == "TailbudgetFlushSlow")
    assert float(rule["expr"].rsplit(">", 1)[1]) in BOUNDS_S


def test_names_are_unique() -> None:
    """No two rules have one name."""
    names = [rule["alert"] for rule in RULES]
    assert len(names) == len(set(names))


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
@pytest.mark.parametrize(("what", "file"), [("check", "rules"), ("test", "rules.test")])
def test_promtool_agrees(what: str, file: str) -> None:
    """Prometheus itself takes the rules, and they fire when the test file says so."""
    path: Path = PLACE / f"tailbudget-{file}.yaml"
    command = ["promtool", what, "rules", path.name]
    done = subprocess.run(command, cwd=PLACE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
