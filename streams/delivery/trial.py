"""The message that shows that a channel works."""

from __future__ import annotations

from dataclasses import replace

from tailbudget.schemas.alert import Alert
from tailbudget.schemas.messages import ChatMessage, Limits
from tailbudget.streams.delivery.composing import composed
from tailbudget.streams.delivery.notice import Notice

_ALERT = Alert(
    service="tailbudget",
    alert="test",
    state="firing",
    alert_id="tailbudget/test/0",
    at_ns=0,
    reason="somebody ran `tailbudget check --send-test`; nothing is wrong",
    kind="percentile",
    severity="ticket",
)


def trial(limits: Limits) -> ChatMessage:
    """Return a message like any other, that says that it is none."""
    message = composed([Notice(_ALERT, _ALERT.to_payload(), _nothing)], limits)
    title = "[TEST] tailbudget reaches this channel"
    return replace(message, title=title, body=f"Why: {_ALERT.reason}", plain="", state="test")


def _nothing() -> None:
    """Nobody waits for a test message."""
