"""What the reports of audits made by hand, and of one seeded log, must be, to the letter.

    PYTHONPATH=.types:tests/support python tests/support/golden.py

writes the files anew; read the difference before you commit it.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import audits
import polars as pl
from command_line import run
from situations import frame, fraud_scoring_log

from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.json_report import as_json
from tailbudget.sinks.report.markdown_report import markdown

GOLDEN: Final = Path(__file__).resolve().parents[1] / "golden"

AUDITS: Final[dict[str, Callable[[], Audit]]] = {"breach": audits.breach, "sparse": audits.sparse}

FORMATS: Final[dict[str, Callable[[Audit], str]]] = {
    "md": markdown,
    "json": lambda audit: json.dumps(as_json(audit), indent=1, ensure_ascii=False) + "\n",
}


def seeded_log(folder: Path) -> list[str]:
    """Write a log from a seed, and a deploy; return the command that audits it."""
    log = frame(fraud_scoring_log(1, 4_000))
    log.with_columns(pl.selectors.float().round(4)).write_csv(folder / "scoring.csv")
    event = {"service": "fraud-scoring", "version": "v2", "ts": "2026-03-02T10:01:00Z"}
    (folder / "deploys.jsonl").write_text(json.dumps(event) + "\n", encoding="utf-8")
    command = "audit scoring.csv --service fraud-scoring --slo p95=180,p99=200"
    return f"{command} --deploys deploys.jsonl --cold-start-window-min 1 --format markdown".split()


def golden(name: str, suffix: str) -> str:
    """Return what is expected of an audit in a format."""
    return (GOLDEN / f"audit_{name}.{suffix}").read_text(encoding="utf-8")


def _write() -> None:
    for name, audit in AUDITS.items():
        for suffix, render in FORMATS.items():
            path = GOLDEN / f"audit_{name}.{suffix}"
            path.write_text(render(audit()), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        _, printed = run(*seeded_log(home), home=home)
    (GOLDEN / "audit_file.md").write_text(printed, encoding="utf-8")


if __name__ == "__main__":
    _write()
