"""How soon could any test find a fault? Page's test, told everything but when the fault begins.

    python tests/bench/anomaly_bound.py

It knows the noise, the jitter with its time constant, and the kind and size of the fault, that all
cohorts have it at once, and what every request would have taken without noise. Among tests that
alarm as rarely by mistake none is sooner on average (Moustakides, Annals of Statistics 14, 1986),
so what it finds of faults as long as the benchmark's bounds what can be found there. Noise is
taken without its Pareto tail, and a jitter moves no tail, which only makes it easier.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from tailbudget.streams.faulty.scenarios import NOISE
from tailbudget.streams.faulty.stage_models import HIT_MS, MISS_MS, MISS_SHARE, SPREAD

Floats = NDArray[np.float64]

TICK_S: Final = 0.25
FALSE_A_DAY: Final = 0.2
FAULT_S: Final = 120.0
EFFECTS: Final = (1.05, 1.1, 1.2, 1.3, 1.6, 3.0)
_DRIFT_S: Final = 20.0
_CHAINS: Final = 400
_QUIET_TICKS: Final = 40_000
_BEFORE_TICKS: Final = 400
_TAIL_SHARE: Final = 0.10
_ROWS_A_TICK: Final = {"prefill": 10, "decode": 10, "lookup": 10, "retrieve": 5}
"""Of a stage over its cohorts at 40 requests a second; every other request retrieves."""


class Chains(Protocol):
    """Page's sums of many services at once."""

    def add(self, total: Floats, *, slow: bool) -> Floats:
        """Return the sums [N] after another tick; a sum that reaches 0 begins anew."""


class Shift:
    """All rows of a stage are slower, on top of an autoregressive jitter."""

    def __init__(self, stage: str, effect: float, random: np.random.Generator) -> None:
        self._random, self._step = random, math.log(effect)
        self._chance = SPREAD[stage] ** 2 / _ROWS_A_TICK[stage]
        self._keep = math.exp(-TICK_S / _DRIFT_S)
        self._variance = NOISE["medium"].drift ** 2
        self._jitter = random.normal(size=_CHAINS) * math.sqrt(self._variance)
        self._level, self._taken = np.zeros(_CHAINS), np.zeros(_CHAINS)
        self._doubt = self._variance

    def add(self, total: Floats, *, slow: bool) -> Floats:
        """Add what the innovation of the mean says."""
        keep, new = self._keep, (1 - self._keep**2) * self._variance
        shock = self._random.normal(size=_CHAINS) * math.sqrt(new)
        self._jitter = keep * self._jitter + shock
        noise = self._random.normal(size=_CHAINS) * math.sqrt(self._chance)
        mean = self._jitter + noise + (self._step if slow else 0.0)
        self._level *= keep
        self._taken *= keep
        variance = keep**2 * self._doubt + new + self._chance
        surprise, shown = mean - self._level, self._step * (1 - self._taken)
        follow = 1 - self._chance / variance
        total = total + (shown * surprise - shown**2 / 2) / variance
        self._level += follow * surprise
        self._taken += follow * (1 - self._taken)
        self._doubt = self._chance * follow
        self._taken[total <= 0] = 0.0
        return np.maximum(total, 0.0)


class Misses:
    """More requests miss the cache."""

    def __init__(self, effect: float, random: np.random.Generator) -> None:
        mean = HIT_MS + MISS_SHARE * (MISS_MS - HIT_MS)
        self._random = random
        self._raised = MISS_SHARE + (effect - 1) * mean / (MISS_MS - HIT_MS)
        self._rows = _ROWS_A_TICK["lookup"]

    def add(self, total: Floats, *, slow: bool) -> Floats:
        """Add what the number of misses says."""
        raised = self._raised
        misses = self._random.binomial(self._rows, raised if slow else MISS_SHARE, _CHAINS)
        ratio = misses * math.log(raised / MISS_SHARE)
        ratio += (self._rows - misses) * math.log((1 - raised) / (1 - MISS_SHARE))
        return np.maximum(total + ratio, 0.0)


