"""What is said to people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message to a chat channel.

    Attributes:
        title: one line.
        body: Markdown.
        service: the service it is about.
        alert: name of the alert within the service, such as "p99".
        state: "firing" or "resolved".
        alert_id: the same for the firing and the resolution of one breach.
        payload: the alert as it is on the alerts topic; channels that take JSON receive it too.
    """

    title: str
    body: str
    service: str
    alert: str
    state: str
    alert_id: str
    payload: Mapping[str, Any]
