"""Rows wait before they are learnt: a fault is found meanwhile, and then they are dropped."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.anomalies import TickRows

DELAY_S: Final = 15.0
MOST_ROWS: Final = 100_000
"""Rows that wait at most; what comes beyond is scored, but never learnt."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one tick.

    Attributes:
        at_s: when they came.
        key: [N] index of each row's key.
        rows: the rows.
    """

    at_s: float
    key: NDArray[np.int64]
    rows: TickRows


class Pending:
    """A queue of batches. What waits is not saved: a restart learns nothing from it."""

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque()
        self._rows = 0

    def add(self, batch: Batch) -> None:
        """Let a batch wait."""
        if self._rows + len(batch.key) <= MOST_ROWS:
            self._batches.append(batch)
            self._rows += len(batch.key)

    def due(self, now_s: float) -> Iterator[Batch]:
        """Yield the batches that have waited long enough, the oldest first."""
        while self._batches and self._batches[0].at_s <= now_s - DELAY_S:
            batch = self._batches.popleft()
            self._rows -= len(batch.key)
            yield batch
