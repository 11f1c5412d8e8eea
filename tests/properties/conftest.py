"""Random batches of records, from a seed: what the properties are tried on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

from tailbudget.models.summarise import summarise
from tailbudget.schemas.records import Columns
from tailbudget.schemas.summary import Summary

PANE_NS = 10_000_000_000
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
    """

    batch: Callable[..., Columns]
    rows: Callable[[Columns, Any], Columns]
    summary: Callable[..., Summary]
    same: Callable[..., None]


@pytest.fixture(scope="session")
def trials() -> Trials:
    """Functions that the properties share."""
    return Trials(_batch, _rows, _summary, _same)


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


def _summary(columns: Columns, *, sample_size: int = 4) -> Summary:
    return summarise(columns, pane_ns=PANE_NS, thresholds_ms=(20.0, 100.0), sample_size=sample_size)


def _same(one: Any, other: Any, *, exact: bool = False) -> None:
    assert type(one) is type(other)
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if field.name in {"profile", "moments", "sample"}:
            _same(a, b, exact=exact)
        elif not isinstance(a, np.ndarray):
            assert a == b, field.name
        else:
            assert a.dtype == b.dtype, field.name
            if exact or field.name not in _ROUNDED:
                np.testing.assert_array_equal(a, b, field.name)
            else:
                limit = _rounding(one, field.name)
                assert (np.abs(a - b) <= 1e-9 * np.abs(b) + limit).all(), field.name


_ROUNDED = {"mean", "product", "log_mean", "log_product", "pair_mean", "pair_product"}


def _rounding(moments: Any, name: str) -> Any:
    """Return how far a centred product may be off: a share of the squares that it is left of."""
    if not name.endswith("product"):
        return 1e-13
    kind = name.removesuffix("product")
    n, mean = getattr(moments, kind + "n"), np.abs(getattr(moments, kind + "mean"))
    size = mean.max(axis=(0, 1, 2), initial=1.0)
    pairs = [(0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)][: getattr(moments, name).shape[-1]]
    return 1e-13 * n.max(initial=1) * np.array([size[i] * size[j] for i, j in pairs])
