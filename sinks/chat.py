"""Chat channels."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Any, Final, Protocol

import apprise
from apprise.attachment.memory import AttachMemory
from apprise.plugins.custom_json import NotifyJSON

from tailbudget.schemas.connections import ChatChannel
from tailbudget.schemas.errors import ChatError, ConfigError
from tailbudget.schemas.messages import ChatMessage, Limits
from tailbudget.sinks.http_answers import RETRYABLE, Answer, listening
from tailbudget.sinks.messages.fit import shorten
from tailbudget.sinks.messages.limits import either, limits

_KINDS: Final = {"firing": apprise.NotifyType.FAILURE, "resolved": apprise.NotifyType.SUCCESS}
_UNREADABLE: Final = frozenset({400, 413, 422})
"""Statuses that say that a message is too long or not understood (RFC 9110 section 15.5)."""


UNLIMITED: Final = Limits(32_768, either)
"""Of channels without limits of their own: as long as Apprise lets any message be."""


class Chat(Protocol):
    """Somewhere that messages go.

    `send` blocks until the other side has taken the message (at most its timeouts, some 10 s)
    and does not retry: the error says whether that may help, and one place retries.
    """

    name: str
    limits: Limits

    def send(self, message: ChatMessage) -> None:
        """Deliver one message.

        Raises:
            ChatError: it was not delivered; see `retryable` and `retry_after_s`.
        """


class AppriseChat:
    """A channel that Apprise can reach, such as Slack, Teams, e-mail or a JSON webhook.

    A JSON webhook (``json://`` or ``jsons://``) also receives the alert itself, as `alert`, and
    all of them as `alerts` where a message is about several. A channel that does not understand
    a message gets it once more, shorter and as plain text.

    Attributes:
        name: how the channel is called in the settings.
        limits: how long a message may be.
    """

    def __init__(self, channel: ChatChannel) -> None:
        """Make the channel; nothing is sent yet.

        Raises:
            ConfigError: Apprise does not understand the URL.
        """
        self.name = channel.name
        self._lock = threading.Lock()
        _keep_secrets()
        self._plugin = _plugin(channel)
        scheme = channel.url.get_secret_value().partition("://")[0].lower()
        self.limits = limits(self._plugin, scheme)

    def send(self, message: ChatMessage) -> None:
        """Deliver one message.

        Raises:
            ChatError: it was not delivered; see `retryable` and `retry_after_s`.
        """
        with self._lock:
            answers = self._try(message, message.body, picture=message.picture)
            if message.plain and answers and answers[-1].status in _UNREADABLE:
                answers = self._try(message, shorten(message.plain, self.limits), markdown=False)
        if answers is not None:
            raise _refusal(self.name, answers)

    def _try(
        self,
        message: ChatMessage,
        body: str,
        *,
        picture: bytes | None = None,
        markdown: bool = True,
    ) -> list[Answer] | None:
        """Return None when the message was taken, else what the server answered."""
        if isinstance(self._plugin, NotifyJSON):
            self._plugin.payload_extras = {**self._extras(), **_alerts(message)}
        how = apprise.NotifyFormat.MARKDOWN if markdown else apprise.NotifyFormat.TEXT
        with listening() as answers:
            taken = self._plugin.notify(
                title=message.title,
                body=body,
                notify_type=_KINDS.get(message.state, apprise.NotifyType.WARNING),
                body_format=how,
                attach=_attachment(picture) if picture and self.limits.pictures else None,
            )
        return None if taken else answers

    def _extras(self) -> dict[str, object]:
        extras = self._plugin.payload_extras.items()
        return {key: value for key, value in extras if key not in ("alert", "alerts")}


class FakeChat:
    """A channel in memory, for tests and dry runs.

    Attributes:
        name: how the channel is called.
        sent: the messages that were delivered.
        failures: errors that the next sends raise, first one first.
        limits: how long a message may be.
    """

    def __init__(self, name: str = "fake", limits: Limits = UNLIMITED) -> None:
        self.name = name
        self.limits = limits
        self.sent: list[ChatMessage] = []
        self.failures: list[ChatError] = []

    def send(self, message: ChatMessage) -> None:
        """Keep one message, or raise the next of `failures`.

        Raises:
            ChatError: a failure was prepared.
        """
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append(message)


def open_channels(channels: Sequence[ChatChannel]) -> tuple[tuple[ChatChannel, Chat], ...]:
    """Return each channel of the settings with the way to send to it.

    Raises:
        ConfigError: Apprise does not understand one of the URLs.
    """
    return tuple((channel, AppriseChat(channel)) for channel in channels)


def _alerts(message: ChatMessage) -> dict[str, Any]:
    alerts: dict[str, Any] = {"alert": dict(message.payload)}
    if len(message.payloads) > 1:
        alerts["alerts"] = [dict(one) for one in message.payloads]
    return alerts


def _attachment(picture: bytes) -> apprise.AppriseAttachment:
    name = "last-hour.png"
    return apprise.AppriseAttachment(AttachMemory(picture, name=name, mimetype="image/png"))


def _keep_secrets() -> None:
    """Let the libraries log nothing below an error: they would show URLs with their tokens.

    What went wrong is in our own error, which names the channel and not its URL.
    """
    for name in ("apprise", "urllib3"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _plugin(channel: ChatChannel) -> apprise.NotifyBase:
    asset = apprise.AppriseAsset(app_id="tailbudget", app_desc="latency budgets", image_url_mask="")
    plugin = apprise.Apprise.instantiate(channel.url.get_secret_value(), asset=asset)
    if plugin is None:
        scheme = channel.url.get_secret_value().partition("://")[0]
        raise ConfigError(
            f"chat channel {channel.name!r}: Apprise does not understand its {scheme}:// URL",
            remedy="check the form of the URL at https://github.com/caronc/apprise/wiki",
        )
    return plugin


def _refusal(name: str, answers: Sequence[Answer]) -> ChatError:
    last = answers[-1] if answers else None
    if last is None:
        return ChatError(f"chat channel {name!r} does not answer", remedy="check host and network")
    retryable = last.status in RETRYABLE
    remedy = "it is sent again" if retryable else "check the channel's URL and rights"
    return ChatError(
        f"chat channel {name!r} refused the message: HTTP {last.status}",
        remedy=remedy,
        retryable=retryable,
        retry_after_s=last.retry_after_s,
    )
