"""The report as Markdown."""

from __future__ import annotations

import audits
import pytest
from golden import AUDITS, golden
from markdown_it import MarkdownIt
from rich.cells import cell_len

from tailbudget.sinks.report.markdown_report import markdown

NAMES = pytest.mark.parametrize("name", audits.HOSTILE, ids=range(len(audits.HOSTILE)))

HEADINGS = [
    "1. Provenance",
    "2. End-to-end latency",
    "3. Stages",
    "4. Slow against fast requests",
    "5. Input shape",
    "6. Cohorts",
    "7. Cold start",
    "8. Causes",
    "9. Optimisations",
    "10. SLO and capacity",
    "Regressions",
    "Error budgets",
    "Against the baseline",
    "Ledger",
    "Warnings",
]


@pytest.mark.parametrize("name", AUDITS)
def test_report_is_as_it_was(name: str) -> None:
    """The report of an audit made by hand is the golden file, to the letter."""
    assert markdown(AUDITS[name]()) == golden(name, "md")


OPTIONAL = ("Regressions", "Error budgets", "Against the baseline")


def test_sections_come_in_order() -> None:
    """Ten numbered sections, then the baseline, the ledger and the warnings."""
    lines = markdown(audits.breach()).splitlines()
    assert [line[3:] for line in lines if line.startswith("## ")] == HEADINGS
    sparse = markdown(audits.sparse()).splitlines()
    assert [line[3:] for line in sparse if line.startswith("## ")] == [
        heading for heading in HEADINGS if heading not in OPTIONAL
    ]


@NAMES
def test_tables_are_aligned(name: str) -> None:
    """All lines of a table are equally wide in a terminal, wide characters included."""
    tables: list[list[str]] = [[]]
    for line in markdown(audits.hostile(name)).splitlines():
        if line.startswith("|"):
            tables[-1].append(line)
        elif tables[-1]:
            tables.append([])
    assert len([table for table in tables if table]) > 12
    for table in tables:
        assert len({cell_len(line) for line in table}) <= 1


@NAMES
def test_hostile_names_make_no_markup(name: str) -> None:
    """Names add no heading, link, image, cell or HTML: the structure is that of tame names."""
    assert structure(name) == structure("tame")


def structure(name: str) -> list[str]:
    """Return the kinds of elements in order, those of a name itself aside."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    kinds: list[str] = []
    for token in parser.parse(markdown(audits.hostile(name))):
        kinds.append(token.type)
        kinds += [child.type for child in token.children or ()]
    # A name is code where it can be, else plain text.
    return [kind for kind in kinds if kind not in ("code_inline", "text", "text_special")]
