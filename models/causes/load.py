"""How the service was loaded over time.

Requests in flight follow from Little's law (J. Little, A proof for the queuing formula L = λW,
1961): the latency of all requests that came in a slot, added up, over its length. In flight grows
with latency whatever the reason, so contention is told by the rate of arrivals, which does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.causes.spans import Spans
from tailbudget.models.evidence import Evidence
from tailbudget.schemas.summary import TOTAL

Floats = NDArray[np.float64]

_FEWEST: Final = 8
"""Points of a correlation: with fewer, chance makes any."""
_ONE_PER_CENT: Final = 2.58  # standard errors of 1 / sqrt(points)


@dataclass(frozen=True, slots=True)
class Load:
    """Slots that have requests, ascending.

    Attributes:
        start_ns: [T] start of each.
        slot_s: their length.
        rate: [T] requests a second.
        in_flight: [T] mean requests in flight.
        stage_ms: [T, S] mean of each stage.
        stages: [S] names.
    """

    start_ns: NDArray[np.int64]
    slot_s: float
    rate: Floats
    in_flight: Floats
    stage_ms: Floats
    stages: tuple[str, ...]

    def rate_of(self, spans: Spans) -> Floats:
        """Return [T'] requests a second during spans of time; 0 where no slot has a time."""
        if not len(self.start_ns):
            return np.zeros(len(spans.start_ns))
        width = self.slot_s * 1e9
        edges = np.repeat(self.start_ns.astype(np.float64), 2)
        edges[1::2] += width
        come = np.repeat(np.cumsum(self.rate) * self.slot_s, 2)
        come[0::2] -= self.rate * self.slot_s
        last, first = (
            np.interp(t.astype(np.float64), edges, come) for t in (spans.end_ns, spans.start_ns)
        )
        seconds = np.maximum((spans.end_ns - spans.start_ns) / 1e9, self.slot_s)
        rate: Floats = np.maximum(last - first, 0.0) / seconds
        return rate


def load_of(evidence: Evidence) -> Load:
    """Return the load of every slot of the timeline."""
    timeline, slot_s = evidence.timeline, evidence.slot_ns / 1e9
    total = timeline.stages.index(TOTAL)
    n = np.maximum(timeline.n[:, total], 1)
    return Load(
        start_ns=timeline.pane_ns,
        slot_s=slot_s,
        rate=timeline.requests / slot_s,
        in_flight=timeline.sum_ns[:, total] / evidence.slot_ns,
        stage_ms=timeline.sum_ns / (1e6 * n[:, None]),
        stages=timeline.stages,
    )


def rises_with(x: Floats, y: Floats) -> float:
    """Return how strongly y rises with x, as r²; 0 where chance gives as much once in 100 times."""
    if len(x) < _FEWEST or not np.ptp(x) or not np.ptp(y):
        return 0.0
    r = float(np.corrcoef(x, y)[0, 1])
    return r * r if r > _ONE_PER_CENT / len(x) ** 0.5 else 0.0
