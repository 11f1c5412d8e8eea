"""`tailbudget replay`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailbudget.schemas.kafka import RequestTopic
from tailbudget.streams.cli.interrupt import until_interrupted
from tailbudget.streams.cli.options import Config, settings

if TYPE_CHECKING:
    from tailbudget.streams.replay import Replayed


def replay(
    *,
    log: Annotated[
        Path,
        typer.Argument(metavar="LOG", help="JSON lines, plain, .gz or .zst; - is standard input."),
    ],
    config: Config = None,
    format_: Annotated[
        str, typer.Option("--format", metavar="NAME", help="Format of the log; auto finds it out.")
    ] = "auto",
    service: Annotated[
        str | None, typer.Option("--service", help="Service of records that name none.")
    ] = None,
    topic: Annotated[
        str | None,
        typer.Option("--topic", help="Where to; else the first of kafka.requests that fits."),
    ] = None,
    speed: Annotated[
        str, typer.Option("--speed", metavar="FACTOR", help="1x is as it was, 10x faster; or max.")
    ] = "max",
) -> None:
    """Publish a log of requests, as fast as the broker takes it or at the pace of the log.

    Creates the topics that do not exist yet. Shows how far it is on standard error. Ctrl-C ends it.

    Example: `tailbudget replay requests.jsonl --service chat --speed 10x`
    """
    kafka = settings(config).kafka
    from tailbudget.streams import replay as replaying  # noqa: PLC0415
    from tailbudget.streams.kafka import kafka_config  # noqa: PLC0415
    from tailbudget.streams.topics import ensure_topics  # noqa: PLC0415

    factor = replaying.parse_speed(speed)
    pacing = replaying.Pacing(speed=factor, wait=until_interrupted())
    chosen = kafka.requests[0]

    def target(found: str) -> RequestTopic:
        nonlocal chosen
        chosen = replaying.choose_topic(kafka.requests, found, topic=topic, service=service)
        ensure_topics(kafka)
        return chosen

    client = kafka_config(kafka)
    done = replaying.run(client, log, target, format_name=format_, pacing=pacing, report=_report)
    typer.echo(f"published {done} to {chosen.topic}")
    if done.first_ms is not None:
        now_ms = time.time_ns() // 1_000_000
        warning = replaying.retention_warning(client, chosen.topic, done.first_ms, now_ms)
        if warning:
            typer.echo(f"warning: {warning}", err=True)


def _report(progress: Replayed) -> None:
    typer.echo(str(progress), err=True)
