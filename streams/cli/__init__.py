"""The command line: one command a file.

Each command imports what it runs only when it is run, so that `--help` and wrong usage answer at
once. Errors that have a remedy are told as two lines on stderr, never as a traceback.
"""

from __future__ import annotations

import logging
import os
import sys

from tailbudget.schemas.errors import TailbudgetError


def main() -> None:
    """Run the command that the arguments name, and exit with its status."""
    # numpy multiplies small matrices here: threads that share one spin, and cost twice the CPU. It
    # is read when numpy is imported, which the commands do.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from tailbudget.streams.cli.app import app  # noqa: PLC0415 (commands register on import)

    # Libraries log what we tell better as an error; a worker sets up its own logging.
    logging.getLogger().addHandler(logging.NullHandler())
    try:
        app()
    except TailbudgetError as error:
        print(f"error: {error.message}", file=sys.stderr)  # noqa: T201 (rich would wrap it)
        if error.remedy:
            print(f"remedy: {error.remedy}", file=sys.stderr)  # noqa: T201
        sys.exit(error.exit_status)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("tailbudget"):
            raise
        print(f"error: the Python package {error.name} is missing", file=sys.stderr)  # noqa: T201
        print("remedy: pip install --force-reinstall tailbudget", file=sys.stderr)  # noqa: T201
        sys.exit(1)
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does; there is nobody left to tell.
        sys.stderr.close()
        sys.exit(1)
