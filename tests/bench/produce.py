"""A producer process for `alert_latency.py`: a constant rate, and faults at known times.

Every 20 ms it makes the records of the 20 ms that have passed, packs them as `Publisher` does,
and notes the slice in a log: (time of its first record, nanoseconds between records, records,
number of the trial or -1). Trial n slows service n modulo their number. It never skips: when it
is behind, it makes the next slice at once.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Final

import numpy as np
import orjson
from numpy.typing import NDArray
from stamped import Letters, Stamper

from tailbudget.streams.kafka import client_config
from tailbudget.streams.packing import PACK_BYTES, Pack
from tailbudget.streams.publish import Publisher

Ints = NDArray[np.int64]

SLICE_NS: Final = 20_000_000
SLOWER: Final = 20.0


def main() -> int:
    """Produce until the schedule is over."""
    options = _options()
    stamper = Stamper(options.services, cohorts=options.cohorts, slow=SLOWER)
    each = round(options.rate * SLICE_NS / 1e9)
    start_ns = time.time_ns()
    log: list[tuple[int, int, int, int]] = []
    late_ns = 0
    with Publisher(client_config(options.bootstrap)) as publisher:
        for turn in range(int(options.seconds * 1e9 / SLICE_NS)):
            at_ns = start_ns + turn * SLICE_NS
            trial = _trial((at_ns - start_ns) / 1e9, options)
            faulty = frozenset({trial % options.services} if trial >= 0 else ())
            ts_ns = at_ns + np.arange(each) * (SLICE_NS // each)
            rows = stamper.batch(ts_ns, faulty)
            wait_s = (at_ns + SLICE_NS - time.time_ns()) / 1e9
            late_ns = max(late_ns, int(-wait_s * 1e9))
            if wait_s > 0:
                time.sleep(wait_s)
            _publish(publisher, options.topic, rows, ts_ns)
            log.append((at_ns, SLICE_NS // each, each, trial))
    took_s = (time.time_ns() - start_ns) / 1e9
    told = {"slices": log, "rate": each * len(log) / took_s, "late_ms": late_ns / 1e6}
    options.log.write_bytes(orjson.dumps({**told, "cpu_s": time.process_time()}))
    return 0


def _publish(publisher: Publisher, topic: str, rows: Letters, ts_ns: Ints) -> None:
    step = max(PACK_BYTES // (rows.shape[1] + 1), 1)
    for low in range(0, len(rows), step):
        part = rows[low : low + step]
        lines = np.full((len(part), part.shape[1] + 1), ord("\n"), np.uint8)
        lines[:, :-1] = part
        newest_ms = int(ts_ns[min(low + step, len(rows)) - 1] // 1_000_000)
        publisher.send_pack(topic, Pack(lines.tobytes()[:-1], len(part), newest_ms))


def _trial(at_s: float, options: argparse.Namespace) -> int:
    """Return the number of the trial whose fault lasts at a time; -1 without one."""
    trial, since_s = divmod(at_s - options.calm, options.every)
    return int(trial) if 0 <= trial < options.trials and since_s < options.fault else -1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--services", type=int, required=True)
    parser.add_argument("--trials", type=int, required=True)
    parser.add_argument("--cohorts", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--calm", type=float, required=True, help="seconds before the first fault")
    parser.add_argument("--every", type=float, required=True, help="seconds from fault to fault")
    parser.add_argument("--fault", type=float, required=True, help="seconds that a fault lasts")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
