"""What each stage takes: its percentiles, and the way from a fast request to a slow one."""

from __future__ import annotations

from collections.abc import Sequence

from tailbudget.schemas.sections import StageRow
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.charts.chart import (
    BLUE,
    GREEN,
    GREY,
    PERCENTILES,
    RED,
    Chart,
    Figure,
    height_px,
    label,
    log_axis,
    named_axis,
    named_margin,
)
from tailbudget.sinks.report.sections.stages import ADDED_UP


def percentiles(audit: Audit) -> Chart | None:
    """Return P50, P95 and P99 of each stage as dots on a line."""
    rows = [row for row in audit.stages if _known(row)]
    if not rows:
        return None
    names = [label(row.stage) for row in rows]
    layout = {
        "xaxis": log_axis("milliseconds", [value for row in rows for value in _known(row)]),
        "yaxis": named_axis(names),
        "margin": named_margin(names),
        "height": height_px(len(rows)),
        "shapes": [_span(at, row) for at, row in enumerate(rows)],
    }
    columns = (
        [row.p50_ms for row in rows],
        [row.p95_ms for row in rows],
        [row.p99_ms for row in rows],
    )
    data = [
        _dots(name, colour, values, names)
        for (name, colour), values in zip(PERCENTILES, columns, strict=True)
    ]
    title = "P50, P95 and P99 of each stage"
    return Chart("stages", "stages", title, {"data": data, "layout": layout})


def waterfall(audit: Audit) -> Chart | None:
    """Return the stages that add up, from the mean of fast requests to that of slow ones."""
    parts = [row for row in audit.stages if row.role in ADDED_UP and row.delta_ms is not None]
    if not parts:
        return None
    parts.sort(key=lambda row: -(row.delta_ms or 0))
    names = ["fast requests", *(label(row.stage) for row in parts), "slow requests"]
    layout = {
        "xaxis": {"title": {"text": "mean milliseconds"}, "rangemode": "tozero"},
        "yaxis": named_axis(names),
        "margin": named_margin(names),
        "height": height_px(len(names)),
        "showlegend": False,
    }
    title = "From a fast request to a slow one, stage by stage"
    figure = {"data": [_steps(parts, names)], "layout": layout}
    return Chart("waterfall", "tail_driver", title, figure)


def _known(row: StageRow) -> list[float]:
    """Return the percentiles that a logarithmic axis can show."""
    return [value for value in (row.p50_ms, row.p95_ms, row.p99_ms) if value]


def _dots(name: str, colour: str, values: Sequence[float | None], names: Sequence[str]) -> Figure:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": list(values),
        "y": list(range(len(names))),
        "marker": {"color": colour, "size": 12},
        "text": list(names),
        "hovertemplate": f"%{{text}} {name} %{{x:,.4~r}} ms<extra></extra>",
    }


def _span(at: int, row: StageRow) -> Figure:
    known = _known(row)
    return {
        "type": "line",
        "x0": min(known),
        "x1": max(known),
        "y0": at,
        "y1": at,
        "line": {"color": GREY, "width": 2},
        "layer": "below",
    }


def _steps(parts: Sequence[StageRow], names: Sequence[str]) -> Figure:
    fast_ms = sum(row.mean_fast_ms or 0 for row in parts)
    return {
        "type": "waterfall",
        "orientation": "h",
        "measure": ["absolute", *["relative"] * len(parts), "total"],
        "x": [fast_ms, *(row.delta_ms for row in parts), 0],
        "y": list(range(len(names))),
        "text": list(names),
        "textposition": "none",
        "hovertemplate": "%{text}: %{delta:+,.4~r} ms, up to %{final:,.4~r} ms<extra></extra>",
        "increasing": {"marker": {"color": RED}},
        "decreasing": {"marker": {"color": GREEN}},
        "totals": {"marker": {"color": BLUE}},
        "connector": {"line": {"color": GREY, "width": 1}},
    }
