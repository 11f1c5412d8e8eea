"""Situations on which latency tools mislead, as the native decoder reads them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tailbudget.schemas.records import Decoded, Outcome
from tailbudget.streams.sources import Rules, SourceMessage, decoder

CASES = Path(__file__).parents[2] / "data" / "cases"
T0_NS = 1_772_445_600 * 10**9  # 2026-03-02T10:00:00Z


def read(name: str, arrival_ns: int = T0_NS + 3_600 * 10**9) -> Decoded:
    lines = (CASES / name).read_bytes().splitlines()
    messages = [SourceMessage(line, offset, arrival_ns) for offset, line in enumerate(lines)]
    return decoder("native", Rules(service="chat")).decode(messages)


def reasons(decoded: Decoded) -> dict[str, int]:
    found: Counter[str] = Counter()
    for (_, _, reason), count in decoded.ledger.items():
        found[reason] += count
    return dict(found)


def test_poison_lines_cost_only_themselves() -> None:
    """Valid lines between poisonous ones are read; each of the others is accounted for."""
    decoded = read("31_poison.jsonl")
    (columns,) = decoded.services
    assert list(columns.ids) == ["ok1", "bom", "ok2"]
    assert columns.total_ms.tolist() == [100, 101, 102]
    assert columns.offset.tolist() == [0, 10, 11]
    assert [(r.offset, r.reason) for r in decoded.rejected] == [
        (1, "rejected.not_json"),
        (2, "rejected.not_json"),
        (3, "rejected.not_object"),
        (4, "rejected.not_object"),
        (7, "rejected.not_a_number"),
        (8, "rejected.not_a_number"),
    ]
    assert decoded.rejected[0].raw == b"sadk{not json"
    assert decoded.rejected[4].detail == 'total_ms is "12.5ms"'
    assert decoded.rejected[5].detail == 'total_ms is "1,250.0"'
    assert reasons(decoded) == {
        "accepted": 3,
        "rejected.not_json": 2,
        "rejected.not_object": 2,
        "rejected.not_a_number": 2,
        "quarantined.not_finite": 2,
        "quarantined.total_out_of_range": 1,
    }


def test_epochs_are_told_apart_by_magnitude() -> None:
    """Seconds, ms, us, ns and text of one second agree; an ISBN and 0 are no times."""
    decoded = read("19_mixed_epochs.jsonl")
    (columns,) = decoded.services
    assert list(columns.ids) == ["s", "ms", "us", "ns", "str"]
    assert (columns.ts_ns - T0_NS).tolist() == [
        0,
        500_000_000,
        750_000_000,
        900_000_000,
        250_000_000,
    ]
    assert reasons(decoded) == {"accepted": 5, "quarantined.out_of_range_time": 2}


def test_negative_stage_is_a_missing_cell() -> None:
    """The record keeps its total and its other stages."""
    decoded = read("21_clock_step.jsonl")
    (columns,) = decoded.services
    assert len(columns) == 20
    queue = columns.stage_ms[columns.stages.index("queue")]
    assert np.isnan(queue).sum() == 1
    assert np.nanmean(queue) == 5
    assert columns.total_ms.tolist() == [58.0] * 20
    assert reasons(decoded) == {"accepted": 20, "missing.negative_stage": 1}


def test_total_in_seconds_is_quarantined() -> None:
    """Totals of a thousandth of their stages are not converted and not taken for a success."""
    decoded = read("18_total_in_seconds.jsonl")
    assert decoded.services == ()
    assert reasons(decoded) == {"quarantined.total_in_seconds": 200}


def test_future_row_is_quarantined() -> None:
    """One fast clock keeps no honest record out."""
    decoded = read("30_future_row.jsonl")
    (columns,) = decoded.services
    assert "fast-clock" not in list(columns.ids)
    assert (columns.total_ms == 5000).sum() == 2
    found = reasons(decoded)
    assert (found["accepted"], found["quarantined.future"]) == (13, 1)
    assert decoded.unknown == {"arrival"}
    future = {time for (_, time, reason) in decoded.ledger if reason == "quarantined.future"}
    assert future == {T0_NS + 3_600 * 10**9}  # counted when it arrived


def test_timeouts_without_total_are_failures() -> None:
    """A null total is no zero, and the limit is known."""
    (columns,) = read("03_timeouts_null.jsonl").services
    late = columns.outcome == Outcome.TIMEOUT
    assert late.sum() == 10
    assert np.isnan(columns.total_ms[late]).all()
    assert (columns.total_ms[~late] == 100).all()
    assert (columns.limit_ms == 30_000).all()


def test_fast_rejections_are_failures() -> None:
    """HTTP 429 is no success, however fast."""
    decoded = read("04_fast_429.jsonl")
    (columns,) = decoded.services
    assert (columns.outcome == Outcome.REJECTED).sum() == 55
    assert (columns.total_ms[columns.outcome == Outcome.OK] == 900).all()
    assert reasons(decoded) == {"accepted": 100, "failed": 55}


def test_attempts_of_one_operation_are_kept_apart() -> None:
    """The columns of retries are known, and their statuses are read as text or number."""
    decoded = read("26_retries.jsonl")
    (columns,) = decoded.services
    assert columns.outcome.tolist() == [Outcome.TIMEOUT, Outcome.TIMEOUT, Outcome.OK]
    assert decoded.unknown == frozenset()


@pytest.mark.parametrize("name", sorted(path.name for path in CASES.glob("*.jsonl")))
def test_any_cut_of_a_case_gives_the_same(name: str) -> None:
    """A line is read alike alone and among others."""
    lines = (CASES / name).read_bytes().splitlines()
    one = decoder("native", Rules(service="chat"))
    total: Counter[tuple[str, int, str]] = Counter()
    ids: list[str] = []
    for offset, line in enumerate(lines):
        decoded = one.decode([SourceMessage(line, offset, T0_NS + 3_600 * 10**9)])
        total.update(decoded.ledger)
        ids += [name for columns in decoded.services for name in columns.ids]
    whole = read(name)
    assert dict(total) == dict(whole.ledger)
    assert ids == [name for columns in whole.services for name in columns.ids]
