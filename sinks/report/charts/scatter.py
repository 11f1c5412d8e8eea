"""Latency against the shape of the input."""

from __future__ import annotations

from tailbudget.schemas.plots import Plots
from tailbudget.schemas.sections import ShapeRow
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.charts.chart import BLUE, RED, Chart, Figure, label
from tailbudget.sinks.report.clean import clean_name


def scatter(audit: Audit) -> Chart | None:
    """Return sampled requests and the line that fits them all."""
    points = audit.plots
    if points is None or not points.scatter:
        return None
    stage, covariate = points.scatter_stage, points.scatter_covariate
    data = [_requests(points)]
    for row in audit.shape:
        if (row.stage, row.covariate) == (stage, covariate):
            data += _fit(row, points)
    layout = {
        "xaxis": {"title": {"text": label(covariate)}},
        "yaxis": {"title": {"text": f"{label(stage)} (ms)"}, "rangemode": "tozero"},
    }
    title = f"{clean_name(stage)} against {clean_name(covariate)}, sampled requests and the fit"
    return Chart("scatter", "shape", title, {"data": data, "layout": layout})


def _requests(points: Plots) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "sampled request",
        "x": [x for x, _, _ in points.scatter],
        "y": [value_ms for _, value_ms, _ in points.scatter],
        "text": [label(request) for _, _, request in points.scatter],
        "marker": {"color": BLUE, "size": 7, "opacity": 0.6},
        "hovertemplate": "%{text}: %{x:,.4~r}, %{y:,.4~r} ms<extra></extra>",
    }


def _fit(row: ShapeRow, points: Plots) -> list[Figure]:
    slope, at_zero_ms = row.slope_ms_per_unit, row.intercept_ms
    if slope is None or at_zero_ms is None:
        return []
    ends = [min(x for x, _, _ in points.scatter), max(x for x, _, _ in points.scatter)]
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "fit",
            "x": ends,
            "y": [at_zero_ms + slope * x for x in ends],
            "line": {"color": RED, "width": 2},
            "hoverinfo": "skip",
        }
    ]
