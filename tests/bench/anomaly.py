"""Does the anomaly score tell a regression from a workload? Known faults, ours and rivals.

    python tests/bench/anomaly.py --quick
    python tests/bench/anomaly.py --jobs 2 --out results.jsonl

Each run is a scenario of `tailbudget.streams.faulty`, by its permanent name. Rivals see every
eleventh run, for they cost more than we do. With `--out` every run is kept when it is done, a
second start goes on where the first was stopped, and `--print` shows what there is.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is imported

import numpy as np
from anomaly_plan import FIXING_SEEDS, REPORTED_SEEDS, plan
from anomaly_rivals import RIVALS, Rival, Second
from anomaly_score import Tally, score, total
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from tailbudget.models.anomaly.guard import Guard
from tailbudget.models.shape.terms import terms
from tailbudget.schemas.anomalies import StageCohort, TickRows
from tailbudget.streams.faulty.generate import FaultyTraffic, generate
from tailbudget.streams.faulty.scenarios import COHORTS, COVARIATES, STAGES, FaultScenario

KEYS: Final = tuple(StageCohort(stage, cohort) for stage in STAGES for cohort in COHORTS)
SAMPLE: Final = 40
"""Rows a key and tick at most, as the samples of the pane summaries are bounded."""
COLD_S: Final = 120.0
RIVALS_EVERY: Final = 11
OURS: Final = "tailbudget"


@dataclass(frozen=True, slots=True)
class Result:
    """One detector on one run.

    Attributes:
        detector: its name.
        scenario: what it ran on.
        tally: how it did.
        tick_ms: CPU milliseconds a tick.
    """

    detector: str
    scenario: FaultScenario
    tally: Tally
    tick_ms: float


def main() -> int:
    """Run the plan and print the tables."""
    options = _options()
    seeds = FIXING_SEEDS if options.fixing else REPORTED_SEEDS
    runs = plan(seeds[: options.seeds])
    runs = runs[:: max(len(runs) // 10, 1)] if options.quick else runs
    runs = [run for run in runs if options.only in run.name]
    done = [] if options.out is None else _read(options.out)
    if not options.print:
        known = {result.scenario for result in done}
        for results in _results([run for run in runs if run not in known], options):
            done += results
            if options.out is not None:
                _append(options.out, results)
    _show(done)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="ten runs of the plan")
    parser.add_argument("--fixing", action="store_true", help="the seeds to fix parameters on")
    parser.add_argument("--seeds", type=int, default=10, help="so many seeds")
    parser.add_argument("--only", default="", help="runs whose name contains this")
    parser.add_argument("--no-rivals", action="store_true")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", type=Path, help="file of results, one JSON object a line")
    parser.add_argument("--print", action="store_true", help="print the results of --out only")
    return parser.parse_args()


def _results(runs: list[FaultScenario], options: argparse.Namespace) -> Iterator[list[Result]]:
    with ProcessPoolExecutor(options.jobs) as pool:
        futures = [
            pool.submit(measure, run, rivals=not options.no_rivals and i % RIVALS_EVERY == 3)
            for i, run in enumerate(runs)
        ]
        for i, future in enumerate(as_completed(futures)):
            results = future.result()
            ours = results[0]
            text = f"{ours.scenario.name}, seed {ours.scenario.seed}: F1 {ours.tally.f1:.3f}"
            print(f"{i + 1}/{len(runs)} {text}, false {ours.tally.false_starts}", file=sys.stderr)
            yield results


def measure(scenario: FaultScenario, *, rivals: bool) -> list[Result]:
    """Run one scenario; the first result is ours."""
    traffic = generate(scenario)
    tick_s = 1.0 if scenario.rate < 10 else 0.25
    alarmed, tick_ms, seconds = _watch(traffic, tick_s, rivals=rivals)
    results = [Result(OURS, scenario, score(traffic, alarmed, tick_s), tick_ms)]
    for name, make in RIVALS.items() if rivals else ():
        before = time.process_time()
        alarms = _rival(make, seconds, int(scenario.duration_s))
        each_ms = (time.process_time() - before) / scenario.duration_s * 1e3
        results.append(Result(name, scenario, score(traffic, alarms, 1.0), each_ms))
    return results


Seconds = list[tuple[int, int, Second]]
"""(second, key, what came in it)."""


def _watch(
    traffic: FaultyTraffic, tick_s: float, *, rivals: bool
) -> tuple[NDArray[np.bool_], float, Seconds]:
    """Return our alarms [K, ticks], CPU ms a tick, and what the rivals are to see."""
    guard, deploys = Guard(), list(traffic.deploys_s)
    guard.step(0, _rows(traffic, slice(0, 0)))
    ticks = int(traffic.scenario.duration_s / tick_s)
    edges = np.searchsorted(traffic.done_s, np.arange(ticks + 1) * tick_s)
    alarmed = np.zeros((len(KEYS), ticks), np.bool_)
    spent, seconds = 0.0, _Seconds()
    for i in range(ticks):
        now_s = (i + 1) * tick_s
        while deploys and now_s > deploys[0]:
            guard.cold(round((deploys.pop(0) + COLD_S) * 1e9))
        rows = _rows(traffic, slice(edges[i], edges[i + 1]))
        if rivals:
            seconds.add(now_s, rows, guard)
        before = time.process_time()
        guard.step(round(now_s * 1e9), rows)
        spent += time.process_time() - before
        alarmed[:, i] = guard.alarms.on
    return alarmed, spent / ticks * 1e3, seconds.all


def _rows(traffic: FaultyTraffic, at: slice) -> TickRows:
    """Return the rows of a tick, at most `SAMPLE` a key, spread over the tick."""
    key = traffic.key[at]
    if len(key) > SAMPLE:
        order = np.argsort(key, kind="stable")
        count = np.bincount(key, minlength=len(KEYS))
        rank = np.arange(len(key)) - np.repeat(np.cumsum(count) - count, count)
        step = np.maximum(count / SAMPLE, 1.0)[key[order]]
        kept = np.sort(order[np.floor(rank / step) != np.floor((rank - 1) / step)])
    else:
        kept = np.arange(len(key))
    rows = np.arange(at.start, at.stop)[kept]
    return TickRows(KEYS, traffic.key[rows], traffic.ms[rows], COVARIATES, traffic.covariate[rows])


class _Seconds:
    """Gathers means by key and second."""

    def __init__(self) -> None:
        self.all: Seconds = []
        self._rows: list[TickRows] = []
        self._ratio: list[NDArray[np.float64]] = []

    def add(self, now_s: float, rows: TickRows, guard: Guard) -> None:
        self._rows.append(rows)
        slots = guard.shapes.read(rows.key, rows).values
        expected = guard.shapes.bank.predict(rows.key, terms(slots))
        self._ratio.append(np.nan_to_num(rows.ms / expected, nan=1.0))
        if now_s == int(now_s):
            self._close(int(now_s) - 1)

    def _close(self, second: int) -> None:
        key = np.concatenate([rows.key for rows in self._rows])
        ms, ratio = np.concatenate([rows.ms for rows in self._rows]), np.concatenate(self._ratio)
        covariate = np.concatenate([rows.covariate for rows in self._rows])
        for k in np.unique(key).tolist():
            mine = key == k
            means = dict(zip(COVARIATES, covariate[mine].mean(axis=0).tolist(), strict=True))
            what = Second(float(ms[mine].mean()), float(ratio[mine].mean()), means)
            self.all.append((second, k, what))
        self._rows, self._ratio = [], []


def _rival(make: Callable[[], Rival], seconds: Seconds, duration_s: int) -> NDArray[np.bool_]:
    watching = [make() for _ in KEYS]
    alarmed = np.zeros((len(KEYS), duration_s), np.bool_)
    for second, key, what in seconds:
        alarmed[key, second] = watching[key].alarmed(what)
    return alarmed


def _read(path: Path) -> list[Result]:
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [
        Result(r["detector"], FaultScenario(**r["scenario"]), Tally(**r["tally"]), r["tick_ms"])
        for r in rows
    ]


def _append(path: Path, results: Iterable[Result]) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(result)) + "\n" for result in results)


def _show(done: list[Result]) -> None:
    ours = [result for result in done if result.detector == OURS]
    with_rivals = {result.scenario for result in done if result.detector != OURS}
    usual = [r for r in ours if _usual(r.scenario)]
    groups: list[tuple[str, list[Result]]] = [("all runs", ours), ("medium, 40/s", usual)]
    groups += _by("effect", usual, lambda s: f"{s.effect:g}")
    groups += [(">= 20 %", [r for r in usual if r.scenario.effect >= 1.2])]
    large = [r for r in usual if r.scenario.effect >= 1.2]
    groups += _by("fault >= 20 %", large, lambda s: s.fault)
    groups += _by("family >= 20 %", large, lambda s: s.family)
    groups += _by("noise", ours, lambda s: s.noise)
    groups += _by("rate", ours, lambda s: f"{s.rate:g}/s")
    groups += [("workload shifts only", [r for r in ours if r.scenario.fault == "none"])]
    _print("tailbudget", groups)
    same = [r for r in done if r.scenario in with_rivals]
    _print("the same runs", _by("", same, lambda s: s.name, detector=True))


def _usual(scenario: FaultScenario) -> bool:
    return scenario.noise == "medium" and scenario.rate == 40


def _by(
    title: str,
    results: list[Result],
    of: Callable[[FaultScenario], str],
    *,
    detector: bool = False,
) -> list[tuple[str, list[Result]]]:
    groups: dict[str, list[Result]] = {}
    for result in results:
        name = result.detector if detector else f"{title}: {of(result.scenario)}"
        groups.setdefault(name, []).append(result)
    return list(groups.items()) if detector else sorted(groups.items())


def _print(title: str, groups: list[tuple[str, list[Result]]]) -> None:
    table = Table(title=title)
    heads = ("", "runs", "precision", "recall", "F1", "false starts a key-day")
    for head in (*heads, "delay p50 s", "p90 s", "missed %", "CPU ms a tick"):
        table.add_column(head, justify="right" if head else "left")
    for name, results in groups:
        if results:
            table.add_row(name, *_cells(results))
    Console(width=140).print(table)


def _cells(results: list[Result]) -> list[str]:
    tally = total(result.tally for result in results)
    missed = np.mean(np.isinf(tally.delays_s)) * 100 if tally.delays_s else float("nan")
    return [
        str(len(results)),
        f"{tally.precision:.3f}",
        f"{tally.recall:.3f}",
        f"{tally.f1:.3f}",
        f"{tally.false_starts_a_day:.2f}",
        f"{tally.delay_s(50):.2f}",
        f"{tally.delay_s(90):.2f}",
        f"{missed:.0f}",
        f"{np.mean([result.tick_ms for result in results]):.2f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
