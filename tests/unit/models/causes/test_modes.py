"""Two modes of a stage are told from one wide one."""

from __future__ import annotations

import numpy as np
import pytest

from tailbudget.models.causes.modes import two_modes

SEEDS = (1, 2, 3)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_modes_with_their_share(seed: int) -> None:
    """Means and share come out."""
    rng = np.random.default_rng(seed)
    slow = rng.random(2_000) < 0.08
    found = two_modes(np.where(slow, 250.0, 4.0) * rng.lognormal(0, 0.2, 2_000))
    assert found is not None
    assert found.low_ms == pytest.approx(4, rel=0.05)
    assert found.high_ms == pytest.approx(250, rel=0.05)
    assert found.high_share == pytest.approx(slow.mean())


@pytest.mark.parametrize("seed", SEEDS)
def test_one_mode_is_not_two(seed: int) -> None:
    """Neither a heavy tail, nor an even spread, nor a few outliers, nor next to nothing."""
    rng = np.random.default_rng(seed)
    outliers = rng.lognormal(1, 0.2, 2_000)
    outliers[:5] *= 100
    for values in (
        rng.lognormal(2, 1.2, 2_000),
        rng.pareto(1.2, 2_000) + 1,
        rng.uniform(1, 200, 2_000),
        outliers,
        np.full(2_000, 5.0),
        np.zeros(2_000),
        np.array([1.0, 100.0] * 5),
    ):
        assert two_modes(values) is None
