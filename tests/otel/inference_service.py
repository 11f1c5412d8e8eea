"""A simulated inference service that a real OpenTelemetry SDK traces, with a clock of its own.

    python tests/otel/inference_service.py sdk http://127.0.0.1:4318/v1/traces own

serves requests, exports their spans, and writes what it measured itself as native records, one a
line: `own.least.jsonl` and `own.most.jsonl`. With the clock `sdk` the SDK stamps the spans. Our
own stamps are taken just before and just after it does, so that what the SDK measured lies between
the two records of a request. With the clock `virtual` the service says when its spans begin and
end, two hours ago; both records are then the same.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import orjson
from inference_requests import MS, VERSIONS, Request, requests
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

SERVICE = "chat"
TEXT = "the-patient-asked-for-7f3a91"
"""What people wrote: no store may have it."""


class Clock(Protocol):
    """Tells the time, and lets it pass."""

    def now(self) -> int:
        """Return nanoseconds since the epoch."""

    def wait(self, ns: int) -> None:
        """Let time pass."""

    def told(self) -> int | None:
        """Return what the SDK is to stamp; None where it is to look at its own clock."""


class WallClock:
    """The machine's."""

    def now(self) -> int:
        return time.time_ns()

    def wait(self, ns: int) -> None:
        time.sleep(ns / 1e9)

    def told(self) -> int | None:
        return None


class VirtualClock:
    """One that only waiting moves."""

    def __init__(self, now: int) -> None:
        self._now = now

    def now(self) -> int:
        return self._now

    def wait(self, ns: int) -> None:
        self._now += ns

    def told(self) -> int | None:
        return self._now


class Timed:
    """A span of the SDK between stamps of our own."""

    def __init__(
        self, tracer: Any, clock: Clock, name: str, above: Timed | None, **more: Any
    ) -> None:
        self._clock = clock
        context = set_span_in_context(above.span) if above else None
        began = clock.now()
        self.span: Any = tracer.start_span(name, context, start_time=clock.told(), **more)
        self._began = began, clock.now()
        self._ended = (0, 0)

    def end(self) -> None:
        before = self._clock.now()
        self.span.end(self._clock.told())
        self._ended = before, self._clock.now()

    def interval(self, *, most: bool) -> tuple[int, int]:
        """Return a span of time that is not shorter than what the SDK stamped, or not longer."""
        if most:
            return self._began[0], self._ended[1]
        return self._began[1], self._ended[0]


class Service:
    """Serves requests with a version each, and keeps what it measured.

    Attributes:
        least: a record of each request, nothing of it longer than what the SDK measured.
        most: likewise, nothing of it shorter.
    """

    def __init__(self, url: str) -> None:
        self._providers = {version: provider(url, version) for version in VERSIONS}
        self.least: list[dict[str, Any]] = []
        self.most: list[dict[str, Any]] = []

    def serve(self, request: Request, clock: Clock) -> None:
        """Serve one request; several threads may do so."""
        tracer = self._providers[request.version].get_tracer("inference")
        queue, preprocess, tokenize, retrieve, forward, decode, rest = request.work
        root = Timed(tracer, clock, f"POST {request.route}", None, kind=SpanKind.SERVER)
        root.span.set_attributes({"http.request.method": "POST", "http.route": request.route})
        root.span.set_attribute("gen_ai.input.messages", TEXT)
        steps = {"queue": _step(tracer, clock, "queue", root, queue)}
        steps |= self._prepare(tracer, clock, root, (preprocess, tokenize, retrieve))
        made = Timed(tracer, clock, "model_forward", root, kind=SpanKind.CLIENT)
        made.span.set_attributes(_gen_ai(request))
        made.span.add_event("gen_ai.content.prompt", {"gen_ai.prompt": TEXT})
        clock.wait(forward)
        made.end()
        steps["model_forward"] = made
        if request.code == 200:
            steps["decode"] = _step(tracer, clock, "decode", root, decode)
        else:
            root.span.record_exception(RuntimeError(TEXT))
            root.span.set_status(Status(StatusCode.ERROR, TEXT))
        root.span.set_attribute("http.response.status_code", request.code)
        clock.wait(rest)
        root.end()
        self.least.append(_record(request, root, steps, most=False))
        self.most.append(_record(request, root, steps, most=True))

    def close(self) -> None:
        """Send what was not sent yet."""
        for one in self._providers.values():
            one.shutdown()

    @staticmethod
    def _prepare(
        tracer: Any, clock: Clock, root: Timed, work: tuple[int, int, int]
    ) -> dict[str, Timed]:
        own, tokenize, retrieve = work
        whole = Timed(tracer, clock, "preprocess", root)
        clock.wait(own)
        side = {
            "tokenize": Timed(tracer, clock, "tokenize", whole),
            "retrieve": Timed(tracer, clock, "retrieve", whole, kind=SpanKind.CLIENT),
        }
        first, last = ("tokenize", "retrieve") if tokenize < retrieve else ("retrieve", "tokenize")
        clock.wait(min(tokenize, retrieve))
        side[first].end()
        clock.wait(abs(tokenize - retrieve))
        side[last].end()
        whole.end()
        return {"preprocess": whole, **side}


