"""Decoders of other sources alone, requests a second in one thread, beside the native record.

    PYTHONPATH=.types:tests/support python tests/bench/sources.py

No broker: messages are in memory; those of traces differ in their ids. A trace of OpenTelemetry has
eight spans; those of Jaeger (33) and Zipkin (28 of version 2, 79 of version 1) are of the test
data. Lines and results are those of the test data, or what the tools write; a result has as many
requests as a batch has messages.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import orjson
from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from process import ROOT, last_core, pin
from real_samples import SAMPLES
from rich.console import Console
from rich.table import Table
from span_encodings import thrift_list, zipkin_proto

from tailbudget.streams.sources import DOCUMENTS, Rules, ServiceRules, SourceBatch, decoder

RULES = Rules(
    service="bench",
    default=ServiceRules(cohort_dims=("route", "method")),
    trace_wait_ns=15 * 10**9,
)
DATA = ROOT / "tests/data"
BATCH = 1000
TEN = 10
"""Traces are so many times fewer than records, for they are so much larger."""

REPEAT = 3
EACH = {"otel_spans": 9}
"""Requests of a message, where it has several."""

T0_NS = 1_772_445_600 * 10**9
TRACE = "0123456789abcdef0123456789abcdef"
JAEGER = "151e8ea44a5cf41c"
OTEL_SPANS = "test_trace_006"
ZIPKIN = "0562809467078eab"
ZIPKIN_1 = "28694298ee036999"


def main() -> int:
    """Measure each format and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=20_000)
    options = parser.parse_args()
    pin(0, last_core())
    table = Table()
    names = ("format", "bytes a request", "CPU us a request", "requests per CPU s", "native is 1")
    for name in names:
        table.add_column(name, justify="left" if name == "format" else "right")
    native_us: float | None = None
    for name, make in FORMATS.items():
        each = BATCH if name in DOCUMENTS else EACH.get(name, 1)
        count = options.requests // (TEN if name in TRACES else 1) // each
        values = [make(number) for number in range(max(count, 1))]
        runs = [_spent(name.partition(":")[0], values) for _ in range(REPEAT)]
        each_us, found = min(runs)
        native_us = native_us or each_us
        size = sum(map(len, values)) / found
        assert found == len(values) * each, f"{name}: {found} of {len(values) * each} requests"
        figures = (f"{size:,.0f}", f"{each_us:.1f}", f"{1e6 / each_us:,.0f}")
        table.add_row(name, *figures, f"{each_us / native_us:,.1f}")
    Console(width=100).print(table)
    return 0


def _spent(name: str, values: list[bytes]) -> tuple[float, int]:
    """Return CPU microseconds a request, and how many were found."""
    one, found = decoder(name, RULES), 0
    cut = 1 if name in DOCUMENTS else BATCH
    before = time.process_time()
    for first in range(0, len(values), cut):
        part = values[first : first + cut]
        rows, size = np.arange(first, first + len(part)), len(part)
        decoded = one.decode(SourceBatch([*part], rows, np.full(size, time.time_ns())))
        found += sum(map(len, decoded.services))
    rest = one.finish()
    found += sum(map(len, rest.services)) if rest is not None else 0
    return (time.process_time() - before) / max(found, 1) * 1e6, found


def _native(number: int) -> bytes:
    record = {"request_id": f"r{number}", "timestamp": T0_NS, "total_ms": 100.0, "route": "/v1"}
    return orjson.dumps(record | {f"stage{n}_ms": 10.0 for n in range(7)})


def _request() -> dict[str, object]:
    spans = [
        {
            "traceId": TRACE,
            "spanId": f"{n:016x}",
            "parentSpanId": "" if n == 1 else f"{1:016x}",
            "name": f"stage {n}",
            "kind": 2 if n == 1 else 1,
            "startTimeUnixNano": str(T0_NS + n * 10**7),
            "endTimeUnixNano": str(T0_NS + (10**8 if n == 1 else (n + 1) * 10**7)),
            "attributes": [{"key": "http.route", "value": {"stringValue": "/v1"}}],
        }
        for n in range(1, 9)
    ]
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "chat"}}]}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}


def _renamed(text: bytes, old: str) -> Callable[[int], bytes]:
    size = len(old)
    return lambda number: text.replace(old.encode(), f"{number + 1:0{size}x}".encode())


