"""Discord: a webhook cannot answer a message, but edit its own.

An edit calls nobody, so that it tells ends and pauses only. A message about several alerts is
left as it is: some of them may go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import requests
from apprise.plugins.discord import NotifyDiscord

from tailbudget.schemas.messages import ChatMessage
from tailbudget.sinks.follow.base import TIMEOUT_S, first, kind
from tailbudget.sinks.http_answers import Answer

_WAIT: Final = "?wait=true"
"""Makes Discord answer with the message, and its number (Discord's "Execute Webhook")."""


class DiscordEdit:
    """Edits the message (``PATCH …/messages/ID``).

    Args:
        plugin: of a webhook; its token is followed by `_WAIT` from now on.
    """

    def __init__(self, plugin: NotifyDiscord) -> None:
        self._plugin = plugin
        self._token = plugin.webhook_token
        plugin.webhook_token = f"{self._token}{_WAIT}"

    def begin(self, message: ChatMessage) -> None:
        """Nothing is needed."""

    def handle(self, message: ChatMessage, answers: Sequence[Answer]) -> str:
        """Return the number of the message."""
        return "" if len(message.payloads) > 1 else str(first(answers, "id") or "")

    def follow(self, message: ChatMessage) -> bool:
        """Edit the message."""
        if len(message.payloads) > 1:
            return False
        plugin = self._plugin
        hook = f"{plugin.notify_url}/{plugin.webhook_id}/{self._token}"
        color = plugin.color(kind(message), int)
        embed = {"title": message.title, "description": message.body, "color": color}
        answer = requests.patch(
            f"{hook}/messages/{message.follows}",
            params={"thread_id": plugin.thread_id} if plugin.thread_id else None,
            json={"content": "", "embeds": [embed]},
            timeout=TIMEOUT_S,
        )
        return bool(answer.ok)
