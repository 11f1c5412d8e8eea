"""What the reports of the audits made by hand must be, to the letter.

    PYTHONPATH=.types:tests/support python tests/support/golden.py

writes the files anew; read the difference before you commit it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import audits

from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.json_report import as_json
from tailbudget.sinks.report.markdown_report import markdown

GOLDEN: Final = Path(__file__).resolve().parents[1] / "golden"

AUDITS: Final[dict[str, Callable[[], Audit]]] = {"breach": audits.breach, "sparse": audits.sparse}

FORMATS: Final[dict[str, Callable[[Audit], str]]] = {
    "md": markdown,
    "json": lambda audit: json.dumps(as_json(audit), indent=1, ensure_ascii=False) + "\n",
}


def golden(name: str, suffix: str) -> str:
    """Return what is expected of an audit in a format."""
    return (GOLDEN / f"audit_{name}.{suffix}").read_text(encoding="utf-8")


def _write() -> None:
    for name, audit in AUDITS.items():
        for suffix, render in FORMATS.items():
            path = GOLDEN / f"audit_{name}.{suffix}"
            path.write_text(render(audit()), encoding="utf-8")


if __name__ == "__main__":
    _write()
