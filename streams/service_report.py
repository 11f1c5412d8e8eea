"""The full report of a service over any range, from ClickHouse."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from tailbudget.models.cold_start import cold_windows
from tailbudget.models.evidence import Evidence
from tailbudget.models.evidence_wire import load
from tailbudget.models.report import Options, report
from tailbudget.models.tail import SLOW
from tailbudget.schemas.catalogue import load_catalogue
from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.sections import ColdWindow
from tailbudget.schemas.settings import Settings
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.ask_worker import refusal_of, request
from tailbudget.streams.data_directory import running_worker
from tailbudget.streams.database import open_existing
from tailbudget.streams.history import History, Span
from tailbudget.streams.kept_budgets import Query, Rows, asking, with_budgets
from tailbudget.streams.kept_regressions import with_regressions
from tailbudget.streams.kept_warm_up import cold_min
from tailbudget.streams.promised import ASSUMED, last_promised
from tailbudget.streams.rules import declared_workload, goodput, token_timing
from tailbudget.streams.sql import ask

MOST_NAMED: Final = 20
"""Services that a message names."""


@dataclass(frozen=True, slots=True)
class Past:
    """What to read back.

    Attributes:
        service: the service's name.
        span: from when to when, event time.
        now_ns: now, by the wall clock.
    """

    service: str
    span: Span
    now_ns: int


def past_evidence(settings: Settings, store: ClickHouse, past: Past) -> Evidence:
    """Return the evidence of a service's past.

    Raises:
        ClickHouseError: it does not answer.
    """
    history = History(
        store,
        past.service,
        cold_windows=_cold_windows(settings, store, past),
        now_ns=past.now_ns,
    )
    return history.evidence(past.span)


def require_known(store: ClickHouse, service: str) -> None:
    """Refuse a service of which ClickHouse has no pane.

    Raises:
        ClickHouseError: it does not answer.
        ConfigError: there is no such service; it says which there are.
    """
    if store.newest_pane(service) is not None:
        return
    known = store.services()
    there_are = ", ".join(known[:MOST_NAMED]) + (", …" if len(known) > MOST_NAMED else "")
    raise ConfigError(
        f"nothing was recorded of a service {service!r}",
        remedy=f"there are: {there_are}" if known else "there is no service yet: send records",
    )


def ask_evidence(settings: Settings, past: Past) -> Evidence:
    """Return the evidence of a service's past, from ClickHouse or the worker that owns it.

    Raises:
        ClickHouseError: ClickHouse, or the worker that owns it, does not answer.
        ConfigError: there is no such database, or no such service.
    """
    if settings.clickhouse.interface == "chdb":
        worker = running_worker(settings.data_dir)
        if worker is not None:
            return _ask_worker(worker, past)
    with closing(open_existing(settings.clickhouse)) as store:
        require_known(store, past.service)
        return past_evidence(settings, store, past)


def ask_report(
    settings: Settings,
    past: Past,
    *,
    slo: SloTarget | None = None,
    slow_request_threshold: str | float = SLOW[0],
) -> tuple[Audit, Evidence]:
    """Return the report of a service's past, and the evidence that it was drawn from.

    Args:
        settings: what the service promises.
        past: what to read back.
        slo: a target in place of the service's; without either, what its audits remember.
        slow_request_threshold: "p95", "p99" or milliseconds: where slow begins.

    Raises:
        ClickHouseError: ClickHouse, or the worker that owns it, does not answer.
        ConfigError: there is no such database, or no such service.
    """
    evidence = ask_evidence(settings, past)
    asked = replace(options(settings, past.service), slow_request_threshold=slow_request_threshold)
    if slo is not None:
        asked = replace(asked, slo=slo)
    elif asked.slo is None and (promised := last_promised(settings, past.service)) is not None:
        asked = replace(asked, slo=promised, assumptions=(ASSUMED,))
    query = partial(_ask, settings)
    return with_kept(report(evidence, asked), query, past.span), evidence


def _ask_worker(worker: Mapping[str, Any], past: Past) -> Evidence:
    asked = {
        "service": past.service,
        "start_ns": past.span.start_ns,
        "end_ns": past.span.end_ns,
    }
    response = request(worker, "GET", "/evidence", params=asked)
    if response.ok:
        return load(response.content)
    raise refusal_of(response)


def service_report(settings: Settings, store: ClickHouse, past: Past) -> Audit:
    """Return the report of a service's past.

    Raises:
        ClickHouseError: it does not answer.
    """
    drawn = report(past_evidence(settings, store, past), options(settings, past.service))
    return with_kept(drawn, asking(store), past.span)


def with_kept(drawn: Audit, query: Query, span: Span) -> Audit:
    """Return a report with what a worker keeps beside the panes.

    Raises:
        ClickHouseError: it does not answer.
    """
    return with_regressions(with_budgets(drawn, query, span), query, span)


def _ask(settings: Settings, query: str) -> Rows:
    return ask(settings, query).rows


def options(settings: Settings, service: str) -> Options:
    """Return what a report of a service is judged by, as the settings say."""
    chosen = settings.service(service)
    return Options(
        slo=chosen.slo,
        catalogue=load_catalogue(settings.catalogue),
        workload=declared_workload(settings, service),
        token_timing=token_timing(settings, service),
        goodput=goodput(settings, service),
    )


def _cold_windows(settings: Settings, store: ClickHouse, past: Past) -> list[ColdWindow] | None:
    """Return the windows after the service's deploys; None when none was ever announced."""
    deploys = store.recent_deploys(past.service, 0)
    if not deploys:
        return None
    minutes = cold_min(settings, asking(store), past.service)
    return list(cold_windows(deploys, past.service, minutes, settings.environment))
