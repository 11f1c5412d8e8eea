"""Request traces of NVIDIA Dynamo."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest
from logs import NOW_NS, Read

from tailbudget.schemas.records import Outcome
from tailbudget.streams.audit_log import open_log
from tailbudget.streams.log_time import format_of
from tailbudget.streams.sources import Rules, ServiceRules, SourceMessage, decoder

T0_MS = 1_772_445_600_000
RULES = Rules(default=ServiceRules(("input_tokens", "output_tokens"), ("model_variant",)))


def event(number: int, **cells: Any) -> dict[str, Any]:
    """Return the end of a request, with the fields of `request_trace/types.rs`."""
    request = {
        "request_id": f"req-{number}",
        "x_request_id": "llm-call-42",
        "model": "my-model",
        "input_tokens": 64,
        "output_tokens": 11,
        "cached_tokens": 32,
        "request_received_ms": T0_MS + number,
        "prefill_wait_time_ms": 10.0,
        "prefill_time_ms": 90.0,
        "ttft_ms": 100.0,
        "total_time_ms": 600.0,
        "avg_itl_ms": 50.0,
        "worker": {"prefill_worker_id": 7, "decode_worker_id": 8},
        "finish_reason_metadata": {"finish_reason": "stop"},
    }
    return {
        "schema": "dynamo.request.trace.v1",
        "event_type": "request_end",
        "event_time_unix_ms": T0_MS + 600,
        "event_source": "dynamo",
        "request": request | cells,
    }


def read(*rows: Any) -> Read:
    messages = [SourceMessage(json.dumps(row).encode(), n, NOW_NS) for n, row in enumerate(rows)]
    return Read([decoder("dynamo", RULES).decode(messages)])


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_end_of_a_request(wrapped: bool) -> None:  # noqa: FBT001
    """Wait, prefill and decode are its stages, in the envelope of a file or without."""
    row = event(1)
    columns = read({"timestamp": 5, "event": row} if wrapped else row).only
    assert (columns.service, list(columns.ids)) == ("dynamo", ["req-1"])
    assert columns.ts_ns.tolist() == [(T0_MS + 1) * 10**6]
    assert columns.total_ms.tolist() == [600]
    stages = dict(zip(columns.stages, columns.stage_ms[:, 0].tolist(), strict=True))
    assert stages == {"queue": 10, "prefill": 90, "decode": 500, "ttft": 100, "tpot": 50}
    assert columns.covariate[:, 0].tolist() == [64, 11]
    assert dict(columns.cohorts[0]) == {"model_variant": "my-model"}


def test_what_is_not_told_is_missing() -> None:
    """Optional fields may lack; a request without an end fails as told, and only then."""
    bare = event(1)
    bare["request"] = {
        k: v for k, v in bare["request"].items() if k in {"request_id", "request_received_ms"}
    }
    late = event(2, finish_reason_metadata={"finish_reason": "cancelled"}, total_time_ms=None)
    found = read(bare, late, event(3, prefill_time_ms=None))
    assert found.ledger["rejected.no_total"] == 1
    assert found.only.outcome.tolist() == [Outcome.CANCELLED, Outcome.OK]
    assert math.isnan(found.only.total_ms[0])
    prefill = found.only.stage_ms[found.only.stages.index("prefill")]
    assert prefill[1] == 100


def test_other_events_are_no_requests() -> None:
    """Tools and payloads are counted, and what was said in them is in no dead letter."""
    payload = event(1) | {"event_type": "request_payload", "payload": {"request": "my secret"}}
    tool = event(2) | {"event_type": "tool_end", "request": None}
    found = read(payload, tool, {"schema": "other"}, [], event(3))
    assert found.ledger["rejected.not_of_format"] == 3
    assert found.ledger["rejected.not_object"] == 1
    assert len(found.only) == 1
    assert all(one.raw == b"" for one in found.rejected)
    assert "secret" not in repr(found.rejected)


def test_a_directory_of_segments(tmp_path: Path) -> None:
    """The files that Dynamo rotates are one log, recognised by its schema."""
    for part in range(2):
        rows = [{"timestamp": n, "event": event(10 * part + n)} for n in range(5)]
        text = "".join(json.dumps(row) + "\n" for row in rows)
        path = tmp_path / f"dynamo-request-trace.{part:06}.jsonl.gz"
        path.write_bytes(gzip.compress(text.encode()))
    reading = open_log(tmp_path, now_ns=NOW_NS)
    assert reading.found.format == "dynamo"
    assert "token timings of dynamo" in " ".join(reading.found.assumptions)
    assert len(Read(reading).only) == 10
    assert format_of({"event": {"schema": 5}}) == "native"
