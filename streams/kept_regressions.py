"""Regressions and states of models of a report, as ClickHouse kept them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from tailbudget.models.instants import rfc3339
from tailbudget.schemas.regressions import KeptRegression, StageState
from tailbudget.schemas.verdicts import Audit
from tailbudget.streams.history import Span
from tailbudget.streams.kept_budgets import Query
from tailbudget.streams.kept_warm_up import learnt_min
from tailbudget.streams.signal_evidence import SPAN_MS, signal_evidence
from tailbudget.streams.sql_text import sql_text

_NS: Final = 1_000_000
_STATES_MS: Final = 900_000
"""A model that was not written in the last quarter of an hour of a span is not of its end."""

_REGRESSIONS: Final = """
SELECT
    stage, state, toUnixTimestamp64Nano(onset), toUnixTimestamp64Nano(started_at),
    toUnixTimestamp64Nano(ended_at), cohorts, effect_pct, low_pct, high_pct, effect_ms,
    expected_ms, measured_ms, deploy, cause
FROM regressions
WHERE service = {service} AND started_at < fromUnixTimestamp64Milli({until})
    AND (ended_at IS NULL OR ended_at >= fromUnixTimestamp64Milli({start}))
ORDER BY started_at, stage
"""
_STATES: Final = """
SELECT stage, state, count() AS cohorts
FROM
(
    SELECT stage, cohort, argMax(state, shape_models.at) AS state
    FROM shape_models
    WHERE service = {service} AND at >= fromUnixTimestamp64Milli({recent})
        AND at < fromUnixTimestamp64Milli({until})
    GROUP BY stage, cohort
)
GROUP BY stage, state
ORDER BY stage, state
"""
_SIGNALS: Final = """
SELECT name, instance, toUnixTimestamp64Milli(timestamp), value FROM signals FINAL
WHERE service = {service} AND timestamp >= fromUnixTimestamp64Milli({since})
    AND timestamp < fromUnixTimestamp64Milli({until})
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
        "service": sql_text(audit.provenance.service),
        "start": span.start_ns // _NS,
        "recent": max(until - _STATES_MS, span.start_ns // _NS),
        "until": until,
    }
    learnt = learnt_min(query, audit.provenance.service)
    return replace(
        audit if learnt is None else _assuming(audit, learnt),
        regressions=tuple(
            _regression(row, _signals(row, query, wanted))
            for row in query(_REGRESSIONS.format(**wanted))
        ),
        stage_states=tuple(
            StageState(str(stage), str(state), int(n))
            for stage, state, n in query(_STATES.format(**wanted))
        ),
    )


def _assuming(audit: Audit, minutes: float) -> Audit:
    """Say how long a cold window is, where the report leaves any out."""
    if audit.cold_start is None or not audit.cold_start.deploys:
        return audit
    said = f"a cold window lasts {minutes:,.3g} min after a deploy, as learnt from the deploys"
    provenance = audit.provenance
    told = replace(provenance, assumptions=(*provenance.assumptions, said))
    return replace(audit, provenance=told)


def _signals(row: Sequence[Any], query: Query, wanted: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what changed with the onset of a regression, while it went on."""
    onset_ms, ended_ns = int(row[2]) // _NS, row[4]
    ended_ms = wanted["until"] if ended_ns is None else int(ended_ns) // _NS
    since, until = onset_ms - SPAN_MS, min(ended_ms, onset_ms + SPAN_MS)
    return signal_evidence(
        query(_SIGNALS.format(service=wanted["service"], since=since, until=until)), onset_ms
    )


def _regression(row: Sequence[Any], signals: tuple[str, ...]) -> KeptRegression:
    stage, state, onset_ns, started_ns, ended_ns, cohorts, pct, low, high, ms, *rest = row
    expected_ms, measured_ms, deploy, cause = rest
    return KeptRegression(
        stage=stage,
        state=state,
        onset=rfc3339(int(onset_ns)),
        started=rfc3339(int(started_ns)),
        ended=None if ended_ns is None else rfc3339(int(ended_ns)),
        cohorts=tuple(cohorts),
        effect_pct=pct,
        low_pct=low,
        high_pct=high,
        effect_ms=ms,
        expected_ms=expected_ms,
        measured_ms=measured_ms,
        deploy=deploy,
        cause=cause,
        signals=signals,
    )
