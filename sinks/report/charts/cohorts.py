"""Who is slow, against who is there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.charts.chart import (
    BLUE,
    RED,
    Chart,
    Figure,
    height_px,
    label,
    named_axis,
    named_margin,
)
from tailbudget.sinks.report.sections.cohorts import cohort_name

MAX_COHORTS: Final = 10
"""Cohorts of the chart; the table has more."""


def cohorts(audit: Audit) -> Chart | None:
    """Return the share of slow requests and of traffic of the most over-represented."""
    rows = audit.cohorts[:MAX_COHORTS]
    if not rows:
        return None
    names = [label(cohort_name(row).text) for row in rows]
    layout = {
        "xaxis": {"title": {"text": "per cent"}, "rangemode": "tozero"},
        "yaxis": named_axis(names),
        "margin": named_margin(names),
        "height": height_px(len(rows)),
        "barmode": "group",
        "bargap": 0.3,
    }
    data = [
        _bars("of slow requests", RED, [row.slow_share_pct for row in rows], names),
        _bars("of traffic", BLUE, [row.traffic_share_pct for row in rows], names),
    ]
    title = "Share of slow requests against share of traffic"
    return Chart("cohorts", "cohorts", title, {"data": data, "layout": layout})


def _bars(name: str, colour: str, shares: Sequence[float | None], names: Sequence[str]) -> Figure:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": list(shares),
        "y": list(range(len(names))),
        "text": list(names),
        "textposition": "none",
        "marker": {"color": colour},
        "hovertemplate": f"%{{text}}: %{{x:,.3~r}} % {name}<extra></extra>",
    }
