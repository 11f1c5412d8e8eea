"""Chat channels."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final, Protocol

import apprise
from apprise.plugins.custom_json import NotifyJSON

from tailbudget.schemas.connections import ChatChannel
from tailbudget.schemas.errors import ChatError, ConfigError
from tailbudget.schemas.messages import ChatMessage
from tailbudget.sinks.http_answers import RETRYABLE, Answer, listening

_KINDS: Final = {"firing": apprise.NotifyType.FAILURE, "resolved": apprise.NotifyType.SUCCESS}


class Chat(Protocol):
    """Somewhere that messages go.

    `send` blocks until the other side has taken the message (at most its timeouts, some 10 s)
    and does not retry: the error says whether that may help, and one place retries.
    """

    name: str

    def send(self, message: ChatMessage) -> None:
        """Deliver one message.

        Raises:
            ChatError: it was not delivered; see `retryable` and `retry_after_s`.
        """


class AppriseChat:
    """A channel that Apprise can reach, such as Slack, Teams, e-mail or a JSON webhook.

    A JSON webhook (``json://`` or ``jsons://``) also receives the alert itself, as `alert`.

    Attributes:
        name: how the channel is called in the settings.
    """

    def __init__(self, channel: ChatChannel) -> None:
        """Make the channel; nothing is sent yet.

        Raises:
            ConfigError: Apprise does not understand the URL.
        """
        self.name = channel.name
        self._lock = threading.Lock()
        self._plugin = _plugin(channel)

    def send(self, message: ChatMessage) -> None:
        """Deliver one message.

        Raises:
            ChatError: it was not delivered; see `retryable` and `retry_after_s`.
        """
        with self._lock, listening() as answers:
            if isinstance(self._plugin, NotifyJSON):
                self._plugin.payload_extras = {**self._extras(), "alert": dict(message.payload)}
            taken = self._plugin.notify(
                title=message.title,
                body=message.body,
                notify_type=_KINDS.get(message.state, apprise.NotifyType.WARNING),
                body_format=apprise.NotifyFormat.MARKDOWN,
            )
        if not taken:
            raise _refusal(self.name, answers)

    def _extras(self) -> dict[str, object]:
        return {key: value for key, value in self._plugin.payload_extras.items() if key != "alert"}


class FakeChat:
    """A channel in memory, for tests and dry runs.

    Attributes:
        name: how the channel is called.
        sent: the messages that were delivered.
        failures: errors that the next sends raise, first one first.
    """

    def __init__(self, name: str = "fake") -> None:
        self.name = name
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
