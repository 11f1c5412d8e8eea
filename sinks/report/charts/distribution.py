"""How latency is distributed, with the targets."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.charts.chart import BLUE, Chart, Figure, log_axis, slo_lines
from tailbudget.sinks.report.figures import ms

_FLOOR: Final = 0.5  # where bars of a logarithmic axis stand, below a single request


def distribution(audit: Audit) -> Chart | None:
    """Return a histogram; both axes are logarithmic, for the tail is a hundredth of the whole."""
    bars = audit.plots.histogram if audit.plots else ()
    if not bars:
        return None
    edges, counts = [edge for edge, _ in bars], [n for _, n in bars]
    targets = slo_lines(audit.provenance.slo, [_FLOOR, 2 * max(counts)], upright=True)
    layout = {
        "xaxis": log_axis("milliseconds", edges),
        "yaxis": log_axis("requests", [1, max(counts)]),
        "bargap": 0,
    }
    title = "Distribution of the latency of successful requests, and the SLO"
    figure = {"data": [_bars(edges, counts), *targets], "layout": layout}
    return Chart("distribution", "end_to_end", title, figure)


def _bars(edges: list[float], counts: list[int]) -> Figure:
    pairs = list(pairwise(edges))
    return {
        "type": "bar",
        "name": "requests",
        "x": [(low + high) / 2 for low, high in pairs],
        "width": [high - low for low, high in pairs],
        "y": counts[1:],
        "marker": {"color": BLUE},
        "customdata": [[ms(low), ms(high)] for low, high in pairs],
        "hovertemplate": "%{customdata[0]} to %{customdata[1]}: %{y:,} requests<extra></extra>",
    }
