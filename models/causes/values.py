"""The values of a cohort dimension: where slow requests gather, and how slow at equal shape.

Levels at equal shape are an analysis of covariance: the slopes are fitted within the values
(deviations from each value's mean, added up), and every mean is moved along them to the mean
covariates of all. A value that is slow for its inputs comes out level with the others; one that
is slow at the same inputs does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.causes.names import Role, role
from tailbudget.models.groups import number_groups
from tailbudget.models.merge import regroup
from tailbudget.models.select import take
from tailbudget.models.sketch import representative
from tailbudget.models.tail import FAST, Band, band_counts
from tailbudget.schemas.cohorts import NONE, OTHER, Cohort
from tailbudget.schemas.summary import TOTAL, Summary

Floats = NDArray[np.float64]

_NS_PER_MS: Final = 1e6
_RIDGE: Final = 1e-6  # of a covariate's variance, for collinear ones
_LEFT: Final = 0.01  # share of a variance below which the sketch does not tell what is left
_INPUT: Final = (Role.SHAPE, Role.FANOUT)
_CERTAIN: Final = 3.0
"""Standard errors: by chance a difference is as large once in 370 comparisons."""


@dataclass(frozen=True, slots=True)
class Values:
    """The values of one dimension.

    Attributes:
        dimension: its name.
        names: [V] values.
        n: [V] successful requests.
        traffic: [V] share of them.
        slow: [V] share of the slow band.
        fast: [V] share of the fast band.
        stages: [S] names.
        carriers: [V, S] those of them that have each stage.
        raw_ms: [V, S] mean of each stage.
        level_ms: [V, S] mean at equal shape.
        error_ms: [V, S] standard error of `level_ms`.
    """

    dimension: str
    names: tuple[str, ...]
    n: NDArray[np.int64]
    traffic: Floats
    slow: Floats
    fast: Floats
    stages: tuple[str, ...]
    carriers: NDArray[np.int64]
    raw_ms: Floats
    level_ms: Floats
    error_ms: Floats

    def excess(self, at: int, stage: str = TOTAL) -> tuple[float, float]:
        """Return by how much a value is slower than the others: as measured, at equal shape.

        The second is 0 where it is within three standard errors.
        """
        s = self.stages.index(stage)
        others = np.delete(np.arange(len(self.n)), at)
        weight = self.n[others] / max(int(self.n[others].sum()), 1)
        raw = float(self.raw_ms[at, s] - weight @ self.raw_ms[others, s])
        level = float(self.level_ms[at, s] - weight @ self.level_ms[others, s])
        error = float(
            np.hypot(self.error_ms[at, s], np.sqrt(weight**2 @ self.error_ms[others, s] ** 2))
        )
        return raw, level if level > _CERTAIN * error else 0.0

    def concentration(self, at: int) -> float:
        """Return the share of slow requests of a value beyond what fast ones would give it."""
        slow, fast = float(self.slow[at]), float(self.fast[at])
        return max((slow - fast) / (1 - fast), 0.0) if fast < 1 else 0.0


@dataclass(frozen=True, slots=True)
class Slopes:
    """Milliseconds of a stage for one more of a covariate.

    Attributes:
        pooled: over all requests.
        within: within cohorts, added up.
        error: standard error of `within`.
    """

    pooled: float
    within: float
    error: float


def values_of(total: Summary, cohorts: Summary, dimension: str, slow: Band) -> Values | None:
    """Return the values of a dimension; None when there are fewer than two.

    Args:
        total: one group: all requests.
        cohorts: the same by cohort.
        dimension: its name.
        slow: the slow band.
    """
    by_value = group_by(cohorts, dimension)
    if by_value is None:
        return None
    stage_n = by_value.n[:, by_value.stages.index(TOTAL)]
    raw = by_value.sum_ns / (_NS_PER_MS * np.maximum(stage_n, 1)[:, None])
    shift, spread = _shape_shift(by_value)
    return Values(
        dimension=dimension,
        names=tuple(cohort[0][1] for cohort in by_value.cohorts),
        n=stage_n,
        traffic=_share(stage_n),
        slow=_share(band_counts(total, by_value, slow)),
        fast=_share(band_counts(total, by_value, FAST)),
        stages=by_value.stages,
        carriers=by_value.n,
        raw_ms=raw,
        level_ms=raw - shift,
        error_ms=spread / np.sqrt(np.maximum(stage_n, 1))[:, None],
    )


def group_by(cohorts: Summary, dimension: str) -> Summary | None:
    """Return one group for each value of a dimension; None when there are fewer than two.

    Cohorts beyond the limit and records without the dimension are left out.
    """
    names = [dict(cohort).get(dimension, NONE) for cohort in cohorts.cohorts]
    at = [g for g, name in enumerate(names) if name != NONE and cohorts.cohorts[g] != OTHER]
    labels: dict[Cohort, int] = {}
    of = [labels.setdefault(((dimension, names[g]),), len(labels)) for g in at]
    if len(labels) < 2:
        return None
    kept = take(cohorts, np.array(at, np.intp), {})
    groups = number_groups(np.zeros(len(at), np.int64), np.array(of, np.int64), tuple(labels))
    return regroup(kept, groups)


def slopes_of(cohorts: Summary, stage: str, covariate: str) -> Slopes | None:
    """Return the slopes of a stage on a covariate; None where they are not determined.

    Args:
        cohorts: one group a cohort.
        stage: its name.
        covariate: its name.
    """
    c, s = cohorts.covariates.index(covariate), cohorts.stages.index(stage)
    m = cohorts.moments
    n, mean, product = m.n[:, c, s], m.mean[:, c, s], m.product[:, c, s]
    rows = int(n.sum())
    if rows <= len(n) + 2:
        return None
    apart = mean - n @ mean / rows
    within = product.sum(axis=0)[[0, 3, 5]]
    between = (n[:, None] * apart[:, [0, 0, 2]] * apart[:, [0, 2, 2]]).sum(axis=0)
    xx, xy, _ = (within + between).tolist()
    inner_xx, inner_xy, inner_yy = within.tolist()
    if xx <= 0 or inner_xx <= 0:
        return None
    left = max(inner_yy - inner_xy**2 / inner_xx, 0.0)
    error = (left / (rows - len(n) - 1) / inner_xx) ** 0.5
    return Slopes(xy / xx, inner_xy / inner_xx, error)


def _shape_shift(by_value: Summary) -> tuple[Floats, Floats]:
    """Return [V, S] what each value's covariates add to its mean, and [V, S] the spread within."""
    total = by_value.stages.index(TOTAL)
    m, n = by_value.moments, by_value.n[:, total]
    # Only where all requests carry it is a covariate's mean the mean of all.
    wanted = [role(name) in _INPUT for name in by_value.covariates]
    full = np.flatnonzero((m.n[:, :, total] == n[:, None]).all(axis=0) & np.array(wanted, np.bool_))
    variance = _variance(by_value)
    if not len(full):
        return np.zeros_like(variance), np.sqrt(variance)
    x = m.mean[:, full, total, 0]
    xx = _square(by_value, full)
    xy = m.product[:, full][..., 3].sum(axis=0)
    scale = np.sqrt(np.maximum(np.diag(xx), np.finfo(np.float64).tiny))
    system = xx / np.outer(scale, scale) + _RIDGE * np.eye(len(full))
    slope = np.linalg.solve(system, xy / scale[:, None]) / scale[:, None]
    explained = np.einsum("cs,cs->s", slope, xy) / max(int(n.sum()), 1)
    shift = (x - n @ x / max(int(n.sum()), 1)) @ slope
    return shift, np.sqrt(np.maximum(variance - explained, _LEFT * variance))


def _square(by_value: Summary, full: NDArray[np.intp]) -> Floats:
    """Return [C, C] the products of covariates within the values."""
    products: Floats = by_value.moments.pair_product[:, full][:, :, full, 1].sum(axis=0)
    return products


def _variance(by_value: Summary) -> Floats:
    """Return [V, S] the variance of each stage within the values, as the sketches tell it."""
    ms = representative(by_value.bucket)
    stages = len(by_value.stages)
    shape = (len(by_value.pane_ns), stages)
    sums, squares = (
        np.bincount(by_value.cell, by_value.count * power, shape[0] * stages).reshape(shape)
        for power in (ms, ms * ms)
    )
    n = np.maximum(by_value.n[:, [by_value.stages.index(TOTAL)]], 1)
    variance: Floats = np.maximum(squares / n - (sums / n) ** 2, 0.0)
    return variance


def _share(counts: NDArray[np.int64] | Floats) -> Floats:
    whole = float(counts.sum())
    return counts.astype(np.float64) / max(whole, 1.0)
