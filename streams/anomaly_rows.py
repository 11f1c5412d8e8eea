"""Anomalies, shape models and cold windows as ClickHouse keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from tailbudget.models.anomaly.guard import Guard
from tailbudget.models.shape.described import described
from tailbudget.schemas.anomalies import Anomaly, StageCohort, State
from tailbudget.schemas.anomaly_rows import AnomalyRow, ColdWindowRow, ShapeModelRow
from tailbudget.schemas.sections import ColdWindow
from tailbudget.schemas.verdicts import Audit

DEPLOY_WITHIN_NS: Final = 24 * 3600 * 1_000_000_000
"""A deploy that is older than a day is no neighbour of an onset."""

Marks = Mapping[StageCohort, tuple[State, float]]
"""State of each model and the sum of its coefficients, by which a change is seen."""

_MS: Final = 1_000_000


def anomaly_row(
    service: str, found: Anomaly, *, deploy: ColdWindow | None = None, cause: str = ""
) -> AnomalyRow:
    """Return the row of a change."""
    row = AnomalyRow(
        service=service,
        stage=found.stage,
        cohorts=found.cohorts,
        phase=found.phase,
        test=found.test,
        onset_ns=found.onset_ns,
        started_ns=found.started_ns,
        at_ns=found.at_ns,
        deploy=deploy.version if deploy else "",
        cause=cause,
    )
    effect = found.effect
    if effect is None:
        return row
    return replace(
        row,
        effect_pct=effect.pct,
        low_pct=effect.low_pct,
        high_pct=effect.high_pct,
        effect_ms=effect.ms,
        low_ms=effect.low_ms,
        high_ms=effect.high_ms,
        expected_ms=effect.expected_ms,
        measured_ms=effect.measured_ms,
        n=effect.n,
    )


def lost_row(row: AnomalyRow, at_ns: int) -> AnomalyRow:
    """Return the end of an anomaly whose models are gone: nobody knows how large it is now."""
    return AnomalyRow(
        service=row.service,
        stage=row.stage,
        cohorts=row.cohorts,
        phase="lost",
        test=row.test,
        onset_ns=row.onset_ns,
        started_ns=row.started_ns,
        at_ns=at_ns,
        deploy=row.deploy,
        cause=row.cause,
    )


def nearest_deploy(windows: Sequence[ColdWindow], onset_ns: int) -> ColdWindow | None:
    """Return the last deploy at or before an onset, and not long before."""
    before = [w for w in windows if 0 <= onset_ns - w.start_ns <= DEPLOY_WITHIN_NS]
    return max(before, key=lambda window: window.start_ns, default=None)


def marks(guard: Guard) -> Marks:
    """Return the marks of all models, in the order of their keys."""
    beta = guard.shapes.bank.beta
    states = guard.states().items()
    return {key: (state, float(beta[k].sum())) for k, (key, state) in enumerate(states)}


def shape_rows(
    service: str, guard: Guard, at_ns: int, changed: tuple[Marks, Marks], fits: Mapping[str, float]
) -> list[ShapeModelRow]:
    """Return the models that changed since they were told.

    Args:
        service: the service's name.
        guard: what holds them.
        at_ns: event time.
        changed: marks of when they were told last, and of now.
        fits: R² of the best covariate of each stage, as the newest report has it.
    """
    told, now = changed
    return [
        _shape_row(service, guard, k, mark[0], (at_ns, fits))
        for k, (key, mark) in enumerate(now.items())
        if told.get(key) != mark
    ]


def _shape_row(
    service: str, guard: Guard, index: int, state: State, more: tuple[int, Mapping[str, float]]
) -> ShapeModelRow:
    at_ns, fits = more
    key, bank = guard.shapes.keys[index], guard.shapes.bank
    choice = guard.shapes.choice[int(bank.stage[index])]
    ready = bool(bank.ready[index]) and choice is not None
    terms = described(choice, bank.beta[index]) if ready and choice is not None else []
    return ShapeModelRow(
        service=service,
        stage=key.stage,
        cohort=key.cohort,
        at_ms=at_ns // _MS,
        state=state,
        terms=tuple(text for text, _ in terms),
        coefficients=tuple(value for _, value in terms),
        rows=float(bank.rows[index]),
        r2=fits.get(key.stage),
        sigma=float(bank.spread[index]) if ready else None,
    )


def cold_rows(
    service: str, windows: Iterable[ColdWindow], learnt_min: float | None
) -> list[ColdWindowRow]:
    """Return the rows of the windows after deploys."""
    return [
        ColdWindowRow(
            service,
            window.version,
            window.start_ns // _MS,
            window.end_ns // _MS,
            window.kind,
            learnt_min,
        )
        for window in windows
    ]


def suspected_rows(audit: Audit) -> list[ColdWindowRow]:
    """Return the starts of a report that no event announced; how long they took is not known."""
    found = audit.cold_start.suspected if audit.cold_start else ()
    return [
        ColdWindowRow(audit.provenance.service, one.instance, at_ms, at_ms, "suspected", None)
        for one in found
        for at_ms in [round(datetime.fromisoformat(one.at).timestamp() * 1000)]
    ]
