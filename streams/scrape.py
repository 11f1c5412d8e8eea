"""A scrape of Prometheus as a log: which histogram is of what, and never beside requests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tailbudget.models.bounds import Measured, add_buckets, all_failed
from tailbudget.schemas import refusals
from tailbudget.schemas.bounds import END_TO_END
from tailbudget.schemas.errors import ConfigError, Refused
from tailbudget.schemas.records import Outcome
from tailbudget.streams.audit_log.aggregates import refusal
from tailbudget.streams.audit_log.prometheus import Histogram, histograms, is_scrape, read_scrape
from tailbudget.streams.sources.base import Origin
from tailbudget.streams.sources.outcomes import outcome_of

ENGINES: Final = ("vllm", "sglang", "tgi", "dynamo_frontend")
"""Engines, of which the own histogram goes before that of the web server that they run in."""

KNOWN: Final[Mapping[str, str]] = MappingProxyType(
    {
        f"{engine}_{name}": of
        for engine in ENGINES
        for name, of in {
            "e2e_request_latency": END_TO_END,
            "request_duration": END_TO_END,
            "time_to_first_token": "ttft",
            "inter_token_latency": "itl",
            "time_per_output_token": "tpot",
            "request_time_per_output_token": "tpot",
            "request_mean_time_per_token_duration": "tpot",
            "request_queue_time": "queue",
            "request_queue_duration": "queue",
            "queue_time": "queue",
            "request_prefill_time": "prefill",
            "request_decode_time": "decode",
            "request_inference_duration": "inference",
            "request_validation_duration": "validation",
        }.items()
    }
    | dict.fromkeys(
        (
            "http_request_duration",
            "http_server_duration",
            "http_server_request_duration",
            "istio_request_duration",
            "traefik_service_request_duration",
            "nginx_ingress_controller_request_duration",
            "envoy_http_downstream_rq_time",
            "ray_serve_http_request_latency",
            "serve_http_request_latency",
        ),
        END_TO_END,
    )
)
"""What the histograms of engines and proxies are of, by name without unit and with "_" for ":".

