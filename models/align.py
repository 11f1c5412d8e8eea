"""Put summaries on the union of their stages and covariates, so that their arrays line up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.summary import FIXED_STAGES, Moments, Summary


def align(parts: Sequence[Summary]) -> list[Summary]:
    """Return the parts with the union of stages and covariates, and the common thresholds."""
    names = {stage for part in parts for stage in part.stages}
    stages = (*FIXED_STAGES, *sorted(names - set(FIXED_STAGES)))
    covariates = tuple(sorted({name for part in parts for name in part.covariates}))
    counting = [part for part in parts if len(part.pane_ns)] or parts
    common = set.intersection(*(set(part.thresholds_ms) for part in counting))
    thresholds = tuple(sorted(common))
    return [_thresholds(_columns(part, stages, covariates), thresholds) for part in parts]


def _thresholds(part: Summary, thresholds: tuple[float, ...]) -> Summary:
    if part.thresholds_ms == thresholds:
        return part
    if not len(part.pane_ns):
        over = np.zeros((0, len(thresholds)), np.int64)
    else:
        over = part.over[:, [part.thresholds_ms.index(t) for t in thresholds]]
    return replace(part, thresholds_ms=thresholds, over=over)


def _columns(part: Summary, stages: tuple[str, ...], covariates: tuple[str, ...]) -> Summary:
    if part.stages == stages and part.covariates == covariates:
        return part
    s = np.array([stages.index(name) for name in part.stages], np.int64)
    c = np.array([covariates.index(name) for name in part.covariates], np.int64)
    n_s, n_c = len(stages), len(covariates)
    group, stage = np.divmod(part.cell.astype(np.int64), len(part.stages))
    sample = np.concatenate([s, n_s + c])
    return replace(
        part,
        stages=stages,
        covariates=covariates,
        n=_widen(part.n, {1: (s, n_s)}, 0),
        sum_ns=_widen(part.sum_ns, {1: (s, n_s)}, 0),
        min_ms=_widen(part.min_ms, {1: (s, n_s)}, np.inf),
        max_ms=_widen(part.max_ms, {1: (s, n_s)}, -np.inf),
        cell=(group * n_s + s[stage]).astype(np.int32),
        profile=replace(
            part.profile,
            stage_ns=_widen(part.profile.stage_ns, {1: (s, n_s)}, 0),
            covariate=_widen(part.profile.covariate, {1: (c, n_c)}, 0),
        ),
        moments=_moments(part.moments, (s, n_s), (c, n_c)),
        sample=replace(
            part.sample, values=_widen(part.sample.values, {1: (sample, n_s + n_c)}, np.nan)
        ),
    )


_T = TypeVar("_T", np.int64, np.float64)
_Place = tuple[NDArray[np.int64], int]


def _moments(moments: Moments, s: _Place, c: _Place) -> Moments:
    pair, square = {1: c, 2: s}, {1: c, 2: c}
    return Moments(
        n=_widen(moments.n, pair, 0),
        mean=_widen(moments.mean, pair, 0),
        product=_widen(moments.product, pair, 0),
        log_n=_widen(moments.log_n, pair, 0),
        log_mean=_widen(moments.log_mean, pair, 0),
        log_product=_widen(moments.log_product, pair, 0),
        pair_n=_widen(moments.pair_n, square, 0),
        pair_mean=_widen(moments.pair_mean, square, 0),
        pair_product=_widen(moments.pair_product, square, 0),
    )


def _widen(values: NDArray[_T], places: dict[int, _Place], missing: float) -> NDArray[_T]:
    """Move the entries along each axis to their places in a wider array of `missing`."""
    shape = list(values.shape)
    at = [np.arange(size) for size in shape]
    for axis, (where, size) in places.items():
        shape[axis], at[axis] = size, where
    wide = np.full(shape, missing, values.dtype)
    wide[np.ix_(*at)] = values
    return wide
