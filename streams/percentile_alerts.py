"""Alerts of the percentiles of one service: what each says, and what is told when one moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Final

from tailbudget.models.breach import BreachState, step
from tailbudget.models.breach_reading import breach_reading
from tailbudget.models.snapshot import snapshot
from tailbudget.models.stage_table import light_stage_table
from tailbudget.models.tail import SLOW
from tailbudget.schemas.alert import Alert
from tailbudget.schemas.alerts import Condition, Reading
from tailbudget.schemas.sections import ColdWindow
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.summary import Summary
from tailbudget.schemas.verdicts import Percentile, Verdict, leading
from tailbudget.streams.alert_book import AlertBook, Explain
from tailbudget.streams.cold_alert import ColdAlert

SECOND_NS: Final = 1_000_000_000
WINDOW_S: Final = 60
"""Length of the window by which a breach begins."""

UNJUDGED: Final = (None, Verdict.INSUFFICIENT, Verdict.NO_DATA)
QUIET: Final = Reading(Condition.GOOD)
"""What is read where counters alone show that no percentile begins or ends a breach."""


class PercentileAlerts:
    """Judges the percentiles that have a target.

    Args:
        slo: what was promised.
        book: states of the service's alerts; breaches go on from there.
    """

    def __init__(self, slo: SloTarget, book: AlertBook) -> None:
        self._slo = slo
        self._book = book
        states = {name: book.state(name) for name in self.names}
        self._cold = ColdAlert(book)
        self._breaches = {
            name: BreachState(firing=one.fires, since_ns=one.began_ns)
            for name, one in states.items()
        }
        self._calm_ns = 0

    @property
    def names(self) -> list[str]:
        """Names of the alerts."""
        return [name for name, _ in self._slo.items()]

    @property
    def firing(self) -> bool:
        """Whether any percentile is in breach."""
        return any(state.firing for state in self._breaches.values())

    def judge(
        self,
        minute: Summary,
        recent: Summary,
        now_ns: int,
        explain: Explain,
        window: ColdWindow | None = None,
    ) -> list[Alert]:
        """Return the messages of the alerts that move now.

        Args:
            minute: totals of the window.
            recent: totals of its newest part.
            now_ns: event time.
            explain: what to say beside the figures.
            window: the cold window that `now_ns` lies in; None outside of one.
        """
        rows, newest = self._rows(minute), self._rows(recent)
        reads = {name: self._read(name, row, newest[name], now_ns) for name, row in rows.items()}
        if all(read.condition is Condition.GOOD for read, _ in reads.values()):
            self._cold.kept(now_ns)
        alerts = []
        for name, (read, shown) in reads.items():
            taken = self._cold.held_back(shown, read, window)
            alert = self._book.step(name, taken, now_ns)
            if alert is not None:
                told = _with_figures(replace(alert, **asdict(explain())), shown)
                alerts.append(_with_driver(told, minute))
        return alerts + self._cold.tell(window, now_ns, explain)

    def calm(self, read: Reading, now_ns: int, explain: Explain) -> list[Alert]:
        """Return the messages where all percentiles read the same; once a second at most.

        Args:
            read: what they read.
            now_ns: event time.
            explain: what to say beside the figures.
        """
        if read is QUIET:
            self._cold.kept(now_ns)
        if 0 <= now_ns - self._calm_ns < SECOND_NS:
            return []
        self._calm_ns = now_ns
        alerts = []
        for name, target_ms in self._slo.items():
            alert = self._book.step(name, read, now_ns)
            if alert is not None:
                told = replace(alert, window_s=WINDOW_S, slo_ms=target_ms)
                alerts.append(replace(told, **asdict(explain())))
        return alerts + self._cold.tell(None, now_ns, explain)

    def _read(
        self, name: str, row: Percentile, recent: Percentile, now_ns: int
    ) -> tuple[Reading, Percentile]:
        """Return what a percentile says by the window and the newest part of it, and by which."""
        state = self._breaches[name]
        judged = recent.status not in UNJUDGED
        if judged and not state.firing and recent.status is not Verdict.BREACH:
            return breach_reading(state, row), row
        chosen = recent if judged and state.firing else row
        self._breaches[name] = step(state, chosen, now_ns)
        return breach_reading(self._breaches[name], chosen), chosen

    def _rows(self, total: Summary) -> Mapping[str, Percentile]:
        """Return the percentiles that have a target, failures counted, by name."""
        rows = leading(snapshot(total, self._slo))
        return {name: row for name, row in rows.items() if row.slo_ms is not None}


def _with_figures(alert: Alert, row: Percentile) -> Alert:
    return replace(
        alert,
        window_s=WINDOW_S,
        measured_ms=row.measured_ms,
        slo_ms=row.slo_ms,
        note=row.note,
        n=row.n,
        over=row.over,
    )


def _with_driver(alert: Alert, total: Summary) -> Alert:
    """Return the message with the tail driver of its own window, which the audits lag behind."""
    driver = light_stage_table(total, SLOW[0]).driver
    if driver is None:
        return alert
    return replace(
        alert,
        tail_driver=driver.stage,
        tail_delta_ms=driver.delta_ms,
        tail_share_pct=driver.tail_share_pct,
    )
