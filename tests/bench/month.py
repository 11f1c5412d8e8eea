"""A month of one simulated service: a daily rhythm, workload shifts, deploys, incidents, a leak."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SECOND_NS: Final = 10**9
MINUTE_NS: Final = 60 * SECOND_NS
DAY: Final = 1440
FIRST_DAYS: Final = 4
"""Days without a fault before the month: they fill the longest burn-rate window of three days."""

TARGET_MS: Final = 1000.0
A_MINUTE: Final = 1500.0
"""Requests a minute on average; a p99 of a minute takes a thousand."""

SCORED: Final = 60
"""Requests a minute that anomalies are looked for in: one a second."""

RECENT_S: Final = 20
COLD_MIN: Final = 5
"""As `cold_start_window_min` is by default."""

STAGES: Final = ("prefill", "decode")


@dataclass(frozen=True, slots=True)
class Incident:
    """A true fault.

    Attributes:
        name: what it is.
        begin: minute at which it begins.
        minutes: how long it lasts.
        failing: share of requests that fail.
        slower: factor of the decode stage at its end.
        grows: it begins at 1 and grows evenly.
    """

    name: str
    begin: int
    minutes: int
    failing: float = 0.0
    slower: float = 1.0
    grows: bool = False

    def slow(self, minute: int) -> float:
        """Return the factor of the decode stage in a minute."""
        part = (minute - self.begin) / self.minutes if self.grows else 1.0
        return 1 + (self.slower - 1) * part

    def on(self, minute: int, grace: int = 0) -> bool:
        """Return whether it goes on, or has ended so many minutes ago at most."""
        return self.begin <= minute < self.begin + self.minutes + grace


INCIDENTS: Final = (
    Incident("outage", (FIRST_DAYS + 3) * DAY + 600, 25, failing=1.0),
    Incident("regression", (FIRST_DAYS + 10) * DAY + 900, 120, slower=2.0),
    Incident("dependency at night", (FIRST_DAYS + 17) * DAY + 180, 240, failing=0.12),
    Incident("slow leak", (FIRST_DAYS + 22) * DAY, 5 * DAY, slower=2.2, grows=True),
)
SHIFTS: Final = tuple((FIRST_DAYS + day) * DAY + 500 for day in (1, 6, 8, 13, 16, 20))
SHIFT_MINUTES: Final = 180
DEPLOYS: Final = tuple(range(DAY + 700, (FIRST_DAYS + 30) * DAY, 2 * DAY))


class Minute(NamedTuple):
    """One minute of the service.

    Attributes:
        number: of the minute.
        tokens: [N] input length.
        stages: [2, N] milliseconds.
        failed: [N] did not succeed.
        times: [N] nanoseconds within the minute, ascending.
    """

    number: int
    tokens: Floats
    stages: Floats
    failed: NDArray[np.bool_]
    times: NDArray[np.int64]

    @property
    def total_ms(self) -> Floats:
        """[N] milliseconds of each request."""
        return np.asarray(self.stages.sum(axis=0) + 5.0)

    @property
    def bad(self) -> NDArray[np.bool_]:
        """[N] failed, or beyond the target."""
        return np.asarray(self.failed | (self.total_ms > TARGET_MS))


def month(seed: int, days: int) -> Iterator[Minute]:
    """Yield the minutes of the month and of the days before it."""
    rng = np.random.default_rng(seed)
    for number in range((FIRST_DAYS + days) * DAY):
        load = 1.0 + 0.5 * np.sin(2 * np.pi * (number / DAY - 0.3))
        n = int(rng.poisson(A_MINUTE * load))
        shifted = any(at <= number < at + SHIFT_MINUTES for at in SHIFTS)
        tokens = np.round(300 * (1.3 if shifted else 1.0) * np.exp(0.5 * rng.standard_normal(n)))
        here = [one for one in INCIDENTS if one.on(number)]
        slow = np.prod([one.slow(number) for one in here])
        noise = np.exp(0.1 * rng.standard_normal((2, n)))
        stages = np.stack([20 + 0.2 * tokens, (40 + 0.6 * tokens) * (1 + 0.05 * load) * slow])
        cold = any(at <= number < at + 2 for at in DEPLOYS)
        stages[0] += np.where(rng.random(n) < (0.06 if cold else 0.0), 2500.0, 0.0)
        failing = max([0.001, *(one.failing for one in here)])
        times = np.sort(rng.integers(0, MINUTE_NS, n))
        yield Minute(number, tokens, stages * noise, rng.random(n) < failing, times)
