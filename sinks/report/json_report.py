"""The report as JSON: the figures of every section, by the keys of `audit.schema.json`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from typing import Any, Final

from tailbudget.schemas.sections import ColdStart
from tailbudget.schemas.verdicts import AUDIT_SCHEMA, Audit
from tailbudget.sinks.report.document import plain
from tailbudget.sinks.report.figures import time_text
from tailbudget.sinks.report.headline import headline

DIGITS: Final = 6
"""Significant digits of a float. Sums of floats depend on the order of merging in their last
digits; rounded, the reports of one log are equal whoever merged it. A sketch knows fewer."""


def as_json(audit: Audit) -> dict[str, Any]:
    """Return the JSON report; what was not measured is null or an empty list, never NaN or 0."""
    report = {
        "schema": AUDIT_SCHEMA,
        "verdict": audit.verdict,
        "headline": plain(headline(audit)),
        "provenance": audit.provenance,
        "end_to_end": audit.end_to_end,
        "stages": audit.stages,
        "tail_driver": audit.tail_driver,
        "shape": audit.shape,
        "shape_bands": audit.shape_bands,
        "collinear": audit.collinear,
        "per_unit": audit.per_unit,
        "cohorts": audit.cohorts,
        "cold_start": _cold_start(audit.cold_start) if audit.cold_start else None,
        "causes": audit.causes,
        "optimizations": audit.optimizations,
        "recommendation": audit.recommendation,
        "refused": audit.refused,
        "baseline": audit.baseline,
        "slo_proposal": audit.proposal,
        "brief": audit.brief,
        "token_timings": audit.token_timings,
        "bounds": audit.bounds,
        "budgets": audit.budgets,
        "silences": audit.silences,
        "regressions": audit.regressions,
        "stage_states": audit.stage_states,
        "ledger": dict(audit.ledger),
        "warnings": audit.warnings,
    }
    plain_report: dict[str, Any] = _plain(report)
    return plain_report


def _cold_start(found: ColdStart) -> dict[str, Any]:
    """Return the section with times as text: nanoseconds exceed what JSON readers keep exact."""
    deploys = [
        {
            "start": time_text(window.start_ns),
            "end": time_text(window.end_ns),
            "version": window.version,
            "kind": window.kind,
        }
        for window in found.deploys
    ]
    return _named(found) | {"deploys": deploys}


def _named(row: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name."""
    return {field.name: getattr(row, field.name) for field in fields(row)}


def _plain(value: Any) -> Any:
    """Return a value of JSON's own types; the most frequent kinds are asked for first."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, Enum):
        return str(value)
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    named = value if isinstance(value, Mapping) else _named(value)
    return {key: _plain(part) for key, part in named.items()}
