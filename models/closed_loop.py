"""Was the load made by callers that wait for their answers?

Such a load generator sends the next request when an answer comes: while the service is slow it
sends less, and the requests that a real user would have sent then are in no log. The percentiles
are a lower bound ("coordinated omission": G. Tene, How NOT to Measure Latency, 2015; B. Schroeder
et al., Open Versus Closed: A Cautionary Tale, NSDI 2006).

Its mark is that requests in flight stay at the number of callers while latency moves. Where all
requests were kept it is seen one by one, for one caller: each starts when the one before ends.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.evidence import Evidence
from tailbudget.models.sample import NO_LIMIT
from tailbudget.models.sampled import sampled
from tailbudget.models.slots import slots_of
from tailbudget.schemas.records import SCHEDULE_WAIT
from tailbudget.schemas.summary import TOTAL

Floats = NDArray[np.float64]


"""The stage from the scheduled start of a request to its admission."""

_SLOTS: Final = 8
_ROWS: Final = 4
"""Requests from which "one after the other" is no accident."""
_MOST_OFTEN: Final = 0.9
_TOUCHES: Final = 0.02
"""Share of a latency within which one request's end is the next one's start: what a client needs
in between."""
_WHOLE: Final = 0.05
"""How near a whole number in flight must be, as a share of it."""
_STEADIER: Final = 0.25
"""In flight varies by at most this share of what latency varies by. With open arrivals it varies
by as much as latency, and by the arrivals' own variation on top."""


def closed_loop(evidence: Evidence) -> str | None:
    """Return the caution in a sentence; None when the load was open, or cannot be told."""
    if SCHEDULE_WAIT in evidence.total.stages:
        return None  # latency counts from the schedule: what callers waited for is in it
    callers = 1 if _one_after_the_other(evidence) else _constant(evidence)
    if callers is None:
        return None
    return (
        f"closed-loop load: {callers:,} request{'s' * (callers > 1)} in flight whatever the "
        "latency; percentiles are a lower bound: the load generator waits for answers "
        "(coordinated omission)"
    )


def _one_after_the_other(evidence: Evidence) -> bool:
    """Tell whether each request starts when the one before it ends."""
    if not len(evidence.total.pane_ns) or not (evidence.total.sample.tau == NO_LIMIT).all():
        return False
    rows = sampled(evidence.total)
    if len(rows) < _ROWS:
        return False
    order = np.argsort(rows.ts_ns, kind="stable")
    total = rows.stage(TOTAL)[order]
    between = np.diff(rows.ts_ns[order]) / 1e6
    # A timestamp is the start of a request, or its end.
    return any(_touch(between, lasted) for lasted in (total[:-1], total[1:]))


def _touch(between_ms: Floats, lasted_ms: Floats) -> bool:
    near = np.abs(between_ms - lasted_ms) <= np.maximum(_TOUCHES * lasted_ms, 1.0)
    return bool((near & (lasted_ms > 1.0)).mean() >= _MOST_OFTEN)


def _constant(evidence: Evidence) -> int | None:
    """Return the number in flight when it is whole and stays while latency moves."""
    slots = slots_of(evidence.timeline)
    # The first and the last slot are not full.
    inner = slice(1, -1)
    n, sums = slots.n[inner], slots.sum_ms[inner]
    busy = n > 0
    if busy.sum() < _SLOTS:
        return None
    in_flight = sums[busy] * 1e6 / evidence.slot_ns
    callers = round(float(np.median(in_flight)))
    latency = sums[busy] / n[busy]
    if callers < 1 or abs(float(in_flight.mean()) / callers - 1) > _WHOLE:
        return None
    steady = _variation(in_flight) <= _STEADIER * _variation(latency)
    return callers if steady else None


def _variation(values: Floats) -> float:
    return float(values.std() / values.mean())
