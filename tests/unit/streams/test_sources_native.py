"""The rules of the native format, one by one."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

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


def test_unknown_columns_are_counted_and_named() -> None:
    """They are kept out; a null is no value; reserved names are no stages."""
    decoded = decode(
        {"trace": "a", "meta": {"k": 1, "run_ms": 2}, "failed_ms": 3},
        {"trace": None, "unattributed_ms": 1, "ttft_ms": 9, "output_tokens": 4, "attempt": 1},
    )
    assert decoded.unknown == {"trace", "meta", "failed_ms", "unattributed_ms"}
    assert reasons(decoded) == {"accepted": 2, "unknown_column": 4}
    assert columns_of(decoded).stages == ()
    assert columns_of(decoded).covariates == ()


def test_a_new_column_is_never_missed() -> None:
    """One cell in a long-known stream is found, however its text is written."""
    one = decoder("native", RULES)
    one.decode([SourceMessage(json.dumps(GOOD).encode(), 0, NOW_NS)])
    for spelling in ('"late_ms":3', '"late_ms" : 3', '"late_ms"\t:3', '"l\\u0061te_ms": 3'):
        for tail in ("", ',"route":"a\\":null"', ',"route":"x :y !:"', ',"region":null'):
            text = json.dumps(GOOD)[:-1] + f",{spelling}{tail}}}"
            fresh = decoder("native", RULES)
            fresh.decode([SourceMessage(json.dumps({**GOOD, "route": "a"}).encode(), 0, NOW_NS)])
            (columns,) = fresh.decode([SourceMessage(text.encode(), 1, NOW_NS)]).services
            assert columns.stages == ("late",)
            assert columns.stage_ms.tolist() == [[3]]


def test_covariates_and_cohorts_follow_the_rules() -> None:
    """Configured columns are read as such; unusable covariates are missing and counted."""
    decoded = decode(
        {"sequence_length": 10, "batch_size": 2, "route": "a", "region": "eu"},
        {"sequence_length": "many", "route": "a", "region": "eu"},
        {"sequence_length": float("inf"), "route": "b"},
        {"route": 1},
    )
    columns = columns_of(decoded)
    assert columns.covariates == ("batch_size", "sequence_length")
    np.testing.assert_array_equal(
        columns.covariate, [[2, np.nan, np.nan, np.nan], [10, np.nan, np.nan, np.nan]]
    )
    assert [columns.cohorts[code] for code in columns.cohort] == [
        (("route", "a"), ("region", "eu")),
        (("route", "a"), ("region", "eu")),
        (("route", "b"), ("region", "(none)")),
        (("route", "1"), ("region", "(none)")),
    ]
    assert len(columns.cohorts) == 3
    assert reasons(decoded) == {"accepted": 4, "missing.covariate": 2}


def test_many_cohorts_stay_distinct() -> None:
    """Every combination is its own cohort, also where the quick table has collisions."""
    records = [{"route": f"r{i % 60}", "region": f"x{i % 59}"} for i in range(3_600)]
    columns = columns_of(decode(*records))
    assert len(set(columns.cohorts)) == len(columns.cohorts) == 60 * 59
    for record, code in zip(records, columns.cohort, strict=True):
        assert columns.cohorts[code] == tuple(record.items())


def test_services_are_told_apart() -> None:
    """Each has its own rules; a record that names none belongs to the source's."""
    rules = Rules(
        service=None,
        default=ServiceRules(covariates=("size",), stages=("queue",)),
        services={"rank": ServiceRules(cohort_dims=("size",), stages=None)},
    )
    row = {"queue_ms": 1, "run_ms": 2, "size": 3}
    decoded = decode(
        {"service": "rank", **row},
        row,
        {"service": "chat", **row},
        {"service": "", **row},
        rules=rules,
    )
    found = {columns.service: columns for columns in decoded.services}
    assert {name: columns.offset.tolist() for name, columns in found.items()} == {
        "(none)": [8, 10],
        "chat": [9],
        "rank": [7],
    }
    assert found["chat"].stages == ("queue",)
    assert found["chat"].covariate.tolist() == [[3]]
    assert found["rank"].stages == ("queue", "run")
    assert found["rank"].cohorts == ((("size", "3"),),)
    assert decoded.unknown == {"run_ms"}
    assert decoded.ledger["chat", NOW_NS, "unknown_column"] == 1


