"""Records at a high rate for little: a matrix of letters in which only id and time change.

All records of a batch have the same length, so that ids and times are written as columns.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import orjson
from numpy.typing import NDArray

VARIANTS: Final = 4096
_ID: Final = 12
_TIME: Final = 19
_STAGES: Final = {
    "tokenize": 2.0,
    "queue": 1.0,
    "retrieve": 12.0,
    "prefill": 30.0,
    "decode": 40.0,
    "rerank": 5.0,
}
_SIGMA: Final = 0.12

Letters = NDArray[np.uint8]


class Stamper:
    """Makes records of several services, in turn, some of them slower.

    Attributes:
        services: how many there are; record k is of service k modulo that.
        names: their names.
    """

    def __init__(self, services: int, *, cohorts: int, slow: float, seed: int = 1) -> None:
        self.services = services
        self.names = tuple(f"service-{n:02d}" for n in range(services))
        self._made = 0
        random = np.random.default_rng(seed)
        variants = max(VARIANTS, 4 * cohorts)
        self._variants = variants - variants % services
        names = self.names * (self._variants // services)
        fast = [_record(name, k // services % cohorts, random) for k, name in enumerate(names)]
        slower = [_slower(record, slow) for record in fast]
        lines = [_dump(record) for record in (*fast, *slower)]
        width = max(map(len, lines))
        padded = b"".join(line.ljust(width) for line in lines)
        self._pool = np.frombuffer(padded, np.uint8).reshape(2 * self._variants, width)
        self._id = lines[0].index(b"0" * _ID)
        self._time = lines[0].index(b"1" * _TIME)

    def batch(self, ts_ns: NDArray[np.int64], faulty: frozenset[int]) -> Letters:
        """Return [n, width] records with these times, the faulty services' ones slow."""
        order = self._made + np.arange(len(ts_ns))
        self._made += len(ts_ns)
        slow = np.isin(order % self.services, list(faulty))
        rows = self._pool[order % self._variants + slow * self._variants]
        _write(rows[:, self._id : self._id + _ID], order)
        _write(rows[:, self._time : self._time + _TIME], ts_ns)
        return rows


def _record(service: str, cohort: int, random: np.random.Generator) -> dict[str, object]:
    noise = np.exp(_SIGMA * random.normal(size=len(_STAGES))).tolist()
    stages = {
        f"{s}_ms": round(ms * n, 3) for (s, ms), n in zip(_STAGES.items(), noise, strict=True)
    }
    return {
        "request_id": "0" * _ID,
        "service": service,
        "timestamp": int("1" * _TIME),
        "status": "ok",
        "total_ms": round(sum(stages.values()) + 1.5, 3),
        **stages,
        "input_tokens": int(random.integers(50, 4000)),
        "output_tokens": int(random.integers(1, 400)),
        "batch_size": int(random.integers(1, 32)),
        "route": f"route-{cohort % 6}",
        "model_variant": ("small", "large")[cohort // 6 % 2],
        "region": f"region-{cohort // 12 % 20}",
        "customer_tier": f"tier-{cohort // 240}",
        "trace_id": f"{int(random.integers(2**62)):032x}",
    }


def _slower(record: dict[str, object], factor: float) -> dict[str, object]:
    """Return the record with one stage so slow that the total is `factor` times as long."""
    total, decode = float(str(record["total_ms"])), float(str(record["decode_ms"]))
    more = (factor - 1) * total
    return {**record, "total_ms": round(total + more, 3), "decode_ms": round(decode + more, 3)}


def _dump(record: dict[str, object]) -> bytes:
    return orjson.dumps(record)


def _write(field: Letters, values: NDArray[np.int64]) -> None:
    rest = values.copy()
    for place in range(field.shape[1] - 1, -1, -1):
        field[:, place] = 48 + rest % 10
        rest //= 10
