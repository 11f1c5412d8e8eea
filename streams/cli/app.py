"""The commands together."""

from __future__ import annotations

from typing import Annotated

import typer

from tailbudget.streams.cli import (
    audit,
    check,
    dashboard,
    inspect,
    migrate,
    replay,
    report,
    silence,
    simulate,
    sql,
    top,
    up,
    worker,
)

app = typer.Typer(
    name="tailbudget",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:  # noqa: FBT001 (typer calls it so)
    if wanted:
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

        try:
            typer.echo(f"tailbudget {version('tailbudget')}")
        except PackageNotFoundError:
            typer.echo("tailbudget, run from its source without being installed")
        raise typer.Exit


@app.callback()
def tailbudget(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Audit the latency budget of live inference services.

    Start with `tailbudget up`: everything on one machine, nothing else installed.
    """


for command in (
    up.up,
    worker.worker,
    audit.audit,
    inspect.inspect,
    check.check,
    migrate.migrate,
    simulate.simulate,
    replay.replay,
    report.report,
    silence.silence,
    sql.sql,
    dashboard.dashboard,
    top.top,
):
    app.command()(command)