def test_weights_are_whole_and_right_on_average() -> None:
    """A fraction is rounded by the request's hash; what is no weight counts as one."""
    weights = [None, 1, 3, 0, -2, "x", 1e12]
    decoded = decode(*({"weight": weight} for weight in weights))
    weight = columns_of(decoded).weight
    assert weight is not None
    assert weight.tolist() == [1, 1, 3, 1, 1, 1, 1]
    assert reasons(decoded) == {"accepted": 7, "missing.weight": 4}
    records = [{"request_id": f"r{i}", "weight": 2.25} for i in range(4_000)]
    weight = columns_of(decode(*records)).weight
    assert weight is not None
    assert set(weight.tolist()) == {2, 3}
    assert weight.mean() == pytest.approx(2.25, abs=0.03)
    assert columns_of(decode({})).weight is None


def test_limits() -> None:
    """Zero is no limit; a negative limit is counted."""
    decoded = decode({"timeout_ms": 30_000}, {"timeout_ms": 0}, {"timeout_ms": -1}, {})
    limit = columns_of(decoded).limit_ms
    np.testing.assert_array_equal(limit, [30_000, np.nan, np.nan, np.nan])
    assert reasons(decoded) == {"accepted": 4, "missing.limit": 1}


def test_ledger_times_are_the_record_s_own_seconds() -> None:
    """Counts stand at the event's second, or at the arrival's where the event's is not credible."""
    decoded = decode({"timestamp": "2026-03-02T09:00:00.999Z"}, {"timestamp": "soon"}, b"[]")
    assert decoded.ledger == {
        ("chat", NOW_NS - 3_600 * 10**9, "accepted"): 1,
        ("chat", NOW_NS, "rejected.bad_timestamp"): 1,
        ("chat", NOW_NS, "rejected.not_object"): 1,
    }


def test_hashes_are_stable_and_spread() -> None:
    """Equal ids have equal hashes in any batch, and hashes look uniform."""
    ids = [{"request_id": f"r{i}"} for i in range(2_000)]
    once = columns_of(decode(*ids)).id_hash
    again = columns_of(decode(*ids[::-1])).id_hash[::-1]
    assert once.tolist() == again.tolist()
    assert len(set(once.tolist())) == 2_000
    assert (once.astype(float) / 2**64).mean() == pytest.approx(0.5, abs=0.03)


def test_of_equal_keys_the_first_counts() -> None:
    """A repeated key is read alike on the fast and on the slow path."""
    text = json.dumps(GOOD)[:-1]
    slow = text.replace("50", "NaN").replace('"total_ms"', '"total_ms": 49, "total_ms"')
    decoded = decode(f'{text}, "total_ms": 51}}'.encode(), f"{slow}}}".encode())
    assert columns_of(decoded).total_ms.tolist() == [50, 49]


def test_ids_are_a_sequence() -> None:
    """Request ids can be looked up one by one and as a slice."""
    ids = columns_of(decode({"request_id": "a"}, {"request_id": 7}, {"request_id": "c"})).ids
    assert (ids[0], ids[-1], list(ids[1:]), len(ids)) == ("a", "c", ["7", "c"], 3)


def test_columns_beyond_the_limit_are_named_and_forgotten_ones_return() -> None:
    """A source with endless column names stays bounded, and known columns keep working."""
    one = decoder("native", RULES)

    def read(fields: dict[str, Any]) -> Decoded:
        return one.decode([SourceMessage(json.dumps({**GOOD, **fields}).encode(), 0, NOW_NS)])

    assert len(read({f"k{i}": 1 for i in range(600)}).unknown) == 600
    for _ in range(520):
        read({})
    assert columns_of(read({"queue_ms": 3})).stages == ("queue",)
