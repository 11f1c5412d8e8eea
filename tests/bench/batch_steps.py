"""Small slowdowns of batch steps: the published rule beside ours, on data of the paper's form.

    python tests/bench/batch_steps.py STEPS.csv
    python tests/bench/batch_steps.py --generate /tmp/steps.csv

The file has a row for every step of an inference engine: `duration_us`, `batch_size`,
`input_length`, `output_length`, and, if it may be, `job`. It stays where it is. Streams of 1,000
clean steps and 200 that are slower are drawn from steps held out at random, and from jobs held
out whole; a detector is judged by the F1 of its alarms over the steps, and by the share of the
streams whose clean part it alarms at. LatencyPrism's rule (E = max(0, (Y - Yhat) / Y), averaged
over 10, beyond min(mean + 3 sd of the training errors, 0.5)) gets the predictions of our shape
model, which learns from the same rows.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is imported

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from tailbudget.models.anomaly.guard import Guard
from tailbudget.models.shape.terms import terms
from tailbudget.schemas.anomalies import StageCohort, TickRows

COVARIATES: Final = ("batch_size", "input_length", "output_length")
SLOWER: Final = (1.05, 1.10, 1.20)
CLEAN, SLOW = 1000, 200
TICK_ROWS: Final = 10
TICK_NS: Final = 250_000_000
LEARN_S: Final = 60
_KEY: Final = (StageCohort("step", ""),)

Floats = NDArray[np.float64]
Judge = Callable[["Steps"], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class Steps:
    """Rows of the file.

    Attributes:
        ms: [N] duration.
        covariate: [N, 3] columns of `COVARIATES`.
        job: [N] which run of the engine.
    """

    ms: Floats
    covariate: Floats
    job: NDArray[np.int64]

    def take(self, at: NDArray[np.int64], factor: Floats | float = 1.0) -> Steps:
        """Return some rows, slower by a factor."""
        return Steps(self.ms[at] * factor, self.covariate[at], self.job[at])


def main() -> int:
    """Print the table of a file."""
    options = _options()
    if options.generate is not None:
        generated(options.generate, options.seed)
        options.file = options.generate
    steps = read(options.file)
    table = Table(title=f"{len(steps.ms):,} steps, {len(np.unique(steps.job))} jobs")
    for head in ("held out", "slower", "paper F1", "ours F1", "paper alarmed %", "ours alarmed %"):
        table.add_column(head, justify="left" if head == "held out" else "right")
    table.add_column("not judged %", justify="right")
    for held_out in ("rows", "jobs"):
        for row in measure(steps, held_out, options.streams, options.seed):
            table.add_row(held_out, *row)
    Console(width=110).print(table)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, nargs="?", help="the steps, as CSV")
    parser.add_argument("--generate", type=Path, help="write steps of that form here, and use them")
    parser.add_argument("--streams", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.file is None and options.generate is None:
        parser.error("name a file, or --generate one")
    return options


def read(path: Path) -> Steps:
    """Read the file; a row that lacks anything is left out."""
    table = pl.read_csv(path)
    if "job" not in table.columns:
        # Steps come in order: a tenth of the file stands for a job.
        table = table.with_columns((pl.int_range(pl.len()) * 10 // pl.len()).alias("job"))
    table = table.drop_nulls(["duration_us", *COVARIATES]).filter(pl.col("duration_us") > 0)
    return Steps(
        table["duration_us"].cast(pl.Float64).to_numpy() / 1000,
        table.select(pl.col(*COVARIATES).cast(pl.Float64)).to_numpy(),
        table["job"].rank("dense").cast(pl.Int64).to_numpy(),
    )


def measure(steps: Steps, held_out: str, streams: int, seed: int) -> list[tuple[str, ...]]:
    """Return a line of the table for each slowdown."""
    random = np.random.default_rng(seed)
    if held_out == "rows":
        folds = [random.random(len(steps.ms)) < 0.2]
    else:
        jobs = np.unique(steps.job)
        random.shuffle(jobs)
        folds = [np.isin(steps.job, part) for part in np.array_split(jobs, min(5, len(jobs)))]
    lines = []
    for factor in SLOWER:
        counts = {"paper": _Count(), "ours": _Count()}
        hidden: list[float] = []
        for mask in folds:
            train = steps.take(random.permutation(np.flatnonzero(~mask)))
            body = trained(train)
            judges: dict[str, Judge] = {"paper": _paper(body, train), "ours": _ours(body, hidden)}
            for _ in range(max(streams // len(folds), 1)):
                drawn = random.choice(np.flatnonzero(mask), CLEAN + SLOW)
                slow = np.where(np.arange(CLEAN + SLOW) < CLEAN, 1.0, factor)
                for name, judge in judges.items():
                    counts[name].add(judge(steps.take(drawn, slow)))
        cells = [f"{counts[name].f1:.2f}" for name in ("paper", "ours")]
        cells += [f"{counts[name].alarmed_pct:.0f}" for name in ("paper", "ours")]
        lines.append((f"+{100 * (factor - 1):.0f} %", *cells, f"{100 * np.mean(hidden):.0f}"))
    return lines


class _Count:
    """Steps by truth and alarm, over streams."""

    def __init__(self) -> None:
        self._found = self._missed = self._false = self._alarmed = self._streams = 0

    def add(self, alarm: NDArray[np.bool_]) -> None:
        self._streams += 1
        self._found += int(alarm[CLEAN:].sum())
        self._missed += int((~alarm[CLEAN:]).sum())
        self._false += int(alarm[:CLEAN].sum())
        self._alarmed += bool(alarm[:CLEAN].any())

    @property
    def f1(self) -> float:
        return 2 * self._found / (2 * self._found + self._missed + self._false)

    @property
    def alarmed_pct(self) -> float:
        return 100 * self._alarmed / self._streams


def trained(train: Steps) -> bytes:
    """Return the state of a guard that has watched the training rows, each once."""
    guard = Guard()
    per = max(len(train.ms) // (LEARN_S * 20), TICK_ROWS)
    for i, at in enumerate(range(0, len(train.ms), per)):
        guard.step((i + 1) * TICK_NS * 4, _rows(train, slice(at, at + per)))
    end = (len(train.ms) // per + 2) * TICK_NS * 4
    for i in range(20):
        guard.step(end + i * TICK_NS * 4, _rows(train, slice(0, 0)))
    return guard.dump()


def _ours(body: bytes, hidden: list[float]) -> Judge:
    def judge(stream: Steps) -> NDArray[np.bool_]:
        guard = Guard.load(body)
        start = round(guard.learnt_s * 1e9)
        before = guard.counts["unseen shape"]
        alarm = np.zeros(len(stream.ms), np.bool_)
        for i, at in enumerate(range(0, len(stream.ms), TICK_ROWS)):
            guard.step(start + (i + 1) * TICK_NS, _rows(stream, slice(at, at + TICK_ROWS)))
            alarm[at : at + TICK_ROWS] = guard.alarms.on[0]
        hidden.append((guard.counts["unseen shape"] - before) / len(stream.ms))
        return alarm

    return judge


def _paper(body: bytes, train: Steps) -> Judge:
    guard = Guard.load(body)
    training = _errors(guard, train)
    limit = min(float(training.mean() + 3 * training.std()), 0.5)

    def judge(stream: Steps) -> NDArray[np.bool_]:
        error = _errors(guard, stream)
        total = np.cumsum(np.concatenate([np.zeros(10), error]))
        result: NDArray[np.bool_] = (total[10:] - total[:-10]) / 10 > limit
        return result

    return judge


def _errors(guard: Guard, steps: Steps) -> Floats:
    rows = _rows(steps, slice(0, len(steps.ms)))
    slots = guard.shapes.read(rows.key, rows).values
    expected = guard.shapes.bank.predict(rows.key, terms(slots))
    return np.maximum(0.0, (steps.ms - expected) / steps.ms)


def _rows(steps: Steps, at: slice) -> TickRows:
    ms = steps.ms[at]
    return TickRows(_KEY, np.zeros(len(ms), np.int64), ms, COVARIATES, steps.covariate[at])


def generated(path: Path, seed: int, rows: int = 20_000) -> None:
    """Write steps of that form: ten jobs that differ in batch and length, and a little in speed."""
    random = np.random.default_rng(seed)
    job = np.repeat(np.arange(10), rows // 10)
    batch = 1 + random.poisson(np.linspace(2, 40, 10)[job])
    length = np.round(np.geomspace(200, 4000, 10)[job] * np.exp(0.5 * random.normal(size=rows)))
    output = np.round(random.uniform(1, 500, rows))
    us = 9000 + 120 * batch + 0.35 * batch * (length + output)
    us *= np.exp(0.03 * random.normal(size=rows) + 0.01 * random.normal(size=10)[job])
    us *= np.where(random.random(rows) < 0.005, 1 + random.pareto(2.5, rows), 1)
    columns = {"duration_us": us, "batch_size": batch, "input_length": length}
    pl.DataFrame({**columns, "output_length": output, "job": job}).write_csv(path)


if __name__ == "__main__":
    sys.exit(main())
