"""`tailbudget top`."""

from __future__ import annotations

import sys

from tailbudget.schemas.errors import ConfigError
from tailbudget.streams.cli.options import Config, Data, settings


def top(
    *,
    config: Config = None,
    data: Data = None,
) -> None:
    """Watch services, stages, cohorts and alerts in the terminal; also beside `tailbudget up`.

    Enter looks into a service, Escape goes back, w changes the window, q quits.

    Example: `tailbudget top --data ./demo`
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError(
            "top needs a terminal to draw on",
            remedy="use `tailbudget sql` or `tailbudget report` in scripts and pipes",
        )
    chosen = settings(config, data)
    from tailbudget.streams.top.app import run  # noqa: PLC0415

    run(chosen)
