"""The worked situations of the documentation, as simulated logs."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from gathered import T0_NS, gathered
from numpy.typing import NDArray

from tailbudget.models.evidence import Evidence

Floats = NDArray[np.float64]


Log = dict[str, Any]
"""The columns of a log."""


def fraud_scoring_log(seed: int, n: int = 20_000) -> Log:
    """Scoring with a feature lookup a row; the bulk route (8 %) sends batches of 200 rows.

    P99 is about 480 ms against 200 ms, that of feature_lookup 280 ms with a median of 6 ms.
    """
    rng = np.random.default_rng(seed)
    bulk = rng.random(n) < 0.08
    batch = np.where(bulk, np.round(rng.normal(200, 8, n)), rng.integers(1, 5, n))
    stages: dict[str, Floats] = {
        "preprocess": (8 + 0.15 * batch) * rng.lognormal(0, 0.15, n),
        "feature_lookup": (3.5 + 1.15 * batch) * rng.lognormal(0, 0.12, n),
        "model_forward": (55 + 0.45 * batch) * rng.lognormal(0, 0.12, n)
        + np.where(rng.random(n) < 0.004, 450.0, 0.0),
    }
    return {
        "timestamp": T0_NS + np.cumsum(rng.exponential(5e7, n)).astype(np.int64),
        "total_ms": sum(stages.values()) + rng.lognormal(0.5, 0.3, n),
        "batch_size": batch,
        "route": np.where(bulk, "bulk", rng.choice(["checkout", "login", "transfer"], n)),
        "region": rng.choice(["eu", "us"], n),
        **{f"{name}_ms": ms for name, ms in stages.items()},
    }


def fraud_scoring(seed: int, n: int = 20_000) -> Evidence:
    """Return the evidence of that log."""
    return gathered(
        fraud_scoring_log(seed, n),
        covariates=("batch_size",),
        cohort_dims=("route", "region"),
        thresholds_ms=(200.0,),
    )


def classifier_log(seed: int, n: int = 20_000) -> Log:
    """A classifier whose 1 % of inputs above 50,000 tokens bring P99 to 4.2 s against 1.5 s."""
    rng = np.random.default_rng(seed)
    usual = np.minimum(rng.lognormal(7.2, 0.7, n), 20_000.0)
    giant = rng.random(n) < 0.0115
    tokens = np.where(giant, rng.uniform(50_000, 90_000, n), usual).round()
    stages: dict[str, Floats] = {
        "tokenize": (1 + 0.004 * tokens) * rng.lognormal(0, 0.1, n),
        "model_forward": (60 + 0.078 * tokens) * rng.lognormal(0, 0.1, n),
        "postprocess": rng.lognormal(0.7, 0.3, n),
    }
    return {
        "timestamp": T0_NS + np.cumsum(rng.exponential(5e7, n)).astype(np.int64),
        "total_ms": sum(stages.values()) + 0.5,
        "sequence_length": tokens,
        "route": rng.choice(["web", "api"], n),
        **{f"{name}_ms": ms for name, ms in stages.items()},
    }


def classifier(seed: int, n: int = 20_000) -> Evidence:
    """Return the evidence of that log."""
    return gathered(
        classifier_log(seed, n),
        covariates=("sequence_length",),
        cohort_dims=("route",),
        thresholds_ms=(1500.0,),
    )


def nightly_batch_log(seed: int, nights: int = 5, items: int = 40) -> Log:
    """One worker that scores item after item, two minutes each, every night from two o'clock."""
    rng = np.random.default_rng(seed)
    total_ms = rng.lognormal(np.log(120_000), 0.2, (nights, items))
    begins_s = np.arange(nights)[:, None] * 86_400 + rng.uniform(0, 60, (nights, 1))
    at_s = (begins_s + np.cumsum(total_ms, axis=1) / 1e3 - total_ms / 1e3).ravel()
    return {
        "timestamp": T0_NS + (at_s * 1e9).astype(np.int64),
        "total_ms": total_ms.ravel(),
        "load_ms": total_ms.ravel() * 0.2,
        "model_forward_ms": total_ms.ravel() * 0.75,
        "caller": ["etl"] * total_ms.size,
    }


def nightly_batch(seed: int, nights: int = 5, items: int = 40) -> Evidence:
    """Return the evidence of that log."""
    return gathered(nightly_batch_log(seed, nights, items), cohort_dims=("caller",))


def frame(log: Log) -> pl.DataFrame:
    """Return the log with ids, and times as dates."""
    made = pl.DataFrame(log)
    ids = pl.Series("request_id", [f"r{i}" for i in range(made.height)])
    return made.with_columns(ids, pl.col("timestamp").cast(pl.Datetime("ns", "UTC")))
