"""The report as a page, without a browser."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from typing import Any

import audits
import plotly.graph_objects as go
import pytest
from said import Page

from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.html_report import html

FIGURES = re.compile(r'<script id="figures" type="application/json">(.*?)</script>', re.DOTALL)
CHARTS = ["distribution", "stages", "waterfall", "scatter", "cohorts", "timeline"]


def drawn(audit: Audit) -> dict[str, dict[str, Any]]:
    """Return the figures on the page by their keys."""
    found = FIGURES.search(html(audit))
    assert found is not None
    return {chart["key"]: chart["figure"] for chart in json.loads(found[1])}


@pytest.mark.parametrize("name", ["tame", *audits.HOSTILE], ids=range(len(audits.HOSTILE) + 1))
def test_figures_are_valid(name: str) -> None:
    """Plotly knows every property of every chart, and no name is markup in one."""
    figures = drawn(audits.hostile(name))
    assert list(figures) == CHARTS
    for figure in figures.values():
        go.Figure(figure)
        shown = json.dumps({**figure, "data": [_without_template(t) for t in figure["data"]]})
        assert "<" not in shown


def _without_template(trace: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in trace.items() if key != "hovertemplate"}


def test_charts_have_the_figures_of_the_audit() -> None:
    """Points are those measured; targets and the fit are drawn where they are."""
    figures = drawn(audits.breach())
    assert [trace["name"] for trace in figures["distribution"]["data"]] == [
        "requests",
        "SLO P50 60 ms",
        "SLO P95 180 ms",
        "SLO P99 200 ms",
    ]
    p50, _, p99 = figures["stages"]["data"]
    assert p50["x"] == [1.12, 6.01, 18.4, 7.3, 25.1]
    assert p99["x"] == [5.9, 280.4, 44.1, 22.8, None]
    (waterfall,) = figures["waterfall"]["data"]
    assert waterfall["text"] == [
        "fast requests",
        "feature_lookup",
        "model",
        "unattributed",
        "queue",
        "slow requests",
    ]
    assert waterfall["x"] == pytest.approx([32.7, 265.2, 15.7, 3.4, 2.7, 0])
    fit = figures["scatter"]["data"][1]
    assert (fit["x"], fit["y"]) == ([2.0, 200.0], pytest.approx([7.37, 270.71]))
    assert len(figures["timeline"]["layout"]["shapes"]) == 2
    assert figures["timeline"]["data"][0]["y"][70] is None
    assert figures["cohorts"]["data"][0]["x"][0] == 92.1


def test_page_needs_nothing_else() -> None:
    """No element of the page names another resource, and its policy forbids them."""
    page = Page()
    page.feed(html(audits.hostile("</script><img src=http://127.0.0.1:9/x>")))
    policy = [attributes for tag, attributes in page.elements if tag == "meta"]
    assert any("default-src 'none'" in (found.get("content") or "") for found in policy)
    for tag, attributes in page.elements:
        assert tag not in ("img", "link", "iframe", "object", "video")
        assert not {"src", "srcset", "action", "onerror", "onclick"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")


def test_page_is_accessible() -> None:
    """Headings go down by one, cells have headings with a scope, sections are named."""
    page = Page()
    page.feed(html(audits.breach()))
    levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    scopes = [attributes.get("scope") for tag, attributes in page.elements if tag == "th"]
    assert set(scopes) == {"col", "row"}
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    named = [attributes["aria-labelledby"] for tag, attributes in page.elements if tag == "section"]
    assert set(named) <= ids
    assert ("html", {"lang": "en"}) in page.elements
    links = [attributes["href"] for tag, attributes in page.elements if tag == "a"]
    assert {str(link).removeprefix("#") for link in links} <= ids


def test_page_without_charts_has_no_script() -> None:
    """Where there is nothing to draw, the page is small."""
    page = html(audits.sparse())
    assert "<script" not in page
    assert len(page) < 20_000
    assert html(audits.breach()).count("plotly.js v") == 1
