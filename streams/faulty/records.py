"""Faulty traffic as the records that a service would send, with the deploys that belong to it."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tailbudget.streams.faulty.generate import FaultyTraffic
from tailbudget.streams.faulty.scenarios import COHORTS, COVARIATES, STAGES

UNMEASURED_MS: Final = 0.5
"""What no stage covers of each request."""


def frame(traffic: FaultyTraffic, service: str, start_ns: int) -> pl.DataFrame:
    """Return one record for each request that completed, in order of completion.

    Columns are those of a record; `done_s` beside them is when it completed, since the start.
    """
    scenario = traffic.scenario
    requests = int(traffic.request.max(initial=-1)) + 1
    stage = traffic.key // len(COHORTS)
    ms = np.full((requests, len(STAGES)), np.nan)
    ms[traffic.request, stage] = traffic.ms
    done_s, cohort = np.zeros(requests), np.zeros(requests, np.int64)
    covariate = np.zeros((requests, len(COVARIATES)))
    done_s[traffic.request] = traffic.done_s  # rows come in order: the last stage stands
    cohort[traffic.request] = traffic.key % len(COHORTS)
    covariate[traffic.request] = traffic.covariate
    whole = np.flatnonzero(np.isfinite(ms[:, STAGES.index("decode")]))
    at = whole[np.argsort(done_s[whole], kind="stable")]
    prefix = f"{service}-{start_ns // 1_000_000:x}-{scenario.seed:x}-"
    return pl.DataFrame(
        {
            "request_id": [f"{prefix}{number}" for number in at.tolist()],
            "service": [service] * len(at),
            "timestamp": _rfc3339(start_ns, done_s[at]),
            "total_ms": np.round(np.nansum(ms[at], axis=1) + UNMEASURED_MS, 3),
            **{f"{name}_ms": np.round(ms[at, s], 4) for s, name in enumerate(STAGES)},
            **{name: covariate[at, c] for c, name in enumerate(COVARIATES)},
            "route": np.array(COHORTS)[cohort[at]],
            "done_s": done_s[at],
        }
    ).with_columns(pl.col("^.*_ms$").fill_nan(None))


def lines(part: pl.DataFrame) -> list[bytes]:
    """Return the records of some rows of `frame`, as JSON."""
    return part.drop("done_s").write_ndjson().encode().splitlines()


def _rfc3339(start_ns: int, done_s: NDArray[np.float64]) -> pl.Series:
    ns = start_ns + np.round(done_s * 1e9).astype(np.int64)
    return pl.Series(ns.astype("datetime64[ns]")).dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")
