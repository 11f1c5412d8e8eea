"""The objectives of one service: counted as records come, judged once a second of event time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Final

from tailbudget.models.budget import budgets, cost_pct, onset_ns
from tailbudget.models.burn import measure, reading
from tailbudget.models.slo_window import SECOND_NS, Span
from tailbudget.models.tally import merge_tallies, tally
from tailbudget.schemas.alert import SLO, Alert
from tailbudget.schemas.alert_context import AlertContext
from tailbudget.schemas.alerts import AlertStatus
from tailbudget.schemas.budgets import BudgetRow, Budgets
from tailbudget.schemas.cohorts import cohort_text
from tailbudget.schemas.objectives import Correction, Objective
from tailbudget.schemas.summary import Summary
from tailbudget.schemas.tally import Tally
from tailbudget.streams.alert_book import AlertBook, Explain
from tailbudget.streams.slo_series import SloSeries, View

KEPT_NS: Final = 10 * SECOND_NS
"""Budgets are over days too: how often what is left of them is kept."""

JUDGE_NS: Final = SECOND_NS
"""Objectives are over days: a second between two judgements loses nothing."""


class SloAudit:
    """Judges the objectives of one service.

    Args:
        objectives: what it promises.
        corrections: spans that corrected figures leave out.
        pane_s: length of a pane.
        book: states of the service's alerts.

    Attributes:
        series: what is counted, by the name of the objective.
    """

    def __init__(
        self,
        objectives: Sequence[Objective],
        corrections: Sequence[Correction],
        *,
        pane_s: int,
        book: AlertBook,
    ) -> None:
        self.series = {one.name: SloSeries(one, pane_s) for one in objectives}
        self._corrections = tuple(corrections)
        self._book = book
        self._judged_ns = self._kept_ns = -(2**62)
        self._kept: list[BudgetRow] = []

    @property
    def alerts(self) -> list[str]:
        """Names of the alerts."""
        return [f"{SLO}{name}" for name in self.series]

    def add(self, delta: Summary) -> None:
        """Add records that count for good, with their cohorts."""
        for one in self.series.values():
            one.add(tally(delta, one.objective, one.pane_ns))

    def restore(self, tallies: Mapping[str, Iterable[Tally]]) -> None:
        """Add what ClickHouse has, by the name of the objective; see `SloSeries.wanted`."""
        for name, parts in tallies.items():
            for part in parts:
                self.series[name].restore(part)

    def judge(
        self, now_ns: int, held: Sequence[Summary] = (), explain: Explain = AlertContext
    ) -> list[Alert]:
        """Return the messages of the alerts that move now, at most once a second of event time.

        Args:
            now_ns: event time; where all sources are silent, the clock on the wall, so that
                silence is noticed.
            held: newer records on top of what was added, with their cohorts.
            explain: what to say beside the figures.
        """
        if 0 <= now_ns - self._judged_ns < JUDGE_NS:
            return []
        self._judged_ns = now_ns
        moved = (self._judge(one, now_ns, held, explain) for one in self.series.values())
        return [alert for alert in moved if alert is not None]

    def budgets(self, now_ns: int, held: Sequence[Summary] = ()) -> dict[str, Budgets]:
        """Return what is left of each error budget, by the name of the objective."""
        views = {name: self._view(one, now_ns, held) for name, one in self.series.items()}
        return {
            name: budgets(view.period(), view.series.objective, now_ns, self._corrections)
            for name, view in views.items()
        }

    def _view(self, one: SloSeries, now_ns: int, held: Sequence[Summary]) -> View:
        parts = [tally(summary, one.objective, one.pane_ns) for summary in held]
        return one.at(now_ns, merge_tallies(parts, one.pane_ns))

    def rows(self, now_ns: int, held: Sequence[Summary] = ()) -> list[BudgetRow]:
        """Return what is left of each budget, to be kept; at most every 10 s of event time.

        Args:
            now_ns: as for `judge`.
            held: as for `judge`.
        """
        if 0 <= now_ns - self._kept_ns < KEPT_NS:
            return []
        self._kept_ns = now_ns
        said = self.budgets(now_ns, held)
        rows = [self._row(name, one, now_ns) for name, one in said.items()]
        news = [row for row in rows if replace(row, at_ns=0) not in self._kept]
        self._kept = [replace(row, at_ns=0) for row in rows]
        return news

    def _row(self, name: str, said: Budgets, now_ns: int) -> BudgetRow:
        left = said.measured
        return BudgetRow(
            service=self._book.service,
            objective=name,
            at_ns=now_ns // KEPT_NS * KEPT_NS,
            total=left.total,
            bad=left.bad,
            target_pct=left.target_pct,
            left_pct=left.left_pct,
            corrected_pct=said.corrected.left_pct if said.corrected else None,
            burn_rate=left.burn_rate,
            exhausted_ns=left.exhausted_ns,
            status=self._book.state(f"{SLO}{name}").shown.value,
        )

    def _judge(
        self, one: SloSeries, now_ns: int, held: Sequence[Summary], explain: Explain
    ) -> Alert | None:
        slo, view = one.objective, self._view(one, now_ns, held)
        read = reading(slo, measure(slo, view.count, view.age_s()), view.silent_s())
        alert = self._book.step(f"{SLO}{slo.name}", read, now_ns, slo.timing)
        return None if alert is None else self._explained(alert, slo, view.period(), explain())

    def _explained(
        self, alert: Alert, slo: Objective, counted: Tally, context: AlertContext
    ) -> Alert:
        now_ns = alert.at_ns
        said = budgets(counted, slo, now_ns, self._corrections)
        left = said.measured
        alert = replace(
            alert,
            cohort=cohort_text(slo.cohort),
            channels=slo.telling.channels,
            tell_resolved=slo.telling.resolved,
            tell_no_data=slo.telling.no_data,
            slo_ms=slo.threshold_ms,
            n=left.total,
            over=left.bad,
            target_pct=left.target_pct,
            burn_rate=left.burn_rate,
            budget_left_pct=left.left_pct,
            budget_corrected_pct=said.corrected.left_pct if said.corrected else None,
            budget_exhausted_ns=left.exhausted_ns,
            **asdict(context),
        )
        if alert.since_ns is None:
            return alert
        since_ns = onset_ns(counted, slo, alert.since_ns)
        alert = replace(alert, since_ns=since_ns)
        if alert.state != AlertStatus.RESOLVED:
            return alert
        until_ns = alert.cleared_ns or now_ns
        return replace(
            alert, budget_cost_pct=cost_pct(counted, slo, Span(since_ns, until_ns), now_ns)
        )
