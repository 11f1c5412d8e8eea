"""The p99 before and after a change, on the same requests, with a bootstrap interval.

The interval is the percentile bootstrap of B. Efron, Bootstrap Methods: Another Look at the
Jackknife (1979): requests are drawn again with replacement, and both p99 are taken anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.ranks import requests_needed
from tailbudget.models.sketch import representative
from tailbudget.schemas.sections import Interval
from tailbudget.schemas.slo import QUANTILES

Floats = NDArray[np.float64]

P99: Final = QUANTILES["p99"]
NEEDED: Final = requests_needed(P99)
RESAMPLES: Final = 400
"""Enough for the ends of a 95 % interval: ten resamples lie beyond each."""

_SEED: Final = 20_260_302
_ENDS: Final = (0.025, 0.975)


@dataclass(frozen=True, slots=True)
class Saving:
    """What a change saves of the p99.

    Attributes:
        saved_ms: now less then, 0 or more; None when nothing measured tells.
        interval_ms: 95 % interval around it.
        basis: how it was found, or why it was not.
    """

    saved_ms: float | None
    interval_ms: Interval | None
    basis: str


@dataclass(frozen=True, slots=True)
class Replayed:
    """Requests as they were and as they would be.

    Attributes:
        row: [R] which request each is a part of.
        now_ms: [R] total as measured.
        then_ms: [R] total with the change.
        now_share: [R] part of the request that it stands for; adds up to 1 for each request.
        then_share: [R] likewise with the change; 0 where it would not be here.
    """

    row: NDArray[np.intp]
    now_ms: Floats
    then_ms: Floats
    now_share: Floats
    then_share: Floats


def whole(now_ms: Floats, then_ms: Floats, then_share: Floats | None = None) -> Replayed:
    """Return requests that are each replayed once."""
    ones = np.ones(len(now_ms))
    return Replayed(
        np.arange(len(now_ms)), now_ms, then_ms, ones, ones if then_share is None else then_share
    )


def replayed_saving(replayed: Replayed, basis: str) -> Saving:
    """Return the saving over sampled requests; None below the requests that a p99 takes."""
    drawn = int(replayed.row.max()) + 1 if len(replayed.row) else 0
    if drawn < NEEDED or replayed.then_share.sum() < NEEDED / 2:
        return Saving(None, None, f"{drawn:,} sampled requests; a p99 takes {NEEDED:,}")
    rng = np.random.default_rng(_SEED)
    times = rng.multinomial(drawn, np.full(drawn, 1 / drawn), RESAMPLES).astype(np.float64)
    times = np.vstack([np.ones(drawn), times])[:, replayed.row]
    now = _p99(replayed.now_ms, times * replayed.now_share)
    then = _p99(replayed.then_ms, times * replayed.then_share)
    return _saving(now - then, basis)


def sketched_saving(kept: NDArray[np.int64], dropped: NDArray[np.int64], basis: str) -> Saving:
    """Return what leaving requests out saves, from their sketches (dense, [BUCKETS] each).

    The resamples are multinomial draws of the buckets, which is what drawing requests gives.
    """
    n, kept_n = int(kept.sum() + dropped.sum()), int(kept.sum())
    if kept_n < NEEDED:
        return Saving(None, None, f"{kept_n:,} requests would be left; a p99 takes {NEEDED:,}")
    at = np.flatnonzero(kept + dropped)
    here = np.concatenate([kept[at], dropped[at]])
    rng = np.random.default_rng(_SEED)
    counts = np.vstack([here, rng.multinomial(n, here / n, RESAMPLES)]).astype(np.float64)
    middle = representative(at)
    then = _p99(middle, counts[:, : len(at)])
    now = _p99(middle, counts[:, : len(at)] + counts[:, len(at) :])
    return _saving(now - then, basis)


def p99_of(values: Floats, share: Floats | None = None) -> float:
    """Return the nearest-rank p99 of values, each counting `share` times (once without)."""
    return float(_p99(values, (np.ones(len(values)) if share is None else share)[None, :])[0])


def quantile_of(values: Floats, quantile: Fraction) -> float | None:
    """Return the nearest-rank quantile of the values that are not NaN; None without any."""
    present = np.sort(values[~np.isnan(values)])
    if not len(present):
        return None
    rank = max(-(-len(present) * quantile.numerator // quantile.denominator), 1)
    return float(present[rank - 1])


def _saving(saved: Floats, basis: str) -> Saving:
    estimate = max(float(saved[0]), 0.0)
    low, high = np.quantile(np.maximum(saved[1:], 0.0), _ENDS).tolist()
    return Saving(estimate, (min(low, estimate), max(high, estimate)), basis)


def _p99(values: Floats, weights: Floats) -> Floats:
    """Return [W] the p99 of the values under each row of weights [W, R]."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[:, order], axis=1)
    # A millionth of a request, so that rounding of the sum does not move the rank.
    wanted = float(P99) * cumulated[:, -1:] - 1e-6
    found: Floats = values[order][(cumulated >= wanted).argmax(axis=1)]
    return found
