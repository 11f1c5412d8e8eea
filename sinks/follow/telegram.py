"""Telegram: news answers the message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import requests
from apprise.plugins.telegram import NotifyTelegram

from tailbudget.schemas.messages import ChatMessage
from tailbudget.sinks.follow.base import TIMEOUT_S, first
from tailbudget.sinks.http_answers import Answer


class TelegramReply:
    """Answers a message (`reply_parameters` of ``sendMessage``); its text has no markup.

    Args:
        plugin: of a bot.
    """

    def __init__(self, plugin: NotifyTelegram) -> None:
        self._plugin = plugin

    @staticmethod
    def fits(plugin: NotifyTelegram) -> bool:
        """Return whether a plugin can: a bot that writes to one chat."""
        return len(plugin.targets) == 1

    def begin(self, message: ChatMessage) -> None:
        """Nothing is needed."""

    def handle(self, message: ChatMessage, answers: Sequence[Answer]) -> str:
        """Return the number of the message."""
        del message
        result = first(answers, "result")
        sent = result[0] if isinstance(result, list) and result else result
        return str(sent.get("message_id", "")) if isinstance(sent, dict) else ""

    def follow(self, message: ChatMessage) -> bool:
        """Answer it; where it is gone, Telegram makes it a message of its own."""
        plugin = self._plugin
        (chat_id, topic), *_ = plugin.targets
        told: dict[str, Any] = {
            "chat_id": chat_id,
            "text": f"{message.title}\n{message.plain or message.body}",
            "disable_notification": plugin.silent,
            "link_preview_options": {"is_disabled": True},
            "reply_parameters": {
                "message_id": int(message.follows),
                "allow_sending_without_reply": True,
            },
        }
        if topic:
            told["message_thread_id"] = topic
        url = f"{plugin.notify_url}{plugin.bot_token}/sendMessage"
        return bool(requests.post(url, json=told, timeout=TIMEOUT_S).ok)
