"""Who waits before prefill: slots with an autoscaler, first come first served."""

from __future__ import annotations

import heapq
import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.streams.faulty.workload import Workload

Floats = NDArray[np.float64]

_BUSY: Final = 0.8
"""A slot is added when the work offered lately exceeds this share of the slots."""
_REPLICA_RATE: Final = 40.0
_FIRST_SLOTS: Final = 8
_MOST_SLOTS: Final = 256
_LOAD_S: Final = 20.0
_DRAIN_S: Final = 5.0
_MOST_IN_FLIGHT: Final = 64.0


def enqueue(work: Workload, joined_s: Floats, service_s: Floats, rate: float) -> Floats:
    """Return [N] seconds waited, and fill in what a request sees of the queue when it joins.

    A service with more traffic has more replicas; a request sees those of its own.
    """
    replicas = max(1.0, rate / _REPLICA_RATE)
    queue = _Queue(rate, replicas)
    waits = np.zeros(len(work))
    for i in np.argsort(joined_s, kind="stable").tolist():
        now = float(joined_s[i])
        queue.advance(now)
        work.waiting[i] = len(queue.starts) / replicas
        work.in_flight[i] = len(queue.ends) / replicas
        work.expected_wait[i] = len(queue.starts) / queue.drain_rate(now)
        waits[i] = queue.join(now, float(service_s[i]))
    np.minimum(work.in_flight, _MOST_IN_FLIGHT, out=work.in_flight)
    return waits


class _Queue:
    def __init__(self, rate: float, replicas: float) -> None:
        self.starts: list[float] = []  # of those that wait
        self.ends: list[float] = []  # of all that are waiting or served
        self._free = [0.0] * int(_FIRST_SLOTS * replicas)
        self._most_slots = int(_MOST_SLOTS * replicas)
        self._drained, self._drained_s = rate, 0.0
        self._offered, self._offered_s = 0.0, 0.0

    def advance(self, now: float) -> None:
        while self.starts and self.starts[0] <= now:
            heapq.heappop(self.starts)
        while self.ends and self.ends[0] <= now:
            end = heapq.heappop(self.ends)
            fade = math.exp(-(end - self._drained_s) / _DRAIN_S)
            self._drained, self._drained_s = self._drained * fade + 1 / _DRAIN_S, end

    def drain_rate(self, now: float) -> float:
        return max(self._drained * math.exp(-(now - self._drained_s) / _DRAIN_S), 0.2)

    def join(self, now: float, service_s: float) -> float:
        fade = math.exp(-(now - self._offered_s) / _LOAD_S)
        self._offered, self._offered_s = self._offered * fade + service_s / _LOAD_S, now
        if self._offered > _BUSY * len(self._free) and len(self._free) < self._most_slots:
            heapq.heappush(self._free, now)
        start = max(now, heapq.heappop(self._free))
        if start > now:
            heapq.heappush(self.starts, start)
        heapq.heappush(self.ends, start + service_s)
        heapq.heappush(self._free, start + service_s)
        return start - now
