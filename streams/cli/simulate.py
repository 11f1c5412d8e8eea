"""`tailbudget simulate`."""

from __future__ import annotations

from typing import Annotated

import typer

from tailbudget.streams.cli.options import Config, duration_s, settings


def simulate(
    *,
    config: Config = None,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="End by itself, as after 120s or 5m."),
    ] = None,
    rate: Annotated[float, typer.Option("--rate", min=0.1, help="Requests a second.")] = 200.0,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, other traffic.")] = 1,
) -> None:
    """Publish the traffic of a simulated inference service, with a deploy and a fault in it.

    Example: `tailbudget simulate --rate 500 --for 5m`
    """
    for_s = duration_s(for_)
    chosen = settings(config)
    from tailbudget.streams.simulate import run  # noqa: PLC0415

    run(chosen, for_s=for_s, rate=rate, seed=seed)
