"""What a report says, word by word, whatever its format."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser

from markdown_it import MarkdownIt
from rich.console import Console

from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.html_report import html
from tailbudget.sinks.report.markdown_report import markdown
from tailbudget.sinks.report.text_report import text

_ENTRY = re.compile(r"^  (•|\d+\.) ", re.MULTILINE)
_SCRIPT = re.compile(r"<script.*?</script>", re.DOTALL)  # five megabytes to read past
_RULE = re.compile(r"─+")
_SKIPPED = ("script", "style", "title", "nav", "figcaption")
_VOID = ("meta", "br", "img", "link")


def markdown_words(audit: Audit) -> list[str]:
    """Return the words of the Markdown report as a reader sees them."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    page = Page()
    page.feed(parser.render(markdown(audit)))
    return page.words()


def html_words(audit: Audit) -> list[str]:
    """Return the words of the HTML report without its charts and its list of sections."""
    page = Page()
    page.feed(_SCRIPT.sub("", html(audit)))
    return page.words()


def text_words(audit: Audit) -> list[str]:
    """Return the words of the text report on a terminal so wide that nothing wraps."""
    return _RULE.sub("", _ENTRY.sub("", printed(audit, 4_000))).split()


def printed(audit: Audit, width: int, *, colour: bool = False) -> str:
    """Return what is printed on a terminal of a width."""
    console = Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        legacy_windows=False,
    )
    text(audit, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


class Page(HTMLParser):
    """Text and elements of a page.

    Attributes:
        elements: (tag, attributes) in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self._text: list[str] = []

    def words(self) -> list[str]:
        """Return the visible words in order."""
        return "".join(self._text).split()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)
        self._part(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass
        self._part(tag)

    def handle_data(self, data: str) -> None:
        if not set(_SKIPPED) & set(self._open):
            self._text.append(data)

    def _part(self, tag: str) -> None:
        # Inline elements do not part words, all others do.
        if tag not in ("strong", "code", "bdi", "em", "a", "s"):
            self._text.append(" ")
