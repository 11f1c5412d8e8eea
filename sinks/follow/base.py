"""What a channel that can follow its messages offers."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final, Protocol

import apprise

from tailbudget.schemas.messages import ChatMessage
from tailbudget.sinks.http_answers import Answer

TIMEOUT_S: Final = 10.0
"""Of a request of our own: as long as Apprise's connect and read timeouts together."""

KINDS: Final = {"firing": apprise.NotifyType.FAILURE, "resolved": apprise.NotifyType.SUCCESS}
"""Kinds of message by the state of the alert; others are warnings."""


class Follow(Protocol):
    """How one kind of channel follows a message.

    Requests go through `requests`, so that `listening` hears what is answered.
    """

    def begin(self, message: ChatMessage) -> None:
        """Prepare the plugin for a new message."""

    def handle(self, message: ChatMessage, answers: Sequence[Answer]) -> str:
        """Return what `follow` needs of a message that was taken; empty: it cannot be followed."""

    def follow(self, message: ChatMessage) -> bool:
        """Edit or answer the message `message.follows`; return whether the channel took it."""


def kind(message: ChatMessage) -> apprise.NotifyType:
    """Return Apprise's kind of a message."""
    return KINDS.get(message.state, apprise.NotifyType.WARNING)


def key(message: ChatMessage) -> str:
    """Return what names an incident for systems that keep incidents: at most 255 plain signs."""
    return "tailbudget-" + hashlib.sha256(message.alert_id.encode()).hexdigest()[:32]


def first(answers: Sequence[Answer], name: str) -> Any:
    """Return a field of the first JSON answer that has it; None where none does."""
    said = (answer.said() for answer in answers)
    return next((one[name] for one in said if name in one), None)