After the lists of metrics that each documents: vLLM, SGLang, text-generation-inference, NVIDIA
Dynamo's frontend, OpenTelemetry's HTTP metrics, Istio, Traefik, ingress-nginx, Envoy, Ray Serve.
"""

SECONDS: Final = ("tgi_",)
"""Beginnings of names without a unit that are seconds."""

_UNIT: Final = re.compile(r"_(seconds|milliseconds|microseconds|ms|us|s)$")
_STATUS: Final = ("code", "status", "status_code", "http_status_code", "http_response_status_code",
                  "response_code")  # fmt: skip
_MS_PER: Final = {"s": 1e3, "ms": 1.0, "us": 1e-3, "ns": 1e-6}
_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class Scraped:
    """The histograms of a scrape that are of something known, and what was assumed of them."""

    histograms: tuple[Measured, ...]
    assumptions: tuple[str, ...]


def scrape_at(path: Path) -> bool:
    """Return whether a path is a scrape, and not a log of requests.

    Raises:
        Refused: it is a directory with a scrape and anything else.
    """
    if not path.is_dir():
        return path.is_file() and is_scrape(path)
    every = sorted(file for file in path.rglob("*") if file.is_file())
    shown = [file for file in every if not file.name.startswith((".", "_"))]
    scrapes = [file for file in shown if is_scrape(file)]
    if not scrapes:
        return False
    others = [file for file in shown if file not in set(scrapes)]
    if not others and len(scrapes) == 1:
        raise ConfigError(f"{path} holds one scrape", remedy=f"give {scrapes[0]} itself")
    beside = others[0] if others else scrapes[1]
    raise mixed(f"{scrapes[0]} is a scrape of Prometheus, and lies beside {beside}")


def mixed(what: str) -> Refused:
    """Return the refusal of histograms beside something else."""
    return Refused(
        refusals.MIXED,
        f"{what}: counts by bucket are never mixed with single requests, nor with each other",
        "audit each by itself",
    )


def read(path: Path, columns: Mapping[str, Origin]) -> Scraped:
    """Return what a scrape says.

    Args:
        path: of the scrape.
        columns: which metric is of what, by the name of our column: "total_ms", "ttft_ms", ….

    Raises:
        ConfigError: it has no histogram of a name that was given.
        DecodeError: it is damaged.
        Refused: it has no histogram, none of the whole request, or several that may be.
    """
    series: dict[str, list[Histogram]] = {}
    for one in histograms(read_scrape(path)):
        series.setdefault(one.name, []).append(one)
    if not series:
        raise refusal(str(path), "Prometheus, without a histogram")
    chosen = _chosen(path, series, columns)
    found = [_measured(of, series[name], unit) for name, (of, unit) in chosen.items()]
    said = [line for name, (of, unit) in chosen.items() for line in _said(of, series[name], unit)]
    left = sorted(series.keys() - chosen.keys())
    if left:
        more = " …" if len(left) > _SHOWN else ""
        said.append(f"histograms in no figure: {', '.join(left[:_SHOWN])}{more}")
    return Scraped(tuple(found), tuple(said))


def _chosen(
    path: Path, series: Mapping[str, list[Histogram]], columns: Mapping[str, Origin]
) -> dict[str, tuple[str, str | None]]:
    """Return what each metric is of, and its unit where a caller told it."""
    named = {
        origin.column: (_of(ours), origin.unit if origin.unit != "ms" else None)
        for ours, origin in columns.items()
    }
    absent = sorted(named.keys() - series.keys())
    if absent:
        raise ConfigError(
            f"{path} has no histogram {absent[0]!r}",
            remedy=f"it has {_list(series)}",
        )
    taken = {of for of, _ in named.values()}
    known = {name: KNOWN[short] for name in series if (short := _short(name)) in KNOWN}
    whole = [name for name, of in known.items() if of == END_TO_END]
    whole = [name for name in whole if _short(name).startswith(ENGINES)] or whole
    if END_TO_END not in taken and len(whole) != 1:
        why = f"{_list(whole)} may all be" if whole else f"none of {_list(series)} is"
        raise Refused(
            refusals.NO_LATENCY,
            f"{path}: a scrape of Prometheus of which {why} known to be the whole request's"
            " latency",
            "name it: --columns total_ms=METRIC (:s or :us behind it if its name has no unit)",
        )
    first: dict[str, str] = {END_TO_END: whole[0]} if whole else {}
    for name, of in known.items():
        first.setdefault(of, name)
    return named | {name: (of, None) for of, name in first.items() if of not in taken}


def _of(ours: str) -> str:
    stage = ours.removesuffix("_ms")
    return END_TO_END if stage == "total" else stage


def _short(name: str) -> str:
    return _UNIT.sub("", name.replace(":", "_"))


def _list(names: Iterable[str]) -> str:
    every = sorted(names)
    return ", ".join(every[:_SHOWN]) + (" …" if len(every) > _SHOWN else "")


def _measured(of: str, series: list[Histogram], unit: str | None) -> Measured:
    """Add the series of a metric up; those of failed requests are beyond every bound."""
    failures = [_failed(one) for one in series]
    known = any(failed is not None for failed in failures)
    scale = _scale(series[0], unit)
    parts = [one.buckets.scaled(scale) for one in series]
    whole = add_buckets(
        [all_failed(part) if bad else part for part, bad in zip(parts, failures, strict=True)]
    )
    count = sum(part.n for part, bad in zip(parts, failures, strict=True) if bad)
    return Measured(of, series[0].name, whole, count if known else None)


def _failed(one: Histogram) -> bool | None:
    """Return whether a series is of failed requests; None where no label says."""
    labels = dict(one.labels)
    status = next((labels[name] for name in _STATUS if labels.get(name)), None)
    if status is None:
        return None
    text = status.replace("xx", "00") if status.endswith("xx") else status
    return outcome_of(text) is not Outcome.OK


def _scale(one: Histogram, unit: str | None) -> float:
    if one.unit is None and unit is None and one.name.startswith(SECONDS):
        unit = "s"
    return 1.0 if one.unit is not None or unit is None else _MS_PER[unit]


def _said(of: str, series: list[Histogram], unit: str | None) -> Iterator[str]:
    name = series[0].name
    yield f"{of}: {name}" + (f", {len(series):,} series added up" if len(series) > 1 else "")
    if series[0].unit is None and unit is None and not name.startswith(SECONDS):
        yield f"{name}: taken for milliseconds, for its name says no unit"
    bounds = {one.buckets.upper_ms for one in series}
    if len(bounds) > 1:
        yield f"{name}: its series have differing bounds; those that all have are used"
