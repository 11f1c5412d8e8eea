"""`tailbudget check`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from tailbudget.streams.cli.options import Config, settings


def check(
    *,
    config: Config = None,
    patience: Annotated[
        float, typer.Option(min=0.1, metavar="SECONDS", help="How long to wait for the broker.")
    ] = 10.0,
    send_test: Annotated[
        str | None,
        typer.Option(
            metavar="CHANNEL",
            help="Send a test message to this chat channel, and look at nothing else.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Say what is wrong with settings, broker, topics, ClickHouse and chat, and how to mend it.

    Changes nothing, and sends nothing but a test message that is asked for. Exits with 1 when
    anything is wrong.

    Example: `tailbudget check -c tailbudget.yaml`
    """
    chosen = settings(config)
    from tailbudget.streams import check as checking  # noqa: PLC0415

    console = Console(highlight=False, soft_wrap=True)
    wrong = 0
    findings = (
        checking.check(chosen, patience_s=patience)
        if send_test is None
        else iter([checking.send_test(chosen, send_test)])
    )
    for finding in findings:
        mark = Text("ok    ", "green") if finding.ok else Text("WRONG ", "bold red")
        console.print(mark + Text(f"{finding.subject}: {finding.what}"))
        if finding.remedy:
            console.print(Text(f"      remedy: {finding.remedy}"))
        wrong += not finding.ok
    if wrong:
        raise typer.Exit(1)