def _proto() -> Callable[[int], bytes]:
    # JSON of protocol buffers has bytes in base64, which reads hexadecimal digits as they are.
    text = bytes(json_format.ParseDict(_request(), TracesData()).SerializeToString())
    spans = TracesData.FromString(text).resource_spans[0].scope_spans[0].spans
    old = spans[0].trace_id
    return lambda number: text.replace(old, (number + 1).to_bytes(len(old), "big"))


def _lines() -> Iterator[bytes]:
    lines = (DATA / "nginx_ingress_access.log").read_bytes().splitlines()
    while True:
        yield from lines


def _nginx() -> Callable[[int], bytes]:
    lines = _lines()
    return lambda number: next(lines).rstrip()[:-8] + f"{number:08x}".encode()


def _jaeger() -> Callable[[int], bytes]:
    (trace, *_) = json.loads((DATA / "deathstarbench_jaeger_head.json").read_bytes())["data"]
    # The page repeats all that is above a span in it; a topic or a query would not.
    for span in trace["spans"]:
        for reference in span["references"]:
            reference.pop("span", None)
        if span["references"]:
            continue
        span["spanID"] = "root"
    for span in trace["spans"]:
        for reference in span["references"]:
            reference["spanID"] = reference["spanID"].replace(JAEGER, "root")
    return _renamed(orjson.dumps(trace), JAEGER)


def _same(text: bytes) -> Callable[[int], bytes]:
    """Return a message again and again: a decoder of single requests looks at no other."""
    return lambda _: text


def _documents() -> dict[str, bytes]:
    """Return results of benchmarks, each with as many requests as a batch has messages."""
    request = json.loads(SAMPLES["guidellm"][0])["benchmarks"][0]["requests"]["successful"][0]
    vllm = json.loads(SAMPLES["vllm_bench"][0])
    lists = {name: [value[0]] * BATCH for name, value in vllm.items() if isinstance(value, list)}
    (experiment,) = json.loads(SAMPLES["perf_analyzer"][0])["experiments"][:1]
    experiment["requests"] = experiment["requests"][:1] * BATCH
    pairs = json.loads(SAMPLES["triton"][0])
    documents = {
        "guidellm": {"benchmarks": [{"requests": {"successful": [request] * BATCH}}]},
        "vllm_bench": vllm | lists,
        "perf_analyzer": {"experiments": [experiment]},
        "triton": [{**one, "id": number} for number in range(BATCH) for one in pairs],
    }
    return {name: orjson.dumps(document) for name, document in documents.items()}


def _renamed_bytes(text: bytes, old: str) -> Callable[[int], bytes]:
    name = bytes.fromhex(old)
    return lambda number: text.replace(name, (number + 1).to_bytes(len(name), "big"))


def _spans(version: int) -> list[dict[str, Any]]:
    """Return the spans of a trace of Zipkin."""
    name = "trainticket_zipkin_case1" if version == 1 else "zipkin_messaging-kafka"
    found = json.loads((DATA / f"{name}.json").read_bytes())
    return [span for one in found for span in (one if isinstance(one, list) else [one])]


TRACES: dict[str, Callable[[int], bytes]] = {
    "otlp_proto": _proto(),
    "otlp_json": _renamed(orjson.dumps(_request()), TRACE),
    "otel_spans": _renamed(
        (DATA / "inferenceperf_otel_customer_support.json").read_bytes(), OTEL_SPANS
    ),
    "jaeger": _jaeger(),
    "zipkin": _renamed((DATA / "zipkin_messaging-kafka.json").read_bytes(), ZIPKIN),
    "zipkin: protocol buffers": _renamed_bytes(zipkin_proto(_spans(2)), ZIPKIN),
    "zipkin: Thrift": _renamed_bytes(thrift_list(_spans(1)), ZIPKIN_1),
}
ALONE = {name for name in SAMPLES if name not in {*TRACES, *DOCUMENTS}}
FORMATS: dict[str, Callable[[int], bytes]] = {
    "native": _native,
    **TRACES,
    **{name: _same(SAMPLES[name][0]) for name in sorted(ALONE - {"native", "nginx"})},
    "nginx": _nginx(),
    **{name: _same(text) for name, text in _documents().items()},
}


if __name__ == "__main__":
    sys.exit(main())
