"""When a fit is determined, and what it predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from tailbudget.models.regression import Fit, Kind, correlation, fit
from tailbudget.models.select import empty
from tailbudget.models.summarise import summarise
from tailbudget.schemas.records import Columns
from tailbudget.schemas.summary import Summary


def _columns(x: Sequence[float], y: Sequence[float]) -> Columns:
    n = len(x)
    return Columns(
        service="chat",
        cohorts=((),),
        cohort=np.zeros(n, np.int32),
        id_hash=np.arange(n, dtype=np.uint64),
        ids=[""] * n,
        ts_ns=np.arange(n) * 10**10,
        outcome=np.zeros(n, np.int8),
        total_ms=np.array(y, float),
        limit_ms=np.full(n, np.nan),
        weight=None,
        stages=(),
        stage_ms=np.zeros((0, n)),
        covariates=("double", "tokens"),
        covariate=np.array([x, x], float) * [[2.0], [1.0]],
        offset=np.arange(n),
    )


def _summary(x: Sequence[float], y: Sequence[float]) -> Summary:
    return summarise(_columns(x, y), pane_ns=2 * 10**10, thresholds_ms=())


@pytest.mark.parametrize(
    ("kind", "y", "slope", "intercept", "curvature"),
    [
        ("linear", lambda x: 3 + 2 * x, 2.0, 3.0, 0.0),
        ("quadratic", lambda x: 3 + 2 * x + 0.5 * x * x, 2.0, 3.0, 0.5),
        ("loglog", lambda x: 7 * x**1.5, 1.5, np.log(7), 0.0),
    ],
)
def test_an_exact_law_is_found(
    kind: Kind, y: object, slope: float, intercept: float, curvature: float
) -> None:
    """Rows on a line, a parabola or a power law give it back, and predict it."""
    assert callable(y)
    x = np.array([1.0, 2, 5, 7, 11, 20])
    found = fit(_summary(x.tolist(), y(x).tolist()), "total", "tokens", kind)
    assert found is not None
    assert (found.n, found.kind) == (6, kind)
    assert (found.slope, found.intercept, found.curvature) == pytest.approx(
        (slope, intercept, curvature), rel=1e-9
    )
    assert found.r2 == pytest.approx(1.0)
    assert found.residual == pytest.approx(0.0, abs=1e-5)
    assert found.predict(3.0) == pytest.approx(y(3.0))


@pytest.mark.parametrize(
    ("x", "y", "kind"),
    [
        ([1, 2], [1, 2], "linear"),
        ([0.1] * 9, range(1, 10), "linear"),
        (range(1, 10), [0.1] * 9, "linear"),
        ([1, 2, 3], [1, 4, 9], "quadratic"),
        ([1.1, 1.1, 7.3, 7.3], [1, 2, 3, 4], "quadratic"),
        ([0, 0, 1, 2], [1, 2, 3, 4], "loglog"),
        ([3] * 4, [1, 2, 3, 4], "loglog"),
    ],
)
def test_what_is_not_determined_is_none(x: Sequence[float], y: Sequence[float], kind: Kind) -> None:
    """Too few rows, or no variance, is no fit."""
    assert fit(_summary(x, y), "total", "tokens", kind) is None


def test_one_row_that_stands_for_many_is_no_fit() -> None:
    """A weighted row far from its group's mean has no variance: rounding is not taken for it."""
    columns = _columns([np.nan, 9.0], [277.613, 1e-4])
    columns = replace(columns, ts_ns=np.zeros(2, np.int64), weight=np.array([2, 6]))
    summary = summarise(columns, pane_ns=10**10, thresholds_ms=())
    assert summary.moments.n[0, 1, 0] == 6
    assert fit(summary, "total", "tokens") is None


def test_unknown_names_are_none() -> None:
    """A stage or covariate that was never seen, or no request at all, is no fit."""
    summary = _summary([1, 2, 3], [1, 2, 4])
    assert fit(summary, "queue", "tokens") is None
    assert fit(summary, "total", "colour") is None
    assert fit(summary, "failed", "tokens") is None
    assert fit(empty("chat"), "total", "tokens") is None
    assert correlation(summary, "tokens", "colour") is None


def test_collinear_covariates_correlate() -> None:
    """Twice a covariate correlates with it at 1."""
    assert correlation(_summary([1, 2, 5], [1, 2, 4]), "double", "tokens") == pytest.approx(1.0)


def test_a_fit_is_data() -> None:
    """Fits compare by content."""
    assert Fit("linear", 3, 1.0, 2.0, 0.0, 0.0, 0.0) == Fit("linear", 3, 1.0, 2.0, 0.0, 0.0, 0.0)
