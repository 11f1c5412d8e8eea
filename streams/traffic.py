"""Generate the records of a simulated service: pure, seeded, the same however time is cut.

Time runs in blocks of 100 ms, each with random numbers of its own; so the records of an interval
are those of its parts, and a live simulation yields the same ones as a file written at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np
import orjson
import polars as pl
from numpy.typing import NDArray

from tailbudget.streams.scenario import Scenario

STAGES: Final = ("tokenize", "queue", "retrieve", "prefill", "decode")
_NOISE: Final = {"tokenize": 0.12, "queue": 0.0, "retrieve": 0.25, "prefill": 0.08, "decode": 0.06}
"""Standard deviation of the logarithm of each stage's noise."""

_BLOCK_NS: Final = 100_000_000
_UNIFORM: Final = (
    *("time", "route", "variant", "region", "tier", "batch"),
    *("waits", "wait", "cold", "fails", "failure"),
)
_NORMAL: Final = ("input", "output", "documents", "network", *STAGES)

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Draws:
    ordinal: NDArray[np.int64]
    ns: NDArray[np.int64]
    uniform: dict[str, Numbers]
    normal: dict[str, Numbers]


@dataclass(frozen=True, slots=True)
class _Shape:
    input_tokens: Numbers
    output_tokens: Numbers
    batch_size: Numbers
    documents: Numbers


@dataclass(frozen=True, slots=True)
class ScenarioTraffic:
    """A scenario as something that a simulation plays.

    Attributes:
        scenario: the service.
    """

    scenario: Scenario

    @property
    def service(self) -> str:
        """Name of the service."""
        return self.scenario.service

    def records(self, start_ns: int, t0_s: float, t1_s: float) -> list[bytes]:
        """Return the records of an interval, as JSON, in order of time."""
        return records(self.scenario, start_ns, t0_s, t1_s)

    def deploys(self, start_ns: int, t0_s: float, t1_s: float) -> list[bytes]:
        """Return the deploy events of an interval, as JSON."""
        return deploys(self.scenario, start_ns, t0_s, t1_s)

    def happenings(self, start_ns: int, t0_s: float, t1_s: float) -> tuple[str, ...]:
        """Say for a person what happens in an interval."""
        del start_ns
        return self.scenario.happenings(t0_s, t1_s)


def records(scenario: Scenario, start_ns: int, t0_s: float, t1_s: float) -> list[bytes]:
    """Return the records from `t0_s` up to `t1_s` after the start, as JSON, in order of time.

    Raises:
        ValueError: the interval begins before the start.
    """
    return frame(scenario, start_ns, t0_s, t1_s).write_ndjson().encode().splitlines()


def deploys(scenario: Scenario, start_ns: int, t0_s: float, t1_s: float) -> list[bytes]:
    """Return the deploy events from `t0_s` up to `t1_s` after the start, as JSON."""
    ordered = sorted(scenario.deploys, key=lambda deploy: deploy.after_s)
    return [
        orjson.dumps(
            {
                "service": scenario.service,
                "env": scenario.env,
                "version": deploy.version,
                "kind": "deploy",
                "ts": _rfc3339(start_ns + round(deploy.after_s * 1e9)),
            }
        )
        for deploy in ordered
        if t0_s <= deploy.after_s < t1_s
    ]


