"""Random batches of records, from a seed: what the properties are tried on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

from tailbudget.models.sample import Keep
from tailbudget.models.summarise import summarise
from tailbudget.schemas.records import Columns
from tailbudget.schemas.summary import Moments, Summary

PANE_NS = 10_000_000_000
_MOST_X = 1000.0  # about the largest covariate
_COHORTS = (
    (("route", "b,=\\"), ("region", "eu")),
    (("route", "a"), ("region", "us")),
    (),
    (("route", "(none)"), ("region", "é")),
)


@dataclass(frozen=True, slots=True)
class Trials:
    """Makes batches, takes them apart and compares summaries.

    Attributes:
        batch: n random rows of a seed, with missing cells, failures, weights and repeated ids.
        rows: the rows of a batch at these indices.
        summary: the summary of a batch.
        same: assert that two summaries are equal, rounded sums to 1e-9.
        keep: so few records that both thresholds of the sample are met.
    """

    batch: Callable[..., Columns]
    rows: Callable[[Columns, Any], Columns]
    summary: Callable[..., Summary]
    same: Callable[..., None]
    keep: Keep


@pytest.fixture(scope="session")
def trials() -> Trials:
    """Functions that the properties share."""
    return Trials(_batch, _rows, _summary, _same, KEEP)


def _batch(seed: int, n: int, *, missing: float = 0.2, weighted: bool = False) -> Columns:
    random = np.random.default_rng(seed)
    stages = np.round(random.lognormal(2, 1.5, (2, n)), 3)
    stages[0] *= random.random(n) < 0.5  # a cache: often exactly 0
    stages[random.random((2, n)) < missing] = np.nan
    covariates = np.round(random.lognormal(3, 1, (2, n)))
    covariates[random.random((2, n)) < missing] = np.nan
    total = np.round(np.nansum(stages, axis=0) * random.uniform(0.9, 2, n) + 1e-4, 4)
    limit = np.where(random.random(n) < 0.5, 250.0, np.nan)
    outcome = random.choice([0, 0, 0, 0, 1, 2, 4], n).astype(np.int8)
    total[(outcome != 0) & (random.random(n) < 0.5)] = np.nan
    hashes = random.integers(0, 2**64, n, dtype=np.uint64)
    repeated = random.random(n) < 0.05
    hashes[repeated] = hashes[random.integers(0, max(n, 1), int(repeated.sum()))]
    return Columns(
        service="chat",
        cohorts=_COHORTS,
        cohort=random.integers(0, len(_COHORTS), n).astype(np.int32),
        id_hash=hashes,
        ids=[f"r-{h:x}" for h in hashes.tolist()],
        ts_ns=random.integers(-2 * PANE_NS, 2 * PANE_NS, n),
        outcome=outcome,
        total_ms=total,
        limit_ms=limit,
        weight=random.integers(1, 9, n) if weighted else None,
        stages=("cache", "queue"),
        stage_ms=stages,
        covariates=("batch_size", "tokens"),
        covariate=covariates,
        offset=np.arange(n),
    )


def _rows(columns: Columns, at: Any) -> Columns:
    at = np.asarray(at, np.intp)
    return replace(
        columns,
        cohort=columns.cohort[at],
        id_hash=columns.id_hash[at],
        ids=[columns.ids[i] for i in at.tolist()],
        ts_ns=columns.ts_ns[at],
        outcome=columns.outcome[at],
        total_ms=columns.total_ms[at],
        limit_ms=columns.limit_ms[at],
        weight=None if columns.weight is None else columns.weight[at],
        stage_ms=columns.stage_ms[:, at],
        covariate=columns.covariate[:, at],
        offset=columns.offset[at],
    )


KEEP = Keep(group=4, pane=7)


def _summary(columns: Columns, *, keep: Keep = KEEP) -> Summary:
    return summarise(columns, pane_ns=PANE_NS, thresholds_ms=(20.0, 100.0), keep=keep)


def _same(one: Any, other: Any, *, exact: bool = False, most_ms: float = 1.0) -> None:
    assert type(one) is type(other)
    if isinstance(one, Summary):
        most_ms = float(one.max_ms.max(initial=1.0))
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name in {"profile", "moments", "sample"}:
            _same(a, b, exact=exact, most_ms=most_ms)
        elif not isinstance(a, np.ndarray):
            assert a == b, field.name
        else:
            assert a.dtype == b.dtype, field.name
            if exact or not np.issubdtype(a.dtype, np.floating) or not isinstance(one, Moments):
                np.testing.assert_array_equal(a, b, field.name)
            else:
                limit = _rounding(one, field.name, most_ms)
                assert (np.abs(a - b) <= 1e-9 * np.abs(b) + limit).all(), field.name


def _rounding(moments: Moments, name: str, most_ms: float) -> Any:
    """Return how far a co-moment may be off: a few last digits of the squares it is left of."""
    if name.endswith("mean"):
        return 1e-13
    x, y = (10.0, 10.0) if name.startswith("log") else (_MOST_X, most_ms)
    if name.startswith("pair"):
        y = x
    products = [x * x, x * y, y * y]
    if name == "product":
        products = [x**2, x**3, x**4, x * y, x**2 * y, y**2]
    n = max(int(moments.n.max(initial=1)), int(moments.pair_n.max(initial=1)))
    return 1e-15 * n * np.array(products)
