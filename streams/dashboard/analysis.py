"""The report of what a service's page looks at: why it is slow, and what to do first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tailbudget.models.narrow import narrowed
from tailbudget.models.report import report
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.report.json_report import as_json
from tailbudget.streams.dashboard.asked import Asked
from tailbudget.streams.dashboard.series import look, remembered
from tailbudget.streams.history import Span
from tailbudget.streams.service_report import Past, options, past_evidence

_SECOND_NS: Final = 1_000_000_000


def analysis(settings: Settings, store: ClickHouse, asked: Asked, *, now_ns: int) -> dict[str, Any]:
    """Return the JSON report of a range, with the points of its scatter.

    Raises:
        ClickHouseError: it does not answer.
        ConfigError: there is no such service.
    """
    at, _ = look(store, asked)
    span = Span(at.since_s * _SECOND_NS, at.until_s * _SECOND_NS)
    evidence = past_evidence(settings, store, Past(asked.service, span, now_ns))
    chosen = options(settings, asked.service)
    if chosen.slo is None:
        chosen = replace(chosen, slo=remembered(store, asked.service))
    found = report(narrowed(evidence, asked.cohort), chosen)
    plots = found.plots
    scatter = {
        "stage": plots.scatter_stage if plots else "",
        "covariate": plots.scatter_covariate if plots else "",
        "points": plots.scatter if plots else (),
    }
    return {
        **as_json(found),
        "scatter": scatter,
        "since_s": at.since_s,
        "until_s": at.until_s,
    }
