"""The report of what a service's page looks at: why it is slow, and what to do first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from tailbudget.models.narrow import narrowed
from tailbudget.models.plots import MAX_POINTS
from tailbudget.models.report import report
from tailbudget.models.sampled import Floats, sampled
from tailbudget.schemas.settings import Settings
from tailbudget.schemas.summary import Summary
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.report.json_report import as_json
from tailbudget.streams.dashboard.asked import Asked
from tailbudget.streams.dashboard.series import look, remembered
from tailbudget.streams.history import Span
from tailbudget.streams.kept_budgets import asking
from tailbudget.streams.service_report import Past, options, past_evidence, with_kept

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
    wanted = narrowed(evidence, asked.cohort)
    found = with_kept(report(wanted, chosen), asking(store), span)
    return {
        **as_json(found),
        "sample": _sample(wanted.total),
        "since_s": at.since_s,
        "until_s": at.until_s,
    }


def _sample(total: Summary) -> list[dict[str, Any]]:
    """Return sampled requests, uniform among the successful ones: their stages and their shape."""
    rows = sampled(total)
    return [
        {
            "id": rows.ids[at],
            "stages": _known(rows.stages, rows.stage_ms[at]),
            "shape": _known(rows.covariates, rows.covariate[at]),
        }
        for at in range(min(len(rows), MAX_POINTS))
    ]


def _known(names: Sequence[str], values: Floats) -> dict[str, float]:
    """Return what a request carries, by name."""
    pairs = zip(names, values.tolist(), strict=True)
    return {name: value for name, value in pairs if math.isfinite(value)}
