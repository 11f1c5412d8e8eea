"""Make what is to be said fit, as the channel counts it; never cut within an escape."""

from __future__ import annotations

import re
from typing import Final

from tailbudget.schemas.messages import Draft, Limits

_SIGNS: Final = re.compile(r"\*\*|`")
_SPARE: Final = 16
"""Room for what a channel puts between title and body."""


def fit(draft: Draft, limits: Limits) -> tuple[str, str]:
    """Return the title and the body in Markdown, within the limits together.

    The query goes first, then lines of the tail, then items ("+N more"), last of all the ends of
    the lines that remain.
    """
    room = limits.characters - _SPARE
    title = _cut(draft.title, limits, min(room // 2, 250))
    room -= limits.measure(title)
    for query, tail, items in _choices(draft):
        body = _body(draft, items=items, tail=tail, query=query)
        if limits.measure(body) <= room:
            return title, body
    return title, _cut(_body(draft, items=0, tail=0, query=False), limits, room)


def plain(markdown: str) -> str:
    """Return the text without the signs of Markdown that we write."""
    lines = [line for line in markdown.splitlines() if line.strip() != "```"]
    return _SIGNS.sub("", "\n".join(lines))


def shorten(text: str, limits: Limits) -> str:
    """Return a text within half of the limits: for a channel that refused it longer."""
    return _cut(text, limits, limits.characters // 2)


def _choices(draft: Draft) -> list[tuple[bool, int, int]]:
    """Return what to show, from all to least: the query, lines of the tail, items."""
    tails, items = len(draft.tail), len(draft.items)
    choices = [(bool(draft.query), tails, items)]
    kept = min(items, 3)
    choices += [(False, tails, n) for n in range(items, kept - 1, -1)]
    choices += [(False, n, kept) for n in range(tails - 1, -1, -1)]
    return [*choices, *((False, 0, n) for n in range(kept - 1, -1, -1))]


def _body(draft: Draft, *, items: int, tail: int, query: bool) -> str:
    lines = [*draft.head, *draft.items[:items]]
    if more := len(draft.items) - items:
        lines.append(f"+{more} more")
    lines += draft.tail[:tail]
    if query:
        lines += ["", "```", draft.query, "```"]
    return "\n".join(lines)


def _cut(text: str, limits: Limits, room: int) -> str:
    """Return the longest start of a text that fits, with an ellipsis where something is cut."""
    if limits.measure(text) <= room:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if limits.measure(text[:middle] + "…") <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low] + "…"
