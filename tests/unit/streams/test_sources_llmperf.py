"""LLMPerf's individual results."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tailbudget.schemas.records import Columns, Decoded, Outcome
from tailbudget.streams.sources import Rules, ServiceRules, SourceMessage, decoder

DATA = Path(__file__).parents[2] / "data"
ARRIVAL_NS = 1_770_000_000 * 10**9
RULES = Rules(default=ServiceRules(covariates=("input_tokens", "output_tokens")))


def decode(values: list[bytes]) -> Decoded:
    messages = [SourceMessage(value, i, ARRIVAL_NS) for i, value in enumerate(values)]
    return decoder("llmperf", RULES).decode(messages)


def read(name: str) -> tuple[Columns, list[dict[str, Any]]]:
    records = json.loads((DATA / name).read_bytes())
    (columns,) = decode([json.dumps(record).encode() for record in records]).services
    return columns, records


def test_seconds_become_milliseconds() -> None:
    """The total is the end-to-end latency; the first token's time is in it once."""
    columns, records = read("llmperf_groq_70b_individual.json")
    assert columns.service == "llmperf"
    assert columns.stages == ("decode", "prefill", "tpot", "ttft")
    each_s = [record["inter_token_latency_s"] for record in records]
    np.testing.assert_allclose(columns.stage_ms[2], np.multiply(each_s, 1e3), rtol=1e-12)
    np.testing.assert_array_equal(columns.stage_ms[1], columns.stage_ms[3])
    total_s = [record["end_to_end_latency_s"] for record in records]
    np.testing.assert_allclose(columns.total_ms, np.multiply(total_s, 1e3), rtol=1e-12)
    first_s = [record["ttft_s"] for record in records]
    np.testing.assert_allclose(columns.stage_ms[1], np.multiply(first_s, 1e3), rtol=1e-12)
    np.testing.assert_allclose(columns.stage_ms[:2].sum(axis=0), columns.total_ms, rtol=1e-12)
    assert columns.covariate[:, 0].tolist() == [550, 150]


def test_errors_with_latencies_are_failures() -> None:
    """Requests that ended in an error count as failed, however fast; what was said is not kept."""
    columns, records = read("llmperf_bedrock_70b_individual.json")
    failed = [record["error_code"] is not None for record in records]
    assert (columns.outcome != Outcome.OK).tolist() == failed
    assert sum(failed) == 49
    assert not np.isnan(columns.total_ms).any()


def test_records_have_their_offsets_for_ids() -> None:
    """Ids differ between messages, and between the records of one message."""
    record = b'{"end_to_end_latency_s": 1.5, "ttft_s": 0.5, "error_code": null}'
    decoded = decode([record, record + b"\n" + record, record])
    (columns,) = decoded.services
    assert list(columns.ids) == ["0", "1", "1.1", "2"]
    assert len(set(columns.id_hash.tolist())) == 4
    assert set(columns.ts_ns.tolist()) == {ARRIVAL_NS}


@pytest.mark.parametrize(
    ("code", "outcome"),
    [(None, Outcome.OK), (429, Outcome.REJECTED), (504, Outcome.TIMEOUT), (-1, Outcome.ERROR)],
)
def test_error_codes(code: object, outcome: Outcome) -> None:
    """An HTTP code says how the request ended; any other code is an error."""
    record = {"end_to_end_latency_s": 1.0, "ttft_s": 0.1, "error_code": code}
    (columns,) = decode([json.dumps(record).encode()]).services
    assert columns.outcome.tolist() == [outcome]


def test_what_is_no_record_is_rejected() -> None:
    """Elements of other kinds, and successes without a latency, are counted by reason."""
    decoded = decode([b"[]", b"{}", b"{nonsense", b'{"end_to_end_latency_s": "fast"}'])
    found: Counter[str] = Counter()
    for (_, _, reason), count in decoded.ledger.items():
        found[reason] += count
    assert found == {
        "rejected.not_object": 1,
        "rejected.no_total": 1,
        "rejected.not_json": 1,
        "rejected.not_a_number": 1,
    }
