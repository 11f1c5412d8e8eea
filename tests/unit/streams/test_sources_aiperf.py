"""AIPerf profile exports."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tailbudget.schemas.records import Columns, Decoded, Outcome
from tailbudget.streams.sources import FORMATS, Rules, ServiceRules, SourceMessage, decoder

DATA = Path(__file__).parents[2] / "data"
ARRIVAL_NS = 1_770_000_000 * 10**9
RULES = Rules(default=ServiceRules(covariates=("input_tokens", "output_tokens")))


def decode(lines: list[bytes]) -> Decoded:
    messages = [SourceMessage(line, i, ARRIVAL_NS) for i, line in enumerate(lines)]
    return decoder("aiperf", RULES).decode(messages)


def read(name: str) -> tuple[Decoded, Columns, list[dict[str, Any]]]:
    lines = (DATA / name).read_bytes().splitlines()
    decoded = decode(lines)
    (columns,) = decoded.services
    return decoded, columns, [json.loads(line) for line in lines]


def test_version_0_1() -> None:
    """All 100 requests are read, the 11 cancelled ones as such and without latency."""
    decoded, columns, records = read("aiperf_v0.1_profile_export.jsonl")
    assert columns.service == "aiperf"
    assert Counter(columns.outcome.tolist()) == {Outcome.OK: 89, Outcome.CANCELLED: 11}
    assert np.isnan(columns.total_ms).sum() == 11
    assert decoded.rejected == ()
    assert decoded.unknown == frozenset()
    row, record = 99, records[99]
    metrics = record["metrics"]
    assert columns.ids[row] == record["metadata"]["x_request_id"]
    assert columns.ts_ns[row] == record["metadata"]["timestamp_ns"]
    assert columns.total_ms[row] == metrics["request_latency"]["value"]
    assert columns.stages == ("decode", "itl", "prefill", "tpot", "ttft")
    assert columns.stage_ms[2, row] == columns.stage_ms[4, row] == metrics["ttft"]["value"]
    assert columns.stage_ms[3, row] == metrics["inter_token_latency"]["value"]
    gaps = metrics["inter_chunk_latency"]["value"]
    assert columns.stage_ms[1, row] == pytest.approx(sum(gaps) / len(gaps))
    assert columns.stage_ms[[0, 2], row].sum() == pytest.approx(columns.total_ms[row], rel=1e-12)
    assert columns.covariates == ("input_tokens", "output_tokens")
    assert columns.covariate[:, row].tolist() == [550, 247]


def test_version_0_5() -> None:
    """The renamed fields of the later version are read too."""
    decoded, columns, records = read("aiperf_v0.5_profile_export.jsonl")
    assert len(columns) == 10
    assert columns.ts_ns.tolist() == [r["metadata"]["request_start_ns"] for r in records]
    assert columns.stage_ms[columns.stages.index("ttft")].tolist() == [
        r["metrics"]["time_to_first_token"]["value"] for r in records
    ]
    assert (columns.covariate == [[100], [200]]).all()
    assert sum(n for (_, _, reason), n in decoded.ledger.items() if reason == "accepted") == 10


def test_units_are_converted() -> None:
    """A metric says its unit; one of an unknown unit is read as milliseconds."""
    metadata = {"x_request_id": "a", "timestamp_ns": ARRIVAL_NS}
    for unit, factor in (("ns", 1e-6), ("us", 1e-3), ("ms", 1), ("s", 1e3)):
        metrics = {"request_latency": {"value": 5, "unit": unit}}
        line = json.dumps({"metadata": metadata, "metrics": metrics, "error": None}).encode()
        (columns,) = decode([line]).services
        assert columns.total_ms.tolist() == [5 * factor]


def test_errors_and_cancellations() -> None:
    """An error's code is its status; an error without one is an error still."""
    metadata = {"x_request_id": "a", "timestamp_ns": ARRIVAL_NS}
    lines = [
        {"metadata": metadata, "error": {"code": 504}},
        {"metadata": metadata, "error": {"type": "Broken"}},
        {"metadata": metadata, "error": "broken"},
        {"metadata": metadata | {"was_cancelled": True}, "error": None},
    ]
    (columns,) = decode([json.dumps(line).encode() for line in lines]).services
    assert columns.outcome.tolist() == [
        Outcome.TIMEOUT,
        Outcome.ERROR,
        Outcome.ERROR,
        Outcome.CANCELLED,
    ]


def test_what_is_no_aiperf_record_is_rejected_with_its_own_text() -> None:
    """The dead letter carries what was received, not its translation."""
    lines = [b"{", b"[]", b'{"metadata":3,"metrics":[]}', b'{"request_id":"a"}']
    decoded = decode(lines)
    assert [(r.offset, r.reason, r.raw) for r in decoded.rejected] == [
        (0, "rejected.not_json", lines[0]),
        (1, "rejected.not_object", lines[1]),
        (2, "rejected.no_id", lines[2]),
        (3, "rejected.no_id", lines[3]),
    ]


def test_formats_are_named() -> None:
    """Every format is found by its own name; another name is an error."""
    for name in FORMATS:
        assert decoder(name, RULES).name == name
    with pytest.raises(KeyError):
        decoder("csv", RULES)
