"""The audit of a log: any input that `streams.audit_log` reads, to the report.

A log takes the way of a record without Kafka: decoded by the same decoders, duplicates left out,
retries of an operation put together, cohorts bounded, summarised by pane, gathered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tailbudget.models.cold_start import cold_windows
from tailbudget.models.columns import take
from tailbudget.models.evidence import Evidence, Gathering
from tailbudget.models.select import empty
from tailbudget.models.summarise import summarise
from tailbudget.models.token_times import with_goodput
from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.ledger import ACCEPTED, DUPLICATE, FAILED
from tailbudget.schemas.records import NO_SERVICE, Columns, Decoded, Rejected
from tailbudget.schemas.rows import DeployRow
from tailbudget.schemas.sections import ColdWindow
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.token_timing import GoodputTarget
from tailbudget.streams.cohort_limit import CohortLimit
from tailbudget.streams.dedup import Dedup
from tailbudget.streams.operations import assembled

PANE_S: Final = 10
MAX_COHORTS: Final = 2_000
DEDUP: Final = 2_000_000
"""Request ids remembered: a file is read once, but may hold a record twice."""

_SECOND_NS: Final = 1_000_000_000
_COUNTED_LATER: Final = frozenset({ACCEPTED, FAILED})


@dataclass(frozen=True, slots=True)
class Plan:
    """How a log becomes evidence; what agrees with the stream's settings gives the same report.

    Attributes:
        service: which service to audit; None where the log has only one.
        slo: a service's target, whose latencies are counted exactly.
        cold_start_window_min: a service's minutes after a deploy that count as cold.
        deploys: deploy and scale-up events; None when nobody knows them.
        environment: whose deploys count; None takes all.
        pane_s: length of a pane.
        max_cohorts: cohorts kept apart; the rest goes to "(other)".
        goodput: what a good request of a service keeps; None counts none.
    """

    slo: Callable[[str], SloTarget | None]
    cold_start_window_min: Callable[[str], float]
    service: str | None = None
    deploys: Sequence[DeployRow] | None = None
    environment: str | None = None
    pane_s: int = PANE_S
    max_cohorts: int = MAX_COHORTS
    goodput: Callable[[str], GoodputTarget | None] = lambda _: None


def gather(
    decoded: Iterable[Decoded], plan: Plan, reject: Callable[[Rejected], None] = lambda _: None
) -> Evidence:
    """Return the evidence of a log's service.

    Args:
        decoded: the log.
        plan: how to read it.
        reject: told of each row that is no record.

    Raises:
        ConfigError: the log holds several services and none was named, or not the named one.
    """
    found: dict[str, _Service] = {}
    nobody = Counter[str]()
    for part in assembled(decoded):
        for one in part.rejected:
            reject(one)
        for columns in part.services:
            if columns.service not in found:
                found[columns.service] = _Service(columns.service, plan)
            found[columns.service].add(columns)
        for (service, _, reason), count in part.ledger.items():
            if reason not in _COUNTED_LATER:
                ledger = found[service].ledger if service in found else nobody
                ledger[reason] += count
    name = _chosen(plan.service, found)
    if name == NO_SERVICE and plan.deploys:
        raise ConfigError(
            "the log names no service, so its deploys cannot be told from those of others",
            remedy="name it with --service",
        )
    chosen = found.get(name) or _Service(name, plan)
    chosen.ledger.update(nobody)
    return chosen.evidence()


def _chosen(wanted: str | None, found: Mapping[str, object]) -> str:
    names = ", ".join(sorted(found))
    if wanted is not None and found and wanted not in found:
        raise ConfigError(
            f"the log holds nothing of the service {wanted!r}", remedy=f"it holds {names}"
        )
    if wanted is None and len(found) > 1:
        raise ConfigError(
            f"the log holds {len(found)} services: {names}", remedy="name one with --service"
        )
    return wanted or next(iter(found), NO_SERVICE)


@dataclass(slots=True)
class _Service:
    """What is gathered of one service."""

    name: str
    plan: Plan
    ledger: Counter[str] = field(default_factory=Counter)
    _gathering: Gathering = field(init=False)
    _dedup: Dedup = field(init=False)
    _limit: CohortLimit = field(init=False)
    _thresholds_ms: tuple[float, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._gathering = Gathering(
            self.name,
            pane_ns=self.plan.pane_s * _SECOND_NS,
            cold_windows=self._cold_windows(),
        )
        self._dedup = Dedup(DEDUP)
        self._limit = CohortLimit(self.plan.max_cohorts)
        slo = self.plan.slo(self.name)
        self._thresholds_ms = slo.thresholds_ms() if slo else ()

    def _cold_windows(self) -> tuple[ColdWindow, ...] | None:
        plan = self.plan
        if plan.deploys is None:
            return None
        minutes = plan.cold_start_window_min(self.name)
        return cold_windows(plan.deploys, self.name, minutes, plan.environment)

    def add(self, columns: Columns) -> None:
        fresh = self._dedup.fresh(columns.id_hash)
        if not fresh.all():
            self.ledger[DUPLICATE] += int((~fresh).sum())
            columns = take(columns, fresh)
        if not len(columns):
            return
        columns = with_goodput(self._limit.limited(columns), self.plan.goodput(self.name))
        pane_ns = self.plan.pane_s * _SECOND_NS
        self._gathering.add(summarise(columns, pane_ns=pane_ns, thresholds_ms=self._thresholds_ms))

    def evidence(self) -> Evidence:
        entries = {(0, reason): count for reason, count in self.ledger.items()}
        self._gathering.add(empty(self.name, thresholds_ms=self._thresholds_ms, ledger=entries))
        return self._gathering.evidence()
