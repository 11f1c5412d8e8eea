"""What is told in a month: by all rules of a worker, by a static threshold, and by a Sloth file."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from month import (
    COLD_MIN,
    DAY,
    DEPLOYS,
    MINUTE_NS,
    RECENT_S,
    SCORED,
    SECOND_NS,
    STAGES,
    TARGET_MS,
    Minute,
)
from numpy.typing import NDArray

from tailbudget.models.anomaly.guard import Guard
from tailbudget.models.summarise import summarise
from tailbudget.schemas.alert import ANOMALY, Alert
from tailbudget.schemas.alert_context import AlertContext
from tailbudget.schemas.alerts import Condition, Reading
from tailbudget.schemas.anomalies import StageCohort, TickRows
from tailbudget.schemas.objectives import Objective, Severity
from tailbudget.schemas.records import Columns, Outcome
from tailbudget.schemas.sections import ColdWindow
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.tally import Tally
from tailbudget.streams.alert_book import AlertBook
from tailbudget.streams.percentile_alerts import QUIET, PercentileAlerts
from tailbudget.streams.slo_audit import SloAudit


class Told(NamedTuple):
    """A message.

    Attributes:
        minute: when it came.
        alert: whose.
        begins: it says that something is wrong, not that it is over.
        page: it wakes somebody.
    """

    minute: int
    alert: str
    begins: bool
    page: bool


class Ours:
    """The rules of a worker over one service."""

    def __init__(self) -> None:
        self._book = AlertBook("chat")
        self._percentiles = PercentileAlerts(SloTarget(p99_ms=TARGET_MS), self._book)
        slo = Objective("chat", "latency", Fraction(99, 100), threshold_ms=TARGET_MS)
        self._slo = SloAudit([slo], [], pane_s=60, book=self._book)
        self._guard = Guard()

    def minute(self, one: Minute) -> Iterator[Told]:
        """Yield what is told at the end of a minute."""
        end_ns = (one.number + 1) * MINUTE_NS - 1
        deploy = next((at for at in DEPLOYS if at <= one.number < at + COLD_MIN), None)
        cold = None
        if deploy is not None:
            cold = ColdWindow(deploy * MINUTE_NS, (deploy + COLD_MIN) * MINUTE_NS, "v", "deploy")
            self._guard.cold(cold.end_ns)
        moved = self._judged(one, end_ns, cold)
        counted = Tally(
            MINUTE_NS,
            np.array([one.number * MINUTE_NS]),
            np.array([len(one.tokens)]),
            np.array([one.bad.sum()]),
            np.zeros(1, np.int64),
        )
        self._slo.restore({"latency": [counted]})
        moved += self._slo.judge(end_ns)
        moved += self._anomalies(one, end_ns)
        for alert in moved:
            if alert.state in ("firing", "resolved"):
                begins = alert.state == "firing"
                yield Told(one.number, alert.alert, begins, begins and alert.severity == "page")

    def _judged(self, one: Minute, end_ns: int, cold: ColdWindow | None) -> list[Alert]:
        if not self._percentiles.firing and one.bad.sum() <= len(one.bad) / 100:
            return self._percentiles.calm(QUIET, end_ns, AlertContext)
        recent = one.times >= MINUTE_NS - RECENT_S * SECOND_NS
        both = (_columns(one, np.ones_like(recent)), _columns(one, recent))
        minute, newest = (summarise(c, pane_ns=MINUTE_NS, thresholds_ms=(TARGET_MS,)) for c in both)
        return self._percentiles.judge(minute, newest, end_ns, AlertContext, cold)

    def _anomalies(self, one: Minute, end_ns: int) -> Iterator[Alert]:
        good = np.flatnonzero(~one.failed)[:SCORED]
        n = len(good)
        rows = TickRows(
            keys=tuple(StageCohort(stage, "") for stage in STAGES),
            key=np.repeat(np.arange(2), n),
            ms=one.stages[:, good].reshape(-1),
            covariates=("tokens",),
            covariate=np.tile(one.tokens[good], 2)[:, None],
        )
        for found in self._guard.step(end_ns, rows):
            begins = found.phase in ("started", "spread")
            read = Reading(
                Condition.BAD if begins else Condition.GOOD, Severity.TICKET if begins else None
            )
            alert = self._book.step(f"{ANOMALY}{found.stage}", read, end_ns)
            if alert is not None:
                yield alert


class Rules:
    """Rules that fire and resolve by one condition each, all paging or by their severity."""

    def __init__(self, page: dict[str, bool]) -> None:
        self._page = page
        self._on = dict.fromkeys(page, False)

    def step(self, minute: int, bad: dict[str, bool]) -> Iterator[Told]:
        """Yield what changed."""
        for name, is_bad in bad.items():
            if is_bad != self._on[name]:
                self._on[name] = is_bad
                yield Told(minute, name, is_bad, is_bad and self._page[name])


PAIRS: Final = {
    "page 14.4x": (14.4, 60, 5),
    "page 6x": (6.0, 360, 30),
    "ticket 3x": (3.0, DAY, 120),
    "ticket 1x": (1.0, 3 * DAY, 360),
}
"""Factor, long and short window in minutes (Workbook, chapter 5; Sloth's windows/google-30d)."""


class Rivals:
    """What is judged on the same minutes by others."""

    def __init__(self, minutes: int) -> None:
        self.static = Rules({"p99": True})
        self.sloth = Rules({name: name.startswith("page") for name in PAIRS})
        self._sums = np.zeros((2, minutes + 1), np.int64)

    def minute(self, one: Minute) -> tuple[list[Told], list[Told]]:
        """Return what a static threshold and what a Sloth file tell at the end of a minute."""
        at = one.number + 1
        self._sums[:, at] = self._sums[:, at - 1] + (len(one.bad), int(one.bad.sum()))
        ms = np.where(one.failed, np.inf, one.total_ms)
        p99 = float(np.quantile(ms, 0.99, method="inverted_cdf"))
        over = {
            name: all(self._share(at, length) > 0.01 * factor for length in (long, short))
            for name, (factor, long, short) in PAIRS.items()
        }
        return (
            list(self.static.step(one.number, {"p99": p99 > TARGET_MS})),
            list(self.sloth.step(one.number, over)),
        )

    def _share(self, at: int, length: int) -> float:
        total, bad = self._sums[:, at] - self._sums[:, max(at - length, 0)]
        return float(bad / total) if total else 0.0


def _columns(one: Minute, keep: NDArray[np.bool_]) -> Columns:
    n = int(keep.sum())
    ids = np.flatnonzero(keep).astype(np.uint64)
    return Columns(
        service="chat",
        cohorts=((),),
        cohort=np.zeros(n, np.int32),
        id_hash=ids * np.uint64(0x9E3779B97F4A7C15),
        ids=[str(at) for at in ids.tolist()],
        ts_ns=one.number * MINUTE_NS + one.times[keep],
        outcome=np.where(one.failed[keep], Outcome.ERROR, Outcome.OK).astype(np.int8),
        total_ms=one.total_ms[keep],
        limit_ms=np.full(n, np.nan),
        weight=None,
        stages=STAGES,
        stage_ms=one.stages[:, keep],
        covariates=("tokens",),
        covariate=one.tokens[keep][None, :],
        offset=ids.astype(np.int64),
    )
