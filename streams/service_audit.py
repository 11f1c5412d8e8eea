"""One service under audit: its windows, its breaches, and its rolling audits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Final

from tailbudget.models.audit import audit
from tailbudget.models.breach import BreachState, step
from tailbudget.models.breach_reading import breach_reading
from tailbudget.models.counts import counts_of, sum_counts
from tailbudget.models.merge import merge
from tailbudget.models.reduce import bare, flatten
from tailbudget.models.select import collapse
from tailbudget.models.snapshot import allowed_share, snapshot
from tailbudget.models.stage_table import light_stage_table
from tailbudget.models.tail import SLOW
from tailbudget.models.window import ServiceWindow, Window
from tailbudget.schemas.alert import Alert
from tailbudget.schemas.alert_context import AlertContext
from tailbudget.schemas.alerts import Condition, Reading
from tailbudget.schemas.audit_rows import AuditRow
from tailbudget.schemas.objectives import AlertTiming
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.summary import Summary
from tailbudget.schemas.verdicts import Audit, Percentile, Verdict, leading
from tailbudget.streams.alert_book import AlertBook, Explain
from tailbudget.streams.audit_rows import audit_row

SECOND_NS: Final = 1_000_000_000
MINUTE_S: Final = 60
MINUTE_NS: Final = MINUTE_S * SECOND_NS

WINDOWS_S: Final = (60, 300, 3600)
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

UNJUDGED: Final = (None, Verdict.INSUFFICIENT, Verdict.NO_DATA)


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
        self._book = book
        self._reset_ns = -(-RESET_S // pane_s) * self._pane_ns
        # What alerts need at once has no cohorts; what audits need can wait for the end of a pane.
        self._live = ServiceWindow(WINDOWS_S[0] * SECOND_NS, self._pane_ns)
        self._windows = {
            s: Window(s * SECOND_NS, _step_s(s, pane_s) * SECOND_NS) for s in WINDOWS_S
        }
        self._waiting: list[Summary] = []
        self._held: dict[int, tuple[Summary, Summary]] = {}
        self._breaches = _breaches(slo, book)
        self._heard_ns = 0
        self._calm_ns = 0
        self._audited_ns: int | None = None

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
    ) -> list[Alert]:
        """Return the messages of the alerts of percentiles that move now.

        Args:
            now_ns: event time.
            held: newer records on top of what was added.
            explain: what to say beside the figures.
            clock_ns: event time that goes on while all sources are silent, so that silence is
                noticed; None: `now_ns`.
        """
        if self._slo is None:
            return []
        self._live.advance(now_ns)
        self._hear(held)
        clock_ns = now_ns if clock_ns is None else clock_ns
        if self._heard_ns and clock_ns - self._heard_ns >= SILENT_NS:
            return self._calm(clock_ns, explain, _silence(clock_ns - self._heard_ns))
        if self._quiet(self._slo, held):
            return self._calm(now_ns, explain, _QUIET)
        return self._judge(self._slo, now_ns, held, explain)

    def _judge(
        self, slo: SloTarget, now_ns: int, held: Sequence[Summary], explain: Explain
    ) -> list[Alert]:
        newest = self._light(held)
        total = self._total(self._live.total(), self._live.start_ns, FOREVER_NS, newest)
        start_ns = self._live.start_ns + WINDOWS_S[0] * SECOND_NS - self._reset_ns
        recent_total = self._live.total_since(start_ns)
        recent = _judged(self._total(recent_total, start_ns, FOREVER_NS, newest), slo)
        alerts = []
        for name, row in _judged(total, slo).items():
            read, shown = self._read(name, row, recent[name], now_ns)
            alert = self._book.step(name, read, now_ns)
            if alert is not None:
                alerts.append(_of_percentile(alert, shown, total, explain()))
        return alerts

    def _read(
        self, name: str, row: Percentile, recent: Percentile, now_ns: int
    ) -> tuple[Reading, Percentile]:
        """Return what a percentile says by the minute and the newest part of it, and by which."""
        state = self._breaches.get(name, BreachState())
        judged = recent.status not in UNJUDGED
        if judged and not state.firing and recent.status is not Verdict.BREACH:
            return breach_reading(state, row), row
        chosen = recent if judged and state.firing else row
        self._breaches[name], _ = step(state, chosen, now_ns)
        return breach_reading(self._breaches[name], chosen), chosen

    def _calm(self, now_ns: int, explain: Explain, read: Reading) -> list[Alert]:
        """Return the messages where no percentile needs to be looked at, once a second."""
        if self._slo is None or 0 <= now_ns - self._calm_ns < SECOND_NS:
            return []
        self._calm_ns = now_ns
        alerts = []
        for name, target_ms in self._slo.items():
            alert = self._book.step(name, read, now_ns)
            if alert is not None:
                told = replace(alert, window_s=WINDOWS_S[0], slo_ms=target_ms)
                alerts.append(replace(told, **asdict(explain())))
        return alerts

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
        """Return whether counters alone show that no alert begins or ends.

        None fires, and none can begin: no target is missed by more than its share of the minute.
        """
        if any(state.firing for state in self._breaches.values()):
            return False
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


def _judged(total: Summary, slo: SloTarget) -> dict[str, Percentile]:
    """Return the percentiles that have a target, failures counted, by name."""
    rows = leading(snapshot(total, slo))
    return {name: row for name, row in rows.items() if row.slo_ms is not None}


_QUIET: Final = Reading(Condition.GOOD)


def _silence(silent_ns: int) -> Reading:
    return Reading(Condition.NO_DATA, detail=f"no request for {silent_ns / SECOND_NS:,.0f} s")


def _breaches(slo: SloTarget | None, book: AlertBook) -> dict[str, BreachState]:
    """Return how the percentiles stand by the states of their alerts."""
    names = dict(slo.items()) if slo is not None else {}
    states = {name: book.state(name) for name in names}
    return {
        name: BreachState(firing=one.fires, since_ns=one.began_ns) for name, one in states.items()
    }


def _of_percentile(alert: Alert, row: Percentile, total: Summary, context: AlertContext) -> Alert:
    """Return the message with the figures of its percentile and where slow requests are slow."""
    alert = replace(
        alert,
        window_s=WINDOWS_S[0],
        measured_ms=row.measured_ms,
        slo_ms=row.slo_ms,
        note=row.note,
        n=row.n,
        over=row.over,
        **asdict(context),
    )
    driver = light_stage_table(total, SLOW[0]).driver
    if driver is None:
        return alert
    return replace(
        alert,
        tail_driver=driver.stage,
        tail_delta_ms=driver.delta_ms,
        tail_share_pct=driver.tail_share_pct,
    )
