"""Latency and failures over time, with the minutes after deploys."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tailbudget.schemas.plots import Plots, Slot
from tailbudget.schemas.sections import ColdWindow
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.charts.chart import (
    GREEN,
    GREY,
    ORANGE,
    RED,
    Chart,
    Figure,
    label,
    slo_lines,
)
from tailbudget.sinks.report.figures import time_text, words

_FEW: Final = 60  # points that are still told apart when marked


def timeline(audit: Audit) -> Chart | None:
    """Return P99 and P50 a slot, failures below them, and cold windows shaded."""
    points = audit.plots
    if points is None or not points.timeline:
        return None
    slots = points.timeline
    at = [slot.start for slot in slots]
    data = [
        _series("P99", at, [slot.p99_ms for slot in slots], RED),
        _series("P50", at, [slot.p50_ms for slot in slots], GREEN),
        *slo_lines(audit.provenance.slo, [at[0], at[-1]], upright=False, only=("p50", "p99")),
    ]
    layout = _layout(points)
    failed = [slot for slot in slots if slot.failed]
    if failed:
        data.append(_failures(failed))
        layout |= _failures_axes(layout["yaxis"], max(slot.failed for slot in failed))
    title = "P99 and P50 over time; the minutes after deploys are shaded"
    return Chart("timeline", "cold_start", title, {"data": data, "layout": layout})


def _layout(points: Plots) -> Figure:
    return {
        "xaxis": {"type": "date"},
        "yaxis": {"title": {"text": "milliseconds"}, "rangemode": "tozero"},
        "shapes": [_shade(window) for window in points.cold_windows],
        "annotations": [_named(window) for window in points.cold_windows],
        "height": 420,
    }


def _series(name: str, at: Sequence[str], values: Sequence[float | None], colour: str) -> Figure:
    return {
        "type": "scatter",
        "mode": "lines+markers" if len(at) <= _FEW else "lines",
        "name": name,
        "x": list(at),
        "y": list(values),
        "line": {"color": colour, "width": 2},
        "connectgaps": False,
        "hovertemplate": f"{name} %{{y:,.4~r}} ms<extra></extra>",
    }


def _failures(slots: Sequence[Slot]) -> Figure:
    return {
        "type": "bar",
        "name": "failures",
        "yaxis": "y2",
        "x": [slot.start for slot in slots],
        "y": [slot.failed for slot in slots],
        "marker": {"color": GREY},
        "hovertemplate": "%{y:,} failed<extra></extra>",
    }


def _failures_axes(above: Figure, most: int) -> Figure:
    below = {
        "domain": [0, 0.16],
        "rangemode": "tozero",
        "tickformat": ",d",
        "dtick": max(math.ceil(most / 2), 1),
    }
    below_all = {"type": "date", "anchor": "y2"}
    return {"xaxis": below_all, "yaxis": above | {"domain": [0.22, 1]}, "yaxis2": below}


def _shade(window: ColdWindow) -> Figure:
    return {
        "type": "rect",
        "x0": time_text(window.start_ns),
        "x1": time_text(window.end_ns),
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "fillcolor": ORANGE,
        "opacity": 0.25,
        "line": {"width": 0},
        "layer": "below",
    }


def _named(window: ColdWindow) -> Figure:
    return {
        "text": label(window.version) if window.version else words(window.kind),
        "x": time_text(window.start_ns),
        "yref": "paper",
        "y": 1,
        "xanchor": "left",
        "yanchor": "top",
        "showarrow": False,
        "font": {"size": 11},
    }
