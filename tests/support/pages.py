"""The pages of the documentation, taken apart for tests."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
PAGES: Final = (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md")))

_BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CODE: Final = re.compile(r"`([^`\n]+)`")


def text(page: Path) -> str:
    """Return the source of a page."""
    return page.read_text(encoding="utf-8")


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of a language, in order."""
    return [body for name, body in _BLOCK.findall(text(page)) if name == language]


def prose(page: Path) -> str:
    """Return the page without its fenced blocks."""
    return _BLOCK.sub("", text(page))


def codes(page: Path) -> list[str]:
    """Return what stands in backticks outside of blocks."""
    return _CODE.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """Return the fragments that a link to the page may have."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.strip().replace(" ", "-") for heading in plain}


def rows(page: Path, header: str) -> list[list[str]]:
    """Return the cells of the table whose first line is `header`."""
    _, found, rest = text(page).partition(f"{header}\n")
    assert found, f"{page.name} has no table {header}"
    lines = rest.splitlines()[1:]
    end = next((i for i, line in enumerate(lines) if not line.startswith("|")), len(lines))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:end]]
