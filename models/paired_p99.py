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
from tailbudget.models.strata import Strata
from tailbudget.schemas.sections import Interval
from tailbudget.schemas.slo import QUANTILES

Floats = NDArray[np.float64]

P99: Final = QUANTILES["p99"]
NEEDED: Final = requests_needed(P99)
FEWEST_SAMPLED: Final = 400
"""Four of them lie beyond p99 and twenty beyond p95; how many of all do, the sketch says."""

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
    """Sampled requests as they were and as they would be, some of them in several parts.

    Attributes:
        row: [R] which of the sampled requests each is a part of.
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
    """Return requests that are each replayed in one part."""
    ones = np.ones(len(now_ms))
    return Replayed(
        np.arange(len(now_ms)), now_ms, then_ms, ones, ones if then_share is None else then_share
    )


def replayed_saving(replayed: Replayed, layers: Strata, basis: str) -> Saving:
    """Return the saving over sampled requests; None where they, or all requests, are too few."""
    drawn, requests = len(layers.of), round(layers.size.sum())
    if requests < NEEDED:
        return Saving(None, None, f"{requests:,} requests; a p99 takes {NEEDED:,}")
    if drawn < FEWEST_SAMPLED:
        return Saving(None, None, f"{drawn:,} sampled requests; it takes {FEWEST_SAMPLED:,}")
    if replayed.then_share.sum() < drawn / 2:
        return Saving(None, None, "most requests would be gone")
    weights = layers.weights(np.vstack([np.ones(drawn), _resamples(drawn)]))[:, replayed.row]
    now = weighted_quantile(replayed.now_ms, weights * replayed.now_share, P99)
    then = weighted_quantile(replayed.then_ms, weights * replayed.then_share, P99)
    return _saving(now - then, basis)


def sketched_saving(kept: NDArray[np.int64], dropped: NDArray[np.int64], basis: str) -> Saving:
    """Return what leaving requests out saves, from their sketches (dense, [BUCKETS] each).

    The resamples are multinomial draws of the buckets, which is what drawing requests gives.
    Where records stand for several requests the interval is too narrow.
    """
    n, kept_n = int(kept.sum() + dropped.sum()), int(kept.sum())
    if kept_n < NEEDED:
        return Saving(None, None, f"{kept_n:,} requests would be left; a p99 takes {NEEDED:,}")
    at = np.flatnonzero(kept + dropped)
    here = np.concatenate([kept[at], dropped[at]])
    rng = np.random.default_rng(_SEED)
    counts = np.vstack([here, rng.multinomial(n, here / n, RESAMPLES)]).astype(np.float64)
    middle = representative(at)
    then = weighted_quantile(middle, counts[:, : len(at)], P99)
    now = weighted_quantile(middle, counts[:, : len(at)] + counts[:, len(at) :], P99)
    return _saving(now - then, basis)


def _resamples(n: int) -> Floats:
    """Return [RESAMPLES, n] how often each of n is drawn when n are, with replacement."""
    at = np.random.default_rng(_SEED).integers(0, n, (RESAMPLES, n))
    at += n * np.arange(RESAMPLES)[:, None]
    times = np.bincount(at.ravel(), minlength=n * RESAMPLES)
    return times.reshape(RESAMPLES, n).astype(np.float64)


def _saving(saved: Floats, basis: str) -> Saving:
    estimate = max(float(saved[0]), 0.0)
    low, high = np.quantile(np.maximum(saved[1:], 0.0), _ENDS).tolist()
    return Saving(estimate, (min(low, estimate), max(high, estimate)), basis)


def weighted_quantile(values: Floats, weights: Floats, quantile: Fraction) -> Floats:
    """Return [W] the nearest-rank quantile of values [R] under each row of weights [W, R].

    NaN where a row has no weight.
    """
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weights[:, order], axis=1)
    if not len(values):
        return np.full(len(weights), np.nan)
    # A millionth of a request, so that rounding of the sum does not move the rank.
    wanted = np.maximum(float(quantile) * cumulated[:, -1:] - 1e-6, 1e-9)
    found: Floats = values[order][(cumulated >= wanted).argmax(axis=1)]
    return np.where(cumulated[:, -1] > 0, found, np.nan)
