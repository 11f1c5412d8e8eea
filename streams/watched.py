"""What a worker keeps of the anomalies of one service, and who has the service."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Protocol

from tailbudget.schemas.anomaly_rows import ColdWindowRow
from tailbudget.schemas.sections import ColdWindow
from tailbudget.streams.anomaly_rows import Marks
from tailbudget.streams.anomaly_watch import AnomalyWatch
from tailbudget.streams.owned_service import OwnedService

SAVE_S: Final = 30.0
SAVE_BYTES_S: Final = 10_000.0
"""Bytes a second that the state of a service may make: one of megabytes is saved less often."""


@dataclass(slots=True)
class Watched:
    """What is kept of one service beside its watch.

    Attributes:
        partition: of the panes topic and the models topic.
        watch: samples, models and tests.
        windows: after its deploys.
        saved_s: when its state was saved last, seconds of a growing clock.
        size: bytes of the state that was saved last.
        alerted: how many of the first of `watch.unwritten` are told as alerts already.
        retry_s: before then ClickHouse is not asked again to take them.
        described_ns: when its models were written last, event time.
        described: state and mark of each model then.
        cold: cold windows that are written.
        cleared: what is open elsewhere and not watched here was told to be.
    """

    partition: int
    watch: AnomalyWatch
    windows: tuple[ColdWindow, ...] = ()
    saved_s: float = 0.0
    size: int = 0
    alerted: int = 0
    retry_s: float = 0.0
    described_ns: int = 0
    described: Marks = field(default_factory=dict)
    cold: tuple[ColdWindowRow, ...] = ()
    cleared: bool = False

    @property
    def save_after_s(self) -> float:
        """Return how long a state counts as new."""
        return max(SAVE_S, self.size / SAVE_BYTES_S)


class Owner(Protocol):
    """Whoever has the services, and the state of their alerts."""

    def owned(self, name: str) -> OwnedService | None:
        """Return a service; None when it is not ours."""
        ...

    def event_ns(self, name: str) -> int | None:
        """Return its event time; None when it is not ours."""
        ...
