"""Columns of a simulated service whose tail has a known cause."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gathered import T0_NS, gathered
from numpy.typing import NDArray

from tailbudget.models.evidence import Evidence
from tailbudget.schemas.sections import ColdWindow

Floats = NDArray[np.float64]

RATE = 5.0
"""Requests a second."""


class Service:
    """Requests with steady latencies, to which a test adds what it wants to be found.

    Attributes:
        rng: the source of all randomness.
        n: requests.
        at_s: [n] seconds since the start.
        stages: name to [n] milliseconds.
        covariates: name to [n].
        dimensions: name to [n] texts.
    """

    def __init__(self, seed: int, n: int = 6_000) -> None:
        self.rng = np.random.default_rng(seed)
        self.n = n
        self.at_s = np.cumsum(self.rng.exponential(1 / RATE, n))
        length = self.rng.lognormal(6.0, 0.5, n)
        self.covariates: dict[str, Floats] = {"sequence_length": np.round(length)}
        self.dimensions: dict[str, Any] = {
            "route": self.rng.choice(["chat", "search", "bulk"], n, p=[0.6, 0.32, 0.08]),
            "replica": self.rng.choice(["r1", "r2", "r3", "r4"], n),
        }
        self.stages: dict[str, Floats] = {
            "tokenize": self.noisy(2.0),
            "feature_lookup": self.noisy(6.0),
            "forward": self.noisy(60.0),
        }

    def noisy(self, ms: float | Floats, spread: float = 0.1) -> Floats:
        """Return latencies about a value, lognormal."""
        noise: Floats = ms * self.rng.lognormal(0.0, spread, self.n)
        return noise

    def between(self, start: float, end: float) -> NDArray[np.bool_]:
        """Return [n] which requests come between two shares of the span."""
        share = self.at_s / self.at_s[-1]
        inside: NDArray[np.bool_] = (share >= start) & (share < end)
        return inside

    def some(self, share: float) -> NDArray[np.bool_]:
        """Return [n] a random share of the requests."""
        return self.rng.random(self.n) < share

    def evidence(self, cold_windows: tuple[ColdWindow, ...] | None = None) -> Evidence:
        """Return what a log of the requests gives."""
        return self.logged(self.total() + self.noisy(1.0), cold_windows)

    def total(self) -> Floats:
        """Return [n] the stages one after the other."""
        total: Floats = np.sum(list(self.stages.values()), axis=0)
        return total

    def logged(
        self,
        total: Floats,
        cold_windows: tuple[ColdWindow, ...] | None = None,
        wait_ms: Floats | None = None,
    ) -> Evidence:
        """Return the same with a total that is not the sum of the stages.

        Args:
            total: [n] milliseconds.
            cold_windows: spans after deploys.
            wait_ms: [n] how long before its start each request was due.
        """
        start_ns = (T0_NS + self.at_s * 1e9).astype(np.int64)
        due = (
            {} if wait_ms is None else {"scheduled_ts": start_ns - (wait_ms * 1e6).astype(np.int64)}
        )
        columns: Mapping[str, Any] = {
            "timestamp": start_ns,
            **due,
            "total_ms": total,
            **{f"{name}_ms": ms for name, ms in self.stages.items()},
            **self.covariates,
            **self.dimensions,
        }
        return gathered(
            columns,
            covariates=tuple(self.covariates),
            cohort_dims=tuple(self.dimensions),
            cold_windows=cold_windows,
        )

    def window(self, start: float, end: float) -> ColdWindow:
        """Return a cold window between two shares of the span."""
        first, last = (int(share * self.at_s[-1] * 1e9) + T0_NS for share in (start, end))
        return ColdWindow(first, last, "v2", "deploy")
