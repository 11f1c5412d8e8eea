"""The audit for programs: a frame or a file in, the report out.

from tailbudget.streams.api import audit, as_json, markdown

found = audit(frame, slo_target="p95=180,p99=200")
print(found.verdict, found.tail_driver)
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from tailbudget.schemas.settings import Settings, parse_slo
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.token_settings import parse_goodput
from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.html_report import html
from tailbudget.sinks.report.json_report import as_json
from tailbudget.sinks.report.markdown_report import markdown
from tailbudget.streams.agents.deploys import deploy_row
from tailbudget.streams.audit_log import Wanted
from tailbudget.streams.log_report import Asked, Frame, Source, make, read_deploys
from tailbudget.streams.mapping_file import with_columns

Deploys = Path | str | Iterable[Mapping[str, Any]]


def audit(
    log: object,
    *,
    slo_target: SloTarget | str | None = None,
    slow_request_threshold: str | float = "p95",
    input_shape_dims: Sequence[str] | None = None,
    cohort_dims: Sequence[str] | None = None,
    stages: Sequence[str] | None = None,
    cold_start_window_min: float = 5.0,
    compare_to_baseline: object | None = None,
    deploys: Deploys | None = None,
    timezone: str | None = None,
    columns: str | None = None,
    service: str | None = None,
    workload: str | None = None,
    goodput: str | None = None,
) -> Audit:
    """Return the report of a log.

    Args:
        log: a frame of polars, pandas or pyarrow; or the path of a file or directory.
        slo_target: a target, or text such as "p95=180,p99=200,budget=1".
        slow_request_threshold: "p95", "p99" or milliseconds: where slow begins.
        input_shape_dims: columns of the input shape; None finds them.
        cohort_dims: columns whose values make a cohort; None finds them.
        stages: stages, without "_ms"; None takes every column that ends so.
        cold_start_window_min: minutes after a deploy that count as cold.
        compare_to_baseline: another log to compare with.
        deploys: deploy events, or the path of a file of them; None knows none.
        timezone: IANA zone of times that name none.
        columns: where columns have other names or units: "total_ms=latency_s:s,timestamp=at";
            or the path of a mapping file (.yaml).
        service: which service, or that of rows that name none.
        workload: "online" or "batch", where it is known.
        goodput: what a good request keeps, such as "ttft=200,tpot=50,e2e=2000".

    Raises:
        Refused: there is no request to audit in it.
        ConfigError: there is no such log, column, service or zone.
    """
    asked = Asked(
        source=_source(log),
        wanted=with_columns(
            Wanted(
                service=service,
                stages=_names(stages),
                covariates=_names(input_shape_dims),
                cohort_dims=_names(cohort_dims),
                timezone=timezone,
            ),
            columns,
        ),
        now_ns=time.time_ns(),
        slo=parse_slo(slo_target) if isinstance(slo_target, str) else slo_target,
        slow_request_threshold=slow_request_threshold,
        cold_start_window_min=cold_start_window_min,
        deploys=None if deploys is None else _deploys(deploys),
        baseline=None if compare_to_baseline is None else _source(compare_to_baseline),
        workload=workload,
        goodput=parse_goodput(goodput) if goodput else None,
    )
    return make(Settings(), asked).audit


def _source(log: object) -> Source:
    return Path(log) if isinstance(log, str | Path) else Frame(log)


def _names(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)


def _deploys(deploys: Deploys) -> tuple[Any, ...]:
    if isinstance(deploys, str | Path):
        return read_deploys(Path(deploys))
    return tuple(deploy_row(orjson.dumps(dict(event))) for event in deploys)


__all__ = ["as_json", "audit", "html", "markdown"]
