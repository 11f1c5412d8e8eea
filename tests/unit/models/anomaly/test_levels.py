"""Levels: a step is found in spite of a slow jitter, and the jitter alone is none."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tailbudget.models.anomaly.levels import JITTER_S, LARGEST_SHIFT, LEAST_STEP, Levels, Seen
from tailbudget.models.anomaly.sequential import START
from tailbudget.models.anomaly.stages import UNIT, Cohorts, together

TICK_S = 0.25
SPREAD = 0.1
DRIFT = 0.02
ROWS = 10.0


def seen(mean: float, *, unsure: float = 0.0, rows: float = ROWS, idle: bool = False) -> Seen:
    """Return a tick of one key whose mean is given as a logarithm."""
    one = np.ones(1)
    return Seen(
        mean=mean / SPREAD * one,
        rows=rows * one,
        jitter=(DRIFT / SPREAD) ** 2 * one,
        unsure=unsure / SPREAD * one,
        spread=SPREAD * one,
        least=LEAST_STEP / SPREAD * one,
        idle=np.array([idle]),
    )


def means(seed: int, ticks: int) -> NDArray[np.float64]:
    """Return means of ticks: autoregressive jitter and chance."""
    random = np.random.default_rng(seed)
    keep = math.exp(-TICK_S / JITTER_S)
    level, path = 0.0, np.empty(ticks)
    for i, shock in enumerate(random.normal(size=ticks)):
        level = keep * level + DRIFT * math.sqrt(1 - keep**2) * shock
        path[i] = level
    return path + SPREAD / math.sqrt(ROWS) * random.normal(size=ticks)


def largest(values: NDArray[np.float64], unsure: float = 0.0) -> NDArray[np.float64]:
    """Return the largest sum after each tick."""
    levels = Levels()
    levels.grow(1)
    return np.array([levels.update(TICK_S, seen(v, unsure=unsure)).max() for v in values.tolist()])


def test_jitter_and_chance_are_no_step() -> None:
    """Over hours of a jitter of 2 % no sum comes near the limit of an alarm."""
    assert largest(means(1, 40_000)).max() < 14


def test_a_step_of_a_tenth_is_found_within_seconds() -> None:
    """Five times the jitter is beyond the limit within twenty seconds, from any start."""
    delays = []
    for seed in range(20):
        values = means(seed, 400)
        values[200:] += math.log(1.1)
        delays.append(int(np.argmax(largest(values)[200:] > START)) * TICK_S)
    assert 0 < np.median(delays) < 20


def test_the_ratio_is_that_of_the_densities() -> None:
    """The sum of one step equals the ratio of normal densities with the jitter's covariance."""
    values = 0.25 + 0.003 * np.random.default_rng(3).normal(size=40)
    ticks = np.arange(len(values)) * TICK_S
    drift, step = 0.2, LARGEST_SHIFT * SPREAD
    jitter = drift**2 * np.exp(-np.abs(ticks[:, None] - ticks[None, :]) / JITTER_S)
    inverse = np.linalg.inv(jitter + SPREAD**2 / ROWS * np.eye(len(values)))
    exact = step * np.ones(len(values)) @ inverse @ (values - step / 2)
    levels = Levels()
    levels.grow(1)
    variance = np.array([(drift / SPREAD) ** 2])
    levels.doubt[:] = variance
    given = [replace(seen(v), jitter=variance) for v in values.tolist()]
    sums = np.array([levels.update(TICK_S, one) for one in given])
    assert sums[-1, 0, -1] == pytest.approx(exact, rel=1e-6)


def test_a_step_as_small_as_the_jitter_is_no_news() -> None:
    """A step of 2 % for ten minutes, in a jitter of 2 %, starts no alarm."""
    values = means(4, 2_400)
    values[200:] += 0.02
    assert largest(values).max() < START


def test_doubt_of_the_expectation_is_subtracted() -> None:
    """A step as large as the expectation may be off is none."""
    values = means(5, 2_000)
    values[200:] += 0.1
    assert largest(values).max() > START
    assert largest(values, unsure=0.1).max() < START


def test_ticks_without_rows_change_nothing_but_time() -> None:
    """Without rows the level fades and its doubt grows back to the jitter's variance."""
    levels = Levels()
    levels.grow(1)
    for value in means(6, 400).tolist():
        levels.update(TICK_S, seen(value))
    levels.update(1e4, seen(0.0, rows=0.0))
    assert levels.level[0] == pytest.approx(0.0, abs=1e-9)
    assert levels.doubt[0] == pytest.approx((DRIFT / SPREAD) ** 2, rel=1e-6)


def test_idle_keys_begin_anew() -> None:
    """What is not watched has no sums and no level."""
    levels = Levels()
    levels.grow(1)
    for _ in range(40):
        levels.update(TICK_S, seen(0.3))
    sums = levels.update(TICK_S, seen(0.3, idle=True))
    assert sums.max() == 0.0
    assert levels.level[0] == 0.0


def test_cohorts_speak_by_how_exact_they_are() -> None:
    """The level of a stage is the weighted mean of its cohorts' logarithms, and so is the doubt."""
    cohorts = Cohorts(
        mean=np.array([1.0, 2.0, 0.0]),
        rows=np.array([10.0, 40.0, 0.0]),
        unsure=np.array([0.5, 0.0, 9.0]),
        spread=np.array([0.1, 0.2, 0.3]),
        stage=np.array([1, 1, 0]),
        idle=np.array([False, True, False]),
    )
    found = together(cohorts, np.array([0.04, 0.04]))
    np.testing.assert_allclose(found.rows, [0.0, 20.0])
    np.testing.assert_allclose(found.mean * UNIT, [0.0, (10 * 0.1 + 10 * 0.4) / 20])
    np.testing.assert_allclose(found.unsure * UNIT, [0.0, 10 * 0.05 / 20])
    assert found.idle.tolist() == [False, True]
