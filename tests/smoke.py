"""Smoke test of an installed wheel: run with the interpreter of the environment under test.

The embedded stack runs for half a minute and must count requests that SQL then finds.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("tailbudget"))


def run(*arguments: str) -> str:
    """Run the installed command; its output, or the end of the test."""
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"tailbudget {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def log(path: Path) -> str:
    """Write a log whose requests take 1 to 100 ms, and return its path."""
    rows = (
        {
            "request_id": f"r{i}",
            "timestamp": 1772445600 + i,
            "total_ms": i % 100 + 1,
            "model_ms": i % 100,
        }
        for i in range(3000)
    )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def main() -> None:
    """Run the stack and ask it."""
    assert "Audit the latency budget" in run("--help")
    data = tempfile.mkdtemp(prefix="tailbudget-smoke-")
    try:
        run("up", "--for", "25s", "--data", data)
        sql = "SELECT sum(requests) AS n FROM current_panes WHERE stage = 'total'"
        found = json.loads(run("sql", "--data", data, "--format", "json", sql))
        assert int(found[0]["n"]) > 1000, found
        page = Path(data, "audit.html")
        run(
            "audit", log(Path(data, "log.jsonl")), "--slo", "p99=500", "-f", "html", "-o", str(page)
        )
        assert "plotly" in page.read_text(encoding="utf-8")
    finally:
        shutil.rmtree(data, ignore_errors=True)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