def _step(tracer: Any, clock: Clock, name: str, above: Timed, length: int) -> Timed:
    step = Timed(tracer, clock, name, above)
    clock.wait(length)
    step.end()
    return step


def _gen_ai(request: Request) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": request.model,
        "gen_ai.usage.input_tokens": request.tokens[0],
        "gen_ai.usage.output_tokens": request.tokens[1],
        "gen_ai.prompt": TEXT,
        "gen_ai.completion": TEXT,
    }


def _record(
    request: Request, root: Timed, steps: dict[str, Timed], *, most: bool
) -> dict[str, Any]:
    """Return the native record: of what runs side by side, each has its own time."""
    lengths = {name: _length(step.interval(most=most)) for name, step in steps.items()}
    inner = [steps[name].interval(most=not most) for name in ("tokenize", "retrieve")]
    lengths["preprocess"] -= max(end for _, end in inner) - min(start for start, _ in inner)
    start, _ = root.interval(most=most)
    return {
        "request_id": f"{root.span.get_span_context().trace_id:032x}",
        "timestamp": start,
        "service": SERVICE,
        "total_ms": _length(root.interval(most=most)) / MS,
        **{f"{name}_ms": length / MS for name, length in lengths.items()},
        "status": str(request.code),
        "route": request.route,
        "method": "POST",
        "model_variant": request.model,
        "input_tokens": request.tokens[0],
        "output_tokens": request.tokens[1],
        **_process(request.version, own=True),
    }


def _length(interval: tuple[int, int]) -> int:
    return interval[1] - interval[0]


def _process(version: str, *, own: bool = False) -> dict[str, str]:
    """Return what the process says of itself: under the names of a record, or of a resource."""
    names = {
        "version": "service.version",
        "instance_id": "service.instance.id",
        "region": "cloud.region",
        "environment": "deployment.environment.name",
    }
    values = (version, f"pod-{version}", "eu", "prod")
    return dict(zip(names if own else names.values(), values, strict=True))


def provider(url: str, version: str, service: str = SERVICE) -> TracerProvider:
    """Return an SDK that exports to a collector, as one of a process of that version."""
    made = TracerProvider(
        resource=Resource({"service.name": service, **_process(version)}),
        shutdown_on_exit=False,
    )
    exporter = OTLPSpanExporter(url)
    made.add_span_processor(
        BatchSpanProcessor(exporter, max_queue_size=100_000, schedule_delay_millis=500)
    )
    return made


def pass_on(url: str, at_ns: int) -> None:
    """Send spans of another service, as young as that: on every partition, for they are many."""
    made = provider(url, "v1", "bystander")
    for _ in range(64):
        made.get_tracer("time").start_span("tick", start_time=at_ns).end(at_ns)
    made.shutdown()


def main(arguments: Sequence[str]) -> int:
    """Serve, and write what was measured."""
    clock, url, path = arguments
    service = Service(url)
    if clock == "sdk":
        with ThreadPoolExecutor(8) as pool:
            every = requests(600, seed=7, every_ns=0, scale=1.0)
            list(pool.map(lambda request: service.serve(request, WallClock()), every))
    else:
        start_ns = time.time_ns() - 7_200 * 10**9
        for request in requests(1_500, seed=11, every_ns=10**9, scale=10.0):
            service.serve(request, VirtualClock(start_ns + request.at))
    service.close()
    for name, records in (("least", service.least), ("most", service.most)):
        Path(f"{path}.{name}.jsonl").write_bytes(b"\n".join(map(orjson.dumps, records)) + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
