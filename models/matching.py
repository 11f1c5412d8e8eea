"""Match requests of like cohort and input shape, to ask how long the others would have taken.

Each of today's sampled requests is given the latencies of the baseline's requests that are like
it: of its cohort, and of its cell of the input shape. Cells are halves of halves of the baseline's
requests (J. L. Bentley, Communications of the ACM 18 (1975) 509), cut along the covariate that
moves the latency most, each of 16 requests or more, so that none is empty. What difference in
shape is left within a cell is made up for by a linear fit of the baseline's latency (A. Abadie and
G. W. Imbens, Journal of Business & Economic Statistics 29 (2011) 1), which also reaches beyond
the shapes that the baseline has seen.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.cohorts import Cohort

Floats = NDArray[np.float64]
At = NDArray[np.intp]

CELL: Final = 16
"""Fewest requests of the baseline in a cell: half of them vary by an eighth of the mean."""

_FIT: Final = 10  # requests a coefficient, below which the fit of all cohorts is taken


@dataclass(frozen=True, slots=True)
class Matched:
    """Sampled requests of one side.

    Attributes:
        total_ms: [M] latency.
        weight: [M] how many requests each stands for.
        names: [M] cohort.
        kinds: [M] cohort without the version of the system.
        covariate: [M, C] shape of the input; NaN is missing.
    """

    total_ms: Floats
    weight: Floats
    names: Sequence[Cohort]
    kinds: Sequence[Cohort]
    covariate: Floats

    def __len__(self) -> int:
        return len(self.total_ms)


@dataclass(frozen=True, slots=True)
class _Pair:
    """Today's requests, and those of the baseline that are compared with them.

    Attributes:
        now: indices into today's.
        before: indices into the baseline's; empty when it knows no such request.
    """

    now: At
    before: At


def shape_ratio(before: Matched, now: Matched, quantile: float) -> float | None:
    """Return by how much today's input shapes multiply a quantile of the baseline's latency.

    Both the numerator and the denominator have today's cohorts, and rest on the same requests.
    None without covariates or requests, or where the quantile is 0.
    """
    if not (before.covariate.shape[1] and len(before) and len(now)):
        return None
    shape = _Shape(before, now)
    same: list[tuple[Floats, Floats]] = []
    moved: list[tuple[Floats, Floats]] = []
    for pair in _pairs(before, now):
        if not len(pair.before):
            own = now.total_ms[pair.now], now.weight[pair.now]
            same.append(own)
            moved.append(own)
            continue
        weight = before.weight[pair.before]
        share = now.weight[pair.now].sum() / weight.sum()
        same.append((before.total_ms[pair.before], weight * share))
        moved += shape.moved(pair)
    low = _weighted_quantile(same, quantile)
    return _weighted_quantile(moved, quantile) / low if low > 0 else None


def _pairs(before: Matched, now: Matched) -> Iterator[_Pair]:
    """Yield the requests by cohort; a new version is compared with the old ones of its kind."""
    by_name, by_kind = _index(before.names), _index(before.kinds)
    nothing = np.zeros(0, np.intp)
    for at in _index(now.names).values():
        kind = by_kind.get(now.kinds[at[0]], nothing)
        mine = by_name.get(now.names[at[0]], nothing)
        yield _Pair(at, mine if len(mine) >= CELL or len(mine) == len(kind) else kind)


def _index(names: Sequence[Cohort]) -> dict[Cohort, At]:
    found: defaultdict[Cohort, list[int]] = defaultdict(list)
    for i, name in enumerate(names):
        found[name].append(i)
    return {name: np.array(at, np.intp) for name, at in found.items()}


class _Shape:
    """Gives the baseline's latencies to today's shapes.

    Args:
        before: the baseline's requests.
        now: today's.
    """

    def __init__(self, before: Matched, now: Matched) -> None:
        self._before = before
        self._now = now
        # In the cells, missing is a value of its own; in the fit, it is the mean: no effect.
        known = np.concatenate([before.covariate, now.covariate])
        lowest, mean = np.nanmin(known, axis=0) - 1, np.nanmean(known, axis=0)
        self._cells = [np.where(np.isnan(x), lowest, x) for x in (before.covariate, now.covariate)]
        self._fits = [np.where(np.isnan(x), mean, x) for x in (before.covariate, now.covariate)]
        self._overall = self._slopes(np.arange(len(before)))

    def moved(self, pair: _Pair) -> Iterator[tuple[Floats, Floats]]:
        """Yield values and weights: the pair's baseline latencies under today's shapes."""
        columns = self._before.covariate.shape[1]
        enough = len(pair.before) >= _FIT * (columns + 1)
        slopes = self._slopes(pair.before) if enough else self._overall
        old, new = (fit @ slopes for fit in self._fits)
        for cell in self._split(pair, np.abs(slopes)):
            if not len(cell.now):
                continue
            shapes, place = np.unique(new[cell.now], return_inverse=True)
            today = np.bincount(place, self._now.weight[cell.now])
            weight = self._before.weight[cell.before]
            values = self._before.total_ms[cell.before] + (shapes[:, None] - old[cell.before])
            yield np.maximum(values, 0).ravel(), np.outer(today, weight / weight.sum()).ravel()

    def _slopes(self, at: At) -> Floats:
        """Return [C] milliseconds a unit, by least squares over some of the baseline."""
        x, y = self._fits[0][at], self._before.total_ms[at]
        root = np.sqrt(self._before.weight[at])[:, None]
        design = np.column_stack([np.ones(len(at)), x])
        scale = np.maximum(np.abs(design).max(axis=0), 1e-300)
        solved = np.linalg.lstsq(design / scale * root, y * root[:, 0], rcond=1e-9)[0]
        slopes: Floats = (solved / scale)[1:]
        return slopes

    def _split(self, pair: _Pair, slopes: Floats) -> Iterator[_Pair]:
        """Halve until the halves would be too small, or all shapes are the same."""
        x = self._cells[0][pair.before]
        for c in np.argsort(-slopes * x.std(axis=0), kind="stable").tolist():
            cut = _cut(x[:, c])
            if cut is None:
                continue
            old, new = x[:, c] <= cut, self._cells[1][pair.now, c] <= cut
            yield from self._split(_Pair(pair.now[new], pair.before[old]), slopes)
            yield from self._split(_Pair(pair.now[~new], pair.before[~old]), slopes)
            return
        yield pair


def _cut(values: Floats) -> float | None:
    """Return where to cut so that both parts have `CELL` values, as even as may be, or None."""
    ordered = np.sort(values)
    steps = np.flatnonzero(ordered[1:] > ordered[:-1]) + 1
    steps = steps[(steps >= CELL) & (steps <= len(values) - CELL)]
    if not len(steps):
        return None
    at = int(steps[np.argmin(np.abs(steps - len(values) / 2))])
    return float((ordered[at - 1] + ordered[at]) / 2)


def _weighted_quantile(parts: Sequence[tuple[Floats, Floats]], quantile: float) -> float:
    """Return a quantile of weighted values, between neighbours by the middle of their weights."""
    values = np.concatenate([part for part, _ in parts])
    weights = np.concatenate([part for _, part in parts])
    order = np.argsort(values, kind="stable")
    ranked = weights[order]
    middle = (np.cumsum(ranked) - ranked / 2) / ranked.sum()
    return float(np.interp(quantile, middle, values[order]))
