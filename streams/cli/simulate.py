"""`tailbudget simulate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tailbudget.streams.cli.interrupt import until_interrupted
from tailbudget.streams.cli.options import (
    SIMULATED,
    Config,
    ScenarioName,
    duration_s,
    played,
    settings,
)

if TYPE_CHECKING:
    from tailbudget.streams.simulate import Progress


def simulate(
    *,
    config: Config = None,
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help="End by itself, as after 120s or 5m."),
    ] = None,
    service: Annotated[str, typer.Option("--service", help="Name of the service.")] = SIMULATED,
    rate: Annotated[float, typer.Option("--rate", min=0.1, help="Requests a second.")] = 200.0,
    seed: Annotated[int, typer.Option("--seed", help="Another seed, other traffic.")] = 1,
    scenario: ScenarioName = None,
) -> None:
    """Publish the traffic of a simulated inference service, with a deploy and a fault in it.

    Creates the topics that do not exist yet. Ctrl-C ends it.

    Example: `tailbudget simulate --rate 500 --for 5m`
    """
    limit_s = duration_s(for_)
    faulty = played(scenario, service=service, rate=rate, seed=seed)
    kafka = settings(config).kafka
    from tailbudget.streams import simulate as simulation  # noqa: PLC0415
    from tailbudget.streams.kafka import kafka_config  # noqa: PLC0415
    from tailbudget.streams.scenario import demonstration  # noqa: PLC0415
    from tailbudget.streams.topics import ensure_topics  # noqa: PLC0415
    from tailbudget.streams.traffic import ScenarioTraffic  # noqa: PLC0415

    ensure_topics(kafka)
    done = simulation.run(
        kafka_config(kafka),
        faulty or ScenarioTraffic(demonstration(service=service, rate=rate, seed=seed)),
        simulation.Topics(kafka.requests[0].topic, kafka.deploys_topic),
        duration_s=limit_s,
        pace=simulation.Pace(wait=until_interrupted()),
        report=_report,
    )
    typer.echo(f"published {done.records:,} records and {done.deploys} deploy events")


def _report(progress: Progress) -> None:
    for what in progress.happened:
        typer.echo(f"{progress.elapsed_s:7.1f} s  {what}")
    typer.echo(f"{progress.elapsed_s:7.1f} s  {progress.records:,} records published")
