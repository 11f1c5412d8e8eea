"""Where something begins: a replica, traffic after a silence, or the whole span."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.evidence import Evidence
from tailbudget.models.slots import Slots, slots_of

REPLICA: Final = "replica_first_seen"
IDLE: Final = "idle_gap"
OPENING: Final = "opening_wave"

LEAST_IDLE_S: Final = 60.0
"""Platforms that scale to zero wait at least this long: Knative Serving's stable window."""

_CHANCE: Final = 0.01
"""How seldom traffic at the usual rate may leave as long a silence in the whole span."""


@dataclass(frozen=True, slots=True)
class Opening:
    """Slots of which the first is a beginning.

    Attributes:
        sign: why it is one.
        instance: the replica that begins; empty for the whole service.
        idle_s: how long the service had no request before; None when it had.
        slots: the slots of that replica or of the service.
        at: index of the first slot.
    """

    sign: str
    instance: str
    idle_s: float | None
    slots: Slots
    at: int


def openings(evidence: Evidence, whole: Slots) -> Iterator[Opening]:
    """Yield every beginning, replicas first.

    Args:
        evidence: of one service.
        whole: its timeline.
    """
    if not len(whole):
        return
    gaps = idle_gaps(whole, evidence.slot_ns)
    first_ns = int(whole.start_ns[0])
    for instance, slots in _instances(evidence):
        begin_ns = int(slots.start_ns[0])
        idle_s = gaps.get(begin_ns)
        sign = IDLE if idle_s is not None else REPLICA
        yield Opening(OPENING if begin_ns == first_ns else sign, instance, idle_s, slots, 0)
        for start_ns, seconds in gaps.items():
            at = int(np.searchsorted(slots.start_ns, start_ns))
            if 0 < at < len(slots) and slots.start_ns[at] == start_ns:
                yield Opening(IDLE, instance, seconds, slots, at)
    yield Opening(OPENING, "", None, whole, 0)
    for start_ns, seconds in gaps.items():
        at = int(np.searchsorted(whole.start_ns, start_ns))
        yield Opening(IDLE, "", seconds, whole, at)


def idle_gaps(slots: Slots, slot_ns: int) -> dict[int, float]:
    """Return the silences: start of the slot that ends each, to its length in seconds.

    A silence is longer than traffic at the rate of the busy slots would leave by chance.
    """
    if len(slots) < 2:
        return {}
    silent_s = (np.diff(slots.start_ns) - slot_ns) / 1e9
    rate = float(slots.requests.sum()) / (len(slots) * slot_ns / 1e9)
    least_s = max(LEAST_IDLE_S, math.log(len(slots) / _CHANCE) / rate)
    at: NDArray[np.intp] = np.flatnonzero(silent_s >= least_s)
    return {int(slots.start_ns[i + 1]): float(silent_s[i]) for i in at.tolist()}


def _instances(evidence: Evidence) -> Iterator[tuple[str, Slots]]:
    """Yield each replica's name and its slots; what no record names is none."""
    summary = evidence.instances
    if summary is None:
        return
    names: dict[str, list[int]] = {}
    for at, cohort in enumerate(summary.cohorts):
        if cohort and cohort[0][1] != "(none)":
            names.setdefault(cohort[0][1], []).append(at)
    for name in sorted(names):
        yield name, slots_of(summary, np.array(names[name], np.intp))
