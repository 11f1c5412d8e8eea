"""Situations on which latency tools mislead, through the real broker into ClickHouse."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from running_worker import RunningWorker, settings_for

from tailbudget.sinks.clickhouse import ClickHouse, ClickHouseTarget

DATA = Path(__file__).parents[1] / "data" / "cases"
T0_MS = 1_772_445_600_000  # 2026-03-02T10:00:00Z

SLOS = {
    "five": {"p95_ms": 500.0},
    "redelivered": {"p95_ms": 500.0},
    "future": {"p50_ms": 1000.0, "p99_ms": 1000.0},
    "seconds": {"p99_ms": 50.0},
}
SERVICES = (
    "outlier", "five", "seconds", "epochs", "clock", "redelivered", "future", "poison",
    "tombstones", "oversize", "spread", "lateness",
)  # fmt: skip


def lines(name: str) -> list[bytes]:
    """Return the lines of a case."""
    return (DATA / name).read_bytes().splitlines()


@pytest.fixture(scope="module")
def worker(
    bootstrap: str, clickhouse_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningWorker]:
    """One worker with a request topic for each case."""
    target = ClickHouseTarget("chdb", database="cases", path=clickhouse_path)
    store = ClickHouse.open(target)
    store.migrate()
    settings = settings_for(
        bootstrap,
        store,
        tmp_path_factory.mktemp("cases"),
        kafka={
            "partitions": 1,
            "requests": [
                {"topic": f"case-{clickhouse_path.parent.name}-{name}", "service": name}
                for name in SERVICES
            ],
        },
        services={name: {"slo": slo} for name, slo in SLOS.items()},
    )
    with RunningWorker(settings, store) as running:
        yield running
    store.close()


def send(
    worker: RunningWorker, service: str, values: Sequence[bytes | None], **options: Any
) -> None:
    """Send to the request topic of a case."""
    topic = next(e.topic for e in worker.settings.kafka.requests if e.service == service)
    worker.produce(values, topic=topic, **options)


def settled(worker: RunningWorker, service: str, **reasons: int) -> dict[str, int]:
    """Wait until the ledger holds these counts ("__" stands for "."), and return it."""
    wanted = {reason.replace("__", "."): n for reason, n in reasons.items()}
    worker.wait_for(
        lambda: wanted.items() <= worker.ledger(service).items(),
        f"{wanted} in the ledger of {service}, which has {worker.ledger(service)}",
    )
    return worker.ledger(service)


def percentiles(worker: RunningWorker, service: str, stage: str = "total") -> dict[str, Any]:
    """Return what SQL says of all panes of a stage together."""
    sql = (
        "SELECT sum(n) AS n, min(p50_ms) AS p50, max(p95_ms) AS p95, max(p99_ms) AS p99,"
        " max(max_ms) AS max FROM latency(window = 86400)"
        " WHERE service = {service:String} AND stage = {stage:String}"
    )
    names = ("n", "p50", "p95", "p99", "max")
    return dict(zip(names, worker.query(sql, service=service, stage=stage)[0], strict=True))


def test_one_outlier_of_a_hundred_is_not_the_p99(worker: RunningWorker) -> None:
    """Of 99 requests of 1 ms and one of 10,000 s, p99 by nearest rank is 1 ms; max names it."""
    send(worker, "outlier", lines("13_one_outlier_n100.jsonl"))
    settled(worker, "outlier", accepted=100)
    found = percentiles(worker, "outlier")
    assert (found["n"], found["max"]) == (100, 10_000_000.0)
    assert found["p99"] == pytest.approx(1.0, rel=0.0079)


def test_five_samples_are_insufficient(worker: RunningWorker) -> None:
    """Five requests, one over the target: neither breach nor pass, and the audit says why."""
    send(worker, "five", lines("14_five_samples.jsonl"))
    settled(worker, "five", accepted=5)
    send(worker, "five", [_request("later", T0_MS + 30_000, 100.0)])
    audit = _audit(worker, "five", 60)
    p95 = next(
        row for row in audit["end_to_end"] if (row["percentile"], row["basis"]) == ("p95", "all")
    )
    assert p95["status"] == "insufficient"
    assert "insufficient (n=5" in p95["note"]
    assert "this p95 is the maximum" in p95["note"]


def test_totals_in_seconds_are_quarantined_and_named(worker: RunningWorker) -> None:
    """200 totals of a thousandth of their stages count nowhere, and are never converted."""
    send(worker, "seconds", lines("18_total_in_seconds.jsonl"))
    found = settled(worker, "seconds", quarantined__total_in_seconds=200)
    assert "accepted" not in found
    assert worker.requests("seconds") == 0
    send(worker, "seconds", [_request(f"s{i}", T0_MS + 3_600_000 + i, 1.0) for i in range(3)])
    worker.wait_for(
        lambda: any(
            "200/200" in text and "looks like seconds" in text
            for text in _warnings(worker, "seconds")
        ),
        "an audit that names the unit",
    )


def test_epochs_of_all_units_are_one_second(worker: RunningWorker) -> None:
    """Seconds to nanoseconds and text are told apart; an ISBN and 0 are no times."""
    send(worker, "epochs", lines("19_mixed_epochs.jsonl"))
    found = settled(worker, "epochs", accepted=5)
    assert sum(n for reason, n in found.items() if reason.startswith("quarantined.")) == 2
    panes = worker.query(
        "SELECT DISTINCT toUnixTimestamp(pane) FROM current_panes"
        " WHERE service = 'epochs' AND stage = 'total' AND n > 0"
    )
    assert panes == [(T0_MS // 1000,)]


def test_a_negative_stage_is_a_missing_cell(worker: RunningWorker) -> None:
    """One queue of -10 s: that cell is missing, the row keeps its total."""
    send(worker, "clock", lines("21_clock_step.jsonl"))
    settled(worker, "clock", accepted=20, missing__negative_stage=1)
    assert percentiles(worker, "clock")["n"] == 20
    assert percentiles(worker, "clock", "queue")["n"] == 19
    mean = worker.query(
        "SELECT sum(sum_ns) / sum(n) / 1e6 FROM current_panes"
        " WHERE service = 'clock' AND stage = 'queue'"
    )
    assert mean == [(5.0,)]


def test_redelivered_records_count_once(worker: RunningWorker) -> None:
    """Three slow rows delivered twice: n = 100 and p95 = 100 ms, which twice would flip."""
    send(worker, "redelivered", lines("27_redelivered.jsonl"))
    settled(worker, "redelivered", accepted=100, duplicate=3)
    found = percentiles(worker, "redelivered")
    assert found["n"] == 100
    assert found["p95"] == pytest.approx(100, rel=0.0079)


def test_a_row_of_tomorrow_stops_nothing(worker: RunningWorker) -> None:
    """A row a day ahead is quarantined; the honest rows after it are all seen, slow ones too."""
    rows = lines("30_future_row.jsonl")
    stamps = [T0_MS + 60_000 * orjson.loads(row)["arrival"] for row in rows]
    send(worker, "future", rows, timestamps_ms=stamps)
    settled(worker, "future", accepted=13, quarantined__future=1)
    slow = worker.query(
        "SELECT count() FROM current_panes WHERE service = 'future' AND stage = 'total'"
        " AND max_ms = 5000 AND over[1] = 1"
    )
    assert slow == [(2,)]


def test_poison_is_told_apart(worker: RunningWorker) -> None:
    """Each kind of bad line goes where it belongs, with its offset, and stops nobody."""
    rows = [line for line in (DATA / "31_poison.jsonl").read_bytes().split(b"\n") if line.strip()]
    send(worker, "poison", rows)
    found = settled(worker, "poison", accepted=3, quarantined__not_finite=2)
    assert found["quarantined.total_out_of_range"] == 1
    assert found["rejected.not_a_number"] == 2
    assert percentiles(worker, "poison")["p50"] == pytest.approx(101, rel=0.0079)
    topic = next(e.topic for e in worker.settings.kafka.requests if e.service == "poison")
    letters = {x["offset"]: x["reason"] for x in worker.dead_letters() if x["topic"] == topic}
    broken = {1: "sadk{", 2: '{"request_id":"t"', 3: "[]", 4: "null"}
    assert set(letters) == {*broken, 7, 8}
    for offset, text in broken.items():
        assert rows[offset].decode().startswith(text)
        assert letters[offset] in {"rejected.not_json", "rejected.not_object"}
    worker.wait_for(lambda: worker.committed(topic, 0) == len(rows), "the offset to advance")


def test_tombstones_are_counted(worker: RunningWorker) -> None:
    """Three nulls of one key, then a row: offset 4 is committed, 3 tombstones are counted."""
    nulls: list[bytes | None] = [None, None, None]
    send(worker, "tombstones", [*nulls, _request("r1", T0_MS, 10.0)], key=b"r1")
    settled(worker, "tombstones", accepted=1, tombstone=3)
    topic = next(e.topic for e in worker.settings.kafka.requests if e.service == "tombstones")
    worker.wait_for(lambda: worker.committed(topic, 0) == 4, "offset 4 to be committed")


def test_an_oversize_message_is_located(worker: RunningWorker) -> None:
    """Of valid, too large and valid, both valid ones count, and the other's place is known."""
    large = _request("large", T0_MS, 10.0, pad="x" * 1_500_000)
    rows = [_request("a", T0_MS, 10.0), large, _request("b", T0_MS, 11.0)]
    send(worker, "oversize", rows)
    settled(worker, "oversize", accepted=2, rejected__oversize=1)
    found = [x for x in worker.dead_letters() if x["reason"] == "rejected.oversize"]
    assert [x["offset"] for x in found] == [1]


