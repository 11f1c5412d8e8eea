"""All that a report is drawn from, gathered from summaries of a service.

A log file, the stream's windows and ClickHouse all bring summaries of panes; whoever brings them,
the report is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.fair_sample import fair_sample
from tailbudget.models.groups import number_groups
from tailbudget.models.merge import merge, regroup
from tailbudget.models.pile import Pile
from tailbudget.models.reduce import bare
from tailbudget.models.sample import KEEP, Keep
from tailbudget.models.select import empty, take
from tailbudget.schemas.cohorts import ALL, Cohort, instance_of
from tailbudget.schemas.sections import ColdWindow
from tailbudget.schemas.summary import Summary

REPORT_SAMPLE: Final = Keep(group=2_048, pane=0)
"""Sampled requests of a report: a p95 band of a hundred of them, at a few hundred kilobytes."""

SLOTS_S: Final = ((0, 3_600), (60, 86_400), (1_440, 30 * 86_400), (86_400, 2**40))
"""(slot, longest span) of a timeline in seconds, 0 being a pane: at most 2,160 points up to a
month. Each slot divides the next, so that a timeline of short slots becomes one of long ones."""

_SECOND_NS: Final = 1_000_000_000
_WAITING_GROUPS: Final = 20_000
_WAITING_CELLS: Final = 2_000_000
"""What waits to be put together: with all that is beside it some 100 MB."""


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
        cold_windows: spans after deploys that touch this span, merged where they touch.
        deploys_known: whether anybody said which deploys there were; without, "filtered" cannot
            be computed, and is not the same as unfiltered.
        warm: one group: requests in panes that no cold window touches; None when there are no
            cold windows.
        instances: one group a (slot, instance); None when no dimension names instances.
        warm_cohorts: one group a cohort, of those panes; None when there are no cold windows.
        cohort_of: cohort of each sampled request of `total` and `warm`, by the hash of its id.
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
    warm_cohorts: Summary | None = None
    cohort_of: Mapping[int, Cohort] = field(default_factory=dict)


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
        self._cohorts = Pile()
        self._timeline = Pile()
        self._instances = Pile()
        self._warm_cohorts = Pile()
        self._cohort_of: dict[int, Cohort] = {}
        self._range: tuple[int, int] | None = None

    def add(self, summary: Summary) -> None:
        """Add a summary; its panes may come in any order, and several times."""
        self._waiting.append(summary)
        groups = sum(len(part.pane_ns) for part in self._waiting)
        cells = sum(len(part.cell) for part in self._waiting)
        if groups >= _WAITING_GROUPS or cells >= _WAITING_CELLS:
            self._fold()

    def add_evidence(self, part: Evidence) -> None:
        """Add the evidence of another span, gathered with those cold windows that touch it."""
        self._total = [_add(self._total, part.total, REPORT_SAMPLE)]
        if not len(part.total.pane_ns):
            return
        self._widen(part.start_ns, part.end_ns, part.slot_ns)
        self._cohorts.add(part.cohorts)
        self._timeline.add(_slotted(part.timeline, self._slot_ns))
        if self._cold:
            warm = part.warm if part.warm is not None else part.total
            self._warm = [_add(self._warm, replace(warm, ledger={}), REPORT_SAMPLE)]
            cohorts = part.cohorts if part.warm_cohorts is None else part.warm_cohorts
            self._warm_cohorts.add(cohorts)
        self._keep_names(part.cohort_of)
        if part.instances is not None:
            self._instances.add(_slotted(part.instances, self._slot_ns))

    def evidence(self) -> Evidence:
        """Return everything that was added."""
        self._fold()
        start_ns, end_ns = self._range or (0, 0)
        inside = tuple(w for w in self._cold if w.start_ns < end_ns and w.end_ns > start_ns)
        nothing = empty(self._service)
        total = self._sampled(self._total) or nothing
        warm = (self._sampled(self._warm) or nothing) if inside else None
        warm_cohorts = self._warm_cohorts.whole() or nothing
        return Evidence(
            service=self._service,
            start_ns=start_ns,
            end_ns=end_ns,
            total=total,
            cohorts=self._cohorts.whole() or nothing,
            timeline=self._timeline.whole() or nothing,
            slot_ns=self._slot_ns,
            cold_windows=inside,
            deploys_known=self._known,
            warm=warm,
            instances=self._instances.whole(),
            warm_cohorts=warm_cohorts if inside else None,
            cohort_of=self._named([total] if warm is None else [total, warm]),
        )

    def _sampled(self, whole: Sequence[Summary]) -> Summary | None:
        return fair_sample(whole[0], self._pane_ns, self._cohort_of) if whole else None

    def _named(self, wholes: Sequence[Summary]) -> dict[int, Cohort]:
        """Return the cohorts of the sampled requests of these."""
        hashes = np.unique(np.concatenate([whole.sample.hash for whole in wholes]))
        return {h: self._cohort_of[h] for h in hashes.tolist() if h in self._cohort_of}

    def _fold(self) -> None:
        if not self._waiting:
            return
        panes = merge(self._waiting)
        self._waiting = []
        self._total = [_add(self._total, _one(panes), REPORT_SAMPLE)]
        if not len(panes.pane_ns):
            return
        first, last = int(panes.pane_ns.min()), int(panes.pane_ns.max())
        self._widen(first, last + self._pane_ns, self._pane_ns)
        self._cohorts.add(_by_cohort(panes))
        light = bare(panes)
        everyone = replace(light, cohorts=(ALL,) * len(light.pane_ns))
        self._timeline.add(_slotted(everyone, self._slot_ns))
        if self._cold:
            at = np.flatnonzero(~touched(panes.pane_ns, self._pane_ns, self._cold))
            warm = take(panes, at, {})
            self._warm = [_add(self._warm, _one(warm), REPORT_SAMPLE)]
            self._warm_cohorts.add(_by_cohort(warm))
        self._name_cohorts(panes)
        named = _by_instance(light, self._slot_ns)
        if named is not None:
            self._instances.add(named)

    def _name_cohorts(self, panes: Summary) -> None:
        groups = panes.sample.group.tolist()
        fresh = zip(panes.sample.hash.tolist(), groups, strict=True)
        self._keep_names({id_hash: panes.cohorts[group] for id_hash, group in fresh})

    def _keep_names(self, fresh: Mapping[int, Cohort]) -> None:
        """Remember the cohorts of the sampled requests, and of no others."""
        known = {**self._cohort_of, **fresh}
        kept = [part.sample.hash for part in (*self._total, *self._warm)]
        self._cohort_of = {h: known[h] for h in np.concatenate(kept).tolist() if h in known}

    def _widen(self, start_ns: int, end_ns: int, slot_ns: int) -> None:
        """Take a span into the range; lengthen the slots to what that range has."""
        low, high = self._range or (start_ns, end_ns)
        self._range = low, high = min(low, start_ns), max(high, end_ns)
        before = self._slot_ns
        self._slot_ns = max(before, slot_ns, timeline_slot_ns(high - low, self._pane_ns))
        if self._slot_ns != before:
            self._timeline.each(lambda part: _slotted(part, self._slot_ns))
            self._instances.each(lambda part: _slotted(part, self._slot_ns))


def timeline_slot_ns(span_ns: int, pane_ns: int) -> int:
    """Return the length of a slot in the timeline of a span."""
    for slot_s, most_s in SLOTS_S:
        if span_ns <= most_s * _SECOND_NS:
            return max(slot_s * _SECOND_NS, pane_ns)
    raise ValueError(f"no timeline is {span_ns} ns long")


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


def _add(have: Sequence[Summary], part: Summary, keep: Keep = KEEP) -> Summary:
    return merge([*have, part], keep=keep)


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


def _slotted(light: Summary, slot_ns: int) -> Summary:
    slots = light.pane_ns // slot_ns * slot_ns
    return _regrouped(replace(light, ledger={}), slots, light.cohorts)


def _by_instance(light: Summary, slot_ns: int) -> Summary | None:
    """Return the groups by slot and instance; None when no cohort names one."""
    cohorts = [instance_of(cohort) for cohort in light.cohorts]
    if not any(cohorts):
        return None
    return _slotted(replace(light, cohorts=tuple(cohorts)), slot_ns)


def _regrouped(
    summary: Summary,
    pane_ns: NDArray[np.int64],
    cohorts: Sequence[Cohort],
    keep: Keep = KEEP,
) -> Summary:
    number: dict[Cohort, int] = {}
    of = [number.setdefault(cohort, len(number)) for cohort in cohorts]
    groups = number_groups(pane_ns, np.array(of, np.int64), tuple(number))
    return regroup(summary, groups, keep=keep)