def frame(scenario: Scenario, start_ns: int, t0_s: float, t1_s: float) -> pl.DataFrame:
    """Return the same records as `records`, as a table; null is an absent value."""
    draws = _draw(scenario, round(t0_s * 1e9), round(t1_s * 1e9))
    u, z = draws.uniform, draws.normal
    route = _choose(u["route"], [route.share for route in scenario.routes])
    variant = _choose(u["variant"], [share for _, share, _ in scenario.variants])
    region = _choose(u["region"], [share for _, share, _ in scenario.regions])
    tier = _choose(u["tier"], [share for _, share in scenario.tiers])
    shape = _shape(scenario, draws, route)
    relative = np.array([time for _, _, time in scenario.variants])[variant]
    stages = _stages(scenario, draws, shape, relative)
    network = np.array([ms for _, _, ms in scenario.regions])[region] * np.exp(0.3 * z["network"])
    status, total = _outcome(scenario, draws, np.nansum([*stages.values(), network], axis=0))
    answered = np.isin(status, ("ok", "error"))
    table = pl.DataFrame(
        {
            "request_id": draws.ordinal,
            "service": [scenario.service] * len(total),
            "timestamp": (start_ns + draws.ns).astype("datetime64[ns]"),
            "status": status,
            "total_ms": total,
            "timeout_ms": np.full(len(total), scenario.timeout_ms),
            **{f"{name}_ms": np.where(answered, ms, np.nan) for name, ms in stages.items()},
            "input_tokens": shape.input_tokens,
            "output_tokens": np.where(answered, shape.output_tokens, np.nan),
            "batch_size": shape.batch_size,
            "candidates": np.where(shape.documents > 0, shape.documents, np.nan),
            "route": _names([route.name for route in scenario.routes], route),
            "model_variant": _names([name for name, _, _ in scenario.variants], variant),
            "region": _names([name for name, _, _ in scenario.regions], region),
            "customer_tier": _names([name for name, _ in scenario.tiers], tier),
        }
    )
    return _finish(table, scenario, start_ns)


def _finish(table: pl.DataFrame, scenario: Scenario, start_ns: int) -> pl.DataFrame:
    prefix = f"{scenario.service}-{start_ns // 1_000_000:x}-{scenario.seed:x}-"
    counts = ("input_tokens", "output_tokens", "batch_size", "candidates")
    return table.with_columns(
        (pl.lit(prefix) + pl.col("request_id").cast(pl.String)).alias("request_id"),
        pl.col("timestamp").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ"),
        pl.col("^.*_ms$").fill_nan(None).round(3),
        pl.col(*counts).fill_nan(None).cast(pl.Int64),
    )


