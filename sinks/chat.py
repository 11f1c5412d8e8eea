"""Chat channels."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Protocol

import apprise
import requests
from apprise.attachment.memory import AttachMemory
from apprise.plugins.custom_json import NotifyJSON

from tailbudget.schemas.connections import ChatChannel
from tailbudget.schemas.errors import ChatError, ConfigError
from tailbudget.schemas.messages import ChatMessage, Limits
from tailbudget.sinks.follow.base import kind
from tailbudget.sinks.follow.choose import follow_of
from tailbudget.sinks.http_answers import RETRYABLE, Answer, listening
from tailbudget.sinks.messages.fit import shorten
from tailbudget.sinks.messages.limits import either, limits

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

    def send(self, message: ChatMessage) -> str:
        """Deliver one message; return its handle, which news of it names as `follows`.

        The handle is empty where the channel gives none. What cannot be followed any more is
        delivered as a message of its own.

        Raises:
            ChatError: it was not delivered; see `retryable` and `retry_after_s`.
        """
        ...


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
        self._follow = follow_of(self._plugin)

    def send(self, message: ChatMessage) -> str:
        """Deliver one message; return its handle.

        Raises:
            ChatError: it was not delivered; see `retryable` and `retry_after_s`.
        """
        with self._lock:
            if message.follows and self._followed(message):
                return message.follows
            return self._told(message)

    def _followed(self, message: ChatMessage) -> bool:
        """Return whether the channel took it as news of an earlier message.

        Raises:
            ChatError: the channel does not answer, or wants to be asked later.
        """
        if self._follow is None:
            return False
        with listening() as answers, _no_answer(self.name):
            if self._follow.follow(message):
                return True
        if answers and answers[-1].status in RETRYABLE:
            raise _refusal(self.name, answers)
        return False

    def _told(self, message: ChatMessage) -> str:
        if self._follow is not None:
            self._follow.begin(message)
        taken, answers = self._try(message, message.body, picture=message.picture)
        if not taken and message.plain and answers and answers[-1].status in _UNREADABLE:
            text = shorten(message.plain, self.limits)
            taken, answers = self._try(message, text, markdown=False)
        if not taken:
            raise _refusal(self.name, answers)
        return self._follow.handle(message, answers) if self._follow is not None else ""

    def _try(
        self,
        message: ChatMessage,
        body: str,
        *,
        picture: bytes | None = None,
        markdown: bool = True,
    ) -> tuple[bool, list[Answer]]:
        """Return whether the message was taken, and what the server answered."""
        if isinstance(self._plugin, NotifyJSON):
            self._plugin.payload_extras = {**self._extras(), **_alerts(message)}
        how = apprise.NotifyFormat.MARKDOWN if markdown else apprise.NotifyFormat.TEXT
        with listening() as answers:
            taken = self._plugin.notify(
                title=message.title,
                body=body,
                notify_type=kind(message),
                body_format=how,
                attach=_attachment(picture) if picture and self.limits.pictures else None,
            )
        return bool(taken), answers

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

    def send(self, message: ChatMessage) -> str:
        """Keep one message and return its number, or raise the next of `failures`.

        Raises:
            ChatError: a failure was prepared.
        """
        if self.failures:
            raise self.failures.pop(0)
        self.sent.append(message)
        return str(len(self.sent))


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


@contextmanager
def _no_answer(name: str) -> Iterator[None]:
    """Say of a request of our own that nobody answered, without the URL in it."""
    try:
        yield
    except requests.RequestException:
        raise _refusal(name, ()) from None


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
