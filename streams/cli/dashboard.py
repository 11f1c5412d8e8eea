"""`tailbudget dashboard`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailbudget.streams.cli.options import Config, settings


def dashboard(
    *,
    config: Config = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="The directory of an embedded `up`, ended."),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=1, max=65_535, help="Listen here, in place of web.port."),
    ] = None,
) -> None:
    """Serve the dashboard from ClickHouse alone, without a worker. Ctrl-C ends it.

    A worker serves the same pages on its own port.

    Example: `tailbudget dashboard --data ./demo --port 6070`
    """
    chosen = settings(config, data)
    if port is not None:
        web = chosen.web.model_copy(update={"port": port})
        chosen = chosen.model_copy(update={"web": web})
    from tailbudget.streams.dashboard.server import run  # noqa: PLC0415

    run(chosen)
