"""What a report says, as plain data: sections of sentences, lists and tables.

Every format lays out the same document. A sentence is a tuple of spans, so that a format sets
names and judgements apart by its own means, and escapes everything that is not its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tailbudget.sinks.report.clean import EMPTY, SENTENCE_LENGTH, clean, clean_name

MAX_ROWS: Final = 20
"""Rows of a table that can grow with the log: a screen. The JSON report has all."""


class Tone(StrEnum):
    """How a span is meant; never the only carrier of what it means."""

    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    STRONG = "strong"


@dataclass(frozen=True, slots=True)
class Name:
    """A name from outside, such as a stage's, set apart from the words around it."""

    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Words that stand out."""

    text: str
    tone: Tone = Tone.STRONG


Span = str | Name | Mark
Line = tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One sentence or a few."""

    line: Line


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading within a section."""

    line: Line


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list.

    Attributes:
        lines: the entries.
        title: what they are, in a few words of ours.
        ordered: whether they are numbered.
    """

    lines: tuple[Line, ...]
    title: str = ""
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its heading, and whether its cells are figures (set to the right)."""

    heading: str
    figures: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table whose cells are formatted.

    Attributes:
        caption: what it shows, in a few words of ours.
        columns: the first one names the row.
        rows: one span a column, none blank.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Line, ...]


Block = Paragraph | Heading | Bullets | Table


@dataclass(frozen=True, slots=True)
class Section:
    """A section.

    Attributes:
        key: its key in the JSON report; also names its charts.
        title: its title in words of ours.
        blocks: what it says, at least one.
    """

    key: str
    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report.

    Attributes:
        headline: the verdict in one sentence.
        title: what was audited.
        sections: in order, the first ten numbered.
    """

    headline: Line
    title: Line
    sections: tuple[Section, ...]


NUMBERED: Final = 10
"""Sections that have a number; what may be absent follows them without one."""


def section_title(at: int, section: Section) -> str:
    """Return the title of the section at an index with its number."""
    return f"{at + 1}. {section.title}" if at < NUMBERED else section.title


def say(*spans: Span) -> Line:
    """Return a sentence, or the cells of a row, fit to be shown whatever a span holds."""
    return tuple(_cleaned(span) for span in spans)


def plain(line: Line) -> str:
    """Return the words of a sentence alone."""
    return "".join(span if isinstance(span, str) else span.text for span in line)


def paragraph(*spans: Span) -> Paragraph:
    """Return a paragraph of spans."""
    return Paragraph(say(*spans))


def bullets(title: str, texts: Iterable[str]) -> Bullets:
    """Return a list of sentences that are not ours."""
    return Bullets(tuple(say(text.strip() or EMPTY) for text in texts), title)


def columns(text: str) -> tuple[Column, ...]:
    """Return columns from headings parted by "|"; those of figures end in ">"."""
    headings = (part.strip() for part in text.split("|"))
    return tuple(Column(part.removesuffix(">").strip(), part.endswith(">")) for part in headings)


def cut(rows: tuple[Line, ...], what: str) -> tuple[tuple[Line, ...], tuple[Block, ...]]:
    """Return the first `MAX_ROWS` rows, and a note of what was left out."""
    rest = len(rows) - MAX_ROWS
    if rest <= 0:
        return rows, ()
    note = f"{rest:,} more {what} are in the JSON report."
    return rows[:MAX_ROWS], (paragraph(note),)


def _cleaned(span: Span) -> Span:
    if isinstance(span, Name):
        return Name(clean_name(span.text))
    if isinstance(span, Mark):
        return Mark(clean(span.text, SENTENCE_LENGTH) or EMPTY, span.tone)
    # The spaces at the ends part spans from each other.
    lead = " " if span[:1].isspace() else ""
    trail = " " if span[-1:].isspace() and span.strip() else ""
    return lead + clean(span, SENTENCE_LENGTH) + trail
