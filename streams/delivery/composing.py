"""A message to one channel from a group of alerts."""

from __future__ import annotations

from collections.abc import Sequence

from tailbudget.schemas.messages import ChatMessage, Limits
from tailbudget.sinks.messages.fit import fit, plain
from tailbudget.sinks.messages.grouped import drafted, urgency
from tailbudget.streams.delivery.notice import Notice


def composed(
    group: Sequence[Notice], limits: Limits, picture: bytes | None = None, follows: str = ""
) -> ChatMessage:
    """Return the message that tells a group, within the limits of a channel."""
    ordered = sorted(group, key=lambda notice: urgency(notice.alert))
    worst = ordered[0]
    title, body = fit(drafted([notice.alert for notice in ordered]), limits)
    return ChatMessage(
        title=title,
        body=body,
        service=worst.alert.service,
        alert=worst.alert.alert,
        state=worst.alert.state,
        alert_id=worst.alert.alert_id,
        payload=worst.payload,
        plain=plain(body),
        picture=picture,
        payloads=tuple(notice.payload for notice in ordered),
        follows=follows,
    )
