"""Channels that keep incidents by a key: what is told of one incident has one key."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

import requests
from apprise.plugins.google_chat import NotifyGoogleChat
from apprise.plugins.opsgenie import OPSGENIE_API_LOOKUP, NotifyOpsgenie
from apprise.plugins.pagerduty import NotifyPagerDuty, PagerDutyAction

from tailbudget.schemas.messages import ChatMessage
from tailbudget.sinks.follow.base import TIMEOUT_S, key
from tailbudget.sinks.http_answers import Answer


class PagerDutyKey:
    """The incident's `dedup_key`: a recovery resolves it, which Apprise does not by itself.

    Args:
        plugin: whose key the URL does not say.
    """

    def __init__(self, plugin: NotifyPagerDuty) -> None:
        self._plugin = plugin
        if plugin.action == PagerDutyAction.TRIGGER:
            plugin.action = PagerDutyAction.MAP

    def begin(self, message: ChatMessage) -> None:
        """Name the incident."""
        self._plugin.dedup = key(message)

    def handle(self, message: ChatMessage, answers: Sequence[Answer]) -> str:
        """Return nothing: each event names its incident."""
        del message, answers
        return ""

    def follow(self, message: ChatMessage) -> bool:
        """Leave it to a new event."""
        del message
        return False


class GoogleChatThread(PagerDutyKey):
    """The thread's key, which Google Chat makes or finds.

    Args:
        plugin: whose thread the URL does not say.
    """

    def __init__(self, plugin: NotifyGoogleChat) -> None:
        self._plugin = plugin

    def begin(self, message: ChatMessage) -> None:
        """Name the thread."""
        self._plugin.thread_key = key(message)


class OpsgenieAlias:
    """The alert's alias. Apprise knows what it opened only until the process ends.

    Args:
        plugin: whose alias the URL does not say.
    """

    def __init__(self, plugin: NotifyOpsgenie) -> None:
        self._plugin = plugin

    def begin(self, message: ChatMessage) -> None:
        """Name the alert."""
        self._plugin.alias = key(message)

    def handle(self, message: ChatMessage, answers: Sequence[Answer]) -> str:
        """Return the alias."""
        del answers
        return key(message)

    def follow(self, message: ChatMessage) -> bool:
        """Close the alert, or add a note to it."""
        base = OPSGENIE_API_LOOKUP[self._plugin.region_name]
        what = "close" if message.state == "resolved" else "notes"
        answer = requests.post(
            f"{base}/{quote(message.follows, safe='')}/{what}",
            params={"identifierType": "alias"},
            json={"source": "tailbudget", "note": f"{message.title}\n{message.body}"},
            headers={"Authorization": f"GenieKey {self._plugin.apikey}"},
            timeout=TIMEOUT_S,
        )
        return bool(answer.ok)
