"""How long a service takes to be warm is learnt from its deploys, and only from them."""

from __future__ import annotations

import numpy as np
import pytest

from tailbudget.models.warm_up import BIN_NS, HOLD_BINS, LAST_DEPLOYS, LEAST_MIN, WarmUps

SECOND_NS = 1_000_000_000
HOUR_NS = 3600 * SECOND_NS


def deploy(
    found: WarmUps, at_ns: int, warm_s: float, *, rows: int = 20, for_s: int = 240, seed: int = 1
) -> None:
    """Play a deploy after which prefill is up to twice as slow, fading with a time constant."""
    random = np.random.default_rng(seed)
    found.follow([at_ns], at_ns)
    for second in range(for_s):
        cold = np.log1p(np.exp(-second / warm_s)) if warm_s else 0.0
        noise = 0.1 * random.normal(size=2 * rows)
        residual = noise + np.repeat([cold, 0.0], rows)
        found.add(at_ns + second * SECOND_NS, ["prefill"] * rows + ["lookup"] * rows, residual)


def test_nothing_is_known_after_one_deploy() -> None:
    """One may be an exception; two are known, and the longer counts."""
    found = WarmUps()
    deploy(found, HOUR_NS, 20.0)
    assert found.known_min is None
    deploy(found, 2 * HOUR_NS, 10.0, seed=2)
    first, second = found.lengths_s.values()
    assert second < first
    assert found.known_min == pytest.approx(first / 60)


@pytest.mark.parametrize("warm_s", [8.0, 20.0, 40.0])
def test_warm_is_when_five_per_cent_are_left(warm_s: float) -> None:
    """After three time constants from twice the time, or a little less: half a minute is meant."""
    found = WarmUps()
    deploy(found, HOUR_NS, warm_s)
    (length_s,) = found.lengths_s.values()
    bin_s = BIN_NS / 1e9
    assert warm_s * np.log(20) - HOLD_BINS * bin_s <= length_s <= warm_s * np.log(20) + bin_s


def test_a_service_that_starts_warm_has_the_shortest_window() -> None:
    """Nothing was slow: half a minute stays, for what the newest deploy may bring."""
    found = WarmUps()
    for hour in (1, 2):
        deploy(found, hour * HOUR_NS, 0.0, seed=hour)
    assert set(found.lengths_s.values()) == {0.0}
    assert found.known_min == LEAST_MIN


def test_a_regression_is_no_warm_up() -> None:
    """What stays slow for half an hour teaches nothing, nor what the next deploy overtakes."""
    found = WarmUps()
    deploy(found, HOUR_NS, 1e9, for_s=1900)
    assert not found.following
    deploy(found, 2 * HOUR_NS, 1e9)
    deploy(found, 2 * HOUR_NS + 300 * SECOND_NS, 10.0)
    assert list(found.lengths_s) == [2 * HOUR_NS + 300 * SECOND_NS]


def test_too_few_rows_leave_it_open() -> None:
    """One row a second says nothing about five per cent until there are enough of them."""
    found = WarmUps()
    deploy(found, HOUR_NS, 1.0, rows=0)
    assert found.lengths_s == {}
    assert found.following


def test_old_deploys_are_not_watched_again() -> None:
    """After a restart the same windows come again, and those of long ago with them."""
    found = WarmUps()
    deploy(found, HOUR_NS, 5.0)
    again = WarmUps.from_dict(found.to_dict())
    again.follow([HOUR_NS], HOUR_NS + 60 * SECOND_NS)
    assert not again.following
    assert again.lengths_s == found.lengths_s
    again.follow([2 * HOUR_NS], 5 * HOUR_NS)
    assert not again.following


def test_the_last_deploys_count() -> None:
    """A service that became faster to start has shorter windows after five deploys."""
    found = WarmUps()
    for number in range(1 + LAST_DEPLOYS):
        deploy(found, (number + 1) * HOUR_NS, 40.0 if number == 0 else 5.0, seed=number)
    assert len(found.lengths_s) == LAST_DEPLOYS
    assert max(found.lengths_s.values()) < 40
