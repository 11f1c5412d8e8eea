"""Which requests make a record, where not all shall."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tailbudget.streams.instrument.outcome import succeeded
from tailbudget.streams.instrument.sink import Finished


@dataclass(frozen=True, slots=True)
class Sampling:
    """Records one request in `one_in`, chosen at its end, and all that failed or were slow.

    A record carries as weight how many requests it stands for: `one_in`, or 1 where it belongs
    to those that are always recorded. Estimates from the weights are unbiased, and counts of
    failures and of requests at or beyond `always_from_ms` are exact.

    Attributes:
        one_in: of so many requests one is recorded; 1 records all.
        always_from_ms: requests of at least this latency are all recorded; None: none for that.
        uniform: returns a random number in [0, 1).
    """

    one_in: int = 1
    always_from_ms: float | None = None
    uniform: Callable[[], float] = random.random

    def weight(self, record: Finished) -> int:
        """Return how many requests the record stands for; 0 leaves it out."""
        if self.one_in == 1 or not succeeded(record.status):
            return 1
        slow_ms = self.always_from_ms
        if slow_ms is not None and record.spans.total_ms >= slow_ms:
            return 1
        return self.one_in if self.uniform() * self.one_in < 1 else 0
