"""The alerts of one service: where each stands, and what is told when one moves."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

import orjson

from tailbudget.models.alert_state import AlertState, step
from tailbudget.schemas.alert import Alert, kind_of
from tailbudget.schemas.alert_context import AlertContext
from tailbudget.schemas.alert_rows import ChangeRow
from tailbudget.schemas.alerts import AlertStatus, Change, Condition, Reading
from tailbudget.schemas.objectives import AlertTiming

Mute = Callable[[str, int], str]
"""From the name of an alert and event time to why it is muted; empty when it is not."""

Explain = Callable[[], AlertContext]
"""What to say beside the figures; asked for only when an alert moves."""

_AT_ONCE: Final = AlertTiming()


def never(alert: str, now_ns: int) -> str:
    """Mute nothing."""
    del alert, now_ns
    return ""


class AlertBook:
    """States by the name of the alert.

    Args:
        service: the service's name.
        mute: why an alert is muted at a time.
    """

    def __init__(self, service: str, mute: Mute = never) -> None:
        self.service = service
        self._mute = mute
        self._states: dict[str, AlertState] = {}

    def restore(self, changes: Iterable[ChangeRow]) -> None:
        """Go on from the newest change of each alert."""
        for row in changes:
            self._states[row.alert] = AlertState.from_dict(orjson.loads(row.state))

    def state(self, alert: str) -> AlertState:
        """Return where an alert stands."""
        return self._states.get(alert, AlertState())

    def step(
        self, alert: str, read: Reading, now_ns: int, timing: AlertTiming = _AT_ONCE
    ) -> Alert | None:
        """Take one measurement; return the message when the alert moves, bare of its context."""
        state = self.state(alert)
        if state.frozen is not None and state.since_ns is not None:
            # The clock that noticed a silence may be ahead of the records that end it.
            now_ns = max(now_ns, state.since_ns)
        after, change = step(state, read, now_ns, timing, self._mute(alert, now_ns))
        self._states[alert] = after
        return None if change is None else self._message(alert, change, after)

    def retire(self, watched: Collection[str], kinds: Collection[str], now_ns: int) -> list[Alert]:
        """Return the ends of alerts of these kinds that nobody watches any more.

        Without them an alert whose objective was renamed would fire for ever.
        """
        read = Reading(Condition.GOOD, detail="it is no longer watched")
        gone = [
            name
            for name, one in self._states.items()
            if name not in watched and kind_of(name) in kinds
            if one.shown is not AlertStatus.RESOLVED
        ]
        ends = []
        for name in gone:
            after, change = step(self._states[name], read, now_ns, _AT_ONCE)
            self._states[name] = after
            ends += [] if change is None else [self._message(name, change, after)]
        return ends

    def _message(self, alert: str, change: Change, after: AlertState) -> Alert:
        began_ns = change.began_ns if change.began_ns is not None else change.at_ns
        severity = change.severity.value if change.severity else ""
        return Alert(
            service=self.service,
            alert=alert,
            kind=kind_of(alert),
            state=change.after.value,
            alert_id=f"{self.service}/{alert}/{began_ns}",
            at_ns=change.at_ns,
            reason=change.detail,
            sequence=change.sequence,
            before=change.before.value,
            change_reason=change.reason.value,
            severity=severity,
            since_ns=change.began_ns,
            cleared_ns=change.cleared_ns,
            state_json=orjson.dumps(after.to_dict()).decode(),
        )

    def standing(self) -> dict[str, str]:
        """Return the states of the alerts that are not resolved, by name."""
        shown = ((name, one.shown) for name, one in sorted(self._states.items()))
        return {name: at.value for name, at in shown if at is not AlertStatus.RESOLVED}
