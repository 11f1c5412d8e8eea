"""`tailbudget inspect`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailbudget.schemas.errors import ConfigError


def inspect(
    *,
    log: Annotated[
        Path | None,
        typer.Argument(metavar="LOG", help="The log to look at.", show_default=False),
    ] = None,
    log_format: Annotated[
        str | None, typer.Option("--log-format", metavar="NAME", help="Else it is found out.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Write it there instead.")
    ] = None,
) -> None:
    """Look at the first rows of a log and propose a mapping file, with what was seen and why.

    Check the proposal, then give it to an audit with --columns.

    Example: `tailbudget inspect requests.jsonl --output mapping.yaml`
    """
    if log is None:
        raise ConfigError("give a LOG", remedy="such as tailbudget inspect requests.jsonl")
    from tailbudget.streams.inspection import inspect as look  # noqa: PLC0415

    text = look(log, log_format).text()
    if output is None:
        typer.echo(text, nl=False)
    else:
        output.write_text(text, encoding="utf-8")
