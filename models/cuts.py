"""Where to cut an input-shape dimension: as few requests as possible, as many as needed."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.paired_p99 import P99, weighted_quantile

Floats = NDArray[np.float64]

_SHARES: Final = tuple(Fraction(share, 100) for share in (99, 98, 95, 90))
"""A cut touches a tenth of the requests at most: more is no tail."""


def cut_of(
    x: Floats, weight: Floats, after: Callable[[float], Floats | None], target_ms: float | None
) -> float | None:
    """Return the largest of the p99, p98, p95 and p90 of a covariate that meets the target.

    Args:
        x: [M] the covariate of sampled requests; NaN is missing.
        weight: [M] how many requests each stands for.
        after: [M] totals with a cut; NaN is a request that is gone.
        target_ms: what p99 is to reach; None without a target.

    Returns:
        The p90 when none does, or there is no target; None when no request carries the covariate.
    """
    cuts = [quantile_of(x, weight, share) for share in _SHARES]
    for cut in cuts:
        totals = None if cut is None or target_ms is None else after(cut)
        p99 = None if totals is None else quantile_of(totals, weight, P99)
        if p99 is not None and target_ms is not None and p99 <= target_ms:
            return cut
    return cuts[-1]


def quantile_of(values: Floats, weight: Floats, quantile: Fraction) -> float | None:
    """Return the nearest-rank quantile of the values that are not NaN; None without any."""
    present = ~np.isnan(values)
    if not present.any():
        return None
    return float(weighted_quantile(values[present], weight[present][None, :], quantile)[0])