class Mixture:
    """One row in ten is slower, by four times the effect."""

    def __init__(self, effect: float, random: np.random.Generator) -> None:
        self._random = random
        self._shift = math.log(1 + 4 * (effect - 1)) / SPREAD["retrieve"]
        self._size = (_CHAINS, _ROWS_A_TICK["retrieve"])

    def add(self, total: Floats, *, slow: bool) -> Floats:
        """Add what the rows say."""
        hit = self._random.random(self._size) < (_TAIL_SHARE if slow else 0.0)
        score = self._random.normal(size=self._size) + np.where(hit, self._shift, 0.0)
        ratio = np.exp(np.minimum(self._shift * score - self._shift**2 / 2, 500.0))
        added = np.log(1 - _TAIL_SHARE + _TAIL_SHARE * ratio).sum(axis=1)
        grown: Floats = np.maximum(total + added, 0.0)
        return grown


@dataclass(frozen=True, slots=True)
class Bound:
    """What the best test does.

    Attributes:
        limit: sum at which it alarms.
        delay_s: median delay.
        recall: share of the fault's seconds in which it is alarmed.
    """

    limit: float
    delay_s: float
    recall: float


def bound(chains: Chains) -> Bound:
    """Measure the best test: first on quiet traffic for its limit, then on faults."""
    total, most = np.zeros(_CHAINS), np.zeros(_CHAINS)
    peaks: list[Floats] = []
    for _ in range(_QUIET_TICKS):
        total = chains.add(total, slow=False)
        over = total <= 0
        peaks.append(most[over & (most > 5.0)])
        most = np.where(over, 0.0, np.maximum(most, total))
    allowed = round(FALSE_A_DAY * _CHAINS * _QUIET_TICKS * TICK_S / 86_400)
    limit = float(np.sort(np.concatenate([*peaks, np.full(allowed + 1, 5.0)]))[-allowed - 1])
    delay = np.concatenate([_delays(chains, limit) for _ in range(5)])
    recall = float((1 - np.minimum(delay, FAULT_S) / FAULT_S).mean())
    return Bound(limit, float(np.median(delay)), recall)


def _delays(chains: Chains, limit: float) -> Floats:
    """Return [N] seconds until faults are found, infinite where they end before."""
    total = np.zeros(_CHAINS)
    for _ in range(_BEFORE_TICKS):
        total = np.minimum(chains.add(total, slow=False), limit)
    delay = np.full(_CHAINS, np.inf)
    for i in range(int(FAULT_S / TICK_S)):
        total = chains.add(total, slow=True)
        delay[(total > limit) & np.isinf(delay)] = (i + 1) * TICK_S
    return delay


def main() -> int:
    """Print a table of faults and effects."""
    table = Table(title=f"the best test with {FALSE_A_DAY:g} false alarms a day, medium noise")
    for head in ("fault", "effect", "limit", "delay p50 s", "recall", "F1"):
        table.add_column(head, justify="left" if head == "fault" else "right")
    for effect in EFFECTS:
        for name, chains in _cases(effect, np.random.default_rng(2001)).items():
            found = bound(chains)
            f1 = 2 * found.recall / (1 + found.recall)
            cells = (f"{found.limit:.1f}", f"{found.delay_s:.1f}", f"{found.recall:.3f}")
            table.add_row(name, f"{effect:g}", *cells, f"{f1:.3f}")
    Console(width=100).print(table)
    return 0


def _cases(effect: float, random: np.random.Generator) -> dict[str, Chains]:
    return {
        "thermal: prefill": Shift("prefill", effect, random),
        "dependency: retrieve": Shift("retrieve", effect, random),
        "cache storm": Misses(effect, random),
        "tail only": Mixture(effect, random),
    }


if __name__ == "__main__":
    sys.exit(main())
