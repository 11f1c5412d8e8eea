"""`tailbudget sql`."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from tailbudget.schemas.errors import ConfigError
from tailbudget.streams.cli.options import Config, Data, settings


class Output(StrEnum):
    """How the answer is printed."""

    TABLE = "table"
    JSON = "json"


def sql(
    *,
    query: Annotated[
        str, typer.Argument(metavar="QUERY", help="One SELECT; - reads it from standard input.")
    ],
    config: Config = None,
    data: Data = None,
    format_: Annotated[
        Output, typer.Option("--format", "-f", help="How to print the answer.")
    ] = Output.TABLE,
) -> None:
    """Ask ClickHouse, reading only; also while a worker owns the embedded engine.

    Example: `tailbudget sql "SELECT service, max(pane) FROM current_panes GROUP BY service"`
    """
    text = sys.stdin.read() if query == "-" else query
    if not text.strip():
        raise ConfigError("the query is empty", remedy='such as tailbudget sql "SELECT 1"')
    chosen = settings(config, data)
    from tailbudget.streams.sql import run  # noqa: PLC0415

    run(chosen, text, format_.value)
