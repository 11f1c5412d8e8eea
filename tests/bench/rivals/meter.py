"""Measures a rival from its first record to its last; needs nothing but Python."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time


class Meter:
    """Counts records and, once there are enough, prints what they cost and ends the process.

    Attributes:
        wanted: how many records to take.
        taken: how many were taken.
    """

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.taken = 0
        self._wall_s = self._cpu_s = 0.0

    def begin(self) -> None:
        """Start at the first record; later calls do nothing."""
        if not self._wall_s:
            self._wall_s, self._cpu_s = time.perf_counter(), time.process_time()

    def take(self, records: int = 1) -> None:
        """Count records that are done with."""
        self.taken += records
        if self.taken >= self.wanted:
            self.end()

    def end(self) -> None:
        """Print one line of JSON and leave at once, whatever else is running."""
        cost = {
            "records": self.taken,
            "wall_s": time.perf_counter() - self._wall_s,
            "cpu_s": time.process_time() - self._cpu_s,
        }
        sys.stdout.write("\n" + json.dumps(cost) + "\n")
        sys.stdout.flush()
        os._exit(0)


def arguments(description: str) -> argparse.Namespace:
    """Return the arguments that every rival on Kafka takes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--records", type=int, required=True)
    return parser.parse_args()
