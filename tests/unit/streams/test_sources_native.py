"""The rules of the native format, one by one."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import cramjam
import numpy as np
import pytest

from tailbudget.schemas.records import Columns, Decoded, Outcome
from tailbudget.streams.sources import Rules, ServiceRules, SourceMessage, decoder

NOW_NS = 1_772_445_600 * 10**9  # 2026-03-02T10:00:00Z
RULES = Rules(
    service="chat",
    default=ServiceRules(
        covariates=("sequence_length", "batch_size"), cohort_dims=("route", "region")
    ),
)
GOOD: dict[str, Any] = {"request_id": "r1", "timestamp": "2026-03-02T10:00:00Z", "total_ms": 50}


def decode(*records: dict[str, Any] | bytes | None, rules: Rules = RULES) -> Decoded:
    """Decode messages; a record without the required columns gets good ones."""
    values = [
        json.dumps({**GOOD, **value}).encode() if isinstance(value, dict) else value
        for value in records
    ]
    messages = [SourceMessage(value, 7 + i, NOW_NS) for i, value in enumerate(values)]
    return decoder("native", rules).decode(messages)


def columns_of(decoded: Decoded) -> Columns:
    (columns,) = decoded.services
    return columns


def reasons(decoded: Decoded) -> dict[str, int]:
    found: Counter[str] = Counter()
    for (_, _, reason), count in decoded.ledger.items():
        found[reason] += count
    return dict(found)


@pytest.mark.parametrize(
    ("fields", "reason", "detail"),
    [
        ({"request_id": None}, "rejected.no_id", "request_id is missing"),
        ({"request_id": ""}, "rejected.no_id", 'request_id is ""'),
        ({"timestamp": None}, "rejected.no_timestamp", "timestamp is missing"),
        ({"timestamp": "soon"}, "rejected.bad_timestamp", 'timestamp is "soon"'),
        ({"timestamp": [1]}, "rejected.bad_timestamp", "timestamp is [1]"),
        ({"total_ms": None}, "rejected.no_total", "total_ms is missing"),
        ({"total_ms": None, "status": 200}, "rejected.no_total", "total_ms is missing"),
        ({"total_ms": ""}, "rejected.no_total", 'total_ms is ""'),
        ({"total_ms": "12.5ms"}, "rejected.not_a_number", 'total_ms is "12.5ms"'),
        ({"total_ms": True}, "rejected.not_a_number", "total_ms is true"),
        ({"total_ms": {"value": 1}}, "rejected.not_a_number", 'total_ms is {"value": 1}'),
    ],
)
def test_rejects(fields: dict[str, Any], reason: str, detail: str) -> None:
    """What is no record is a dead letter that says where, why and what."""
    decoded = decode({}, fields)
    (dead,) = decoded.rejected
    assert (dead.offset, dead.reason, dead.detail) == (8, reason, detail)
    assert json.loads(dead.raw) == {**GOOD, **fields}
    assert reasons(decoded) == {"accepted": 1, reason: 1}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "rejected.not_json"),
        (b'{"a":1}{"b":2}', "rejected.not_json"),
        (b'{"a":01}', "rejected.not_json"),
        (b"[" * 100_000, "rejected.not_json"),
        (b'{"a":' * 2_000 + b"1" + b"}" * 2_000, "rejected.not_json"),
        (b"[1]", "rejected.not_object"),
        (b'"text"', "rejected.not_object"),
        (b'{"request_id":"\xff"}', "rejected.not_utf8"),
    ],
)
def test_rejects_lines(line: bytes, reason: str) -> None:
    """What is no JSON object costs only itself; the dead letter carries its first kilobyte."""
    decoded = decode({}, line, {})
    (dead,) = decoded.rejected
    assert (dead.offset, dead.reason, dead.raw) == (8, reason, line[:1024])
    assert dead.detail
    assert columns_of(decoded).offset.tolist() == [7, 9]


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress, cramjam.zstd.compress])
def test_what_begins_as_a_packed_file_is_not_unpacked(pack: Callable[[bytes], bytes]) -> None:
    """A message may be a bomb, or only begin like one: it costs only itself, unread."""
    record = json.dumps(GOOD).encode()
    for line in (bytes(pack(record)).replace(b"\n", b""), bytes(pack(record))[:4] + record):
        decoded = decode(line, {})
        assert reasons(decoded)["accepted"] == 1
        assert columns_of(decoded).offset.tolist() == [8]
        assert {dead.reason for dead in decoded.rejected} <= {
            "rejected.not_json",
            "rejected.not_utf8",
        }


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"timestamp": "2026-03-02T10:01:00.001Z"}, "quarantined.future"),
        ({"timestamp": 0}, "quarantined.out_of_range_time"),
        ({"timestamp": "2101-01-01T00:00:00Z"}, "quarantined.out_of_range_time"),
        ({"total_ms": float("nan")}, "quarantined.not_finite"),
        ({"total_ms": float("-inf")}, "quarantined.not_finite"),
        ({"total_ms": "NaN"}, "quarantined.not_finite"),
        ({"total_ms": -1}, "quarantined.negative_total"),
        ({"total_ms": 86_400_001}, "quarantined.total_out_of_range"),
        ({"total_ms": 0.058, "run_ms": 58}, "quarantined.total_in_seconds"),
        ({"total_ms": 0.058, "run_ms": 30, "queue_ms": 28}, "quarantined.total_in_seconds"),
        ({"total_ms": 1, "run_ms": 101}, "quarantined.stage_exceeds_total"),
        ({"total_ms": 1, "run_ms": 5_000}, "quarantined.stage_exceeds_total"),
    ],
)
def test_quarantines(fields: dict[str, Any], reason: str) -> None:
    """What contradicts itself is counted, and is in no figure and no dead letter."""
    decoded = decode({}, fields)
    assert reasons(decoded) == {"accepted": 1, reason: 1}
    assert len(columns_of(decoded)) == 1
    assert decoded.rejected == ()


@pytest.mark.parametrize(
    "fields",
    [
        {"timestamp": "2026-03-02T10:01:00Z"},
        {"total_ms": 0},
        {"total_ms": 86_400_000},
        {"total_ms": "12.5"},
        {"total_ms": 1, "run_ms": 100},
        {"total_ms": 0, "run_ms": 0.9},
        {"total_ms": 3, "run_ms": 900, "status": 429},
    ],
)
def test_accepts_at_the_edge(fields: dict[str, Any]) -> None:
    """Limits are inclusive, plain numbers may be strings, failures may be cut short."""
    decoded = decode(fields)
    assert len(columns_of(decoded)) == 1
    assert columns_of(decoded).total_ms[0] == float(fields.get("total_ms", 50))


def test_a_stage_that_is_unusable_is_missing() -> None:
    """Only that cell is lost, and each kind is counted."""
    decoded = decode(
        {"queue_ms": 5, "run_ms": 40},
        {"queue_ms": -1, "run_ms": 40},
        {"queue_ms": float("nan"), "run_ms": 1_772_445_600_000},
        {"queue_ms": "n/a", "run_ms": None},
    )
    columns = columns_of(decoded)
    assert columns.stages == ("queue", "run")
    np.testing.assert_array_equal(
        columns.stage_ms, [[5, np.nan, np.nan, np.nan], [40, 40, np.nan, np.nan]]
    )
    assert reasons(decoded) == {
        "accepted": 4,
        "missing.negative_stage": 1,
        "missing.not_finite_stage": 2,
        "missing.stage_out_of_range": 1,
    }


def test_a_failure_needs_no_usable_total() -> None:
    """A failed request counts as failed whatever its total; an unusable one is counted."""
    decoded = decode(
        {"status": "timeout", "total_ms": None},
        {"status": 500, "total_ms": -1},
        {"status": "error", "total_ms": "12.5ms"},
        {"status": "error", "total_ms": 0},
    )
    columns = columns_of(decoded)
    np.testing.assert_array_equal(columns.total_ms, [np.nan, np.nan, np.nan, 0])
    assert reasons(decoded) == {"accepted": 4, "failed": 4, "missing.total": 2}


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (None, Outcome.OK),
        ("ok", Outcome.OK),
        ("Success", Outcome.OK),
        (True, Outcome.OK),
        (200, Outcome.OK),
        ("304", Outcome.OK),
        (200.0, Outcome.OK),
        (False, Outcome.ERROR),
        (404, Outcome.ERROR),
        (500, Outcome.ERROR),
        ("something else", Outcome.ERROR),
        (0, Outcome.ERROR),
        (408, Outcome.TIMEOUT),
        (504, Outcome.TIMEOUT),
        ("Timed out", Outcome.TIMEOUT),
        ("DEADLINE_EXCEEDED", Outcome.TIMEOUT),
        (499, Outcome.CANCELLED),
        ("canceled", Outcome.CANCELLED),
        (429, Outcome.REJECTED),
        (503, Outcome.REJECTED),
        ("rate-limited", Outcome.REJECTED),
    ],
)
def test_status(status: object, outcome: Outcome) -> None:
    """A status is a word or an HTTP code; what is not understood is no success."""
    assert columns_of(decode({"status": status})).outcome.tolist() == [outcome]
    assert columns_of(decode({"status": status}, {"status": "ok"})).outcome[0] == outcome


def test_messages_may_hold_several_records_or_none() -> None:
    """Each record has its message's offset; blanks are skipped, tombstones counted."""
    first, second = json.dumps(GOOD), json.dumps({**GOOD, "request_id": "r2"})
    decoded = decode(f"{first}\r\n\n{second}\nnull\n".encode(), None, b"", b" \n", {})
    assert columns_of(decoded).offset.tolist() == [7, 7, 11]
    assert list(columns_of(decoded).ids) == ["r1", "r2", "r1"]
    assert [(r.offset, r.detail) for r in decoded.rejected] == [
        (7, "record 3 of its message: a JSON null, no object")
    ]
    assert reasons(decoded) == {"accepted": 3, "rejected.not_object": 1, "tombstone": 3}


