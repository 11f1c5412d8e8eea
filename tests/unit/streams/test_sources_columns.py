"""Columns: which there are, of which service, and what they hold."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tailbudget.schemas.records import Columns, Decoded
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


def test_unknown_columns_are_counted_and_named() -> None:
    """They are kept out; a null is no value; reserved names are no stages."""
    decoded = decode(
        {"trace": "a", "meta": {"k": 1, "run_ms": 2}, "failed_ms": 3},
        {"trace": None, "unattributed_ms": 1, "ttft_ms": 9, "output_tokens": 4, "attempt": 1},
    )
    assert decoded.unknown == {"trace", "meta", "failed_ms", "unattributed_ms"}
    assert reasons(decoded) == {"accepted": 2, "unknown_column": 4}
    assert columns_of(decoded).stages == ("tpot", "ttft")
    assert columns_of(decoded).covariates == ()


def test_a_new_column_is_never_missed() -> None:
    """One cell in a long-known stream is found, however its text is written."""
    one = decoder("native", RULES)
    one.decode([SourceMessage(json.dumps(GOOD).encode(), 0, NOW_NS)])
    for spelling in ('"late_ms":3', '"late_ms" : 3', '"late_ms"\t:3', '"l\\u0061te_ms": 3'):
        for tail in (
            "",
            ',"route":"a\\":null"',
            ',"route":"x :y !:"',
            ',"route":"\\u0022:"',
            ',"region":null',
        ):
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
