"""A month of one service on an accelerated clock: what is told, and what rivals would have told.

A daily rhythm, workload shifts, deploys with cold replicas, three true incidents and a slow leak.
Ours are all kinds of alert rules of the worker on one `AlertBook`: a percentile, a cold start, a
burn rate and the anomaly of a stage; rivals judge the same minutes: a static threshold on the p99,
and the four window pairs of a Sloth file as alerts of their own. Each is judged once a minute.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
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

Floats = NDArray[np.float64]

SECOND_NS: Final = 10**9
MINUTE_NS: Final = 60 * SECOND_NS
DAY: Final = 1440
FIRST_DAYS: Final = 4
"""Days without a fault before the month: they fill the longest burn-rate window of three days."""

TARGET_MS: Final = 1000.0
A_MINUTE: Final = 1500.0
"""Requests a minute on average; a p99 of a minute takes a thousand."""

SCORED: Final = 60
"""Requests a minute that anomalies are looked for in: one a second."""

RECENT_S: Final = 20
COLD_MIN: Final = 5
"""As `cold_start_window_min` is by default."""

STAGES: Final = ("prefill", "decode")


@dataclass(frozen=True, slots=True)
class Incident:
    """A true fault.

    Attributes:
        name: what it is.
        begin: minute at which it begins.
        minutes: how long it lasts.
        failing: share of requests that fail.
        slower: factor of the decode stage at its end.
        grows: it begins at 1 and grows evenly.
    """

    name: str
    begin: int
    minutes: int
    failing: float = 0.0
    slower: float = 1.0
    grows: bool = False

    def slow(self, minute: int) -> float:
        """Return the factor of the decode stage in a minute."""
        part = (minute - self.begin) / self.minutes if self.grows else 1.0
        return 1 + (self.slower - 1) * part

    def on(self, minute: int, grace: int = 0) -> bool:
        """Return whether it goes on, or has ended so many minutes ago at most."""
        return self.begin <= minute < self.begin + self.minutes + grace


INCIDENTS: Final = (
    Incident("outage", (FIRST_DAYS + 3) * DAY + 600, 25, failing=1.0),
    Incident("regression", (FIRST_DAYS + 10) * DAY + 900, 120, slower=2.0),
    Incident("dependency at night", (FIRST_DAYS + 17) * DAY + 180, 240, failing=0.12),
    Incident("slow leak", (FIRST_DAYS + 22) * DAY, 5 * DAY, slower=2.2, grows=True),
)
SHIFTS: Final = tuple((FIRST_DAYS + day) * DAY + 500 for day in (1, 6, 8, 13, 16, 20))
SHIFT_MINUTES: Final = 180
DEPLOYS: Final = tuple(range(DAY + 700, (FIRST_DAYS + 30) * DAY, 2 * DAY))


class Minute(NamedTuple):
    """One minute of the service.

    Attributes:
        number: of the minute.
        tokens: [N] input length.
        stages: [2, N] milliseconds.
        failed: [N] did not succeed.
        times: [N] nanoseconds within the minute, ascending.
    """

    number: int
    tokens: Floats
    stages: Floats
    failed: NDArray[np.bool_]
    times: NDArray[np.int64]

    @property
    def total_ms(self) -> Floats:
        """[N] milliseconds of each request."""
        return np.asarray(self.stages.sum(axis=0) + 5.0)

    @property
    def bad(self) -> NDArray[np.bool_]:
        """[N] failed, or beyond the target."""
        return np.asarray(self.failed | (self.total_ms > TARGET_MS))


def month(seed: int, days: int) -> Iterator[Minute]:
    """Yield the minutes of the month and of the days before it."""
    rng = np.random.default_rng(seed)
    for number in range((FIRST_DAYS + days) * DAY):
        load = 1.0 + 0.5 * np.sin(2 * np.pi * (number / DAY - 0.3))
        n = int(rng.poisson(A_MINUTE * load))
        shifted = any(at <= number < at + SHIFT_MINUTES for at in SHIFTS)
        tokens = np.round(300 * (1.3 if shifted else 1.0) * np.exp(0.5 * rng.standard_normal(n)))
        here = [one for one in INCIDENTS if one.on(number)]
        slow = np.prod([one.slow(number) for one in here])
        noise = np.exp(0.1 * rng.standard_normal((2, n)))
        stages = np.stack([20 + 0.2 * tokens, (40 + 0.6 * tokens) * (1 + 0.05 * load) * slow])
        cold = any(at <= number < at + 2 for at in DEPLOYS)
        stages[0] += np.where(rng.random(n) < (0.06 if cold else 0.0), 2500.0, 0.0)
        failing = max([0.001, *(one.failing for one in here)])
        times = np.sort(rng.integers(0, MINUTE_NS, n))
        yield Minute(number, tokens, stages * noise, rng.random(n) < failing, times)


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


GRACE: Final = 6 * 60
"""Minutes after an incident in which its windows may still tell of it: the longest short window."""


def report(name: str, told: Sequence[Told], since: int) -> str:
    """Return one row of the table."""
    told = [one for one in told if one.minute >= since]
    begins = [one for one in told if one.begins]
    cells = []
    for incident in INCIDENTS:
        mine = [one for one in begins if incident.on(one.minute)]
        if not mine:
            cells.append("never")
            continue
        first = mine[0]
        cells.append(f"{first.minute + 1 - incident.begin} min, {first.alert}")
    stray = [one for one in begins if not any(i.on(one.minute, GRACE) for i in INCIDENTS)]
    late = [
        one for one in begins if not any(i.on(one.minute) for i in INCIDENTS) and one not in stray
    ]
    pages = [one for one in stray if one.page]
    tickets = [one for one in stray if not one.page]
    figures = (len(pages), len(tickets), len(late), len(told))
    return "| " + " | ".join([name, *cells, *map(str, figures)]) + " |"


def detail(told: Sequence[Told], since: int) -> Iterator[str]:
    """Yield each message of ours."""
    for one in told:
        if one.minute >= since:
            day, minute = divmod(one.minute - since, DAY)
            where = next((i.name for i in INCIDENTS if i.on(one.minute, GRACE)), "no incident")
            said = ("page" if one.page else "ticket") if one.begins else "over"
            yield f"day {day + 1:2} {minute // 60:02}:{minute % 60:02} {one.alert} {said}, {where}"


def main(show: Callable[[str], None] = print) -> None:
    """Play the month and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--messages", action="store_true", help="print each message of ours")
    asked = parser.parse_args()
    ours, rivals = Ours(), Rivals((FIRST_DAYS + asked.days) * DAY)
    told: tuple[list[Told], ...] = ([], [], [])
    for one in month(asked.seed, asked.days):
        static, sloth = rivals.minute(one)
        for kept, new in zip(told, (ours.minute(one), static, sloth), strict=True):
            kept.extend(new)
    since = FIRST_DAYS * DAY
    heads = ["rules", *(one.name for one in INCIDENTS)]
    heads += ["false pages", "false tickets", "begun after an end", "messages"]
    show("| " + " | ".join(heads) + " |")
    show("|" + "---|" * len(heads))
    names = ("tailbudget", "static p99 threshold", "Sloth's window pairs")
    for name, kept in zip(names, told, strict=True):
        show(report(name, kept, since))
    if asked.messages:
        for line in detail(told[0], since):
            show(line)


if __name__ == "__main__":
    main()
