"""Least-squares fits from co-moments, equal to a fit on the raw rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.moments_merge import combine
from tailbudget.schemas.summary import Summary

Kind = Literal["linear", "quadratic", "loglog"]

_LINEAR = ((0, 0), (0, 1), (1, 1))
_QUADRATIC = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
_SAME = 1e-12  # values that differ by a smaller share than this are one value
_COLLINEAR = 1e-12  # 1 - r² of x and x², below which fewer than three values of x were seen


@dataclass(frozen=True, slots=True)
class Fit:
    """How a stage follows a covariate.

    Attributes:
        kind: "linear": y = intercept + slope x; "quadratic": the same + curvature x²;
            "loglog": ln y = intercept + slope ln x.
        n: requests that the fit is on, weighted.
        r2: share of the variance (of ln y for "loglog") that the fit explains.
        slope: milliseconds a unit; for "loglog" the exponent.
        intercept: milliseconds at 0; for "loglog" ln of the milliseconds at 1.
        curvature: milliseconds a unit squared; 0 unless "quadratic".
        residual: standard deviation of what is left, in the unit of the left-hand side.
        slope_error: standard error of `slope`, were each of the n a row; None when "quadratic".
    """

    kind: Kind
    n: int
    r2: float
    slope: float
    intercept: float
    curvature: float
    residual: float
    slope_error: float | None = None

    def predict(self, x: float) -> float:
        """Return the milliseconds expected at x (x > 0 for "loglog")."""
        if self.kind == "loglog":
            return float(np.exp(self.intercept + self.slope * np.log(x)))
        return self.intercept + self.slope * x + self.curvature * x * x


def fit(summary: Summary, stage: str, covariate: str, kind: Kind = "linear") -> Fit | None:
    """Fit a stage on a covariate over all groups.

    Returns:
        None where the rows do not determine the fit: too few (three, four for "quadratic"),
        no variance, or a stage or covariate that the summary does not have.
    """
    if stage not in summary.stages or covariate not in summary.covariates:
        return None
    at = (slice(None), summary.covariates.index(covariate), summary.stages.index(stage))
    moments = summary.moments
    if kind == "loglog":
        whole = (moments.log_n[at], moments.log_mean[at], moments.log_product[at])
        n, mean, product = _together(whole, _LINEAR)
        return _line("loglog", n, mean, product)
    n, mean, product = _together((moments.n[at], moments.mean[at], moments.product[at]), _QUADRATIC)
    if kind == "linear":
        return _line("linear", n, mean[[0, 2]], product[[0, 3, 5]])
    return _parabola(n, mean, product)


def correlation(summary: Summary, first: str, second: str) -> float | None:
    """Return Pearson's r of two covariates over all groups; None when it is not determined."""
    if not {first, second} <= set(summary.covariates):
        return None
    moments = summary.moments
    at = (slice(None), summary.covariates.index(first), summary.covariates.index(second))
    n, mean, product = _together(
        (moments.pair_n[at], moments.pair_mean[at], moments.pair_product[at]), _LINEAR
    )
    line = _line("linear", n, mean, product)
    return None if line is None else float(np.copysign(np.sqrt(line.r2), line.slope))


def _together(
    parts: tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]],
    pairs: tuple[tuple[int, int], ...],
) -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
    if not len(parts[0]):
        return 0, parts[1].sum(axis=0), parts[2].sum(axis=0)
    n, mean, product = combine(parts, np.zeros(1, np.intp), pairs)
    return int(n[0]), mean[0], product[0]


def _varies(n: int, mean: float, product: float) -> bool:
    return product > n * (_SAME * mean) ** 2


def _line(
    kind: Kind, n: int, mean: NDArray[np.float64], product: NDArray[np.float64]
) -> Fit | None:
    (x, y), (xx, xy, yy) = mean.tolist(), product.tolist()
    if n < 3 or not _varies(n, x, xx) or not _varies(n, y, yy):
        return None
    slope = xy / xx
    r2 = min(xy * xy / (xx * yy), 1.0)
    residual = (yy * (1.0 - r2) / (n - 2)) ** 0.5
    return Fit(kind, n, r2, slope, y - slope * x, 0.0, residual, residual / xx**0.5)


def _parabola(n: int, mean: NDArray[np.float64], product: NDArray[np.float64]) -> Fit | None:
    (x, x2, y), (xx, xx2, x2x2, xy, x2y, yy) = mean.tolist(), product.tolist()
    if n < 4 or not _varies(n, x, xx) or not _varies(n, y, yy):
        return None
    determinant = xx * x2x2 - xx2 * xx2
    if determinant <= _COLLINEAR * xx * x2x2:
        return None
    slope = (xy * x2x2 - x2y * xx2) / determinant
    curvature = (x2y * xx - xy * xx2) / determinant
    r2 = min(max((slope * xy + curvature * x2y) / yy, 0.0), 1.0)
    residual = (yy * (1.0 - r2) / (n - 3)) ** 0.5
    return Fit("quadratic", n, r2, slope, y - slope * x - curvature * x2, curvature, residual)
