"""The report of a log, as the command line and programs ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import orjson

from tailbudget.models.bounds import bounds_report
from tailbudget.models.evidence import Evidence
from tailbudget.models.refusal import WORKLOADS
from tailbudget.models.report import Options, report
from tailbudget.models.token_times import tells_tokens
from tailbudget.schemas.catalogue import load_catalogue
from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.records import NO_SERVICE, Rejected
from tailbudget.schemas.rows import DeployRow
from tailbudget.schemas.settings import Settings
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.token_timing import GoodputTarget, require_same
from tailbudget.schemas.token_timing import Source as TokenSource
from tailbudget.schemas.verdicts import Audit
from tailbudget.streams import scrape
from tailbudget.streams.agents.deploys import deploy_row
from tailbudget.streams.audit_log import (
    LogReading,
    Progress,
    Wanted,
    open_frame,
    open_log,
    open_sql,
)
from tailbudget.streams.database import existing_target
from tailbudget.streams.log_audit import Plan, gather
from tailbudget.streams.rules import declared_workload, goodput, log_rules, token_timing

Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT against ClickHouse, whose rows are requests."""

    sql: str


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame of polars, pandas or pyarrow."""

    frame: object


Source = Path | Query | Frame


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked of a log; None takes what the settings say, or is found out.

    Attributes:
        source: the log.
        wanted: what its columns mean.
        slo: the target.
        slow_request_threshold: "p95", "p99" or milliseconds: where slow begins.
        cold_start_window_min: minutes after a deploy that count as cold.
        deploys: deploy and scale-up events; None when nobody knows them.
        baseline: a log to compare with.
        workload: "online" or "batch", where it is known.
        goodput: what a good request keeps.
        now_ns: the time of reading.
    """

    source: Source
    wanted: Wanted
    now_ns: int
    slo: SloTarget | None = None
    slow_request_threshold: str | float = "p95"
    cold_start_window_min: float | None = None
    deploys: Sequence[DeployRow] | None = None
    baseline: Source | None = None
    workload: str | None = None
    goodput: GoodputTarget | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """A report with the evidence that it was drawn from."""

    audit: Audit
    evidence: Evidence


_SHOWN: Final = 5
_DAY_MIN: Final = 1_440
_QUIET: Final[Report] = lambda _: None  # noqa: E731 (a name for doing nothing)


def make(
    settings: Settings,
    asked: Asked,
    progress: Report = _QUIET,
    reject: Callable[[str, Rejected], None] = lambda _where, _what: None,
) -> Made:
    """Read a log and draw its report.

    Args:
        settings: what holds where nothing is asked.
        asked: what is asked.
        progress: told how far the reading is.
        reject: told where each row is that is no record, and why.

    Raises:
        Refused: there is no request to audit in it.
        ConfigError: there is no such log, column, or service.
        DecodeError: the log is damaged.
    """
    _check(asked)
    if _is_scrape(asked.source, asked):
        return _of_scrape(settings, asked)
    reading = _open(settings, asked.source, asked, progress)
    plan = _plan(settings, asked)
    evidence = gather(reading, plan, lambda one: reject(reading.where(one.offset), one))
    mine = _tokens(settings, reading, evidence)
    options = Options(
        catalogue=load_catalogue(settings.catalogue),
        slo=plan.slo(evidence.service),
        slow_request_threshold=asked.slow_request_threshold,
        workload=asked.workload or declared_workload(settings, evidence.service),
        baseline=_baseline(settings, asked, plan, progress, mine),
        source=_name(asked.source),
        assumptions=(*reading.found.assumptions, *_of_deploys(asked, reading)),
        times_known=reading.found.times_known,
        token_timing=mine.definition,
        goodput=plan.goodput(evidence.service),
    )
    return Made(report(evidence, options), evidence)


def _is_scrape(source: Source | None, asked: Asked) -> bool:
    return asked.wanted.format is None and isinstance(source, Path) and scrape.scrape_at(source)


def _of_scrape(settings: Settings, asked: Asked) -> Made:
    """Return the report of histograms, which hold no request."""
    if asked.baseline is not None:
        raise scrape.mixed(f"{_name(asked.source)} is a scrape of Prometheus, and has a baseline")
    path, plan = Path(_name(asked.source)), _plan(settings, asked)
    found = scrape.read(path, asked.wanted.columns)
    service = asked.wanted.service or NO_SERVICE
    audit = bounds_report(
        found.histograms,
        service=service,
        slo=plan.slo(service),
        source=str(path),
        assumptions=found.assumptions,
    )
    return Made(audit, gather((), plan))


