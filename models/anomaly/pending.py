"""Rows wait before they are learnt: a fault is found meanwhile, and then they are dropped."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.shape.rows import together
from tailbudget.schemas.anomalies import TickRows

DELAY_S: Final = 15.0
MOST_ROWS: Final = 100_000
"""Rows that wait at most; what comes beyond is scored, but never learnt."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one tick.

    Attributes:
        at_s: [N] when each came.
        key: [N] index of each row's key.
        rows: the rows.
    """

    at_s: NDArray[np.float64]
    key: NDArray[np.int64]
    rows: TickRows


class Pending:
    """A queue of batches. What waits is not saved: a restart learns nothing from it."""

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque()
        self._rows = 0

    def add(self, batch: Batch) -> None:
        """Let a batch wait."""
        if len(batch.key) and self._rows + len(batch.key) <= MOST_ROWS:
            self._batches.append(batch)
            self._rows += len(batch.key)

    def due(self, now_s: float) -> Iterator[Batch]:
        """Yield the batches that have waited long enough, the oldest first."""
        while self._batches and self._batches[0].at_s[0] <= now_s - DELAY_S:
            batch = self._batches.popleft()
            self._rows -= len(batch.key)
            yield batch


def joined(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield batches as few larger ones: those in a row with the same covariates."""
    for _, group in groupby(batches, lambda batch: batch.rows.covariates):
        parts = list(group)
        yield Batch(
            np.concatenate([part.at_s for part in parts]),
            np.concatenate([part.key for part in parts]),
            together([part.rows for part in parts]),
        )
