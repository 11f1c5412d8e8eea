"""Attempts are held until their operation has ended, and no longer than they must."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from attempts import Try, decoded
from requests_of import PANE_NS, SECOND_NS, T0_NS

from tailbudget.models.summarise import summarise
from tailbudget.schemas.records import Columns, Decoded, Outcome
from tailbudget.streams.operations import Limits, assembled
from tailbudget.streams.sources import Rules, SourceMessage, decoder

CASE = Path(__file__).parents[2] / "data" / "cases" / "26_retries.jsonl"
OK = Outcome.OK
STREAM = Limits(disorder_ns=10 * SECOND_NS)


def reasons(batches: Sequence[Decoded]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for batch in batches:
        for (_, _, reason), count in batch.ledger.items():
            found[reason] += count
    return dict(found)


def requests(batches: Sequence[Decoded]) -> list[tuple[str, float]]:
    return [
        (columns.ids[i], float(columns.total_ms[i]))
        for batch in batches
        for columns in batch.services
        for i in range(len(columns))
    ]


def test_the_retries_of_the_case_are_one_request() -> None:
    """Three lines, one request of 121,200 ms with three attempts; nothing failed."""
    lines = CASE.read_bytes().splitlines()
    read = decoder("native", Rules(service="chat"))
    batches = [read.decode([SourceMessage(line, i, T0_NS * 2)]) for i, line in enumerate(lines)]
    found = list(assembled(batches))
    (columns,) = [columns for batch in found for columns in batch.services]
    assert columns.total_ms.tolist() == [121_200]
    assert columns.covariates == ("attempts",)
    assert columns.covariate.tolist() == [[3]]
    assert reasons(found) == {"accepted": 1, "retry": 2}
    total = summarise(columns, pane_ns=PANE_NS, thresholds_ms=(60_000,))
    assert (total.requests.tolist(), total.failed.tolist()) == ([1], [0])
    assert total.over.tolist() == [[1]]


def test_what_names_no_operation_passes_untouched() -> None:
    """A batch without operations is handed on as it is, not copied."""
    batch = decoded([Try(0, 0, 0, 100, OK)])
    assert next(iter(assembled([batch]))) is batch


def test_a_first_attempt_that_ends_well_passes_at_once() -> None:
    """It waits for nothing, and neither does what names no operation beside it."""
    batches = assembled([decoded([Try(1, 1, 0, 5, OK), Try(0, 0, 0, 6, OK), Try(2, 1, 0, 7)])])
    first = next(batches)
    assert [ms for _, ms in requests([first])] == [5, 6]
    assert reasons([first]) == {"accepted": 2}
    assert requests(list(batches)) == [("r2-1-0", 7.0)]


def test_a_failed_attempt_waits_for_the_next_and_no_longer() -> None:
    """In a stream it counts once the clock of its records has passed the hold."""
    held = [decoded([Try(1, 1, 0, 1_000)]), decoded([Try(0, 0, 131, 5, OK)])]
    passed = [decoded([Try(0, 0, 131.5, 5, OK)])]
    found = list(assembled([*held, *passed], STREAM))
    assert [len(requests([batch])) for batch in found] == [0, 1, 2]
    assert reasons(found) == {"accepted": 3, "failed": 1}


def test_too_many_held_attempts_let_the_oldest_go() -> None:
    """The oldest operation counts as it is, is said to, and the others stay."""
    tries = [Try(number, 1, number, 100) for number in (1, 2, 3)]
    first, last = assembled([decoded(tries)], Limits(most=2))
    assert requests([first]) == [("r1-1-1", 100.0)]
    assert reasons([first]) == {"accepted": 1, "failed": 1, "unheld": 1}
    assert [name for name, _ in requests([last])] == ["r2-1-2", "r3-1-3"]


def test_an_attempt_that_comes_twice_counts_once() -> None:
    """A redelivered attempt of a held operation is a duplicate, and no fourth attempt."""
    one, two, end = Try(1, 1, 0, 100), Try(1, 2, 1, 100), Try(1, 3, 2, 100, OK)
    found = list(assembled([decoded([one, two]), decoded([two, end])]))
    assert requests(found) == [("r1-3-2", 2_100.0)]
    assert reasons(found) == {"accepted": 1, "retry": 2, "duplicate": 1}


def test_services_have_operations_of_their_own() -> None:
    """The same operation id in two services is two operations."""
    line = b'{"request_id": "a", "operation_id": "x", "attempt": %d, "timestamp": %d, '
    lines = [
        line % (1, T0_NS // SECOND_NS) + b'"total_ms": 10, "status": "error", "service": "one"}',
        line % (2, T0_NS // SECOND_NS) + b'"total_ms": 20, "service": "two"}',
    ]
    read = decoder("native", Rules())
    found = list(assembled([read.decode([SourceMessage(b"\n".join(lines), 0, T0_NS * 2)])]))
    services: dict[str, list[Columns]] = {}
    for batch in found:
        for columns in batch.services:
            services.setdefault(columns.service, []).append(columns)
    assert {name: len(parts) for name, parts in services.items()} == {"one": 1, "two": 1}
    assert reasons(found) == {"accepted": 2, "failed": 1}


def test_the_decoder_says_which_operation_and_attempt() -> None:
    """Numbers are read from numbers and text; what is none, or has no operation, is 0."""
    cells = [b'"operation_id": "x", "attempt": "2"', b'"operation_id": "x", "attempt": -1']
    cells += [b'"attempt": 3', b'"operation_id": ""', b'"operation_id": 7, "attempt": 1']
    start = b'{"request_id": "a", "timestamp": "2026-03-02T10:00:00Z", "total_ms": 1, '
    text = b"\n".join(start + cell + b"}" for cell in cells)
    (columns,) = (
        decoder("native", Rules(service="s")).decode([SourceMessage(text, 0, 2**62)]).services
    )
    assert columns.operation is not None
    assert columns.attempt is not None
    assert columns.attempt.tolist() == [2, 0, 0, 0, 1]
    assert (columns.operation != 0).tolist() == [True, True, False, False, True]
    assert columns.operation[0] == columns.operation[1]
    assert len(np.unique(columns.id_hash)) == 3  # by the attempt, where an operation is named
