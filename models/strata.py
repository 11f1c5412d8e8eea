"""Weigh sampled requests so that they have the latencies that all requests have.

A few sampled requests beyond p99 are a coarse picture of it, but how many requests lie there is
known exactly, from the sketch. Each sampled request of a stratum of the total stands for the same
number of them: post-stratification (W. Cochran, Sampling Techniques, 1977, 5A.9).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.sketch import bucket_index, stage_counts
from tailbudget.schemas.summary import TOTAL, Summary

Floats = NDArray[np.float64]

_EDGES: Final = (0.5, 0.75, 0.9, 0.96, 0.985, 0.995)
"""p99 lies inside of a stratum: on its edge, the last few sampled would stand for it, and intervals
were found too short (nine in ten held the truth instead of nineteen in twenty)."""

_FEWEST: Final = 10  # a resample without any of ten has a chance of 1 in 22,000


@dataclass(frozen=True, slots=True)
class Strata:
    """Sampled requests by their latency.

    Attributes:
        of: [M] stratum of each.
        size: [K] requests of each stratum, of all.
    """

    of: NDArray[np.intp]
    size: Floats

    def weights(self, times: Floats) -> Floats:
        """Return [W, M] how many requests each sampled one stands for.

        Args:
            times: [W, M] how often each was drawn.
        """
        member = np.zeros((len(self.of), len(self.size)))
        member[np.arange(len(self.of)), self.of] = 1.0
        drawn = times @ member
        each = np.divide(self.size, drawn, out=np.zeros_like(drawn), where=drawn > 0)
        weights: Floats = times * each[:, self.of]
        return weights


def strata(total: Summary, total_ms: Floats) -> Strata:
    """Return the strata of sampled requests with these totals; a small one joins the faster."""
    counts = stage_counts(total, TOTAL)
    below = np.cumsum(counts)
    edges = np.unique(np.searchsorted(below, np.array(_EDGES) * below[-1]))
    of = np.searchsorted(edges, bucket_index(total_ms))
    size = np.diff(np.concatenate([[0], below[edges], below[-1:]])).astype(np.float64)
    for stratum in range(len(size) - 1, 0, -1):
        if np.count_nonzero(of == stratum) < _FEWEST:
            of[of == stratum] = stratum - 1
            size[stratum - 1] += size[stratum]
            size[stratum] = 0.0
    return Strata(of.astype(np.intp), size)
