"""docs/report.md shows a real report, and says what its code does."""

from __future__ import annotations

import re

import audits
from golden import golden
from pages import DOCS, ROOT, blocks, text

from tailbudget.sinks.report.clean import NAME_LENGTH
from tailbudget.sinks.report.document import MAX_ROWS
from tailbudget.sinks.report.html_report import html
from tailbudget.sinks.report.sections.cohorts import LIFT

PAGE = DOCS / "report.md"


def test_excerpts_are_of_the_report() -> None:
    """Every excerpt stands in the golden report, to the letter."""
    report = golden("breach", "md").splitlines()
    excerpts = [line for block in blocks(PAGE, "") for line in block.splitlines()]
    assert len(excerpts) >= 5
    assert [line for line in excerpts if line not in report] == []


def test_the_readme_quotes_the_report_of_a_seeded_log() -> None:
    """What it shows of an audit is what the command writes, to the letter."""
    report = golden("file", "md").splitlines()
    quoted = [block for block in blocks(ROOT / "README.md", "") if block.startswith("**BREACH**")]
    assert len(quoted) == 1
    assert [line for line in quoted[0].splitlines() if line not in report] == []


def test_the_page_explains_every_section() -> None:
    """Its headings are those of the ten sections, in order."""
    wanted = [line[3:] for line in golden("breach", "md").splitlines() if re.match(r"## \d", line)]
    assert re.findall(r"^### (.+)$", text(PAGE), re.MULTILINE) == wanted


def test_numbers_are_those_of_the_code() -> None:
    """Limits on the page are the constants, and the size of the file is measured."""
    page = text(PAGE)
    assert f"{NAME_LENGTH} characters at most" in page
    assert f"shows {MAX_ROWS} rows" in page
    assert LIFT == 2
    assert "at least twice its share of all" in page
    assert f"is {len(html(audits.breach())) / 1e6:.1f} MB" in page
    assert f"without charts it is {len(html(audits.sparse())) / 1e3:.0f} kB" in page