def test_a_late_record_amends_its_pane(worker: RunningWorker) -> None:
    """Within the grace a straggler is on time; after it, it is counted late, in its own pane."""
    minute = T0_MS + 7_200_000
    rows = [
        _request("first", minute, 10.0),
        _request("now", minute + 18_000, 10.0),
        _request("straggler", minute + 9_900, 20.0),
        _request("later", minute + 60_000, 10.0),
        _request("late", minute + 9_950, 30.0),
    ]
    send(worker, "lateness", rows)
    settled(worker, "lateness", accepted=5, late=1)
    found = worker.query(
        "SELECT toUnixTimestamp(pane) - {start:UInt32}, n, max_ms FROM current_panes"
        " WHERE service = 'lateness' AND stage = 'total' ORDER BY pane",
        start=minute // 1000,
    )
    assert found == [(0, 3, 30.0), (10, 1, 10.0), (60, 1, 10.0)]


def test_rows_over_120_days_are_written_in_bounded_parts(worker: RunningWorker) -> None:
    """2,000 rows of 120 days arrive once each, whatever months they are of."""
    step_ms = 120 * 86_400_000 // 2000
    start_ms = T0_MS - 120 * 86_400_000
    stamps = [start_ms + index * step_ms for index in range(2000)]
    rows = [_request(f"d{index}", stamp, 10.0) for index, stamp in enumerate(stamps)]
    send(worker, "spread", rows, timestamps_ms=stamps)
    settled(worker, "spread", accepted=2000)
    worker.wait_for(lambda: worker.requests("spread") == 2000, "all panes")
    panes = worker.query(
        "SELECT count(DISTINCT pane) FROM current_panes"
        " WHERE service = 'spread' AND stage = 'total'"
    )
    assert panes == [(len({stamp // 10_000 for stamp in stamps}),)]


def _request(name: str, at_ms: int, total_ms: float, **more: Any) -> bytes:
    return orjson.dumps(
        {"request_id": name, "timestamp": at_ms, "total_ms": total_ms, "status": 200, **more}
    )


def _audit(worker: RunningWorker, service: str, window_s: int) -> dict[str, Any]:
    sql = (
        "SELECT payload FROM audits FINAL WHERE service = {service:String}"
        " AND window_s = {window:UInt32} ORDER BY end LIMIT 1"
    )

    def found() -> list[tuple[Any, ...]]:
        return worker.query(sql, service=service, window=window_s)

    worker.wait_for(found, f"an audit of {service}")
    return dict(orjson.loads(found()[0][0]))


def _warnings(worker: RunningWorker, service: str) -> list[str]:
    rows = worker.query(
        "SELECT payload FROM audits FINAL WHERE service = {service:String}", service=service
    )
    return [text for (payload,) in rows for text in orjson.loads(payload)["warnings"]]


def test_a_running_worker_tells_its_state_as_json(worker: RunningWorker) -> None:
    """What `/status` answers is JSON, and names what was read and what is owned."""
    status = orjson.loads(orjson.dumps(worker.status()))
    assert status["healthy"] is True
    assert set(status["audit"]["taken"]) == {"0"}
    assert len(status["ingest"]) == len(SERVICES)


def test_the_bound_of_the_sketch_is_what_we_say() -> None:
    """The tolerance used above is the sketch's worst relative error, 1/128, rounded up."""
    assert math.isclose(1 / 128, 0.0079, abs_tol=0.0001)
