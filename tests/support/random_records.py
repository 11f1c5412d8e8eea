"""Random requests with all that a record may carry or lack, and their panes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tailbudget.models.select import split_panes
from tailbudget.models.summarise import summarise
from tailbudget.schemas.cohorts import NONE, Cohort
from tailbudget.schemas.records import Columns, Outcome
from tailbudget.schemas.rows import StoredPane

SECOND_NS = 1_000_000_000
PANE_NS = 10 * SECOND_NS
T0_NS = 1_772_445_600 * SECOND_NS  # 2026-03-02T10:00:00Z
AWKWARD = ("chat", NONE, "a,b=c\\", "naïve 🙂", "'; DROP TABLE panes; --")


def random_columns(
    seed: int,
    n: int,
    *,
    stages: Sequence[str] = ("decode", "prefill", "queue"),
    covariates: Sequence[str] = ("batch_size", "input_tokens"),
    routes: Sequence[str] = AWKWARD,
    span_s: int = 60,
    weighted: bool = False,
    service: str = "chat",
) -> Columns:
    """Return n requests, a tenth of them failed, with a tenth of the cells missing."""
    rng = np.random.default_rng(seed)
    cohorts: tuple[Cohort, ...] = tuple(
        (("route", route), ("region", region)) for route in routes for region in ("eu", "us")
    )
    outcome = rng.choice([Outcome.OK] * 9 + [Outcome.TIMEOUT], n).astype(np.int8)
    covariate = np.floor(rng.lognormal(5, 1.5, (len(covariates), n)))
    stage_ms = rng.lognormal(2, 1.2, (len(stages), n)) * (1 + covariate.sum(axis=0) / 500)
    total_ms = stage_ms.sum(axis=0) + rng.lognormal(1, 2, n)
    for cells in (covariate, stage_ms):
        cells[rng.random(cells.shape) < 0.1] = np.nan
    total_ms[(outcome != Outcome.OK) & (rng.random(n) < 0.5)] = np.nan
    return Columns(
        service=service,
        cohorts=cohorts,
        cohort=rng.integers(0, len(cohorts), n).astype(np.int32),
        id_hash=rng.integers(0, 2**64, n, dtype=np.uint64),
        ids=[f"{seed}-ü-{row}" for row in range(n)],
        ts_ns=T0_NS + rng.integers(0, span_s * SECOND_NS, n),
        outcome=outcome,
        total_ms=total_ms,
        limit_ms=np.where(rng.random(n) < 0.5, 30_000.0, np.nan),
        weight=rng.integers(1, 1000, n) if weighted else None,
        stages=tuple(sorted(stages)),
        stage_ms=stage_ms,
        covariates=tuple(sorted(covariates)),
        covariate=covariate,
        offset=np.arange(n),
    )


def stored_panes(
    columns: Columns, *, version: int = 1, thresholds_ms: Sequence[float] = (100.0, 250.5)
) -> list[StoredPane]:
    """Return the panes of requests, as they are written."""
    summary = summarise(columns, pane_ns=PANE_NS, thresholds_ms=thresholds_ms)
    return [
        StoredPane(pane_ns, 10, part, {"requests:0:1": len(columns), "requests:1:1": 0}, version)
        for pane_ns, part in sorted(split_panes(summary).items())
    ]
