"""Spans of time with equally many sampled requests; cold windows have spans of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MOST: Final = 32
_ROWS: Final = 64
"""Requests of a span: its mean is then known to an eighth of their spread."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Which span each request is in.

    Attributes:
        of: [M] index of the span.
        n: [T] requests of each; none is empty.
        start_ns: [T] first request.
        end_ns: [T] last request.
        cold: [T] within cold windows.
    """

    of: NDArray[np.int64]
    n: NDArray[np.int64]
    start_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    cold: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.n)

    def sum(self, values: Floats) -> Floats:
        """Return [T, k] sums of values [M, k]."""
        result = np.zeros((len(self), values.shape[1]))
        np.add.at(result, self.of, values)
        return result

    def mean(self, values: Floats) -> Floats:
        """Return [T, k] means of values [M, k]."""
        return self.sum(values) / self.n[:, None]

    def others_mean(self, values: Floats) -> Floats:
        """Return [M, k] the mean of the other requests of the span; of a lone one its own."""
        others = (self.n - 1)[self.of, None]
        rest = self.sum(values)[self.of] - values
        return np.where(others > 0, rest / np.maximum(others, 1), values)

    def within(self, values: Floats, seen: NDArray[np.bool_]) -> Floats:
        """Return [m, k] deviations of the seen requests from the mean of those of their span."""
        of = self.of[seen]
        n = np.bincount(of, minlength=len(self))
        sums = np.zeros((len(self), values.shape[1]))
        np.add.at(sums, of, values[seen])
        deviations: Floats = values[seen] - (sums / np.maximum(n, 1)[:, None])[of]
        return deviations


def spans_of(ts_ns: NDArray[np.int64], cold: NDArray[np.bool_], most: int = _MOST) -> Spans:
    """Return the spans of requests in any order.

    Args:
        ts_ns: [M] event time.
        cold: [M] in a cold window.
        most: spans outside of cold windows at most, and inside at most.
    """
    of = np.zeros(len(ts_ns), np.int64)
    count = 0
    for part in (~cold, cold):
        at = np.flatnonzero(part)
        if len(at):
            spans = int(np.clip(len(at) // _ROWS, 1, most))
            at = at[np.argsort(ts_ns[at], kind="stable")]
            of[at] = count + np.arange(len(at)) * spans // len(at)
            count += spans
    start, end = np.full(count, np.iinfo(np.int64).max), np.zeros(count, np.int64)
    np.minimum.at(start, of, ts_ns)
    np.maximum.at(end, of, ts_ns)
    colds = np.zeros(count, np.bool_)
    colds[of[cold]] = True
    return Spans(of, np.bincount(of, minlength=count), start, end, colds)
