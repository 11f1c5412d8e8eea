"""Faulty traffic as a service that is simulated live: what it sends from one moment to another.

A run has an end; the next one follows it with another seed, so that the service goes on for ever.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import orjson
import polars as pl

from tailbudget.streams.faulty.generate import FaultyTraffic, generate
from tailbudget.streams.faulty.records import frame, lines
from tailbudget.streams.faulty.scenarios import AFFECTED, FaultScenario


@dataclass(slots=True)
class _Run:
    number: int
    traffic: FaultyTraffic
    records: pl.DataFrame


@dataclass(slots=True)
class FaultyService:
    """A service whose traffic has known faults.

    Attributes:
        service: its name.
        scenario: of its first run.
        env: the environment that deploys name.
    """

    service: str
    scenario: FaultScenario
    env: str = "prod"
    _run: _Run | None = field(default=None)

    def records(self, start_ns: int, t0_s: float, t1_s: float) -> list[bytes]:
        """Return the records from `t0_s` up to `t1_s` after the start, as JSON, in order."""
        found: list[bytes] = []
        for number, low_s, high_s in self._parts(t0_s, t1_s):
            run = self._made(number, start_ns)
            at = np.searchsorted(run.records["done_s"].to_numpy(), (low_s, high_s))
            found += lines(run.records[int(at[0]) : int(at[1])])
        return found

    def deploys(self, start_ns: int, t0_s: float, t1_s: float) -> list[bytes]:
        """Return the deploy events from `t0_s` up to `t1_s` after the start, as JSON."""
        found = []
        for number, low_s, high_s in self._parts(t0_s, t1_s):
            traffic = self._made(number, start_ns).traffic
            for index, at_s in enumerate(traffic.deploys_s):
                if low_s <= at_s < high_s:
                    at_ns = start_ns + round((number * self.scenario.duration_s + at_s) * 1e9)
                    found.append(self._deploy(f"v{2 * number + index + 2}", at_ns))
        return found

    def happenings(self, start_ns: int, t0_s: float, t1_s: float) -> tuple[str, ...]:
        """Say for a person what happens from `t0_s` up to `t1_s`, in order of time."""
        stages = " and ".join(AFFECTED[self.scenario.fault])
        events: list[tuple[float, str]] = []
        for number, low_s, high_s in self._parts(t0_s, t1_s):
            if low_s == 0:
                events.append((0.0, f"run {number + 1} of scenario {self.scenario.name}"))
            for began_s, ended_s in _spans(self._made(number, start_ns).traffic):
                if low_s <= began_s < high_s:
                    events.append((began_s, f"{stages} slower: {self.scenario.fault}"))
                if low_s <= ended_s < high_s:
                    events.append((ended_s, f"{stages} as before: {self.scenario.fault} is over"))
        return tuple(text for _, text in events)

    def _parts(self, t0_s: float, t1_s: float) -> list[tuple[int, float, float]]:
        """Return number, start and end of the parts of runs that lie in an interval."""
        length_s = self.scenario.duration_s
        first, last = int(t0_s // length_s), int(t1_s // length_s)
        parts = [
            (n, max(t0_s - n * length_s, 0.0), min(t1_s - n * length_s, length_s))
            for n in range(first, last + 1)
        ]
        return [part for part in parts if part[1] < part[2]]

    def _made(self, number: int, start_ns: int) -> _Run:
        if self._run is None or self._run.number != number:
            scenario = replace(self.scenario, seed=self.scenario.seed + number)
            traffic = generate(scenario)
            begins_ns = start_ns + round(number * scenario.duration_s * 1e9)
            self._run = _Run(number, traffic, frame(traffic, self.service, begins_ns))
        return self._run

    def _deploy(self, version: str, at_ns: int) -> bytes:
        event = {"service": self.service, "env": self.env, "version": version, "kind": "deploy"}
        return orjson.dumps({**event, "ts": at_ns})


def _spans(traffic: FaultyTraffic) -> list[tuple[float, float]]:
    """Return when the fault acts."""
    began: dict[float, float] = {}
    for onset in traffic.truth.onsets:
        began[onset.end_s] = min(began.get(onset.end_s, onset.start_s), onset.start_s)
    return sorted((start_s, end_s) for end_s, start_s in began.items())