def _draw(scenario: Scenario, t0_ns: int, t1_ns: int) -> _Draws:
    if t0_ns < 0:
        raise ValueError(f"the interval begins {-t0_ns} ns before the start")
    ordinals, times = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    uniforms, normals = [np.empty((len(_UNIFORM), 0))], [np.empty((len(_NORMAL), 0))]
    for block in range(t0_ns // _BLOCK_NS, -(-t1_ns // _BLOCK_NS)):
        random = np.random.default_rng((scenario.seed, block))
        rate = scenario.rate * _load(np.float64(block * _BLOCK_NS / 1e9))
        n = int(random.poisson(rate * _BLOCK_NS / 1e9))
        uniform, normal = random.random((len(_UNIFORM), n)), random.normal(size=(len(_NORMAL), n))
        ns = block * _BLOCK_NS + np.floor(uniform[0] * _BLOCK_NS).astype(np.int64)
        inside = np.flatnonzero((ns >= t0_ns) & (ns < t1_ns))
        kept = inside[np.argsort(ns[inside], kind="stable")]
        # Unique over all blocks as long as a block holds fewer than a million records.
        ordinals.append(block * 1_000_000 + kept)
        times.append(ns[kept])
        uniforms.append(uniform[:, kept])
        normals.append(normal[:, kept])
    return _Draws(
        np.concatenate(ordinals),
        np.concatenate(times),
        dict(zip(_UNIFORM, np.concatenate(uniforms, axis=1), strict=True)),
        dict(zip(_NORMAL, np.concatenate(normals, axis=1), strict=True)),
    )


def _shape(scenario: Scenario, draws: _Draws, route: NDArray[np.intp]) -> _Shape:
    u, z = draws.uniform, draws.normal
    routes = scenario.routes
    median = np.array([route.input_tokens for route in routes])[route]
    spread = np.array([route.input_spread for route in routes])[route]
    output = np.array([route.output_tokens for route in routes])[route]
    documents = np.array([route.documents for route in routes])[route]
    found = np.ceil(documents * np.exp(0.4 * z["documents"]))
    return _Shape(
        input_tokens=np.clip(np.round(median * np.exp(spread * z["input"])), 8, 32_768),
        output_tokens=np.clip(np.round(output * np.exp(0.5 * z["output"])), 1, 4_096),
        batch_size=np.clip(1 + np.floor(-np.log1p(-u["batch"]) * 3 * _load(draws.ns / 1e9)), 1, 32),
        documents=np.where(documents > 0, found, 0),
    )


def _stages(
    scenario: Scenario, draws: _Draws, shape: _Shape, relative: Numbers
) -> dict[str, Numbers]:
    u, z, t_s = draws.uniform, draws.normal, draws.ns / 1e9
    n, batch = shape.input_tokens, shape.batch_size
    busy = 0.55 * _load(t_s)
    wait = np.where(u["waits"] < busy, -np.log1p(-u["wait"]) * 12 / (1 - busy), 0.0)
    cold = _cold(scenario, draws)
    mean = {
        "tokenize": 0.15 + 0.0009 * n,
        "queue": 0.2 + wait,
        "retrieve": np.where(shape.documents > 0, 20 + 5 * shape.documents, np.nan),
        "prefill": (5 + 0.02 * n + 4e-6 * n * n) * (1 + 0.02 * (batch - 1)) * relative * cold,
        "decode": shape.output_tokens * (6 + 0.35 * batch) * relative * cold,
    }
    return {
        stage: mean[stage] * _fault(scenario, stage, t_s) * np.exp(_NOISE[stage] * z[stage])
        for stage in STAGES
    }


def _outcome(scenario: Scenario, draws: _Draws, total: Numbers) -> tuple[NDArray[np.str_], Numbers]:
    fails, kind = draws.uniform["fails"] < scenario.failure_pct / 100, draws.uniform["failure"]
    timeout = (total > scenario.timeout_ms) | (fails & (kind < 0.3))
    rejected = fails & (kind >= 0.3) & (kind < 0.6)
    status = np.select([timeout, rejected, fails], ["timeout", "rejected", "error"], "ok")
    # A rejection is quick; a timeout has no latency but its limit.
    return status, np.select([timeout, rejected], [np.nan, 1 + 2 * kind], total)


def _load(t_s: Numbers | np.float64) -> Numbers:
    return np.asarray(1 + 0.25 * np.sin(t_s * (2 * np.pi / 300)))


def _cold(scenario: Scenario, draws: _Draws) -> Numbers:
    slow = np.ones(len(draws.ns))
    for deploy in scenario.deploys:
        age_s = np.maximum(draws.ns / 1e9 - deploy.after_s, 0)
        met = (draws.ns / 1e9 >= deploy.after_s) & (draws.uniform["cold"] < 0.5)
        slow *= np.where(met, 1 + deploy.slowdown * np.exp(-age_s / deploy.warm_s), 1)
    return slow


def _fault(scenario: Scenario, stage: str, t_s: Numbers) -> Numbers:
    slow = np.ones(len(t_s))
    for fault in scenario.faults:
        during = (t_s >= fault.after_s) & (t_s < fault.after_s + fault.for_s)
        slow *= np.where(during & (fault.stage == stage), fault.factor, 1)
    return slow


def _choose(uniform: Numbers, shares: Sequence[float]) -> NDArray[np.intp]:
    edges = np.cumsum(shares)
    chosen: NDArray[np.intp] = np.searchsorted(edges[:-1], uniform * edges[-1], side="right")
    return chosen


def _names(names: Sequence[str], index: NDArray[np.intp]) -> NDArray[np.str_]:
    return np.array(names)[index]


def _rfc3339(ns: int) -> str:
    return datetime.fromtimestamp(ns / 1e9, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
