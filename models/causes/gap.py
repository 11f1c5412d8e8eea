"""Where the difference between slow and fast requests comes from, stage by stage.

On the sampled requests each stage is split into what the covariates explain, the level of its
time, and the rest:

    ms = f(covariates) + level(time) + rest

f is a least-squares fit with squares and products of the covariates, made within spans of time
(deviations from the span's mean), so that a stage that was slow while inputs happened to be long
is not taken for one that is slow because of them. Each request is predicted by a fit that did not
see it (five folds, C. J. Stone, Cross-validatory choice, 1974), and its level is the mean of the
others in its span: neither follows the noise that made the request slow. The parts add up to the
request, so their slow-minus-fast differences add up to the stage's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.causes.features import Features
from tailbudget.models.causes.spans import Spans, spans_of

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_FOLDS: Final = 5
_RIDGE: Final = 1e-3  # of the variance of a feature: collinear ones share their effect


@dataclass(frozen=True, slots=True)
class Part:
    """The slow-minus-fast difference of one stage, in milliseconds.

    Attributes:
        stage: its name.
        delta_ms: the whole difference.
        by_covariate: what each covariate explains, at equal time.
        level_ms: what the level of the time explains, at equal covariates.
        rest_ms: what neither does; the three add up to `delta_ms`.
        levels_ms: [T] level of each span of time, at equal covariates.
    """

    stage: str
    delta_ms: float
    by_covariate: dict[str, float]
    level_ms: float
    rest_ms: float
    levels_ms: Floats


@dataclass(frozen=True, slots=True)
class Requests:
    """Sampled requests with what is needed to take them apart.

    Attributes:
        ts_ns: [M] event time.
        stages: [S] names.
        stage_ms: [M, S] milliseconds, 0 where a request has no such stage.
        features: of the covariates.
        slow: [M] in the slow band.
        fast: [M] in the fast band.
        cold: [M] in a cold window.
    """

    ts_ns: NDArray[np.int64]
    stages: tuple[str, ...]
    stage_ms: Floats
    features: Features
    slow: Mask
    fast: Mask
    cold: Mask


@dataclass(frozen=True, slots=True)
class Split:
    """All requests taken apart.

    Attributes:
        explained_ms: [M, C, S] by covariate, about a mean of 0.
        adjusted_ms: [M, S] what is left: milliseconds at equal covariates.
        spans: the spans of time.
        tied: whether the covariates hardly vary within the spans, so that one span was taken.
    """

    explained_ms: Floats
    adjusted_ms: Floats
    spans: Spans
    tied: bool


def split(rows: Requests) -> Split:
    """Take the requests apart."""
    spans = spans_of(rows.ts_ns, rows.cold)
    tied = len(spans) > 1 and rows.features.tied(spans)
    if tied:
        spans = spans_of(rows.ts_ns, rows.cold, most=1)
    explained = _explained(rows, spans)
    return Split(explained, rows.stage_ms - explained.sum(axis=1), spans, tied)


def parts(rows: Requests, found: Split) -> tuple[Part, ...]:
    """Return the slow-minus-fast difference of every stage."""
    spans = found.spans
    level = spans.others_mean(found.adjusted_ms)
    by_covariate = _delta(rows, found.explained_ms)
    whole, levels = _delta(rows, rows.stage_ms), _delta(rows, level)
    means = spans.mean(found.adjusted_ms)
    names = rows.features.covariates
    return tuple(
        Part(
            stage=stage,
            delta_ms=float(whole[s]),
            by_covariate=dict(zip(names, by_covariate[:, s].tolist(), strict=True)),
            level_ms=float(levels[s]),
            rest_ms=float(whole[s] - levels[s] - by_covariate[:, s].sum()),
            levels_ms=means[:, s],
        )
        for s, stage in enumerate(rows.stages)
    )


def _delta(rows: Requests, values: Floats) -> Floats:
    delta: Floats = values[rows.slow].mean(axis=0) - values[rows.fast].mean(axis=0)
    return delta


def _explained(rows: Requests, spans: Spans) -> Floats:
    x = rows.features.values
    m, (_, c) = len(x), rows.features.owner.shape
    explained = np.zeros((m, c, len(rows.stages)))
    if not c:
        return explained
    fold = np.arange(m) % _FOLDS  # the sample is in the order of hashes: any cut of it is random
    for k in range(_FOLDS):
        held, seen = fold == k, fold != k
        slope = _ridge(spans.within(x, seen), spans.within(rows.stage_ms, seen))
        for at in range(c):
            own: Floats = slope * rows.features.owner[:, at, None]
            explained[held, at] = x[held] @ own
    return explained


def _ridge(x: Floats, y: Floats) -> Floats:
    square = x.T @ x
    square[np.diag_indices(len(square))] += _RIDGE * len(x)
    return np.asarray(np.linalg.solve(square, x.T @ y), np.float64)
