"""Latency against load, over the slots of a timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.evidence import Evidence
from tailbudget.models.figures import figure
from tailbudget.models.paired_p99 import NEEDED, P99, Saving, sketched_saving
from tailbudget.models.rank_interval import lower_rank, upper_rank
from tailbudget.models.sketch import BUCKETS, nearest_rank, representative
from tailbudget.schemas.summary import FAILED, TOTAL, Summary

LOAD_VARIES: Final = 2.0
"""Load varies when its p90 is this many times its p10. In an M/M/1 queue the wait grows with
rho / (1 - rho): sixfold from 40 % to 80 %. Less variation shows little."""

_SLOT_REQUESTS: Final = 100  # chance alone then moves a slot's rate by a tenth
_FEWEST_SLOTS: Final = 10
_NS: Final = 1e9


@dataclass(frozen=True, slots=True)
class Slots:
    """Spans of equal length with their load.

    Attributes:
        rps: [T] requests a second.
        in_flight: [T] mean requests in flight, by Little's law: summed durations over the span.
        requests: [T] failures included.
        counts: [T, BUCKETS] sketch of the total of the successful ones.
    """

    rps: NDArray[np.float64]
    in_flight: NDArray[np.float64]
    requests: NDArray[np.int64]
    counts: NDArray[np.int64]


def load_slots(evidence: Evidence) -> Slots | None:
    """Return the slots by ascending load; None when load did not vary, or slots are too few.

    Slots are joined until they hold a hundred requests on average. The first and the last are
    left out: they may be cut off.
    """
    timeline = evidence.timeline
    length_ns, index = _joined(timeline, evidence.slot_ns)
    found, of = np.unique(index, return_inverse=True)
    if len(found) < _FEWEST_SLOTS + 2:
        return None
    seconds = length_ns / _NS
    requests = _summed(timeline.requests, of, len(found))
    busy_ns = _summed(_busy_ns(timeline), of, len(found))
    rps = requests / seconds
    inner = np.argsort(rps[1:-1], kind="stable") + 1
    low, high = np.quantile(rps[inner], [0.1, 0.9])
    if high < LOAD_VARIES * low:
        return None
    counts = _sketches(timeline, of, len(found))
    return Slots(rps[inner], busy_ns[inner] / length_ns, requests[inner], counts[inner])


def lower_load(evidence: Evidence, factor: float, note: str) -> Saving:
    """Return what the p99 would save were every slot's load that of the peak over `factor`."""
    slots = load_slots(evidence)
    if slots is None:
        return Saving(None, None, "load did not vary enough to tell")
    limit = float(slots.rps.max()) / factor
    calm = slots.rps <= limit
    basis = f"p99 of the {int(calm.sum()):,} of {len(calm):,} spans with at most {figure(limit, 3)}"
    return sketched_saving(
        slots.counts[calm].sum(axis=0),
        slots.counts[~calm].sum(axis=0),
        f"{basis} requests a second{note}",
    )


def rises_with_load(slots: Slots) -> tuple[float, float] | None:
    """Return the p99 in the calm and in the busy half of the slots, where it surely rises.

    None unless the intervals of both (binomial ranks) lie apart.
    """
    half = len(slots.rps) // 2
    calm, busy = (
        _interval(part.sum(axis=0)) for part in (slots.counts[:half], slots.counts[half:])
    )
    if calm is None or busy is None or calm[2] >= busy[0]:
        return None
    return calm[1], busy[1]


def _interval(counts: NDArray[np.int64]) -> tuple[float, float, float] | None:
    """Return the low end, the value and the high end of a sketch's p99; None of too few."""
    n = int(counts.sum())
    if n < NEEDED:
        return None
    wanted = (lower_rank(n, P99) or 1, nearest_rank(n, P99), upper_rank(n, P99) or n)
    at = np.searchsorted(np.cumsum(counts), wanted)
    first, value, last = representative(at).tolist()
    return first, value, last


def _joined(timeline: Summary, slot_ns: int) -> tuple[int, NDArray[np.int64]]:
    """Return the length of the joined slots, and the one that each slot falls into."""
    if not len(timeline.pane_ns):
        return slot_ns, timeline.pane_ns
    offset = (timeline.pane_ns - timeline.pane_ns.min()) // slot_ns
    mean = int(timeline.requests.sum()) / (int(offset.max()) + 1)
    together = int(np.ceil(_SLOT_REQUESTS / mean)) if mean else 1
    return slot_ns * together, offset // together


def _busy_ns(timeline: Summary) -> NDArray[np.int64]:
    columns = [timeline.stages.index(TOTAL), timeline.stages.index(FAILED)]
    busy: NDArray[np.int64] = timeline.sum_ns[:, columns].sum(axis=1)
    return busy


def _summed(values: NDArray[np.int64], of: NDArray[np.intp], size: int) -> NDArray[np.int64]:
    result = np.zeros(size, np.int64)
    np.add.at(result, of, values)
    return result


def _sketches(timeline: Summary, of: NDArray[np.intp], size: int) -> NDArray[np.int64]:
    stages = len(timeline.stages)
    mine = timeline.cell % stages == timeline.stages.index(TOTAL)
    key = of[timeline.cell[mine] // stages] * BUCKETS + timeline.bucket[mine]
    counts = np.bincount(key, timeline.count[mine], size * BUCKETS)
    return counts.astype(np.int64).reshape(size, BUCKETS)
