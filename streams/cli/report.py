"""`tailbudget report`."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.settings import parse_slo
from tailbudget.streams.cli import judging
from tailbudget.streams.cli.judging import Format
from tailbudget.streams.cli.options import Config, Data, instant_ns, settings


def report(
    *,
    service: Annotated[str, typer.Argument(metavar="SERVICE", help="Which service.")],
    since: Annotated[
        str,
        typer.Option("--since", metavar="WHEN", help="From when: 30m, 24h, 7d ago, or a time."),
    ] = "1h",
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="WHEN", help="Until when, likewise; else until now."),
    ] = None,
    config: Config = None,
    data: Data = None,
    slo: judging.Slo = None,
    slow_request_threshold: judging.SlowThreshold = "p95",
    propose_slo: judging.ProposeSlo = False,
    advice: judging.Advice = False,
    context: judging.ContextFile = None,
    format_: judging.As = Format.TEXT,
    output: judging.Output = None,
) -> None:
    """Write the latency-budget report of a service over any range, from ClickHouse.

    Also while a worker owns the embedded engine. Exits like `tailbudget audit`.

    Example: `tailbudget report chat --since 24h --format html --output chat.html`
    """
    now_ns = time.time_ns()
    start_ns = instant_ns(since, now_ns)
    end_ns = now_ns if until is None else instant_ns(until, now_ns)
    if start_ns >= end_ns:
        raise ConfigError(
            f"--since {since!r} is not before {f'--until {until!r}' if until else 'now'}",
            remedy="such as --since 48h --until 24h",
        )
    threshold = judging.slow_threshold(slow_request_threshold)
    extras = judging.Extras.asked(propose_slo=propose_slo, advice=advice, context=context)
    chosen = settings(config, data)
    from tailbudget.streams import logs  # noqa: PLC0415
    from tailbudget.streams.history import Span  # noqa: PLC0415
    from tailbudget.streams.service_report import Past, ask_report  # noqa: PLC0415

    logs.set_up("warning")  # standard output is the report's
    past = Past(service, Span(start_ns, end_ns), now_ns)
    target = parse_slo(slo) if slo else None
    found = ask_report(chosen, past, slo=target, slow_request_threshold=threshold)
    judging.print_report(found, extras, format_, output)
