"""One service under audit: its windows, its breaches, and its rolling audits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from tailbudget.models.audit import audit
from tailbudget.models.counts import counts_of, sum_counts
from tailbudget.models.merge import merge
from tailbudget.models.reduce import bare, flatten
from tailbudget.models.select import collapse
from tailbudget.models.snapshot import allowed_share
from tailbudget.models.window import ServiceWindow, Window
from tailbudget.schemas.alert import COLD_START, Alert
from tailbudget.schemas.alert_context import AlertContext
from tailbudget.schemas.alerts import Condition, Reading
from tailbudget.schemas.audit_rows import AuditRow
from tailbudget.schemas.objectives import AlertTiming
from tailbudget.schemas.sections import ColdWindow
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.summary import Summary
from tailbudget.schemas.verdicts import Audit
from tailbudget.streams.alert_book import AlertBook, Explain
from tailbudget.streams.audit_rows import audit_row
from tailbudget.streams.cold_alert import window_at
from tailbudget.streams.percentile_alerts import QUIET, SECOND_NS, WINDOW_S, PercentileAlerts

MINUTE_S: Final = 60
MINUTE_NS: Final = MINUTE_S * SECOND_NS

WINDOWS_S: Final = (WINDOW_S, 300, 3600)
"""Lengths of the rolling audits; a breach begins by the first."""

MAX_CAUGHT_UP: Final = 6
"""Rolling audits of each window that one step writes when event time has jumped over many panes;
SQL over the panes has the others."""

MOST_WAITING: Final = 8
"""Deltas that wait for the next rolling audit before they are merged into one."""

FOREVER_NS: Final = 2**62

RESET_S: Final = 20
"""A breach ends by this shorter window, and none begins that this one denies, where it has enough
requests: a minute would remember a fault for a minute after its end (the "short window" of
multi-window alerting)."""


SILENT_NS: Final = int(AlertTiming().no_data_s) * SECOND_NS
"""Silence after which there is nothing to judge percentiles by, as for objectives."""


class ServiceAudit:
    """Judges one service from what is folded and what is still held.

    Args:
        service: the service's name.
        slo: its target; None judges nothing.
        pane_s: length of a pane.
        book: states of the service's alerts.

    Attributes:
        service: the service's name.
        newest: the newest audit of the shortest window; None before the first.
    """

    def __init__(
        self, service: str, slo: SloTarget | None, *, pane_s: int, book: AlertBook
    ) -> None:
        self.service = service
        self.newest: Audit | None = None
        self._slo = slo
        self._pane_ns = pane_s * SECOND_NS
        self._reset_ns = -(-RESET_S // pane_s) * self._pane_ns
        # What alerts need at once has no cohorts; what audits need can wait for the end of a pane.
        self._live = ServiceWindow(WINDOWS_S[0] * SECOND_NS, self._pane_ns)
        self._windows = {
            s: Window(s * SECOND_NS, _step_s(s, pane_s) * SECOND_NS) for s in WINDOWS_S
        }
        self._waiting: list[Summary] = []
        self._held: dict[int, tuple[Summary, Summary]] = {}
        self._alerts = None if slo is None else PercentileAlerts(slo, book)
        self._heard_ns = 0
        self._audited_ns: int | None = None

    @property
    def alerts(self) -> list[str]:
        """Names of the alerts."""
        return [] if self._alerts is None else [*self._alerts.names, COLD_START]

    def reach_ns(self, now_ns: int) -> int:
        """Return from when on panes are in any window that is audited at `now_ns` or later."""
        return self._reach_ns(now_ns, max(self._windows))

    def fine_ns(self, now_ns: int) -> int:
        """Return from when on panes are wanted one by one; of those before, minutes will do."""
        by_pane = [s for s in self._windows if not self._by_minute(s)]
        return self._reach_ns(now_ns, max(by_pane, default=0))

    def restore(self, summaries: Iterable[Summary], *, fine_ns: int = 0) -> None:
        """Start from the recent panes that ClickHouse has.

        Args:
            summaries: each of one pane, or of one minute where it starts before `fine_ns`.
            fine_ns: where minutes end; a window that slides in shorter steps takes none of them.
        """
        for summary in summaries:
            light = bare(summary)
            minute = _start_ns(summary) < fine_ns
            for seconds, window in self._windows.items():
                if not minute or self._by_minute(seconds):
                    window.add(light)
            if not minute:
                self._live.add(light)
            self._hear([light])

    def add(self, delta: Summary) -> None:
        """Add records that count for good."""
        light = bare(delta)
        self._live.add(light)
        self._hear([light])
        self._waiting.append(light)
        if len(self._waiting) >= MOST_WAITING:
            self._waiting = [merge(self._waiting)]

    def judge(
        self,
        now_ns: int,
        held: Sequence[Summary] = (),
        explain: Explain = AlertContext,
        *,
        clock_ns: int | None = None,
        cold: Sequence[ColdWindow] = (),
    ) -> list[Alert]:
        """Return the messages of the alerts of percentiles that move now.

        Args:
            now_ns: event time.
            held: newer records on top of what was added.
            explain: what to say beside the figures.
            clock_ns: event time that goes on while all sources are silent, so that silence is
                noticed; None: `now_ns`.
            cold: the service's cold windows.
        """
        if self._alerts is None or self._slo is None:
            return []
        self._live.advance(now_ns)
        self._hear(held)
        clock_ns = now_ns if clock_ns is None else clock_ns
        if self._heard_ns and clock_ns - self._heard_ns >= SILENT_NS:
            return self._alerts.calm(_silence(clock_ns - self._heard_ns), clock_ns, explain)
        if not self._alerts.firing and self._quiet(self._slo, held):
            return self._alerts.calm(QUIET, now_ns, explain)
        newest, start_ns = self._light(held), self._live.start_ns
        total = self._total(self._live.total(), start_ns, FOREVER_NS, newest)
        start_ns += WINDOWS_S[0] * SECOND_NS - self._reset_ns
        recent = self._total(self._live.total_since(start_ns), start_ns, FOREVER_NS, newest)
        return self._alerts.judge(total, recent, now_ns, explain, window_at(cold, now_ns))

    def rolling(self, now_ns: int, held: Sequence[Summary]) -> list[AuditRow]:
        """Return the audits of all windows for each pane that event time has left since."""
        panes = {int(at) for one in held for at in one.pane_ns.tolist()}
        panes |= set(self._live.panes)
        current_ns = now_ns - now_ns % self._pane_ns
        since = min(panes, default=current_ns) if self._audited_ns is None else self._audited_ns
        ends = {at + self._pane_ns for at in panes} | {current_ns}
        due = sorted(end for end in ends if since < end <= current_ns)[-MAX_CAUGHT_UP:]
        self._audited_ns = max(since, current_ns)
        if not due:
            return []
        self._catch_up()
        newest = self._light(held)
        return [self._audit(s, end, newest) for end in due for s in WINDOWS_S]

    def _quiet(self, slo: SloTarget, held: Sequence[Summary]) -> bool:
        """Return whether counters alone show that no alert begins.

        No target is missed by more than its share of the minute.
        """
        start_ns = self._live.start_ns
        counts = sum_counts(
            [self._live.counts(), *(counts_of(one, one.pane_ns >= start_ns) for one in held)]
        )
        bad = {name: counts.bad(target_ms) for name, target_ms in slo.items()}
        return all(
            over is not None and over <= counts.requests * allowed_share(name)
            for name, over in bad.items()
        )

    def _hear(self, summaries: Iterable[Summary]) -> None:
        """Remember until when there were requests, to the end of their pane."""
        for one in summaries:
            if len(one.pane_ns):
                self._heard_ns = max(self._heard_ns, int(one.pane_ns.max()) + self._pane_ns)

    def _catch_up(self) -> None:
        """Add to the audits' windows what waits for them."""
        if self._waiting:
            delta = merge(self._waiting)
            self._waiting = []
            for window in self._windows.values():
                window.add(delta)

    def _light(self, held: Sequence[Summary]) -> list[Summary]:
        """Return the held summaries without cohorts; each is reduced once while it is held."""
        known, self._held = self._held, {}
        for one in held:
            kept = known.get(id(one))
            if kept is None or kept[0] is not one:
                kept = (one, collapse(bare(one)))
            self._held[id(one)] = kept
        return [light for _, light in self._held.values()]

    def _by_minute(self, window_s: int) -> bool:
        return _step_s(window_s, self._pane_ns // SECOND_NS) == MINUTE_S

    def _reach_ns(self, now_ns: int, window_s: int) -> int:
        """Return where a window of the oldest audit begins that may yet be written."""
        behind_ns = window_s * SECOND_NS + (MAX_CAUGHT_UP + 1) * self._pane_ns
        return (now_ns - behind_ns) // MINUTE_NS * MINUTE_NS

    def _audit(self, seconds: int, end_ns: int, newest: Sequence[Summary]) -> AuditRow:
        window = self._windows[seconds]
        window.advance(end_ns - 1)
        with window.until(end_ns):
            total = self._total(window.total(), window.start_ns, end_ns, newest)
            cohorts = window.cohorts()
        start_ns = end_ns - seconds * SECOND_NS
        found = audit(total, cohorts, slo=self._slo, start_ns=start_ns, end_ns=end_ns)
        if seconds == WINDOWS_S[0]:
            self.newest = found
        return audit_row(found, window_s=seconds, end_ns=end_ns)

    def _total(
        self, proven: Summary, start_ns: int, end_ns: int, newest: Sequence[Summary]
    ) -> Summary:
        """Return totals of a span with what is held on top, of whatever is ahead of event time."""
        total = replace(proven, service=self.service)
        return merge([total, *(flatten(one, start_ns, end_ns) for one in newest)])


def _step_s(window_s: int, pane_s: int) -> int:
    """Return the step in which a window slides: a long one in minutes, to keep less."""
    return MINUTE_S if window_s >= 3600 else pane_s


def _start_ns(summary: Summary) -> int:
    """Return the start of the one pane that a summary holds; 0 where it holds nothing."""
    starts = [*summary.pane_ns[:1].tolist(), *(start_ns for start_ns, _ in summary.ledger)]
    return min(starts, default=0)


def _silence(silent_ns: int) -> Reading:
    return Reading(Condition.NO_DATA, detail=f"no request for {silent_ns / SECOND_NS:,.0f} s")
