"""Retries of one operation are one request in the stream, whoever holds its attempts."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from running_worker import RunningWorker, settings_for

from tailbudget.sinks.clickhouse import ClickHouse

CASE = Path(__file__).parents[1] / "data" / "cases" / "26_retries.jsonl"
T0_S = 1_772_445_600  # 2026-03-02T10:00:00Z


def plain(number: int) -> bytes:
    """Return a request that is no operation, in the time of the case."""
    row = {"request_id": f"p{number}", "timestamp": T0_S + number, "total_ms": 5.0}
    return orjson.dumps(row)


def longest_ms(worker: RunningWorker) -> float:
    """Return the longest success in ClickHouse."""
    sql = "SELECT max(max_ms) FROM current_panes WHERE service = 'chat' AND stage = 'total'"
    return float(worker.query(sql)[0][0])


def wait_for_counts(worker: RunningWorker, *, committed: int, requests: int) -> None:
    """Wait until so many messages are committed and so many requests counted."""
    worker.wait_for(lambda: worker.committed(worker.topic, 0) == committed, "the commit")
    worker.wait_for(lambda: worker.requests("chat") == requests, "the requests")


@pytest.mark.thorough
def test_the_case_is_one_request_though_the_worker_changes_in_between(
    bootstrap: str, clickhouse: ClickHouse, tmp_path: Path
) -> None:
    """Each attempt is read by another worker; the offsets behind the held ones are committed."""
    settings = settings_for(bootstrap, clickhouse, tmp_path, stream={"flush_s": 0.2})
    for number, attempt in enumerate(CASE.read_bytes().splitlines(), 1):
        with RunningWorker(settings, clickhouse) as worker:
            worker.produce([attempt, plain(number)])
            wait_for_counts(worker, committed=2 * number, requests=number if number < 3 else 4)
            ledger = worker.ledger("chat")
    assert (ledger["accepted"], ledger["retry"], ledger.get("failed")) == (4, 2, None)
    assert longest_ms(worker) == 121_200


def test_an_attempt_that_nothing_follows_counts_as_it_is(
    bootstrap: str, clickhouse: ClickHouse, tmp_path: Path
) -> None:
    """Once the records of its source are past the hold, it is a failed request, and late."""
    settings = settings_for(
        bootstrap, clickhouse, tmp_path, stream={"flush_s": 0.2, "retry_hold_s": 30}
    )
    with RunningWorker(settings, clickhouse) as worker:
        worker.produce([CASE.read_bytes().splitlines()[0], plain(99)])
        worker.wait_for(lambda: worker.requests("chat") == 1, "the plain request")
        worker.produce([plain(101)])
        worker.wait_for(lambda: worker.requests("chat") == 3, "the failed one")
        assert worker.ledger("chat") == {"accepted": 3, "failed": 1, "late": 1}
