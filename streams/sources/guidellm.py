"""GuideLLM's reports, where they list their requests (`--sample-size`, or by default before 0.4).

A report holds benchmarks, and each of them lists of requests by their end: successful, errored,
incomplete. Latencies of requests are seconds, those of tokens milliseconds. Where a request was due
at a time, its latency counts from then. What was asked and answered is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from tailbudget.streams.sources.first_token import parts
from tailbudget.streams.sources.translated import (
    NotOfFormatError,
    Translated,
    objects,
    read_object,
)

_ENDS: Final = {"successful": "ok", "errored": "error", "incomplete": "cancelled"}
_STARTS: Final = ("request_start", "request_start_time", "start_time", "resolve_start")
_STOPS: Final = ("request_end", "request_end_time", "end_time", "resolve_end")
_FIRSTS: Final = ("first_token_iteration", "first_iteration", "first_token_time")
_DUE: Final = ("targeted_start", "targeted_start_time")
_MS_PER_S: Final = 1e3


class GuidellmDecoder(Translated):
    """Decodes GuideLLM's reports; see the package docstring for what it promises."""

    name = "guidellm"
    whole = True
    private = True
    tool = "GuideLLM"

    def translate(self, text: bytes) -> Iterable[bytes]:
        """Return the native records of a report."""
        benchmarks = read_object(text).get("benchmarks")
        if not isinstance(benchmarks, list):
            raise NotOfFormatError("no report of GuideLLM: it has no benchmarks")
        found = [orjson.dumps(record) for one in benchmarks for record in _records(one)]
        if not found:
            raise NotOfFormatError("aggregates only: no benchmark lists its requests")
        return found


def _records(benchmark: Any) -> Iterator[dict[str, Any]]:
    requests = _mapping(_mapping(benchmark).get("requests"))
    model = _mapping(_mapping(_mapping(benchmark).get("config")).get("backend")).get("model")
    for end, status in _ENDS.items():
        for request in objects(requests.get(end)):
            yield _record(request, status, model)


def _record(request: Mapping[str, Any], status: str, model: Any) -> dict[str, Any]:
    info = _mapping(request.get("info") or request.get("scheduler_info"))
    timings = {**info, **_mapping(info.get("request_timings")), **_mapping(info.get("timings"))}
    start = _first(timings, request, _STARTS)
    stop = _first(timings, request, _STOPS)
    total_ms = _scaled(request.get("request_latency"))
    if total_ms is None and start is not None and stop is not None:
        total_ms = (stop - start) * _MS_PER_S
    first_ms = _number(request.get("time_to_first_token_ms"))
    first = _first(timings, request, _FIRSTS)
    if first_ms is None and first is not None and start is not None:
        first_ms = (first - start) * _MS_PER_S
    return {
        "request_id": request.get("request_id") or info.get("request_id"),
        "timestamp": start,
        "scheduled_ts": _first(timings, {}, _DUE),
        "total_ms": total_ms,
        "status": status,
        "model_variant": model if isinstance(model, str) else None,
        "input_tokens": _number(request.get("prompt_tokens")),
        "output_tokens": _number(request.get("output_tokens")),
        "tpot_ms": _number(request.get("inter_token_latency_ms")),
        **parts(total_ms, first_ms),
    }


def _first(
    timings: Mapping[str, Any], request: Mapping[str, Any], names: Iterable[str]
) -> float | None:
    every = (_number(source.get(name)) for name in names for source in (timings, request))
    return next((value for value in every if value), None)


def _scaled(seconds: Any) -> float | None:
    number = _number(seconds)
    return None if number is None else number * _MS_PER_S


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
