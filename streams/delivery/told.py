"""What a channel was told of each alert, and whether it is to hear of a change."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tailbudget.schemas.alert import Alert
from tailbudget.schemas.alert_rows import NoticeRow
from tailbudget.schemas.alerts import AlertStatus, ChangeReason

_SAME_INCIDENT: Final = (ChangeReason.ESCALATED, ChangeReason.DATA_BACK, ChangeReason.UNMUTED)


class Decision(StrEnum):
    """Why a channel hears of a change, or does not."""

    TELL = "tell"
    TOLD = "already_told"
    QUIET = "quiet_state"
    NEVER_FIRED = "its_beginning_was_not_told"
    NOT_ASKED_FOR = "not_asked_for"


@dataclass(frozen=True, slots=True)
class Last:
    """The newest change of an alert that a channel was told.

    Attributes:
        sequence: its number.
        state: the state that was told.
        severity: the urgency that was told.
        handle: of the newest message of the incident that can be followed; empty: there is none.
    """

    sequence: int
    state: str
    severity: str
    handle: str = ""


class Told:
    """What one channel was told, by service and alert."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], Last] = {}

    def restore(self, notices: Iterable[NoticeRow]) -> None:
        """Go on from what an earlier owner told, or tried to: what was given up is not retried."""
        for row in notices:
            last = Last(row.sequence, row.state, row.severity, row.handle)
            self._note((row.service, row.alert), last)

    def decide(self, alert: Alert) -> Decision:
        """Return whether the channel is to hear of a change."""
        last = self._last.get(alert.key)
        if last is not None and number(alert) <= last.sequence:
            return Decision.TOLD
        if alert.state == AlertStatus.FIRING:
            return _firing(alert, last)
        known = last is not None and last.state in (AlertStatus.FIRING, AlertStatus.NO_DATA)
        if alert.state == AlertStatus.RESOLVED:
            return _if_asked(alert.tell_resolved) if known else Decision.NEVER_FIRED
        if alert.state == AlertStatus.NO_DATA and known:
            return _if_asked(alert.tell_no_data)
        return Decision.QUIET

    def note(self, alert: Alert, handle: str = "") -> None:
        """Remember that the channel was told, or that it was decided not to tell it an end."""
        self._note(alert.key, Last(number(alert), alert.state, alert.severity, handle))

    def followed(self, alerts: Iterable[Alert]) -> str:
        """Return the handle of the one message that all these are news of; empty: there is none.

        What begins or gets worse is a message of its own: many read a channel, few its threads.
        """
        known = [
            last.handle
            if last is not None
            and alert.state != AlertStatus.FIRING
            and last.state != AlertStatus.RESOLVED
            else ""
            for alert in alerts
            for last in (self._last.get(alert.key),)
        ]
        return known[0] if len(set(known)) == 1 else ""

    def _note(self, key: tuple[str, str], last: Last) -> None:
        known = self._last.get(key)
        if known is None or known.sequence <= last.sequence:
            self._last[key] = last


def number(alert: Alert) -> int:
    """Return the number of a change; messages of the first form have their time instead."""
    return alert.sequence or alert.at_ns


def _firing(alert: Alert, last: Last | None) -> Decision:
    """A channel that knows that an alert fires hears of it again only where it got worse."""
    if last is None or last.state != AlertStatus.FIRING:
        return Decision.TELL
    worse = (last.severity, alert.severity) == ("ticket", "page")
    same = not alert.sequence or alert.change_reason in _SAME_INCIDENT
    return Decision.TOLD if same and not worse else Decision.TELL


def _if_asked(wanted: bool) -> Decision:  # noqa: FBT001 - a field of the alert
    return Decision.TELL if wanted else Decision.NOT_ASKED_FOR
