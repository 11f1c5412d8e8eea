"""Requests to judge, as summaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from tailbudget.models.summarise import summarise
from tailbudget.models.window import Window
from tailbudget.schemas.cohorts import Cohort
from tailbudget.schemas.records import Columns, Outcome
from tailbudget.schemas.summary import Summary

PANE_NS = 10_000_000_000


def _summary_of(
    total_ms: Sequence[float],
    *,
    stages: Mapping[str, Sequence[float]] | None = None,
    covariates: Mapping[str, Sequence[float]] | None = None,
    failed: Sequence[float] = (),
    thresholds_ms: Sequence[float] = (),
    cohorts: Sequence[Cohort] = (),
    ts_ns: Sequence[int] | int = 0,
) -> Summary:
    """Summarise successes of `total_ms`, then timeouts with the limits `failed`.

    A failure without a known limit is NaN. Stages and covariates of failures are missing.
    """
    n_ok, n = len(total_ms), len(total_ms) + len(failed)
    named, shapes = dict(sorted((stages or {}).items())), dict(sorted((covariates or {}).items()))

    def table(rows: Mapping[str, Sequence[float]]) -> np.ndarray[Any, np.dtype[np.float64]]:
        cells = np.full((len(rows), n), np.nan)
        for row, values in enumerate(rows.values()):
            cells[row, :n_ok] = values
        return cells

    distinct = tuple(dict.fromkeys(cohorts)) or ((),)
    of = [distinct.index(cohort) for cohort in cohorts] or [0] * n
    columns = Columns(
        service="chat",
        cohorts=distinct,
        cohort=np.array(of, np.int32),
        id_hash=np.arange(n, dtype=np.uint64),
        ids=[f"r{i}" for i in range(n)],
        ts_ns=np.broadcast_to(np.array(ts_ns, np.int64), (n,)).copy(),
        outcome=np.array([Outcome.OK] * n_ok + [Outcome.TIMEOUT] * len(failed), np.int8),
        total_ms=np.array([*total_ms, *[np.nan] * len(failed)], np.float64),
        limit_ms=np.array([*[np.nan] * n_ok, *failed], np.float64),
        weight=None,
        stages=tuple(named),
        stage_ms=table(named),
        covariates=tuple(shapes),
        covariate=table(shapes),
        offset=np.arange(n),
    )
    return summarise(columns, pane_ns=PANE_NS, thresholds_ms=thresholds_ms)


@pytest.fixture(scope="session")
def summary_of() -> Callable[..., Summary]:
    """Return the builder of summaries."""
    return _summary_of


@pytest.fixture(scope="session")
def window_of() -> Callable[..., Window]:
    """Return the builder of a window that holds all of the requests given to `summary_of`."""

    def build(*args: Any, **kwargs: Any) -> Window:
        window = Window(PANE_NS, PANE_NS)
        window.add(_summary_of(*args, **kwargs))
        return window

    return build
