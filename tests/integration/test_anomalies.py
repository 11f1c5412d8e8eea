"""A worker scores faulty traffic: it names the stage, leaves workloads alone, and survives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import polars as pl
from running_worker import RunningWorker

from tailbudget.schemas.anomaly_rows import AnomalyRow
from tailbudget.streams.faulty.generate import generate
from tailbudget.streams.faulty.records import frame, lines
from tailbudget.streams.faulty.scenarios import COVARIATES, FaultScenario

T0_S = 1_772_445_600
CHUNK_S = 10.0
"""Event time that is sent at once: what the worker then cuts into its ticks."""

SERVICES = {
    "chat": {
        "covariates": list(COVARIATES),
        "cohort_dims": ["route"],
        "cold_start_window_min": 1,
    }
}


@dataclass
class Played:
    """Traffic that is sent to workers bit by bit.

    Attributes:
        table: its records.
        sent: how many were sent.
        until_s: up to when.
    """

    table: pl.DataFrame
    sent: int = 0
    until_s: float = 0.0
    offset: int = field(default=0)

    def play(self, worker: RunningWorker, until_s: float) -> None:
        """Send what completes until a time, and wait until nearly all of it is scored."""
        done_s = self.table["done_s"].to_numpy()
        while self.until_s < until_s:
            self.until_s = min(self.until_s + CHUNK_S, until_s)
            end = int(np.searchsorted(done_s, self.until_s))
            if end > self.sent:
                worker.produce([b"\n".join(lines(self.table[self.sent : end]))])
            self.sent = end
            # The last segment counts once the next proves it, or a mark does.
            wait_until_scored(worker, int((T0_S + self.until_s - 2 * CHUNK_S) * 1e9))


def wait_until_scored(worker: RunningWorker, at_ns: int) -> None:
    """Wait until rows are scored up to a time."""
    worker.wait_for(lambda: scored_ns(worker) >= at_ns, "the rows to be scored")


def scored_ns(worker: RunningWorker) -> int:
    """Return up to when rows were scored; far ahead of anything while there are none."""
    return int(worker.status()["audit"]["scored_ns"].get("chat", 0)) or T0_S * 10**9


def told(worker: RunningWorker) -> list[tuple[Any, ...]]:
    """Return stage, phase, onset and start of the anomalies, in order."""
    return worker.query(
        "SELECT stage, phase, round(toUnixTimestamp64Nano(onset) / 1e9) - {t0:Int64},"
        " toUnixTimestamp64Nano(started_at), effect_pct, deploy FROM anomalies FINAL ORDER BY at",
        t0=T0_S,
    )


def alerts(worker: RunningWorker) -> Iterator[dict[str, Any]]:
    """Yield the alerts about anomalies that were published; a new owner repeats what it finds."""
    known = set()
    for _, value in worker.read(worker.settings.kafka.alerts_topic):
        alert = orjson.loads(value)
        if alert["kind"] == "anomaly" and (alert["alert"], alert["sequence"]) not in known:
            known.add((alert["alert"], alert["sequence"]))
            yield alert


def traffic(**scenario: Any) -> tuple[Played, FaultScenario]:
    """Return traffic of ten minutes."""
    made = FaultScenario(**{"duration_s": 600.0, "rate": 40.0, "seed": 3, **scenario})
    return Played(frame(generate(made), "chat", T0_S * 10**9)), made


def test_a_regression_is_named_once_though_the_worker_restarts_in_it(start: Any) -> None:
    """One start and one end in ClickHouse and on the topic, with stage, effect and deploy."""
    played, scenario = traffic(fault="dependency", effect=1.6)
    onsets = sorted((o.start_s, o.end_s) for o in generate(scenario).truth.onsets)
    first_s, end_s = onsets[0]
    worker: RunningWorker = start(services=SERVICES)
    deploy = {"service": "chat", "version": "v7", "ts": (T0_S + 5) * 1000, "env": "prod"}
    worker.produce([orjson.dumps(deploy)], topic=worker.settings.kafka.deploys_topic)
    played.play(worker, first_s + 45)
    worker.wait_for(lambda: told(worker), "the anomaly")
    before = told(worker)
    assert {row[0] for row in before} == {"retrieve"}
    worker.stop()
    with RunningWorker(worker.settings, worker.store) as second:
        played.play(second, end_s + 40)
        second.wait_for(
            lambda: any(row[1] == "ended" for row in told(second)), "the end of the anomaly"
        )
        everything, said = told(second), list(alerts(second))
    rows = [row for row in everything if row[3] == before[0][3]]
    assert rows[0][:4] == before[0][:4]
    assert [row[1] for row in rows if row[1] != "spread"] == ["started", "ended"]
    assert abs(rows[0][2] - first_s) < 15
    assert 30 < rows[0][4] < 100
    assert {row[5] for row in everything} == {"v7"}
    # One alert a start and one an end, in turn, however often the stage flickers.
    phases = {"firing": "started", "resolved": "ended"}
    moves = [(a["alert"], phases[a["state"]]) for a in said]
    assert moves == [
        (f"anomaly:{row[0]}", row[1]) for row in everything if row[1] in phases.values()
    ]
    fired = said[0]
    assert (fired["alert"], fired["deploy"]) == ("anomaly:retrieve", "v7")
    assert fired["effect_low_pct"] < fired["effect_pct"] < fired["effect_high_pct"]
    assert "same shapes" in fired["reason"]


def test_longer_inputs_are_no_anomaly(start: Any) -> None:
    """A workload that shifts to inputs of ten times the length alarms nothing."""
    played, _ = traffic(shift="long_inputs_all")
    worker: RunningWorker = start(services=SERVICES)
    played.play(worker, 400)
    worker.wait_for(
        lambda: worker.query("SELECT count() FROM shape_models WHERE state = 'ready'")[0][0],
        "models that are ready",
    )
    assert told(worker) == []
    assert list(alerts(worker)) == []


def test_what_is_open_and_watched_by_nobody_ends(start: Any) -> None:
    """An anomaly whose models are gone does not go on for ever, nor does its alert."""
    worker: RunningWorker = start(services=SERVICES)
    open_ = AnomalyRow(
        "chat", "prefill", ("route=chat",), "started", "mean", T0_S * 10**9, T0_S * 10**9 + 1,
        T0_S * 10**9 + 1, 30.0, 25.0, 35.0,
    )  # fmt: skip
    worker.store.write_anomalies([open_])
    played, _ = traffic()
    played.play(worker, 40)
    worker.wait_for(lambda: len(told(worker)) == 2, "the end")
    assert [row[1] for row in told(worker)] == ["started", "lost"]
    assert worker.query("SELECT state, effect_pct FROM regressions") == [("lost", None)]


def test_signals_are_kept(start: Any) -> None:
    """One a line; what is none is left out, and stops nothing."""
    worker: RunningWorker = start()
    values = [
        {"service": "chat", "instance": "g1", "timestamp": T0_S + i, "name": "clock", "value": i}
        for i in range(3)
    ]
    body = b"\n".join([b"not one", *(orjson.dumps(value) for value in values)])
    worker.produce([body, b""], topic=worker.settings.kafka.signals_topic)
    worker.wait_for(
        lambda: (
            worker.query("SELECT name, instance, value FROM signals FINAL ORDER BY timestamp")
            == [("clock", "g1", float(i)) for i in range(3)]
        ),
        "the signals",
    )
