"""`tailbudget silence`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated
from uuid import uuid4

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.silences import Silence
from tailbudget.streams.cli.options import Config, Data, duration_s, settings


def silence(
    *,
    service: Annotated[
        str | None, typer.Argument(metavar="SERVICE", help="Whose alerts.", show_default=False)
    ] = None,
    alert: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Only this alert, such as p99 or slo:latency.",
            show_default=False,
        ),
    ] = None,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="How long: 30m, 2h.", show_default=False),
    ] = None,
    reason: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Why; those who look see it.", show_default=False),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Show the silences that run.")] = False,
    end: Annotated[
        str | None, typer.Option(metavar="ID", help="End this silence now.", show_default=False)
    ] = None,
    config: Config = None,
    data: Data = None,
) -> None:
    """Tell nobody of a service's alerts for a while; they are judged and kept all the same.

    Example: `tailbudget silence chat --for 2h --reason "load test"`
    """
    asked = (service is not None) + list_ + (end is not None)
    if asked != 1:
        raise ConfigError(
            "give a SERVICE, --list or --end ID, and one of them",
            remedy='such as tailbudget silence chat --for 2h --reason "load test"',
        )
    chosen = settings(config, data)
    from tailbudget.streams import silencing  # noqa: PLC0415

    console = Console(highlight=False, soft_wrap=True)
    now_ns = time.time_ns()
    if list_:
        console.print(_table(silencing.running(chosen)))
    elif end is not None:
        ended = silencing.end(chosen, end, now_ns)
        console.print(Text(f"ended {ended.id}: {_what(ended)}"))
    else:
        made = _made(str(service), alert, for_, reason, now_ns)
        silencing.keep(chosen, made)
        console.print(Text(f"{made.id}: {_what(made)} is silent until {_time(made.ends_ns)}"))


def _made(
    service: str, alert: str | None, for_: str | None, reason: str | None, now_ns: int
) -> Silence:
    seconds = duration_s(for_)
    if seconds is None or not (reason or "").strip():
        raise ConfigError(
            "a silence needs --for and --reason",
            remedy='such as --for 2h --reason "load test"',
        )
    ends_ns = now_ns + round(seconds * 1e9)
    return Silence(
        uuid4().hex[:8], service, alert or "", now_ns, ends_ns, str(reason).strip(), version=1
    )


def _table(silences: Sequence[Silence]) -> Table | Text:
    if not silences:
        return Text("no silence runs")
    table = Table("id", "what", "until", "reason")
    for one in silences:
        table.add_row(*map(Text, (one.id, _what(one), _time(one.ends_ns), one.reason)))
    return table


def _what(one: Silence) -> str:
    return f"{one.service} {one.alert}" if one.alert else one.service


def _time(at_ns: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_ns // 10**9))
