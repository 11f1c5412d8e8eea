"""What is said to people."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
        plain: the body without Markdown, for a channel that refuses it; empty: as `body`.
        picture: a PNG of the last hour, for channels that take one.
        payloads: of a message about several alerts, all of them; `payload` is the most urgent.
        follows: what the channel gave for the message that this is news of; empty: a new message.
    """

    title: str
    body: str
    service: str
    alert: str
    state: str
    alert_id: str
    payload: Mapping[str, Any]
    plain: str = ""
    picture: bytes | None = None
    payloads: tuple[Mapping[str, Any], ...] = ()
    follows: str = ""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a message may be.

    Attributes:
        characters: of title and body together, as the channel counts them.
        measure: from a text to what the channel counts, its escapes included.
        pictures: the channel takes a PNG.
        alone: it keeps incidents, so that each alert is a message of its own.
    """

    characters: int
    measure: Callable[[str], int]
    pictures: bool = False
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Draft:
    """What is to be said, before it is known how much room there is.

    Attributes:
        title: one line.
        head: lines that are always said.
        items: one line for each of several alerts, the most urgent first; the last ones give way
            to "+N more".
        tail: lines that give way, the last one first.
        query: SQL, shown as it is; gives way before `tail` does.
    """

    title: str
    head: tuple[str, ...]
    items: tuple[str, ...] = ()
    tail: tuple[str, ...] = ()
    query: str = ""
