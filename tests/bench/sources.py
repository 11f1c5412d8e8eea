"""Decoders of other sources alone, requests a second in one thread, beside the native record.

    python tests/bench/sources.py

No broker: messages are in memory, and differ in their ids. A trace has eight spans, that of Jaeger
is one of the test data, of 33. Lines of proxies are those of the test data.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import orjson
from google.protobuf import json_format
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from process import ROOT, last_core, pin
from rich.console import Console
from rich.table import Table

from tailbudget.streams.sources import Rules, ServiceRules, SourceBatch, decoder

RULES = Rules(
    service="bench",
    default=ServiceRules(cohort_dims=("route", "method")),
    trace_wait_ns=15 * 10**9,
)
DATA = ROOT / "tests/data"
BATCH = 1000
T0_NS = 1_772_445_600 * 10**9
TRACE = "0123456789abcdef0123456789abcdef"
JAEGER = "151e8ea44a5cf41c"


def main() -> int:
    """Measure each format and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=20_000)
    options = parser.parse_args()
    pin(0, last_core())
    table = Table()
    for name in ("format", "bytes a request", "CPU us a request", "requests per CPU s"):
        table.add_column(name, justify="left" if name == "format" else "right")
    for name, make in FORMATS.items():
        values = [make(number) for number in range(options.requests)]
        each_us, found = _spent(name, values)
        size = sum(map(len, values)) / len(values)
        assert found == len(values), f"{name}: {found} of {len(values)} requests"
        table.add_row(name, f"{size:,.0f}", f"{each_us:.1f}", f"{1e6 / each_us:,.0f}")
    Console(width=100).print(table)
    return 0


def _spent(name: str, values: list[bytes]) -> tuple[float, int]:
    """Return CPU microseconds a request, and how many were found."""
    one, found = decoder(name, RULES), 0
    before = time.process_time()
    for first in range(0, len(values), BATCH):
        cut = values[first : first + BATCH]
        rows, size = np.arange(first, first + len(cut)), len(cut)
        decoded = one.decode(SourceBatch([*cut], rows, np.full(size, time.time_ns())))
        found += sum(map(len, decoded.services))
    rest = one.finish()
    found += sum(map(len, rest.services)) if rest is not None else 0
    return (time.process_time() - before) / len(values) * 1e6, found


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


FORMATS: dict[str, Callable[[int], bytes]] = {
    "native": _native,
    "otlp_proto": _proto(),
    "otlp_json": _renamed(orjson.dumps(_request()), TRACE),
    "jaeger": _jaeger(),
    "nginx": _nginx(),
}


if __name__ == "__main__":
    sys.exit(main())
