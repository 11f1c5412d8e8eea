"""All that a report is drawn from, gathered from summaries of a service.

A log file, the stream's windows and ClickHouse all bring summaries of panes; whoever brings them,
the report is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.groups import number_groups
from tailbudget.models.merge import merge, regroup
from tailbudget.models.reduce import bare
from tailbudget.models.sample import SAMPLE_SIZE
from tailbudget.models.select import empty, take
from tailbudget.schemas.cohorts import ALL, Cohort
from tailbudget.schemas.sections import ColdWindow
from tailbudget.schemas.summary import Summary

REPORT_SAMPLE: Final = 2_048
"""Sampled requests of a report: a p95 band of a hundred of them, at a few hundred kilobytes."""

MAX_SLOTS: Final = 2_048
"""Points of a timeline; beyond, two become one."""

INSTANCE_DIMS: Final = ("instance", "replica", "pod", "host", "node", "worker")
"""Cohort dimensions that name the process which served a request."""

_WAITING_GROUPS: Final = 20_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """One service over one span of event time.

    Attributes:
        service: the service's name.
        start_ns: start of the first pane with requests; 0 without any.
        end_ns: end of the last.
        total: one group: everything, with a sample of `REPORT_SAMPLE`, and the ledger.
        cohorts: one group a cohort.
        timeline: one group a slot of `slot_ns`, all cohorts; without covariates and sample.
        slot_ns: length of a slot.
        cold_windows: spans after deploys, merged where they touch.
        deploys_known: whether anybody said which deploys there were; without, "filtered" cannot
            be computed, and is not the same as unfiltered.
        warm: one group: requests in panes that no cold window touches; None when there are no
            cold windows.
        instances: one group a (slot, instance); None when no dimension names instances.
    """

    service: str
    start_ns: int
    end_ns: int
    total: Summary
    cohorts: Summary
    timeline: Summary
    slot_ns: int
    cold_windows: tuple[ColdWindow, ...] = ()
    deploys_known: bool = False
    warm: Summary | None = None
    instances: Summary | None = None


class Gathering:
    """Adds summaries up to an `Evidence` in memory that does not grow with their number.

    Args:
        service: the service's name.
        pane_ns: length of the panes that come, or of the longest of them.
        cold_windows: spans after deploys; None when nobody knows them.
    """

    def __init__(
        self, service: str, *, pane_ns: int, cold_windows: Sequence[ColdWindow] | None
    ) -> None:
        self._service = service
        self._pane_ns = pane_ns
        self._slot_ns = pane_ns
        self._cold = join_windows(cold_windows or ())
        self._known = cold_windows is not None
        self._waiting: list[Summary] = []
        self._total: list[Summary] = []
        self._warm: list[Summary] = []
        self._cohorts: list[Summary] = []
        self._timeline: list[Summary] = []
        self._instances: list[Summary] = []
        self._range: tuple[int, int] | None = None

    def add(self, summary: Summary) -> None:
        """Add a summary; its panes may come in any order, and several times."""
        self._waiting.append(summary)
        if sum(len(part.pane_ns) for part in self._waiting) >= _WAITING_GROUPS:
            self._fold()

    def evidence(self) -> Evidence:
        """Return everything that was added."""
        self._fold()
        start_ns, end_ns = self._range or (0, 0)
        nothing = empty(self._service)
        return Evidence(
            service=self._service,
            start_ns=start_ns,
            end_ns=end_ns,
            total=self._total[0] if self._total else nothing,
            cohorts=self._cohorts[0] if self._cohorts else nothing,
            timeline=self._timeline[0] if self._timeline else nothing,
            slot_ns=self._slot_ns,
            cold_windows=self._cold,
            deploys_known=self._known,
            warm=self._warm_total(),
            instances=self._instances[0] if self._instances else None,
        )

    def _warm_total(self) -> Summary | None:
        if not self._cold:
            return None
        return self._warm[0] if self._warm else empty(self._service)

    def _fold(self) -> None:
        if not self._waiting:
            return
        panes = merge(self._waiting)
        self._waiting = []
        self._total = [_add(self._total, _one(panes), REPORT_SAMPLE)]
        if not len(panes.pane_ns):
            return
        self._widen(panes.pane_ns)
        self._cohorts = [_add(self._cohorts, _by_cohort(panes))]
        light = bare(panes)
        self._timeline = [_add(self._timeline, _by_slot(light, self._slot_ns))]
        if self._cold:
            warm = np.flatnonzero(~touched(panes.pane_ns, self._pane_ns, self._cold))
            self._warm = [_add(self._warm, _one(take(panes, warm, {})), REPORT_SAMPLE)]
        named = _by_instance(light, self._slot_ns)
        if named is not None:
            self._instances = [_add(self._instances, named)]

    def _widen(self, pane_ns: NDArray[np.int64]) -> None:
        """Take panes into the range; lengthen the slots until the range has room."""
        first, last = int(pane_ns.min()), int(pane_ns.max()) + self._pane_ns
        low, high = self._range or (first, last)
        self._range = low, high = min(low, first), max(high, last)
        before = self._slot_ns
        while (high - low) > MAX_SLOTS * self._slot_ns:
            self._slot_ns *= 2
        if self._slot_ns != before:
            self._timeline = [_by_slot(part, self._slot_ns) for part in self._timeline]
            self._instances = [_slotted(part, self._slot_ns) for part in self._instances]


def join_windows(windows: Iterable[ColdWindow]) -> tuple[ColdWindow, ...]:
    """Return the windows in order of time, those that touch or overlap joined to one."""
    joined: list[ColdWindow] = []
    for window in sorted(windows, key=lambda one: (one.start_ns, one.end_ns)):
        if joined and window.start_ns <= joined[-1].end_ns:
            last = joined[-1]
            joined[-1] = replace(last, end_ns=max(last.end_ns, window.end_ns))
        else:
            joined.append(window)
    return tuple(joined)


def touched(
    pane_ns: NDArray[np.int64], length_ns: int, windows: Sequence[ColdWindow]
) -> NDArray[np.bool_]:
    """Return [G] which panes any of the windows touches."""
    result = np.zeros(len(pane_ns), np.bool_)
    for window in windows:
        result |= (pane_ns < window.end_ns) & (pane_ns + length_ns > window.start_ns)
    return result


def _add(have: Sequence[Summary], part: Summary, sample_size: int = SAMPLE_SIZE) -> Summary:
    return merge([*have, part], sample_size=sample_size)


def _one(panes: Summary) -> Summary:
    """Put all groups together, their ledger to the time 0."""
    ledger: dict[tuple[int, str], int] = {}
    for (_, reason), count in panes.ledger.items():
        ledger[0, reason] = ledger.get((0, reason), 0) + count
    groups = len(panes.pane_ns)
    cohorts = [ALL] * groups
    return _regrouped(
        replace(panes, ledger=ledger), np.zeros(groups, np.int64), cohorts, REPORT_SAMPLE
    )


def _by_cohort(panes: Summary) -> Summary:
    groups = len(panes.pane_ns)
    return _regrouped(replace(panes, ledger={}), np.zeros(groups, np.int64), panes.cohorts)


def _by_slot(light: Summary, slot_ns: int) -> Summary:
    cohorts = [ALL] * len(light.pane_ns)
    return _regrouped(replace(light, ledger={}), _slots(light, slot_ns), cohorts)


def _slotted(light: Summary, slot_ns: int) -> Summary:
    return _regrouped(replace(light, ledger={}), _slots(light, slot_ns), light.cohorts)


def _by_instance(light: Summary, slot_ns: int) -> Summary | None:
    """Return the groups by slot and instance; None when no cohort names one."""
    cohorts = [instance_of(cohort) for cohort in light.cohorts]
    if not any(cohorts):
        return None
    return _regrouped(replace(light, ledger={}), _slots(light, slot_ns), cohorts)


def instance_of(cohort: Cohort) -> Cohort:
    """Return the part of a cohort that names the instance; empty when none does."""
    return tuple(pair for pair in cohort if pair[0] in INSTANCE_DIMS)[:1]


def _slots(light: Summary, slot_ns: int) -> NDArray[np.int64]:
    slots: NDArray[np.int64] = light.pane_ns // slot_ns * slot_ns
    return slots


def _regrouped(
    summary: Summary,
    pane_ns: NDArray[np.int64],
    cohorts: Sequence[Cohort],
    sample_size: int = SAMPLE_SIZE,
) -> Summary:
    number: dict[Cohort, int] = {}
    of = [number.setdefault(cohort, len(number)) for cohort in cohorts]
    groups = number_groups(pane_ns, np.array(of, np.int64), tuple(number))
    return regroup(summary, groups, sample_size=sample_size)
