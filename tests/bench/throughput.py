"""Records a second of one worker, beside what its parts and its rivals reach on the same records.

    python tests/bench/throughput.py

preloads a topic, runs one worker on one core until all of it is in ClickHouse, checks the exact
count, and then runs the rivals on the same topic, one after another, on the same core.
Rivals that are slow take fewer records; what cannot be imported is skipped and named.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import uuid4

from load import load, preload, write
from offsets import follow
from process import environment, last_core, pin
from rich.console import Console
from rich.table import Table
from stack import WorkerProcess, broker, folder

RIVALS: Final = Path(__file__).resolve().parent / "rivals"
PARTITIONS: Final = 4
_PATIENCE_S: Final = 600


@dataclass(frozen=True, slots=True)
class Cost:
    """What records cost.

    Attributes:
        records: how many.
        wall_s: seconds by the clock.
        cpu_s: CPU seconds of the process, all threads.
    """

    records: int
    wall_s: float
    cpu_s: float

    @property
    def per_cpu_s(self) -> float:
        """Records per CPU second."""
        return self.records / self.cpu_s

    @property
    def per_wall_s(self) -> float:
        """Records per second of the clock."""
        return self.records / self.wall_s


@dataclass(frozen=True, slots=True)
class Rival:
    """What we are compared with.

    Attributes:
        title: for the table.
        script: file in `rivals/`.
        modules: what it imports.
        times: how many times its rate we want to be; below 1 is a share.
        share: share of the records that it runs on.
    """

    title: str
    script: str
    modules: str
    times: float
    share: float


ALL_RIVALS: Final = (
    Rival("(a) polars, decoding alone", "polars_decode.py", "polars, orjson", 0.6, 1.0),
    Rival("(b) plain Faust agent", "plain_faust.py", "faust", 15, 0.1),
    Rival("(c) confluent-kafka + orjson alone", "orjson_consume.py", "confluent_kafka", 0, 1.0),
    Rival("(d) quixstreams + ddsketch", "quix_sketches.py", "quixstreams, ddsketch", 4, 0.2),
    Rival("(e) bytewax + ddsketch", "bytewax_sketches.py", "bytewax, ddsketch", 4, 0.2),
)


def main() -> int:
    """Run the benchmark and print the table."""
    options = _options()
    console = Console(width=110)
    what = load(options.records, services=options.services, rate=options.rate)
    ours: list[tuple[str, Cost]] = []
    rivals: list[tuple[Rival, Cost | str]] = []
    with folder() as home, broker(options.bootstrap, embedded=options.embedded, home=home) as at:
        for packed in (False, True):
            topic = f"bench-{uuid4().hex[:8]}"
            console.print(f"writing {what.records:,} records, {_way(packed)}")
            size = preload(what, at, topic, partitions=PARTITIONS, packed=packed)
            for turn in range(options.repeat):
                cost = _worker(options, at, topic, home / f"{topic}-{turn}")
                console.print(f"  {_told(cost)}")
                ours.append((f"tailbudget worker, {_way(packed)}", cost))
            if not packed and not options.no_rivals:
                write(what, home / "records.ndjson")
                rivals += [(r, _rival(options, r, at, topic, home)) for r in ALL_RIVALS]
    each = size / what.records
    console.print(
        f"{what.records:,} records of {each:.0f} bytes from {what.services} service(s),"
        f" {PARTITIONS} partitions; each line: one process on one core"
    )
    console.print(_table(ours, rivals))
    return 0


def _worker(options: argparse.Namespace, bootstrap: str, topic: str, home: Path) -> Cost:
    """Run a worker over the topic; returns its cost until all is committed and in ClickHouse."""
    home.mkdir()
    embedded = options.embedded
    worker = WorkerProcess(
        bootstrap, home, topic=topic, core=last_core(), embedded=embedded, run=_profiler(options)
    )
    with worker:
        args = (bootstrap, worker.group, topic, PARTITIONS)
        commits = follow(*args, worker.require_alive)
        worker.wait_until_counted(options.records)
        cpu_s = worker.cpu_s
    return Cost(options.records, commits.last_s - worker.started_at, cpu_s)


def _rival(
    options: argparse.Namespace, rival: Rival, bootstrap: str, topic: str, home: Path
) -> Cost | str:
    """Run a rival; returns its cost, or why there is none."""
    python = options.rivals_python
    probe = subprocess.run(
        [python, "-c", f"import {rival.modules}"], capture_output=True, text=True, check=False
    )
    if probe.returncode:
        return f"skipped: {probe.stderr.strip().splitlines()[-1]}"
    command = [python, str(RIVALS / rival.script)]
    if rival.script == "polars_decode.py":
        command += ["--file", str(home / "records.ndjson")]
    else:
        command += ["--bootstrap", bootstrap, "--topic", topic]
        command += ["--records", str(int(options.records * rival.share))]
    core = last_core()
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            env=environment(),
            timeout=_PATIENCE_S,
            preexec_fn=lambda: pin(0, core),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"failed: not done after {_PATIENCE_S} s"
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"records"')]
    if not lines:
        return f"failed: {done.stderr.strip()[-200:]}"
    return Cost(**json.loads(lines[-1]))


def _table(ours: list[tuple[str, Cost]], rivals: list[tuple[Rival, Cost | str]]) -> Table:
    table = Table()
    for name in (
        "what",
        "records",
        "wall s",
        "CPU s",
        "records/s",
        "per CPU s",
        "ours is",
        "wanted",
    ):
        table.add_column(name, justify="left" if name == "what" else "right")
    for title, cost in ours:
        table.add_row(title, *_figures(cost))
    plain = [cost for title, cost in ours if title.endswith(_way(packed=False))]
    best = max((cost.per_cpu_s for cost in plain), default=0.0)
    for rival, found in rivals:
        if isinstance(found, str):
            table.add_row(rival.title, found)
            continue
        ratio, wanted = best / found.per_cpu_s, f">= {rival.times:g}x" if rival.times else ""
        table.add_row(rival.title, *_figures(found), f"{ratio:.2f}x", wanted)
    return table


def _figures(cost: Cost) -> tuple[str, ...]:
    return (
        f"{cost.records:,}",
        f"{cost.wall_s:.2f}",
        f"{cost.cpu_s:.2f}",
        f"{cost.per_wall_s:,.0f}",
        f"{cost.per_cpu_s:,.0f}",
    )


def _told(cost: Cost) -> str:
    wall, cpu = f"{cost.per_wall_s:,.0f} records/s", f"{cost.per_cpu_s:,.0f} per CPU second"
    return f"worker: {wall}, {cpu} ({cost.cpu_s:.2f} CPU s)"


def _way(packed: bool) -> str:  # noqa: FBT001 - the two ways of writing them
    return "64 kB packed in a message" if packed else "one in a message"


def _profiler(options: argparse.Namespace) -> tuple[str, ...]:
    if not options.profile:
        return ()
    return (sys.executable, "-m", "cProfile", "-o", str(options.profile.resolve()))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bootstrap", help="a Kafka to use; by default one is started")
    parser.add_argument("--embedded", action="store_true", help="use the embedded broker")
    parser.add_argument("--records", type=int, help="default: 1,000,000; embedded: 200,000")
    parser.add_argument("--services", type=int, default=1, help="services (default: 1)")
    parser.add_argument(
        "--rate", type=float, default=10_000, help="records/s of event time (default: 10000)"
    )
    parser.add_argument("--repeat", type=int, default=2, help="runs of the worker (default: 2)")
    parser.add_argument("--no-rivals", action="store_true", help="run the worker alone")
    parser.add_argument(
        "--rivals-python", default=sys.executable, help="interpreter that has the rivals installed"
    )
    parser.add_argument("--profile", type=Path, help="write cProfile's figures of the worker here")
    options = parser.parse_args()
    options.records = options.records or (200_000 if options.embedded else 1_000_000)
    return options


if __name__ == "__main__":
    sys.exit(main())
