"""Regressions and states of models of a report, as ClickHouse kept them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from tailbudget.models.instants import rfc3339
from tailbudget.schemas.regressions import KeptRegression, StageState
from tailbudget.schemas.verdicts import Audit
from tailbudget.streams.history import Span
from tailbudget.streams.kept_budgets import Query

_NS: Final = 1_000_000
_STATES_MS: Final = 900_000
"""A model that was not written in the last quarter of an hour of a span is not of its end."""

_REGRESSIONS: Final = """
SELECT
    stage, state, toUnixTimestamp64Nano(onset), toUnixTimestamp64Nano(started_at),
    toUnixTimestamp64Nano(ended_at), cohorts, effect_pct, low_pct, high_pct, effect_ms,
    expected_ms, measured_ms, deploy, cause
FROM regressions
WHERE service = '{service}' AND started_at < fromUnixTimestamp64Milli({until})
    AND (ended_at IS NULL OR ended_at >= fromUnixTimestamp64Milli({start}))
ORDER BY started_at, stage
"""
_STATES: Final = """
SELECT stage, state, count() AS cohorts
FROM
(
    SELECT stage, cohort, argMax(state, shape_models.at) AS state
    FROM shape_models
    WHERE service = '{service}' AND at >= fromUnixTimestamp64Milli({recent})
        AND at < fromUnixTimestamp64Milli({until})
    GROUP BY stage, cohort
)
GROUP BY stage, state
ORDER BY stage, state
"""


def with_regressions(audit: Audit, query: Query, span: Span) -> Audit:
    """Return a report with what became slower for the same shapes, and what the models know.

    Args:
        audit: the report of a service.
        query: asks ClickHouse.
        span: what it is of.

    Raises:
        ClickHouseError: it does not answer.
    """
    until = span.end_ns // _NS
    wanted = {
        "service": audit.provenance.service.replace("\\", "\\\\").replace("'", "\\'"),
        "start": span.start_ns // _NS,
        "recent": max(until - _STATES_MS, span.start_ns // _NS),
        "until": until,
    }
    return replace(
        audit,
        regressions=tuple(map(_regression, query(_REGRESSIONS.format(**wanted)))),
        stage_states=tuple(
            StageState(str(stage), str(state), int(n))
            for stage, state, n in query(_STATES.format(**wanted))
        ),
    )


def _regression(row: Sequence[Any]) -> KeptRegression:
    stage, state, onset_ns, started_ns, ended_ns, cohorts, *figures, deploy, cause = row
    return KeptRegression(
        stage,
        state,
        rfc3339(int(onset_ns)),
        rfc3339(int(started_ns)),
        None if ended_ns is None else rfc3339(int(ended_ns)),
        tuple(cohorts),
        *figures,
        deploy=deploy,
        cause=cause,
    )
