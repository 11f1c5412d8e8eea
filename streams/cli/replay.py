"""`tailbudget replay`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailbudget.schemas.errors import ConfigError
from tailbudget.streams.cli.options import Config, settings


def replay(
    *,
    log: Annotated[Path, typer.Argument(metavar="LOG", help="File of request records.")],
    config: Config = None,
    format_: Annotated[
        str | None,
        typer.Option("--format", metavar="NAME", help="Its format; recognised when not given."),
    ] = None,
    service: Annotated[
        str | None, typer.Option("--service", help="Service of records that name none.")
    ] = None,
    topic: Annotated[
        str | None, typer.Option("--topic", help="Where to; the first of kafka.requests.")
    ] = None,
    speed: Annotated[
        str,
        typer.Option("--speed", metavar="FACTOR", help="1 is as it was, 10 ten times; or max."),
    ] = "max",
) -> None:
    """Publish a log of requests, as fast as the broker takes it or at the pace of the log.

    Example: `tailbudget replay requests.jsonl --service chat --speed 10`
    """
    factor = _speed(speed)
    if not log.is_file():
        raise ConfigError(f"{log} is no file that exists", remedy="give the path of a log")
    chosen = settings(config)
    from tailbudget.streams.replay import run  # noqa: PLC0415

    run(chosen, log, format_name=format_, service=service, topic=topic, speed=factor)


def _speed(text: str) -> float | None:
    """Return the factor, or None for as fast as possible."""
    if text == "max":
        return None
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0 < factor < float("inf"):
        raise ConfigError(f"--speed {text!r} is no speed", remedy="give a number above 0, or max")
    return factor
