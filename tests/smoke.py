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


def main() -> None:
    """Run the stack and ask it."""
    assert "Audit the latency budget" in run("--help")
    data = tempfile.mkdtemp(prefix="tailbudget-smoke-")
    try:
        run("up", "--for", "25s", "--data", data)
        sql = "SELECT sum(requests) AS n FROM current_panes WHERE stage = 'total'"
        found = json.loads(run("sql", "--data", data, "--format", "json", sql))
        assert int(found[0]["n"]) > 1000, found
    finally:
        shutil.rmtree(data, ignore_errors=True)
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
