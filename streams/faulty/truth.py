"""What a detector should have said: a label for every key and second, and every onset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.streams.faulty.faults import Episodes
from tailbudget.streams.faulty.scenarios import AFFECTED, COHORTS, STAGES, FaultScenario
from tailbudget.streams.faulty.workload import Floats, within

FAULTY: Final = 1
SOUND: Final = 0
EITHER: Final = -1
COLD: Final = -2

_LEAST_EFFECT: Final = 1.05
_LEAST_OF_LEAK: Final = 1.1
_TOUCHED: Final = 0.02  # a record whose logarithm moved by more is one that the fault touched
_DRAIN_S: Final = 60
_COLD_S: Final = 121
_QUEUE_S: Final = 15


@dataclass(frozen=True, slots=True)
class Onset:
    """A fault that a detector should find at one key.

    Attributes:
        key: stage index times the number of cohorts, plus cohort index.
        start_s: when the first request that it slowed was complete.
        end_s: when it ended.
        effect: mean of the slowed time by the sound time.
    """

    key: int
    start_s: float
    end_s: float
    effect: float


@dataclass(frozen=True, slots=True)
class Truth:
    """Labels and onsets.

    Attributes:
        label: [K, T] `FAULTY`, `SOUND`, `EITHER` (at the edges, too small, or a consequence) or
            `COLD`, of every key and second.
        onsets: in no order.
    """

    label: NDArray[np.int8]
    onsets: tuple[Onset, ...]


def truth(
    scenario: FaultScenario,
    acts: Episodes,
    key: NDArray[np.int64],
    done_s: Floats,
    log_effect: Floats,
) -> Truth:
    """Label a run, given each row's key, completion and logarithm of slowed by sound time."""
    seconds = int(scenario.duration_s)
    label = np.zeros((len(STAGES) * len(COHORTS), seconds), np.int8)
    onsets = []
    for index, name in enumerate(STAGES):
        for k in range(index * len(COHORTS), (index + 1) * len(COHORTS)):
            rows = key == k
            row = _Key(k, done_s[rows], log_effect[rows])
            if name in AFFECTED[scenario.fault]:
                onsets += [o for s in acts.spans if (o := _mark(scenario, row, s, label[k]))]
            _drain(row, acts, label[k])
    if "prefill" in AFFECTED[scenario.fault]:
        _consequences(acts, label)
    for deploy in acts.deploys:
        label[:, int(deploy) : int(deploy) + _COLD_S] = COLD
    return Truth(label, tuple(onsets))


@dataclass(frozen=True, slots=True)
class _Key:
    key: int
    done_s: Floats
    log_effect: Floats


def _mark(
    scenario: FaultScenario, rows: _Key, span: tuple[float, float], label: NDArray[np.int8]
) -> Onset | None:
    """Label one key over one span of the fault; None where no onset is to be found."""
    start, end = span
    inside = within(rows.done_s, (span,))
    if not inside.any():
        return None
    mixture = scenario.fault in ("cache_storm", "tail_only", "leak")
    effect = scenario.effect if mixture else float(np.exp(rows.log_effect[inside].mean()))
    touched = inside & (np.abs(rows.log_effect) > _TOUCHED)
    if effect < 1.01:
        return None
    label[int(start) : int(end) + 1] = EITHER
    if effect < _LEAST_EFFECT or not touched.any():
        return None
    first = float(rows.done_s[touched].min())
    if scenario.fault == "leak":
        middle = np.arange(len(label)) + 0.5
        grown = 1 + (scenario.effect - 1) * (middle - start) / (end - start)
        large = (grown >= _LEAST_OF_LEAK) & (middle >= first) & (middle < end)
        label[large] = FAULTY
    else:
        label[int(first) + 1 : int(end)] = FAULTY
    cold = _COLD_S - 1 if scenario.fault == "deploy_regression" else 0
    return Onset(rows.key, max(first, start + cold), end, effect)


def _drain(rows: _Key, acts: Episodes, label: NDArray[np.int8]) -> None:
    """Leave open the seconds after the fault in which requests that it slowed still complete."""
    touched = np.abs(rows.log_effect) > _TOUCHED
    seconds = rows.done_s[touched].astype(np.int64)
    late = seconds[label[seconds] == SOUND]
    label[late] = EITHER
    for _, end in acts.spans:
        after = seconds[(seconds >= end) & (seconds < end + _DRAIN_S)]
        if len(after):
            tail = label[int(end) : int(after.max()) + 2]
            tail[tail == SOUND] = EITHER


def _consequences(acts: Episodes, label: NDArray[np.int8]) -> None:
    """Leave open what the queue does while the stage behind it is slow."""
    queue = STAGES.index("queue") * len(COHORTS)
    for start, end in acts.spans:
        label[queue : queue + len(COHORTS), int(start) : int(end) + _QUEUE_S] = EITHER
