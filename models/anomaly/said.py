"""What has been said of each stage, so that every change is said once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.anomaly.sequential import NAMES
from tailbudget.schemas.anomalies import Anomaly, Phase

if TYPE_CHECKING:
    from tailbudget.models.anomaly.guard import Guard

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Said:
    """The cohorts of each stage's anomaly.

    Attributes:
        cohorts: keys that belong to the anomaly of each stage, alarmed now or before.
    """

    def __init__(self) -> None:
        self.cohorts: dict[int, list[int]] = {}

    def changes(self, now_ns: int, before: Mask, accepted: Integers, guard: Guard) -> list[Anomaly]:
        """Return what is new, given who was alarmed before the tick."""
        on = guard.alarms.on
        was = np.zeros(len(on), np.bool_)
        was[: len(before)] = before
        changed = np.flatnonzero(on != was)
        stages = guard.shapes.bank.stage
        found = []
        for stage in sorted({int(stages[k]) for k in [*changed.tolist(), *accepted.tolist()]}):
            found += self._stage(now_ns, stage, accepted, guard)
        return found

    def active(self, now_ns: int, guard: Guard) -> list[Anomaly]:
        """Return the anomalies that go on."""
        return [
            _anomaly(now_ns, "started", stage, keys, guard)
            for stage, keys in sorted(self.cohorts.items())
        ]

    def _stage(self, now_ns: int, stage: int, accepted: Integers, guard: Guard) -> list[Anomaly]:
        on = np.flatnonzero(guard.alarms.on & (guard.shapes.bank.stage == stage)).tolist()
        known = self.cohorts.get(stage, [])
        together = sorted({*known, *on})
        if on:
            self.cohorts[stage] = together
            if together == known:
                return []
            return [_anomaly(now_ns, "spread" if known else "started", stage, together, guard)]
        if not known:
            return []
        del self.cohorts[stage]
        phase: Phase = "accepted" if set(known) & set(accepted.tolist()) else "ended"
        return [_anomaly(now_ns, phase, stage, known, guard)]


def _anomaly(now_ns: int, phase: Phase, stage: int, keys: list[int], guard: Guard) -> Anomaly:
    at = np.array(keys, np.int64)
    alarms = guard.alarms
    first = int(at[alarms.since_s[at].argmin()])
    drift = guard.calibration.spread * np.sqrt(guard.jitter.mean)
    test = NAMES[int(alarms.test[first])]
    return Anomaly(
        phase=phase,
        stage=guard.shapes.stages[stage],
        cohorts=tuple(sorted(guard.shapes.keys[k].cohort for k in keys)),
        test=test,
        onset_ns=round(float(alarms.onset_s[at].min()) * 1e9),
        started_ns=round(float(alarms.since_s[at].min()) * 1e9),
        at_ns=now_ns,
        effect=guard.effects.of(at, drift),
    )
