"""The state machine of one alert, whatever it watches.

    resolved -> pending -> firing -> resolved
         any -> no_data -> what it was, or what the new measurement says
         any -> muted   -> what it would be by now

Without data, or without a way to judge it, an alert is frozen: it neither fires for ever nor
counts as over. A muted alert goes on being judged, and says so only when the mute ends. Every
change has a number and a reason; a state that is dumped and loaded goes on as if nothing were.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from tailbudget.schemas.alerts import AlertStatus, Change, ChangeReason, Condition, Reading
from tailbudget.schemas.objectives import AlertTiming, Severity

_BLIND: Final = {
    Condition.NO_DATA: ChangeReason.SILENT,
    Condition.UNMEASURABLE: ChangeReason.UNMEASURABLE,
}
_RANK: Final = {None: 0, Severity.TICKET: 1, Severity.PAGE: 2}
_SECOND_NS: Final = 10**9


@dataclass(frozen=True, slots=True)
class AlertState:
    """Where an alert stands.

    Attributes:
        status: as it would be without a mute.
        muted: it is muted; `shown` is then MUTED.
        frozen: what it was before it had no data; None while it has.
        sequence: number of its newest change.
        since_ns: when `status` began; None before the first change.
        began_ns: when the running incident began; None outside of incidents.
        cleared_ns: since when the condition of a firing alert is over, without a gap.
        severity: of the incident at its worst.
    """

    status: AlertStatus = AlertStatus.RESOLVED
    muted: bool = False
    frozen: AlertStatus | None = None
    sequence: int = 0
    since_ns: int | None = None
    began_ns: int | None = None
    cleared_ns: int | None = None
    severity: Severity | None = None

    @property
    def shown(self) -> AlertStatus:
        """The state as others see it."""
        return AlertStatus.MUTED if self.muted else self.status

    @property
    def fires(self) -> bool:
        """Whether an incident is going on, whoever may not see it now."""
        return AlertStatus.FIRING in (self.status, self.frozen)

    def to_dict(self) -> dict[str, Any]:
        """Return what `from_dict` reads, fit for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> AlertState:
        """Return the state that `to_dict` wrote.

        Raises:
            TypeError: the mapping has other keys.
            ValueError: a state or severity is none of ours.
        """
        state = cls(**stored)
        return replace(
            state,
            status=AlertStatus(state.status),
            frozen=None if state.frozen is None else AlertStatus(state.frozen),
            severity=None if state.severity is None else Severity(state.severity),
        )


def step(
    state: AlertState,
    read: Reading,
    now_ns: int,
    timing: AlertTiming = AlertTiming(),  # noqa: B008 - frozen
    mute: str = "",
) -> tuple[AlertState, Change | None]:
    """Return the state after one more measurement, and the change when there is one.

    Args:
        state: the state before.
        read: what was measured.
        now_ns: when; steps come in order of time.
        timing: how long conditions must hold.
        mute: why the alert is muted now; empty when it is not.
    """
    after, reason = _judged(state, read, now_ns, timing)
    after = replace(after, muted=bool(mute))
    if after.muted != state.muted:
        reason = ChangeReason.MUTED if after.muted else ChangeReason.UNMUTED
    elif after.muted:
        reason = None
    if reason is None:
        return after, None
    return _numbered(state, after, reason, now_ns, mute or read.detail)


def _judged(
    state: AlertState, read: Reading, now_ns: int, timing: AlertTiming
) -> tuple[AlertState, ChangeReason | None]:
    if read.condition in _BLIND:
        return _blind(state, _BLIND[read.condition], now_ns)
    if state.frozen is None:
        return _seen(state, read, now_ns, timing)
    # What was pending has to hold anew: nobody knows what happened meanwhile.
    was = AlertStatus.RESOLVED if state.frozen is AlertStatus.PENDING else state.frozen
    thawed = replace(state, status=was, frozen=None, since_ns=now_ns)
    if was is AlertStatus.RESOLVED:
        thawed = replace(thawed, began_ns=None, severity=None)
    after, reason = _seen(thawed, read, now_ns, timing)
    return after, reason or ChangeReason.DATA_BACK


def _blind(
    state: AlertState, reason: ChangeReason, now_ns: int
) -> tuple[AlertState, ChangeReason | None]:
    if state.frozen is not None:
        return state, None
    after = replace(
        state, status=AlertStatus.NO_DATA, frozen=state.status, since_ns=now_ns, cleared_ns=None
    )
    return after, reason


def _seen(
    state: AlertState, read: Reading, now_ns: int, timing: AlertTiming
) -> tuple[AlertState, ChangeReason | None]:
    if state.status is AlertStatus.FIRING:
        return _firing(state, read, now_ns, timing)
    if read.condition is Condition.BAD:
        return _begun(state, read, now_ns, timing)
    if state.status is AlertStatus.PENDING and read.condition is Condition.GOOD:
        return _resolved(state, now_ns), ChangeReason.PASSED
    return state, None


def _begun(
    state: AlertState, read: Reading, now_ns: int, timing: AlertTiming
) -> tuple[AlertState, ChangeReason | None]:
    pending = state.status is AlertStatus.PENDING
    began_ns = state.began_ns if pending and state.began_ns is not None else now_ns
    severity = _worse(state.severity if pending else None, read.severity)
    begun = replace(state, began_ns=began_ns, cleared_ns=None, severity=severity)
    if now_ns - began_ns >= timing.pending_s * _SECOND_NS:
        reason = ChangeReason.HELD if pending else ChangeReason.AT_ONCE
        return replace(begun, status=AlertStatus.FIRING, since_ns=now_ns), reason
    if pending:
        return begun, None
    return replace(begun, status=AlertStatus.PENDING, since_ns=now_ns), ChangeReason.BEGAN


def _firing(
    state: AlertState, read: Reading, now_ns: int, timing: AlertTiming
) -> tuple[AlertState, ChangeReason | None]:
    if read.condition is not Condition.GOOD:
        state = replace(state, cleared_ns=None)
        severity = _worse(state.severity, read.severity)
        rose = severity is not state.severity
        return replace(state, severity=severity), ChangeReason.ESCALATED if rose else None
    cleared_ns = now_ns if state.cleared_ns is None else state.cleared_ns
    if now_ns - cleared_ns >= timing.keep_firing_s * _SECOND_NS:
        return _resolved(replace(state, cleared_ns=cleared_ns), now_ns), ChangeReason.CLEARED
    return replace(state, cleared_ns=cleared_ns), None


def _resolved(state: AlertState, now_ns: int) -> AlertState:
    """Return the state after an incident; what it was is told by the change, then forgotten."""
    return replace(state, status=AlertStatus.RESOLVED, since_ns=now_ns)


def _numbered(
    before: AlertState, after: AlertState, reason: ChangeReason, now_ns: int, detail: str
) -> tuple[AlertState, Change]:
    after = replace(after, sequence=before.sequence + 1)
    change = Change(
        sequence=after.sequence,
        before=before.shown,
        after=after.shown,
        reason=reason,
        at_ns=now_ns,
        began_ns=after.began_ns,
        cleared_ns=after.cleared_ns,
        severity=after.severity,
        detail=detail,
    )
    if after.status is AlertStatus.RESOLVED and not after.muted:
        after = replace(after, began_ns=None, cleared_ns=None, severity=None)
    return after, change


def _worse(first: Severity | None, second: Severity | None) -> Severity | None:
    return first if _RANK[first] >= _RANK[second] else second
