"""What a request would have taken with one of its stages changed.

A stage that runs beside others shortens the request only as far as it is the longest of them, and
no request is shorter than the longest of its other stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.regression import Fit, fit
from tailbudget.models.sampled import Sampled
from tailbudget.schemas.records import NO_PART
from tailbudget.schemas.sections import StageRole, StageRow
from tailbudget.schemas.summary import FIXED_STAGES, TOTAL, Summary

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Layout:
    """How the stages of a service lie in time.

    Attributes:
        serial: stages that follow one another.
        parallel: stages that run beside others; taken as one group, which never says too much.
        containers: stages that hold others.
    """

    serial: tuple[str, ...]
    parallel: tuple[str, ...]
    containers: tuple[str, ...]


def layout(rows: Sampled, table: Sequence[StageRow]) -> Layout:
    """Return the layout of the sampled stages; one without a row of the table is serial."""
    roles = {row.stage: row.role for row in table}
    own = [stage for stage in rows.stages if stage not in {*FIXED_STAGES, *NO_PART}]
    by_role = {
        role: tuple(stage for stage in own if roles.get(stage, StageRole.STAGE) == role)
        for role in StageRole
    }
    return Layout(
        by_role[StageRole.STAGE], by_role[StageRole.PARALLEL], by_role[StageRole.CONTAINER]
    )


def changed_total(rows: Sampled, lay: Layout, stage: str, then_ms: Floats) -> Floats:
    """Return [M] the totals, were a stage to take `then_ms` where it took longer."""
    total = rows.stage(TOTAL)
    now = np.nan_to_num(rows.stage(stage))
    then = np.clip(np.nan_to_num(then_ms), 0.0, now)
    if stage in lay.parallel:
        beside = longest(rows, [name for name in lay.parallel if name != stage])
        now, then = np.maximum(now, beside), np.maximum(then, beside)
    others = [name for name in (*lay.serial, *lay.parallel) if name != stage]
    room = total - (0.0 if stage in lay.containers else longest(rows, others))
    changed: Floats = total - np.clip(now - then, 0.0, np.maximum(room, 0.0))
    return changed


def side_by_side(rows: Sampled, lay: Layout, together: Sequence[str]) -> Floats:
    """Return [M] the totals, were some serial stages to run at the same time."""
    total = rows.stage(TOTAL)
    parts = np.nan_to_num(np.column_stack([rows.stage(stage) for stage in together]))
    room = total - longest(rows, (*lay.serial, *lay.parallel))
    saved = parts.sum(axis=1) - parts.max(axis=1)
    changed: Floats = total - np.clip(saved, 0.0, np.maximum(room, 0.0))
    return changed


def longest(rows: Sampled, stages: Sequence[str]) -> Floats:
    """Return [M] the longest of some stages of each request; 0 where it has none."""
    result = np.zeros(len(rows))
    for stage in stages:
        result = np.maximum(result, np.nan_to_num(rows.stage(stage)))
    return result


def matching(stages: Sequence[str], patterns: Sequence[str]) -> tuple[str, ...]:
    """Return the names that match any of the patterns, whatever their case."""
    lowered = [pattern.lower() for pattern in patterns]
    return tuple(s for s in stages if any(fnmatchcase(s.lower(), pattern) for pattern in lowered))


def best_fit(total: Summary, stage: str, covariate: str) -> Fit | None:
    """Return the parabola where it explains more than its extra term costs, else the line.

    They are compared by adjusted r² (H. Theil, Economic Forecasts and Policy, 1961).
    """
    line = fit(total, stage, covariate)
    curve = fit(total, stage, covariate, "quadratic")
    if line is None or curve is None or _adjusted(curve, 2) <= _adjusted(line, 1):
        return line
    return curve


def follow(stage_ms: Floats, fitted: Fit, now: Floats, then: Floats) -> Floats:
    """Return [M] the stage's times, were a covariate `then` instead of `now`.

    What the fit does not explain stays with each request; no stage grows, none falls below 0, and
    a request without the covariate stays as it is.
    """
    gained = _predict(fitted, now) - _predict(fitted, then)
    return np.maximum(stage_ms - np.maximum(np.nan_to_num(gained), 0.0), 0.0)


def _predict(fitted: Fit, x: Floats) -> Floats:
    result: Floats = fitted.intercept + fitted.slope * x + fitted.curvature * x * x
    return result


def _adjusted(fitted: Fit, terms: int) -> float:
    return 1 - (1 - fitted.r2) * (fitted.n - 1) / (fitted.n - terms - 1)
