"""`tailbudget migrate`."""

from __future__ import annotations

from contextlib import closing

import typer

from tailbudget.streams.cli.options import Config, settings


def migrate(*, config: Config = None) -> None:
    """Bring the tables in ClickHouse up to date. Safe to repeat; never goes back.

    Example: `TAILBUDGET_CLICKHOUSE__HOST=clickhouse tailbudget migrate`
    """
    chosen = settings(config)
    from tailbudget.streams.database import open_database  # noqa: PLC0415

    with closing(open_database(chosen.clickhouse, create=True)) as database:
        applied = database.migrate(chosen.clickhouse.ttl_days)
    for name in applied:
        typer.echo(f"applied {name}")
    typer.echo("tables are up to date")