def _check(asked: Asked) -> None:
    if asked.workload is not None and asked.workload.strip().lower() not in WORKLOADS:
        raise ConfigError(
            f"there is no workload {asked.workload!r}", remedy=f"use one of {', '.join(WORKLOADS)}"
        )
    minutes = asked.cold_start_window_min
    if minutes is not None and not 0 <= minutes <= _DAY_MIN:
        raise ConfigError(
            f"a cold start window of {minutes:,.10g} minutes is none",
            remedy=f"give 0 to {_DAY_MIN:,} minutes",
        )


def read_deploys(path: Path) -> tuple[DeployRow, ...]:
    """Return the events of a file: JSON lines, or one JSON array.

    Raises:
        ConfigError: the file cannot be read, or holds something that is no event.
    """
    try:
        text = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}", remedy="give another --deploys"
        ) from error
    rows = []
    for number, raw in enumerate(_events(text), 1):
        try:
            rows.append(deploy_row(raw))
        except ValueError as error:
            raise ConfigError(
                f"{path}, event {number}: no deploy event: {error}",
                remedy='write {"service": …, "version": …, "ts": …}, if you like with env and kind',
            ) from error
    return tuple(rows)


def _events(text: bytes) -> Iterable[bytes]:
    if text.lstrip().startswith(b"["):
        try:
            return [orjson.dumps(event) for event in orjson.loads(text)]
        except orjson.JSONDecodeError:
            return [text]
    return [line for line in text.splitlines() if line.strip()]


def _open(settings: Settings, source: Source, asked: Asked, progress: Report) -> LogReading:
    wanted = replace(asked.wanted, rules=log_rules(settings))
    if isinstance(source, Query):
        target = existing_target(settings.clickhouse)
        return open_sql(target, source.sql, wanted, progress, now_ns=asked.now_ns)
    if isinstance(source, Frame):
        return open_frame(source.frame, wanted, now_ns=asked.now_ns)
    return open_log(source, wanted, progress, now_ns=asked.now_ns)


def _plan(settings: Settings, asked: Asked) -> Plan:
    minutes = asked.cold_start_window_min

    def cold_start_window_min(service: str) -> float:
        return settings.service(service).cold_start_window_min if minutes is None else minutes

    return Plan(
        slo=lambda service: asked.slo or settings.service(service).slo,
        cold_start_window_min=cold_start_window_min,
        service=asked.wanted.service,
        deploys=asked.deploys,
        environment=settings.environment,
        pane_s=settings.stream.pane_s,
        max_cohorts=settings.stream.max_cohorts,
        goodput=lambda service: asked.goodput or goodput(settings, service),
    )


def _tokens(settings: Settings, reading: LogReading, evidence: Evidence) -> TokenSource:
    """Return what a log means by times of tokens; nothing where it tells none."""
    name = reading.found.format
    told = token_timing(settings, evidence.service, [name])
    return TokenSource(name, told if tells_tokens(evidence.total) else None)


def _baseline(
    settings: Settings, asked: Asked, plan: Plan, progress: Report, mine: TokenSource
) -> Evidence | None:
    if asked.baseline is None:
        return None
    if _is_scrape(asked.baseline, asked):
        raise scrape.mixed(f"the baseline {_name(asked.baseline)} is a scrape of Prometheus")
    reading = _open(settings, asked.baseline, asked, progress)
    evidence = gather(reading, plan)
    require_same(mine, _tokens(settings, reading, evidence))
    return evidence


def _of_deploys(asked: Asked, reading: LogReading) -> tuple[str, ...]:
    seen = reading.deploys
    if asked.deploys is None and seen:
        shown = ", ".join(f"{one.service} to {one.version}" for one in seen[:_SHOWN])
        more = f" and {len(seen) - _SHOWN} more" if len(seen) > _SHOWN else ""
        said = f"the traces show new versions ({shown}{more}), but no deploy events were given"
        return (f"{said}: what is warm and what is cold was not told apart",)
    if asked.deploys is None:
        return ("no deploy events were given: what is warm and what is cold cannot be told apart",)
    if not reading.found.times_known:
        return ("the deploy events are of no use: the requests have no times",)
    return ()


def _name(source: Source) -> str:
    if isinstance(source, Query):
        return "a query of ClickHouse"
    if isinstance(source, Frame):
        return "a frame"
    return "standard input" if str(source) == "-" else str(source)
