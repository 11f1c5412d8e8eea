"""When the lines of a log were written, as far as the log itself says."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, Final

import orjson

from tailbudget.schemas.errors import DecodeError
from tailbudget.streams.sources import ACCESS_LOGS, FORMATS, Rules
from tailbudget.streams.sources.access_log import as_text
from tailbudget.streams.sources.dynamo import is_event, unwrapped
from tailbudget.streams.sources.llmperf import FIRST_S, TOTAL_S
from tailbudget.streams.sources.timetext import FIRST_NS, LAST_NS, UNREADABLE, epoch_ns

NATIVE: Final = "native"
AIPERF: Final = "aiperf"
LLMPERF: Final = "llmperf"
OTLP_JSON: Final = "otlp_json"
OTLP_PROTO: Final = "otlp_proto"
OTEL_SPANS: Final = "otel_spans"
JAEGER: Final = "jaeger"
GUIDELLM: Final = "guidellm"
VLLM_BENCH: Final = "vllm_bench"
PERF_ANALYZER: Final = "perf_analyzer"
TRITON: Final = "triton"
DYNAMO: Final = "dynamo"
TGI: Final = "tgi"
RAY_SERVE: Final = "ray_serve"
ENVOY: Final = "envoy"
NGINX: Final = "nginx"
TRAEFIK: Final = "traefik"
ZIPKIN: Final = "zipkin"

_TELLING: Final[Mapping[str, tuple[frozenset[str], ...]]] = {
    LLMPERF: (frozenset({TOTAL_S, FIRST_S}),),
    OTLP_JSON: (frozenset({"resourceSpans"}), frozenset({"resource_spans"})),
    OTEL_SPANS: (
        frozenset({"trace_id", "spans"}),
        frozenset({"trace_id", "span_id", "start_time"}),
        frozenset({"context", "start_time", "parent_id"}),
    ),
    JAEGER: (
        frozenset({"traceID", "spans"}),
        frozenset({"traceID", "spanID", "operationName"}),
        frozenset({"traceId", "spanId", "operationName"}),
    ),
    GUIDELLM: (frozenset({"benchmarks"}),),
    VLLM_BENCH: (
        frozenset({"ttfts", "itls"}),
        frozenset({"input_lens", "request_throughput"}),
    ),
    PERF_ANALYZER: (frozenset({"experiments"}),),
    TRITON: (frozenset({"id", "timestamps"}), frozenset({"id", "model_name", "model_version"})),
    TGI: (
        frozenset({"x-total-time", "x-inference-time"}),
        frozenset({"span", "target", "timestamp", "level"}),
    ),
    RAY_SERVE: (
        frozenset({"levelname", "asctime", "deployment", "replica"}),
        frozenset({"levelname", "timestamp_ns", "deployment", "replica"}),
    ),
    ENVOY: (
        frozenset({"start_time", "duration", "response_code"}),
        frozenset({"START_TIME", "DURATION", "RESPONSE_CODE"}),
    ),
    TRAEFIK: (frozenset({"StartUTC", "Duration", "DownstreamStatus"}),),
    NGINX: tuple(
        frozenset({"request_time", "status", time})
        for time in ("time_iso8601", "time_local", "msec")
    ),
    ZIPKIN: (
        frozenset({"traceId", "id", "timestamp"}),
        frozenset({"traceId", "id", "annotations"}),
        frozenset({"traceId", "id", "localEndpoint"}),
    ),
}
"""Keys of which all tell a format."""

_BEGINNING: Final = (
    (re.compile(rb'\s*\{\s*"data"\s*:\s*\[\s*\{\s*"traceID"'), JAEGER),
    (re.compile(rb'\s*\{\s*"resource_?[sS]pans"'), OTLP_JSON),
    (re.compile(rb'\s*\{\s*"experiments"'), PERF_ANALYZER),
    (re.compile(rb'\s*\{.*"guidellm_version"', re.DOTALL), GUIDELLM),
    (re.compile(rb'\s*\{.*"request_throughput".*"input_lens"', re.DOTALL), VLLM_BENCH),
)
"""How a text begins of which the first record is too long to be looked at."""

_BY_FIELDS: Final = frozenset({NATIVE, AIPERF, LLMPERF})
_AHEAD: Final = 2
_PROBED: Final = 100


def detect_format(lines: Iterable[bytes]) -> tuple[str, Iterator[bytes]]:
    """Return the format of a log and its lines, all of them, still to be read.

    Raises:
        DecodeError: none of its first lines is a JSON object, or of an access log.
    """
    rest = iter(lines)
    seen: list[bytes] = []
    for line in rest:
        seen.append(line)
        record = _object(line)
        if record is not None:
            return format_of(record), chain(seen, rest)
        if len(seen) == _PROBED:
            break
    if not seen:
        return NATIVE, iter(())
    found = access_log(seen)
    if found is not None:
        return found, chain(seen, rest)
    raise DecodeError(
        f"none of the first {len(seen)} lines is a JSON object",
        remedy="replay reads one object a line: jq -c '.[]' FILE makes lines of an array",
    )


def access_log(lines: Iterable[bytes]) -> str | None:
    """Return the format of the access log that lines are of; None where they are of none."""
    for line in lines:
        if line.strip():
            text = as_text(line)
            name = next((one.name for one in ACCESS_LOGS if one.recognises(text)), None)
            if name is not None:
                return name
    return None


def format_of_text(head: bytes) -> str | None:
    """Return the format that a text is of by its beginning; None where that does not tell."""
    return next((name for begins, name in _BEGINNING if begins.match(head)), None)


def format_of(record: Mapping[str, Any]) -> str:
    """Return the format that a record is of; what is of no other is taken for native."""
    if isinstance(record.get("metadata"), dict) and "metrics" in record:
        return AIPERF
    if is_event(unwrapped(record)):
        return DYNAMO
    if isinstance(record.get("data"), list) and record["data"]:
        first = record["data"][0]
        return format_of(first) if isinstance(first, dict) else NATIVE
    for name, telling in _TELLING.items():
        if any(keys <= record.keys() for keys in telling):
            return name
    return NATIVE


def record_ns(line: bytes, format_name: str = NATIVE) -> int | None:
    """Return the time that a record of any known format carries; None when it is not credible.

    Args:
        line: the record.
        format_name: its format; native and those whose fields tell need not be named.
    """
    if format_name not in _BY_FIELDS:
        return _last_ns(FORMATS[format_name].natives([line], Rules()))
    record = _object(line)
    if record is None:
        return None
    metadata = record.get("metadata")
    if isinstance(metadata, dict):
        return _aiperf_ns(metadata, record.get("metrics"))
    return _credible(record.get("timestamp"))


def timeline(
    lines: Iterable[bytes], fallback_ns: int, format_name: str = NATIVE
) -> Iterator[tuple[bytes, int]]:
    """Yield each line with the time that it was written at, never after `fallback_ns`.

    That is the median of its own time and its two neighbours' on either side: a record stamped a
    day ahead stands out against it, and a late one does not shift the others. Where lines lack on
    the left the lower median counts; on the right, the last line's time stands in, for a log may
    end after a silence. A line without a time has that of the line before.
    """
    held: deque[tuple[bytes, int]] = deque(maxlen=2 * _AHEAD + 1)
    for pair in _padded(lines, fallback_ns, format_name):
        held.append(pair)
        if len(held) > _AHEAD:
            times = sorted(time for _, time in held)
            yield held[-1 - _AHEAD][0], min(times[(len(times) - 1) // 2], fallback_ns)


def _padded(lines: Iterable[bytes], last: int, format_name: str) -> Iterator[tuple[bytes, int]]:
    for line in lines:
        last = _or(record_ns(line, format_name), last)
        yield line, last
    yield from [(b"", last)] * _AHEAD


def _last_ns(natives: Iterable[bytes]) -> int | None:
    """Return when the last of some native records ended, for then it was written."""
    found = []
    for native in natives:
        record = _object(native) or {}
        start, total_ms = _credible(record.get("timestamp")), record.get("total_ms")
        if start is not None:
            length = total_ms if isinstance(total_ms, int | float) else 0.0
            found.append(start + (int(length * 1e6) if 0 <= length < 1e9 else 0))
    return max(found, default=None)


def _or(time: int | None, other: int) -> int:
    return other if time is None else time


def _aiperf_ns(metadata: dict[str, Any], metrics: Any) -> int | None:
    end = _credible(metadata.get("request_end_ns"))
    if end is not None:
        return end
    start = _credible(metadata.get("request_start_ns", metadata.get("timestamp_ns")))
    latency = metrics.get("request_latency") if isinstance(metrics, dict) else None
    value = latency.get("value") if isinstance(latency, dict) else None
    if start is None or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return start
    return start + int(value * 1e6)


def _credible(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    time = epoch_ns(value if isinstance(value, str) else repr(value))
    return time if time != UNREADABLE and FIRST_NS <= time < LAST_NS else None


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        record = orjson.loads(line.removeprefix(b"\xef\xbb\xbf"))
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None
