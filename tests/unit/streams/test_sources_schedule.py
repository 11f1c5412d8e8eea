"""Totals from the schedule of a request."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np

from tailbudget.schemas.records import Columns, Decoded
from tailbudget.streams.sources import Rules, SourceMessage, decoder

NOW_NS = 1_772_445_600 * 10**9  # 2026-03-02T10:00:00Z
NAN = float("nan")


def decode(*records: dict[str, Any], rules: Rules = Rules(service="chat")) -> Decoded:  # noqa: B008
    values = [
        json.dumps({"request_id": f"r{i}", "timestamp": "2026-03-02T10:00:00Z", **record}).encode()
        for i, record in enumerate(records)
    ]
    messages = [SourceMessage(value, i, NOW_NS) for i, value in enumerate(values)]
    return decoder("native", rules).decode(messages)


def stages(columns: Columns) -> dict[str, Any]:
    return dict(zip(columns.stages, columns.stage_ms, strict=True))


def reasons(decoded: Decoded) -> Counter[str]:
    found: Counter[str] = Counter()
    for (_, _, reason), count in decoded.ledger.items():
        found[reason] += count
    return found


def test_the_wait_is_part_of_the_total() -> None:
    """The wait and the total as logged are stages; a row without a schedule has neither."""
    decoded = decode(
        {"total_ms": 10, "run_ms": 9, "scheduled_ts": "2026-03-02T09:59:59.500Z"},
        {"total_ms": 10, "run_ms": 9, "scheduled_ts": "2026-03-02T10:00:00Z"},
        {"total_ms": 10, "run_ms": 9},
        {"total_ms": 10, "run_ms": 9, "scheduled_ts": 1_772_445_599},
    )
    (columns,) = decoded.services
    assert columns.total_ms.tolist() == [510, 10, 10, 1010]
    found = stages(columns)
    assert list(found) == ["logged", "run", "schedule_wait"]
    np.testing.assert_array_equal(found["logged"], [10, 10, NAN, 10])
    np.testing.assert_array_equal(found["schedule_wait"], [500, 0, NAN, 1000])
    assert reasons(decoded) == {"accepted": 4}


def test_a_schedule_that_cannot_be_is_a_missing_cell() -> None:
    """After the start, a day before it, or no time at all: counted, and the total stays."""
    late = ["2026-03-02T10:00:00.001Z", "2026-03-01T09:59:59Z", "soon", "", None, 12]
    decoded = decode(*({"total_ms": 10, "scheduled_ts": text} for text in late))
    (columns,) = decoded.services
    assert columns.total_ms.tolist() == [10] * 6
    assert columns.stages == ()
    assert reasons(decoded) == {"accepted": 6, "missing.schedule": 4}
    assert decoded.unknown == frozenset()


def test_failures_wait_too() -> None:
    """A failure's latency counts from the schedule; one without a latency has none."""
    decoded = decode(
        {"total_ms": 10, "status": "error", "scheduled_ts": "2026-03-02T09:59:59Z"},
        {"status": "timeout", "timeout_ms": 50, "scheduled_ts": "2026-03-02T09:59:59Z"},
    )
    (columns,) = decoded.services
    np.testing.assert_array_equal(columns.total_ms, [1010, NAN])
    np.testing.assert_array_equal(stages(columns)["logged"], [10, NAN])


def test_rows_that_are_refused_count_no_schedule() -> None:
    """The ledger counts a row once: what is no record has no missing cells of its schedule."""
    decoded = decode({"total_ms": None, "scheduled_ts": "soon"}, {"total_ms": 5})
    assert reasons(decoded) == {"rejected.no_total": 1, "accepted": 1}


def test_a_cut_changes_nothing() -> None:
    """Each row depends on its own cells, whichever rows it is decoded with."""
    rows = [
        {"request_id": f"r{i}", "total_ms": 5, **({"scheduled_ts": NOW_NS - i} if i % 2 else {})}
        for i in range(6)
    ]
    (whole,) = decode(*rows).services
    single = [decode(row).services[0] for row in rows]
    assert whole.total_ms.tolist() == [float(one.total_ms[0]) for one in single]
    assert [one.stages for one in single] == [(), ("logged", "schedule_wait")] * 3


def test_the_names_of_our_stages_are_taken() -> None:
    """A record's own columns of these names are unknown, not stages."""
    decoded = decode({"total_ms": 10, "logged_ms": 3, "schedule_wait_ms": 4})
    assert decoded.services[0].stages == ()
    assert decoded.unknown == {"logged_ms", "schedule_wait_ms"}


def test_a_zone_goes_for_the_schedule_too() -> None:
    """Both times are read by the same zone, so that their distance is right."""
    record = {"timestamp": "2026-03-02T11:00:00", "scheduled_ts": "2026-03-02T10:59:59"}
    rules = Rules(service="chat", timezone="Europe/Berlin")
    (columns,) = decode({"total_ms": 1, **record}, rules=rules).services
    assert columns.ts_ns.tolist() == [NOW_NS]
    assert columns.total_ms.tolist() == [1001]
