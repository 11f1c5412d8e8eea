"""`tailbudget up`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tailbudget.streams.cli.options import (
    SIMULATED,
    Config,
    ScenarioName,
    duration_s,
    played,
    settings,
)


def up(
    *,
    config: Config = None,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="End by itself, as after 120s or 5m."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Keep the data here for the next run."),
    ] = None,
    rate: Annotated[
        float, typer.Option("--rate", min=0.1, help="Requests a second of the simulated service.")
    ] = 200.0,
    scenario: ScenarioName = None,
) -> None:
    """Run everything on this machine: broker, ClickHouse, worker and a simulated service.

    Prints rolling percentiles, a breach, what drives it, the alert and the recovery. Ctrl-C ends
    it cleanly.

    Example: `tailbudget up --for 120s --data ./demo`
    """
    for_s = duration_s(for_)
    chosen = settings(config)
    from tailbudget.streams.up import run  # noqa: PLC0415

    faulty = played(scenario, service=SIMULATED, rate=rate, seed=1)
    run(chosen, for_s=for_s, data=data, rate=rate, played=faulty)
