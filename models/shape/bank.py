"""The regressions of all stages and cohorts of a service, updated together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.per_key import Field, PerKey
from tailbudget.models.shape.first_fit import LEAST_SPREAD, bounded, first_fits
from tailbudget.models.shape.roles import SLOTS
from tailbudget.models.shape.solve import covariance, solve
from tailbudget.models.shape.terms import BINS, TERMS, cover_bins, terms

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

HALF_LIFE_S: Final = 3600.0
"""Evidence counts half after an hour."""
THIN_ROWS: Final = 40.0
"""The other cohorts of a stage speak as so many rows, fading as a cohort has its own."""
_FADE_ROWS: Final = 400.0
_LEAST_MS: Final = 1e-3
_OFFSET_ROWS: Final = 300.0
_OFFSET_DOUBT: Final = 30.0
_LEAST_FRESH: Final = 20.0
_WORTH: Final = 0.02
MOST_FITS: Final = 64
_SWEEPS: Final = 8
_MEMORY: Final = 2000.0
_D: Final = len(TERMS)


class ShapeBank(PerKey):
    """One robust non-negative regression a key.

    Rows are divided by their prediction, so errors are relative, and those far out are moved to a
    bound. Evidence is kept as normal equations and fades.

    Attributes:
        gram: [K, D, D] sums of products of terms, each divided by the prediction.
        moment: [K, D] sums of those times measured by predicted.
        beta: [K, D] coefficients, milliseconds a unit of each term.
        rows: [K] rows in `gram`, faded.
        fresh: [K] rows learnt since the last fit.
        middle: [K] mean of log(measured by predicted), far ones bounded.
        spread: [K] their standard deviation.
        covered: [K, 7, BINS] rows by the bin of each slot, faded.
        offset: [K, BINS] mean of the residual's logarithm by the bin of the first slot, where the
            terms don't fit: powers and steps of the main size.
        offset_rows: [K, BINS] rows that each is from, bounded.
        needed: [K, 7] slots that the key has.
        ready: [K] the key predicts.
        stage: [K] index of the key's stage.
        leverage_of: [K, D, D] covariance of the coefficients for relative noise of 1.
    """

    FIELDS: ClassVar[Mapping[str, Field]] = {
        "gram": ((_D, _D), 0.0),
        "moment": ((_D,), 0.0),
        "beta": ((_D,), 0.0),
        "rows": ((), 0.0),
        "fresh": ((), 0.0),
        "middle": ((), 0.0),
        "spread": ((), 0.3),
        "covered": ((len(SLOTS), BINS), 0.0),
        "offset": ((BINS,), 0.0),
        "offset_rows": ((BINS,), 0.0),
        "needed": ((len(SLOTS),), False),
        "ready": ((), False),
        "stage": ((), 0),
    }
    gram: Floats
    moment: Floats
    beta: Floats
    rows: Floats
    fresh: Floats
    middle: Floats
    spread: Floats
    covered: Floats
    offset: Floats
    offset_rows: Floats
    needed: NDArray[np.bool_]
    ready: NDArray[np.bool_]
    stage: Integers
    leverage_of: Floats

    def __init__(self) -> None:
        super().__init__()
        self.leverage_of = np.zeros((0, _D, _D))

    def grow(self, size: int) -> None:
        """Add new keys until there are `size`."""
        more = max(size - self.size, 0)
        super().grow(size)
        self.leverage_of = np.concatenate([self.leverage_of, np.zeros((more, _D, _D))])

    def predict(self, key: Integers, slots: Floats, term: Floats) -> Floats:
        """Return [N] milliseconds expected, NaN for a key that is not ready."""
        size = cover_bins(slots[:, 0])
        rows = self.offset_rows[key, size]
        offset = self.offset[key, size] * (rows / (rows + _OFFSET_DOUBT))
        return np.where(self.ready[key], self._fitted(key, term) * np.exp(offset), np.nan)

    def seen(self, key: Integers, slots: Floats) -> Floats:
        """Return [N, 7] how many rows of the key had a value like this one, by slot."""
        at = np.arange(len(SLOTS))
        count: Floats = self.covered[key[:, None], at, cover_bins(slots)]
        known: Floats = np.where(self.needed[key], count, np.inf)
        return known

    def leverage(self, relative: Floats) -> Floats:
        """Return [K] the standard error of the mean prediction, in standard deviations of noise.

        Args:
            relative: [K, D] mean of the terms divided by the prediction.
        """
        variance = np.einsum(
            "kd,kd->k", np.einsum("kde,ke->kd", self.leverage_of, relative), relative
        )
        error: Floats = np.sqrt(np.maximum(variance, 0.0))
        return error

    def start(self, keys: Integers, key: Integers, slots: Floats, ms: Floats) -> None:
        """Fit keys [K] for the first time, on rows whose key is key [N]: slots [N, 7], ms [N]."""
        term = terms(slots)
        rows = [(term[key == k], ms[key == k]) for k in keys.tolist()]
        fits = first_fits(rows, self._pooled(keys))
        self.beta[keys], self.middle[keys], self.spread[keys] = fits.beta, fits.middle, fits.spread
        self.ready[keys] = True
        self.learn(key, slots, ms)
        self.refit(keys)

    def forget(self, keys: Integers) -> None:
        """Make some keys new; they keep their stage."""
        stage = self.stage[keys]
        self.reset(keys)
        self.stage[keys] = stage

    def learn(self, key: Integers, slots: Floats, ms: Floats) -> None:
        """Add rows of ready keys: key [N], slots [N, 7], ms [N] positive."""
        term = terms(slots)
        expected = self._fitted(key, term)
        log = np.log(ms / expected)
        kept = bounded(log, self.middle[key], self.spread[key])
        # A row far above counts less, so that one wrong prediction can't outweigh the others.
        relative = term * (np.exp(np.minimum(kept - log, 0.0)) / expected)[:, None]
        target = np.exp(kept)
        order = np.argsort(key, kind="stable")
        present, first = np.unique(key[order], return_index=True)
        for k, rows in zip(present.tolist(), np.split(order, first[1:]), strict=True):
            part = relative[rows]
            self.gram[k] += part.T @ part
            self.moment[k] += part.T @ target[rows]
        np.add.at(self.covered, (key[:, None], np.arange(len(SLOTS)), cover_bins(slots)), 1.0)
        self._track_offset(key, cover_bins(slots[:, 0]), kept)
        self._track(key, kept)

    def _fitted(self, key: Integers, term: Floats) -> Floats:
        fitted: Floats = np.maximum((term * self.beta[key]).sum(axis=1), _LEAST_MS)
        return fitted

    def _track_offset(self, key: Integers, size: Integers, log: Floats) -> None:
        at = key * BINS + size
        cells = self.size * BINS
        count = np.bincount(at, minlength=cells).reshape(-1, BINS)
        total = np.bincount(at, log - self.middle[key], cells).reshape(-1, BINS)
        self.offset_rows = np.minimum(self.offset_rows + count, _OFFSET_ROWS)
        share = np.minimum(count / np.maximum(self.offset_rows, 1.0), 1.0)
        self.offset += share * (total / np.maximum(count, 1) - self.offset)

    def _track(self, key: Integers, log: Floats) -> None:
        count = np.bincount(key, minlength=self.size).astype(np.float64)
        self.rows += count
        self.fresh += count
        share = count / np.minimum(self.rows + 1.0, _MEMORY)
        share = np.minimum(share, 0.5)
        each = np.maximum(count, 1.0)
        self.middle += share * (np.bincount(key, log, self.size) / each - self.middle)
        square = np.bincount(key, (log - self.middle[key]) ** 2, self.size) / each
        variance = self.spread**2
        self.spread = np.sqrt(np.maximum(variance + share * (square - variance), LEAST_SPREAD**2))

    def fade(self, elapsed_s: float) -> None:
        """Forget: evidence of all keys loses its share for so many seconds."""
        keep = 0.5 ** (elapsed_s / HALF_LIFE_S)
        for array in (self.gram, self.moment, self.rows, self.covered):
            np.multiply(array, keep, out=array)

    def refit(self, keys: Integers) -> None:
        """Solve again for some ready keys."""
        if not len(keys):
            return
        gram, moment = self._pooled(keys)
        gram += self.gram[keys]
        moment += self.moment[keys]
        self.beta[keys] = solve(gram, moment, self.beta[keys], _SWEEPS)
        self.leverage_of[keys] = covariance(gram)
        self.fresh[keys] = 0.0

    def _pooled(self, keys: Integers) -> tuple[Floats, Floats]:
        """Return [k, D, D] and [k, D] what the other cohorts of the stages say, as few rows."""
        gram, moment = np.zeros((len(keys), _D, _D)), np.zeros((len(keys), _D))
        for stage in np.unique(self.stage[keys]).tolist():
            mates = self.ready & (self.stage == stage)
            mine = np.flatnonzero(self.stage[keys] == stage)
            own = np.where(self.ready[keys[mine]], 1.0, 0.0)
            rows = self.rows[mates].sum() - own * self.rows[keys[mine]]
            weight = np.minimum(THIN_ROWS, rows) / (1 + self.rows[keys[mine]] / _FADE_ROWS)
            weight = np.where(rows > 1, weight / np.maximum(rows, 1.0), 0.0)
            other = self.gram[mates].sum(axis=0) - own[:, None, None] * self.gram[keys[mine]]
            gram[mine] = other * weight[:, None, None]
            other = self.moment[mates].sum(axis=0) - own[:, None] * self.moment[keys[mine]]
            moment[mine] = other * weight[:, None]
        return gram, moment

    def restore(self, arrays: Mapping[str, NDArray[Any]], size: int) -> None:
        """Take back what `arrays` returned; leverage is solved for again."""
        lower = np.tril_indices(_D)
        gram = np.zeros((size, _D, _D))
        packed = arrays["gram"].reshape(size, len(lower[0]))
        gram[:, lower[0], lower[1]] = packed
        gram[:, lower[1], lower[0]] = packed
        super().restore({**arrays, "gram": gram}, size)
        self.leverage_of = np.zeros((size, _D, _D))
        ready = np.flatnonzero(self.ready)
        if len(ready):
            pooled, _ = self._pooled(ready)
            self.leverage_of[ready] = covariance(pooled + self.gram[ready])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return what is to be saved: of the symmetric `gram` the lower half."""
        lower = np.tril_indices(_D)
        return {**super().arrays(), "gram": self.gram[:, lower[0], lower[1]]}


def keys_due(bank: ShapeBank) -> Integers:
    """Return the keys that learnt enough since their last fit to be worth another.

    At most `MOST_FITS`, those that gained most: what a tick may cost is bounded.
    """
    gained = bank.fresh / np.maximum(_LEAST_FRESH, _WORTH * bank.rows)
    due = np.flatnonzero(bank.ready & (gained >= 1))
    first: Integers = due[np.argsort(-gained[due], kind="stable")[:MOST_FITS]]
    return np.sort(first)