def test_blank_and_double_messages_do_not_even_out() -> None:
    """As many records as messages does not mean one record a message."""
    twice = b"\n".join([json.dumps(GOOD).encode()] * 2)
    assert columns_of(decode(b" ", twice)).offset.tolist() == [8, 8]
    assert columns_of(decode(twice, {})).offset.tolist() == [7, 7, 8]


def test_an_object_over_several_lines_is_one_record() -> None:
    """A producer may indent."""
    decoded = decode(*(json.dumps({**GOOD, "run_ms": x}, indent=2).encode() for x in (1, np.nan)))
    assert list(columns_of(decoded).ids) == ["r1", "r1"]
    assert decoded.rejected == ()


def test_oversize_records_are_located_and_skipped() -> None:
    """The record after one that is too long is read."""
    long = json.dumps({**GOOD, "note": "x" * 1_500_000}).encode()
    decoded = decode({}, long, {})
    (dead,) = decoded.rejected
    assert (dead.offset, dead.reason) == (8, "rejected.oversize")
    assert dead.detail == f"{len(long):,} bytes; at most 1,000,000 are read"
    assert dead.raw == long[:1024]
    assert columns_of(decoded).offset.tolist() == [7, 9]


def test_an_empty_batch_is_empty() -> None:
    """No messages, no rows."""
    assert decode() == Decoded((), (), {}, frozenset())
