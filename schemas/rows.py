"""What is written to ClickHouse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tailbudget.schemas.summary import Summary


@dataclass(frozen=True, slots=True)
class StoredPane:
    """One pane of one service as ClickHouse keeps it; written whole, replaced by a newer version.

    Attributes:
        pane_ns: start of the pane.
        pane_s: its length.
        summary: groups of this pane only.
        frontier: source ("topic:partition:incarnation") to the offset below which all records of
            that source are in `summary`.
        version: grows with each rewrite of the pane.
    """

    pane_ns: int
    pane_s: int
    summary: Summary
    frontier: Mapping[str, int]
    version: int


@dataclass(frozen=True, slots=True)
class AlertRow:
    """One change of an alert's state.

    Attributes:
        service: the service's name.
        alert: name of the alert within the service, such as "p99".
        at_ns: event time of the change.
        state: "firing" or "resolved".
        reason: why it changed, for a person.
        measured_ms: the percentile when it changed; None when it could not be measured.
        slo_ms: the target.
        tail_driver: the stage that drives the tail; empty when unknown.
        alert_id: the same for the firing and the resolution of one breach.
        payload: the whole message as JSON.
    """

    service: str
    alert: str
    at_ns: int
    state: str
    reason: str
    measured_ms: float | None
    slo_ms: float | None
    tail_driver: str
    alert_id: str
    payload: str


@dataclass(frozen=True, slots=True)
class DeployRow:
    """One deploy or scale-up event, after deduplication.

    Attributes:
        service: the service's name.
        env: the environment it went to.
        version: what was deployed.
        at_ns: when it was first announced.
        last_ns: when the same deploy was last announced.
        kind: "deploy" or "scale_up".
    """

    service: str
    env: str
    version: str
    at_ns: int
    last_ns: int
    kind: str
