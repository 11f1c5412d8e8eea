"""A chart, and what all charts have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from typing import Any, Final

from rich.cells import cell_len

from tailbudget.schemas.slo import SloTarget
from tailbudget.sinks.report.clean import clean, clean_name
from tailbudget.sinks.report.figures import ms, number

Figure = dict[str, Any]

# Middling colours, which read on a light and on a dark page.
BLUE: Final = "#3b7dd8"
ORANGE: Final = "#d97706"
GREEN: Final = "#2e9e6b"
RED: Final = "#d64545"
GREY: Final = "#8b93a1"

PERCENTILES: Final = (("P50", GREEN), ("P95", ORANGE), ("P99", RED))
"""The percentiles with their colours, the same in all charts."""

_LABEL_LENGTH: Final = 20  # about a third of a phone's width
_ROW_PX: Final = 34
_SIGN_PX: Final = 7.5  # of a column of text at the size of the charts
_FRAME_PX: Final = 130
_FINE_UP_TO: Final = 400.0  # times the smallest: more has no room for 1, 2 and 5 of each decade


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of a section.

    Attributes:
        key: its name on the page.
        section: key of the section that it belongs to, whose tables have its figures.
        title: what it shows, in words.
        figure: plotly's `data` and `layout`.
    """

    key: str
    section: str
    title: str
    figure: Figure


def label(name: str) -> str:
    """Return a name as plotly's text, in which "<" begins markup and "&" an entity."""
    short = clean(clean_name(name), _LABEL_LENGTH)
    return short.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def log_axis(title: str, values: Sequence[float]) -> Figure:
    """Return a logarithmic axis that has room for values above 0, its ticks written out."""
    low, high = min(values), max(values)
    steps = (1, 2, 5) if high <= _FINE_UP_TO * low else (1,)
    ticks = [step * 10.0**decade for decade in range(-4, 8) for step in steps]
    return {
        "type": "log",
        "title": {"text": f"{title} (log scale)"},
        "tickvals": ticks,
        "ticktext": [number(tick) for tick in ticks],
    }


def named_axis(names: Sequence[str]) -> Mapping[str, Any]:
    """Return an axis with a name at each whole number, the first on top.

    Places are numbers, for two names cut to the same text are two rows all the same.
    """
    return {
        "tickvals": list(range(len(names))),
        "ticktext": list(names),
        "range": [len(names) - 0.5, -0.5],
        "zeroline": False,
        # Plotly's own search for a margin does not settle on narrow pages.
        "automargin": False,
    }


def named_margin(names: Sequence[str]) -> Figure:
    """Return the margin at the left that names take."""
    return {"l": 12 + _SIGN_PX * max(cell_len(unescape(name)) for name in names)}


def height_px(rows: int) -> int:
    """Return the height of a chart with a row a name."""
    return _FRAME_PX + _ROW_PX * rows


def slo_lines(
    slo: SloTarget | None, along: Sequence[Any], *, upright: bool, only: Sequence[str] = ()
) -> list[Figure]:
    """Return a dashed line for each target, named in the legend.

    Args:
        slo: the target.
        along: where the lines begin and end on the other axis.
        upright: whether milliseconds are the horizontal axis.
        only: the percentiles to draw; empty for all.
    """
    pairs = [pair for pair in (slo.items() if slo else ()) if not only or pair[0] in only]
    return [_slo_line(name.upper(), value, along, upright=upright) for name, value in pairs]


def _slo_line(name: str, value: float, along: Sequence[Any], *, upright: bool) -> Figure:
    at = [value] * len(along)
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"SLO {name} {ms(value)}",
        "x": at if upright else list(along),
        "y": list(along) if upright else at,
        "line": {"color": dict(PERCENTILES)[name], "width": 2, "dash": "dash"},
        "hoverinfo": "skip",
    }
