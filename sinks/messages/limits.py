"""How much room a channel has, and how it counts.

Limits are Apprise's own, plugin by plugin. What it counts is what is sent: escapes make a text
longer, and an emoji is two of the UTF-16 units that chat systems count.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from typing import Final

import apprise

from tailbudget.schemas.messages import Limits
from tailbudget.sinks.follow.choose import keeps_incidents

_MARKDOWN_SIGNS: Final = re.compile(r"[_*\[\]()~`>#+\-=|{}.!\\]")
"""What Telegram's MarkdownV2 wants a backslash before (core.telegram.org/bots/api)."""


def units(text: str) -> int:
    """Return the UTF-16 units of a text."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def entities(text: str) -> int:
    """Return the length with ``&``, ``<`` and ``>`` as entities (Slack, HTML mail)."""
    return units(html.escape(text, quote=False))


def backslashes(text: str) -> int:
    """Return the length with a backslash before every sign of Markdown."""
    return units(text) + len(_MARKDOWN_SIGNS.findall(text))


def either(text: str) -> int:
    """Return the larger of both: what an unknown channel may make of a text."""
    return max(entities(text), backslashes(text))


_MEASURES: Final[Mapping[str, Callable[[str], int]]] = {
    "discord": units,
    "json": units,
    "jsons": units,
    "slack": entities,
    "mailto": entities,
    "mailtos": entities,
    "tgram": backslashes,
}


def limits(plugin: apprise.NotifyBase, scheme: str) -> Limits:
    """Return the limits of a channel."""
    pictures = bool(plugin.attachment_support) and not _webhook(plugin, scheme)
    measure = _MEASURES.get(scheme, either)
    return Limits(int(plugin.body_maxlen), measure, pictures, alone=keeps_incidents(plugin))


def _webhook(plugin: apprise.NotifyBase, scheme: str) -> bool:
    """Return whether it is a Slack webhook: those take no file, though the plugin does."""
    return scheme == "slack" and str(getattr(plugin, "mode", "")).endswith("hook")
