"""Section 8: why the tail is slow, with what speaks for each cause and against it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tailbudget.schemas.proposals import Cause, CauseName
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.clean import capital
from tailbudget.sinks.report.document import (
    Block,
    Heading,
    Line,
    Name,
    Section,
    Span,
    Table,
    bullets,
    columns,
    paragraph,
    say,
)
from tailbudget.sinks.report.figures import number, words

_COLUMNS: Final = "Cause | Score > | Stage | Cohort | Input"


def causes(audit: Audit) -> Section:
    """Return the causes, the most probable first."""
    if not audit.causes:
        said = paragraph("Not looked for: the audit is refused.")
        return Section("causes", "Causes", (said,))
    rows = tuple(say(*_cells(cause)) for cause in audit.causes)
    table = Table("Causes, the most probable first", columns(_COLUMNS), rows)
    each = (block for cause in audit.causes for block in _blocks(cause))
    return Section("causes", "Causes", (table, *each))


def _cells(cause: Cause) -> Iterator[Span]:
    yield words(cause.cause)
    yield number(cause.score)
    yield Name(cause.stage) if cause.stage else "the whole request"
    yield Name(cause.cohort) if cause.cohort else "no single one"
    yield Name(cause.covariate) if cause.covariate else "none"


def _blocks(cause: Cause) -> Iterator[Block]:
    yield Heading(_title(cause))
    yield _list("For it:", cause.evidence, "nothing measured")
    yield _list("Against it:", cause.against, "nothing that was measured")
    if cause.missing:
        yield bullets("To measure next:", cause.missing)


def _title(cause: Cause) -> Line:
    if cause.cause is CauseName.UNKNOWN:
        return say("Unknown cause")
    spans: tuple[Span, ...] = (" through ", Name(cause.stage)) if cause.stage else ()
    return say(capital(words(cause.cause)), *spans)


def _list(title: str, texts: tuple[str, ...], nothing: str) -> Block:
    return bullets(title, texts or (nothing,))
