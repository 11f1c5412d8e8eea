"""Request traces of NVIDIA Dynamo's frontend (`DYN_REQUEST_TRACE=1`), one event a line.

A line is an event of the schema `dynamo.request.trace.v1` (`lib/llm/src/request_trace/types.rs`),
as it is or in the envelope of the file sinks. Of the events only `request_end` is a request; its
times are milliseconds from its receipt at the frontend. Payload events hold prompts and answers:
they are not read, and no dead letter carries their text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from tailbudget.streams.sources.first_token import parts
from tailbudget.streams.sources.translated import NotOfFormatError, Translated, read_object

SCHEMA: Final = "dynamo.request.trace."
_END: Final = "request_end"
_OUTCOMES: Final = {"error": "error", "cancelled": "cancelled"}


class DynamoDecoder(Translated):
    """Decodes Dynamo's request traces; see the package docstring for what it promises."""

    name = "dynamo"
    private = True

    def translate(self, text: bytes) -> Iterable[bytes]:
        """Return the native record of a line, if it is the end of a request."""
        event = unwrapped(read_object(text))
        if not is_event(event):
            raise NotOfFormatError(f"no event of {SCHEMA}v1")
        if event.get("event_type") != _END:
            raise NotOfFormatError(f"the event {str(event.get('event_type'))[:40]!r} is no request")
        return (orjson.dumps(_record(_mapping(event.get("request")))),)


def unwrapped(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the event of a line, its envelope taken off."""
    return record if "schema" in record else _mapping(record.get("event"))


def is_event(record: Mapping[str, Any]) -> bool:
    """Return whether an object is an event of Dynamo."""
    schema = record.get("schema")
    return isinstance(schema, str) and schema.startswith(SCHEMA)


def _record(request: Mapping[str, Any]) -> dict[str, Any]:
    total_ms, first_ms = _number(request.get("total_time_ms")), _number(request.get("ttft_ms"))
    told = parts(total_ms, first_ms)
    prefill_ms = _number(request.get("prefill_time_ms"))
    if prefill_ms is not None:
        told |= {"prefill_ms": prefill_ms, "queue_ms": _number(request.get("prefill_wait_time_ms"))}
    finish = _mapping(request.get("finish_reason_metadata")).get("finish_reason")
    worker = _mapping(request.get("worker"))
    return {
        "request_id": request.get("request_id"),
        "timestamp": request.get("request_received_ms"),
        "total_ms": total_ms,
        "status": _OUTCOMES.get(finish, "ok") if isinstance(finish, str) else "ok",
        "model_variant": request.get("model"),
        "instance_id": _text(worker.get("decode_worker_id", worker.get("prefill_worker_id"))),
        "input_tokens": _number(request.get("input_tokens")),
        "output_tokens": _number(request.get("output_tokens")),
        "cached_tokens": _number(request.get("cached_tokens")),
        "queue_depth": _number(request.get("queue_depth")),
        "tpot_ms": _number(request.get("avg_itl_ms")),
        **told,
    }


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)[:40]


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
