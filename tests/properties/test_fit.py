"""Fits from merged moments equal numpy's fits on the raw rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailbudget.models.merge import merge
from tailbudget.models.regression import correlation, fit

CLOSE: dict[str, Any] = {"rel": 1e-9, "abs": 1e-9}


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(40, 400), weighted=st.booleans())
def test_fits_equal_numpy_on_raw_rows(trials: Any, seed: int, n: int, *, weighted: bool) -> None:
    """Linear, quadratic and log-log fits and R², over several batches, panes and cohorts."""
    columns = trials.batch(seed, n, weighted=weighted)
    cut = n // 3
    parts = [trials.rows(columns, np.arange(cut)), trials.rows(columns, np.arange(cut, n))]
    summary = merge([trials.summary(part) for part in parts])
    ok = columns.outcome == 0
    weight = np.ones(n) if columns.weight is None else columns.weight.astype(float)
    x, y = columns.covariate[1], columns.stage_ms[1]
    rows = ok & ~np.isnan(x) & ~np.isnan(y)
    x, y, w = x[rows], y[rows], weight[rows]
    _compare(fit(summary, "queue", "tokens"), x, y, w, 1)
    _compare(fit(summary, "queue", "tokens", "quadratic"), x, y, w, 2)
    positive = (x > 0) & (y > 0)
    logs = np.log(x[positive]), np.log(y[positive])
    _compare(fit(summary, "queue", "tokens", "loglog"), *logs, w[positive], 1)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(40, 200))
def test_correlation_equals_numpy(trials: Any, seed: int, n: int) -> None:
    """Pearson's r of two covariates over rows where both are present."""
    columns = trials.batch(seed, n)
    a, b = columns.covariate[:, columns.outcome == 0]
    both = ~np.isnan(a) & ~np.isnan(b)
    found = correlation(trials.summary(columns), "batch_size", "tokens")
    assert found == pytest.approx(np.corrcoef(a[both], b[both])[0, 1], **CLOSE)


def _compare(found: Any, x: Any, y: Any, weight: Any, degree: int) -> None:
    coefficients = np.polyfit(x, y, degree, w=np.sqrt(weight))
    mean = np.average(y, weights=weight)
    left = (weight * (y - np.polyval(coefficients, x)) ** 2).sum()
    r2 = 1 - left / (weight * (y - mean) ** 2).sum()
    assert found.n == weight.sum()
    ours = [found.intercept, found.slope, found.curvature][: degree + 1]
    size = np.abs(coefficients[::-1]) + np.abs(y).max() / np.abs(x).max() ** np.arange(degree + 1)
    assert (np.abs(ours - coefficients[::-1]) <= 1e-9 * size).all()
    assert found.r2 == pytest.approx(r2, **CLOSE)
