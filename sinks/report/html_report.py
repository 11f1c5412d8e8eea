"""The report as one HTML file: the same tables, with charts, and no request to anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib.resources import files
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.charts.chart import Chart
from tailbudget.sinks.report.charts.cohorts import cohorts
from tailbudget.sinks.report.charts.distribution import distribution
from tailbudget.sinks.report.charts.scatter import scatter
from tailbudget.sinks.report.charts.stages import percentiles, waterfall
from tailbudget.sinks.report.charts.timeline import timeline
from tailbudget.sinks.report.document import Block, plain, section_title
from tailbudget.sinks.report.lines import document

_PACKAGE: Final = "tailbudget.sinks.report"


def html(audit: Audit) -> str:
    """Return the report as a page that needs nothing else, the verdict first.

    With charts it holds plotly.js once, 4.8 MB; without anything to draw it is a few kilobytes.
    """
    whole = document(audit)
    drawn = _charts(audit)
    sections = [(section_title(at, one), one) for at, one in enumerate(whole.sections)]
    return (
        _environment()
        .get_template("page.html.jinja")
        .render(
            document=whole,
            title=plain(whole.title),
            verdict=str(audit.verdict),
            sections=sections,
            charts=drawn,
            figures=[{"key": chart.key, "figure": chart.figure} for chart in drawn],
            css=_own("page.css"),
            script=_own("charts.js"),
            plotly=Markup(get_plotlyjs()) if drawn else "",  # noqa: S704 - plotly's own file
        )
    )


def _charts(audit: Audit) -> tuple[Chart, ...]:
    kinds = (distribution, percentiles, waterfall, scatter, cohorts, timeline)
    return tuple(chart for kind in kinds if (chart := kind(audit)) is not None)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(_PACKAGE, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )
    environment.filters["kinds"] = _kinds
    return environment


def _kinds(blocks: Iterable[Block]) -> Iterator[tuple[str, Block]]:
    """Return each block with the name of its kind, for a template cannot ask for its class."""
    return ((type(block).__name__, block) for block in blocks)


def _own(name: str) -> Markup:
    """Return one of our own files as it is."""
    text = files(_PACKAGE).joinpath("templates", name).read_text(encoding="utf-8")
    return Markup(text)  # noqa: S704 - ours
