"""What the alerts topic carries: a change of an alert, with all that a message tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Self

SCHEMA: Final = "tailbudget.alert/2"
SLO: Final = "slo:"
"""Alerts of objectives are called by this and the objective's name."""

ANOMALY: Final = "anomaly:"
"""Alerts of stages that have become slower are called by this and the stage."""

COLD_START: Final = "cold_start"
"""Name and kind of the alert of a cold start."""

_LISTS: Final = ("evidence", "channels")
_NEEDED: Final = ("service", "alert", "state", "alert_id", "at_ns", "reason")


def kind_of(alert: str) -> str:
    """Return the kind of an alert from its name; percentiles are called by themselves."""
    if alert.startswith(SLO):
        return "burn"
    if alert.startswith(ANOMALY):
        return "anomaly"
    return COLD_START if alert == COLD_START else "percentile"


@dataclass(frozen=True, slots=True)
class Alert:
    """A change of an alert. What is not known is None or empty.

    Attributes:
        service: the service's name.
        alert: unique within the service, such as "p99" or "slo:latency".
        state: the state that it reached, one of `AlertStatus`.
        alert_id: the same for all changes of one incident.
        at_ns: event time of the change.
        reason: the figures that decided it, in words.
        sequence: number of the change within its alert; 0 in messages of the first form.
        before: the state that it left.
        change_reason: one of `ChangeReason`.
        kind: "percentile", "burn", "anomaly" (called "anomaly:STAGE") or "cold_start"
            (called so too).
        severity: "page" or "ticket".
        cohort: canonical text of the cohort that it is about; empty: all requests.
        since_ns: when the incident began.
        cleared_ns: since when its condition is over.
        window_s: length of the window that was measured.
        measured_ms: the percentile.
        slo_ms: its target.
        note: what to know beside the figures.
        n: requests in the window.
        over: those beyond the target.
        target_pct: share of events that the objective wants good.
        burn_rate: of the newest events.
        budget_left_pct: part of the error budget that is left.
        budget_corrected_pct: the same without maintenance.
        budget_exhausted_ns: when it will be spent at this rate.
        budget_cost_pct: part of the budget that the incident spent.
        tail_driver: stage that makes slow requests slow.
        tail_delta_ms: how much more of it slow requests have than fast ones.
        tail_share_pct: its part of the whole difference.
        worst_cohort: cohort with most of the slow requests, as text.
        worst_share_pct: its part of the slow requests.
        worst_traffic_pct: its part of all requests.
        cause: named cause, in words.
        evidence: the figures that speak for it.
        first_step: what to do first.
        effect_pct: how much slower than the same work was before, where an anomaly says so.
        effect_low_pct: lower end of its interval.
        effect_high_pct: upper end.
        effect_ms: the same in milliseconds.
        onset_ns: since when, as far as the records show.
        deploy: version that was deployed shortly before.
        p99_change_ms: of the incident against the time before it.
        change_failures_ms: part of that which failures make.
        change_cold_start_ms: which cold replicas make.
        change_workload_ms: which other requests make.
        change_regression_ms: which the same requests make: the parts add up to the change.
        request_id: a slow request to look at.
        link: where a person sees more.
        sql: a query that shows it, ready to run; empty for the one of the service.
        channels: names of the only channels that hear of it; empty: those that want it.
        tell_resolved: tell that it is over.
        tell_no_data: tell that it cannot be judged.
        state_json: the state after the change, from which a worker goes on.
    """

    service: str
    alert: str
    state: str
    alert_id: str
    at_ns: int
    reason: str
    sequence: int = 0
    before: str = ""
    change_reason: str = ""
    kind: str = "percentile"
    severity: str = "page"
    cohort: str = ""
    since_ns: int | None = None
    cleared_ns: int | None = None
    window_s: int | None = None
    measured_ms: float | None = None
    slo_ms: float | None = None
    note: str = ""
    n: int | None = None
    over: int | None = None
    target_pct: float | None = None
    burn_rate: float | None = None
    budget_left_pct: float | None = None
    budget_corrected_pct: float | None = None
    budget_exhausted_ns: int | None = None
    budget_cost_pct: float | None = None
    tail_driver: str | None = None
    tail_delta_ms: float | None = None
    tail_share_pct: float | None = None
    worst_cohort: str = ""
    worst_share_pct: float | None = None
    worst_traffic_pct: float | None = None
    cause: str = ""
    evidence: tuple[str, ...] = field(default=())
    first_step: str = ""
    effect_pct: float | None = None
    effect_low_pct: float | None = None
    effect_high_pct: float | None = None
    effect_ms: float | None = None
    onset_ns: int | None = None
    deploy: str = ""
    p99_change_ms: float | None = None
    change_failures_ms: float | None = None
    change_cold_start_ms: float | None = None
    change_workload_ms: float | None = None
    change_regression_ms: float | None = None
    request_id: str = ""
    link: str = ""
    sql: str = ""
    channels: tuple[str, ...] = field(default=())
    tell_resolved: bool = True
    tell_no_data: bool = True
    state_json: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Which alert it is: its service and name."""
        return self.service, self.alert

    def to_payload(self) -> dict[str, Any]:
        """Return the message as it goes to the alerts topic, fit for JSON."""
        return {"schema": SCHEMA, **asdict(self)} | {
            name: list(getattr(self, name)) for name in _LISTS
        }

    @classmethod
    def from_payload(cls, payload: Mapping[str, Any]) -> Self:
        """Return the change in a message, also of the first form, which says less.

        Raises:
            KeyError: something that every alert has is missing.
            TypeError: the payload is no mapping.
        """
        if not isinstance(payload, Mapping):
            raise TypeError(f"an alert is a mapping, not {type(payload).__name__}")
        if missing := [name for name in _NEEDED if name not in payload]:
            raise KeyError(missing[0])
        known = {f.name for f in fields(cls)}
        said = {key: value for key, value in payload.items() if key in known and value is not None}
        return cls(**{**said, **{name: tuple(said.get(name, ())) for name in _LISTS}})
