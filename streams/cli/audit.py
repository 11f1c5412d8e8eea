"""`tailbudget audit`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.settings import parse_slo
from tailbudget.schemas.token_settings import parse_goodput
from tailbudget.streams.cli import judging
from tailbudget.streams.cli.judging import Format
from tailbudget.streams.cli.log_progress import LogProgress, Rejects
from tailbudget.streams.cli.options import Config, settings


def audit(
    *,
    log: Annotated[
        Path | None,
        typer.Argument(
            metavar="LOG",
            help="Parquet, CSV, JSON lines or JSON, also .gz or .zst; a directory of those; -.",
            show_default=False,
        ),
    ] = None,
    sql: Annotated[
        str | None, typer.Option("--sql", metavar="SELECT", help="Rows from ClickHouse instead.")
    ] = None,
    config: Config = None,
    service: Annotated[
        str | None, typer.Option("--service", help="Which service; that of rows that name none.")
    ] = None,
    slo: judging.Slo = None,
    goodput: Annotated[
        str | None,
        typer.Option("--goodput", metavar="TARGETS", help="Such as ttft=200,tpot=50,e2e=2000."),
    ] = None,
    slow_request_threshold: judging.SlowThreshold = "p95",
    input_shape_dims: Annotated[
        str | None, typer.Option("--input-shape-dims", metavar="A,B", help="Columns of the shape.")
    ] = None,
    cohort_dims: Annotated[
        str | None, typer.Option("--cohort-dims", metavar="A,B", help="Columns of the cohorts.")
    ] = None,
    stages: Annotated[
        str | None, typer.Option("--stages", metavar="A,B", help="Stages, without _ms.")
    ] = None,
    cold_start_window_min: Annotated[
        float | None,
        typer.Option("--cold-start-window-min", help="Minutes after a deploy that are cold."),
    ] = None,
    deploys: Annotated[
        Path | None, typer.Option("--deploys", metavar="FILE", help="Deploy events, JSON lines.")
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline", "--compare-to-baseline", metavar="LOG", help="What to compare with."
        ),
    ] = None,
    timezone: Annotated[
        str | None, typer.Option("--timezone", metavar="ZONE", help="Of times that name none.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns", metavar="OURS=THEIRS", help="Such as total_ms=took_s:s; or a YAML file."
        ),
    ] = None,
    log_format: Annotated[
        str | None,
        typer.Option("--log-format", metavar="NAME", help="Or the lines, as nginx has them."),
    ] = None,
    workload: Annotated[
        str | None, typer.Option("--workload", help="online or batch, where it is known.")
    ] = None,
    rejected: Annotated[
        Path | None,
        typer.Option("--rejected", metavar="FILE", help="Write rows that are no records there."),
    ] = None,
    propose_slo: judging.ProposeSlo = False,
    advice: judging.Advice = False,
    context: judging.ContextFile = None,
    format_: judging.As = Format.TEXT,
    output: judging.Output = None,
) -> None:
    """Audit a log of requests and write the latency-budget report.

    Exits with 0 within the SLO, 1 for a breach, 2 for wrong usage, 3 when the log is refused, and
    4 when it holds too little.

    Example: `tailbudget audit requests.parquet --slo p95=180,p99=200 --format markdown`
    """
    if (log is None) == (sql is None):
        raise ConfigError(
            "give a LOG, or --sql" if log is None else "a LOG and --sql exclude each other",
            remedy="such as tailbudget audit requests.jsonl --slo p99=200",
        )
    extras = judging.Extras.asked(propose_slo=propose_slo, advice=advice, context=context)
    chosen = settings(config)
    from tailbudget.streams import log_report  # noqa: PLC0415 (it takes polars and numpy)
    from tailbudget.streams.audit_log import Wanted, parse_format  # noqa: PLC0415
    from tailbudget.streams.mapping_file import with_columns  # noqa: PLC0415

    named, pattern = parse_format(log_format) if log_format else (None, None)
    wanted = Wanted(
        service=service,
        stages=_names(stages),
        covariates=_names(input_shape_dims),
        cohort_dims=_names(cohort_dims),
        timezone=timezone,
        format=named,
        pattern=pattern,
    )
    wanted = with_columns(wanted, columns)
    asked = log_report.Asked(
        source=log if log is not None else log_report.Query(sql or ""),
        wanted=wanted,
        now_ns=time.time_ns(),
        slo=parse_slo(slo) if slo else None,
        slow_request_threshold=judging.slow_threshold(slow_request_threshold),
        cold_start_window_min=cold_start_window_min,
        deploys=log_report.read_deploys(deploys) if deploys else None,
        baseline=baseline,
        workload=workload,
        goodput=parse_goodput(goodput) if goodput else None,
    )
    with Rejects(rejected) as rejects, LogProgress() as progress:
        made = log_report.make(chosen, asked, progress.show, rejects.write)
    judging.print_report((made.audit, made.evidence), extras, format_, output)


def _names(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    return tuple(filter(None, (name.strip() for name in text.split(","))))
