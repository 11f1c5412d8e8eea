"""Slack: news stands in the thread of the message, with a bot's token; webhooks tell no number."""

from __future__ import annotations

from collections.abc import Sequence

import apprise
from apprise.plugins.slack import NotifySlack, SlackMode

from tailbudget.schemas.messages import ChatMessage
from tailbudget.sinks.follow.base import first, kind
from tailbudget.sinks.http_answers import Answer


class SlackThread:
    """Answers in the thread of a message (`thread_ts` of ``chat.postMessage``).

    Args:
        plugin: of a bot.
    """

    def __init__(self, plugin: NotifySlack) -> None:
        self._plugin = plugin

    @staticmethod
    def fits(plugin: NotifySlack) -> bool:
        """Return whether a plugin can: a bot that writes to one channel."""
        return plugin.mode == SlackMode.BOT and len(plugin.channels) == 1

    def begin(self, message: ChatMessage) -> None:
        """Nothing is needed."""

    def handle(self, message: ChatMessage, answers: Sequence[Answer]) -> str:
        """Return the channel and the number of the message, as Apprise writes a target."""
        del message
        channel, ts = first(answers, "channel"), first(answers, "ts")
        return f"+{channel}:{ts}" if channel and ts else ""

    def follow(self, message: ChatMessage) -> bool:
        """Answer in the thread."""
        told, self._plugin.channels = self._plugin.channels, [message.follows]
        try:
            return bool(
                self._plugin.notify(
                    title=message.title,
                    body=message.body,
                    notify_type=kind(message),
                    body_format=apprise.NotifyFormat.MARKDOWN,
                )
            )
        finally:
            self._plugin.channels = told
