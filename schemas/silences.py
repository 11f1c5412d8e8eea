"""Silences: who does not want to hear of which alerts, until when, and why."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Silence:
    """One silence; the fields are the columns of `silences`, in order.

    Attributes:
        id: what it is ended by.
        service: the service's name.
        alert: name of the only alert that is muted; empty: all of the service.
        begins_ns: when it begins, by the clock on the wall.
        ends_ns: when it ends, likewise.
        reason: why, for a person.
        version: grows when it is changed.
    """

    id: str
    service: str
    alert: str
    begins_ns: int
    ends_ns: int
    reason: str
    version: int

    def mutes(self, service: str, alert: str, now_ns: int) -> bool:
        """Return whether it mutes an alert at a time."""
        ours = self.service == service and self.alert in ("", alert)
        return ours and self.begins_ns <= now_ns < self.ends_ns
