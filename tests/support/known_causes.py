"""Simulated services whose tail has a known cause."""

from __future__ import annotations

from typing import Any

import numpy as np
from found import cause_of
from gathered import gathered

from tailbudget.models.evidence import Evidence
from tailbudget.schemas.proposals import Cause, CauseName
from tailbudget.schemas.slo import SloTarget

FRAUD_SLO = SloTarget(p50_ms=100, p95_ms=180, p99_ms=200)
CLASSIFIER_SLO = SloTarget(p99_ms=1_600)


def fraud(n: int = 12_000, seed: int = 1) -> Evidence:
    """Fraud scoring: 8 % of the traffic is one route with 200-row batches, fetched row by row."""
    rng = np.random.default_rng(seed)
    bulk = rng.random(n) < 0.08
    rows = np.where(bulk, 200, rng.integers(1, 5, n)).astype(float)
    fetch = (4.5 + 1.2 * rows) * rng.lognormal(0, 0.06, n)
    pre, model = rng.gamma(8, 2, n), rng.gamma(30, 2, n)
    columns: dict[str, Any] = {
        "total_ms": fetch + pre + model + 3,
        "feature_lookup_ms": fetch,
        "preprocess_ms": pre,
        "model_ms": model,
        "batch_size": rows,
        "route": np.where(bulk, "bulk", "card").tolist(),
    }
    return gathered(
        columns,
        covariates=("batch_size",),
        cohort_dims=("route",),
        thresholds_ms=FRAUD_SLO.thresholds_ms(),
    )


def fraud_cause() -> Cause:
    """What is wrong with the fraud scoring."""
    return cause_of(
        CauseName.INPUT_SHAPE, "feature_lookup", covariate="batch_size", cohort="route=bulk"
    )


def classifier(n: int = 12_000, seed: int = 2) -> Evidence:
    """A classifier, 1.4 % of whose inputs have more than 50,000 tokens."""
    rng = np.random.default_rng(seed)
    long = rng.random(n) < 0.014
    usual = np.minimum(rng.lognormal(8.6, 0.5, n), 20_000)
    tokens = np.round(np.where(long, rng.uniform(50_000, 75_000, n), usual))
    forward = (150 + 0.06 * tokens) * rng.lognormal(0, 0.05, n)
    tokenise = 0.001 * tokens + 2
    columns: dict[str, Any] = {
        "total_ms": forward + tokenise + 10,
        "forward_ms": forward,
        "tokenize_ms": tokenise,
        "sequence_length": tokens,
    }
    return gathered(
        columns, covariates=("sequence_length",), thresholds_ms=CLASSIFIER_SLO.thresholds_ms()
    )


def classifier_cause() -> Cause:
    """What is wrong with the classifier."""
    return cause_of(CauseName.INPUT_SHAPE, "forward", covariate="sequence_length")
