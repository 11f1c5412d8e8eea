"""Signals that change with an onset are ranked; those that do not are left out."""

from __future__ import annotations

import numpy as np
import pytest

from tailbudget.models.signals import Signal, gathered, ranked

ONSET_MS = 1_000_000


def signal(name: str, before: float, after: float, *, n: int = 40, noise: float = 1.0) -> Signal:
    """Return a signal with values every five seconds, half of them before the onset."""
    random = np.random.default_rng(sum(name.encode()))
    at_ms = ONSET_MS + 5_000 * (np.arange(n) - n // 2)
    level = np.where(at_ms >= ONSET_MS, after, before)
    return Signal(name, "gpu-1", at_ms, level + noise * random.normal(size=n))


def test_the_signal_that_moved_comes_first() -> None:
    """The clock fell at once, the temperature rose a little; the fan did nothing."""
    moved = ranked(
        [signal("fan", 50, 50), signal("temperature", 80, 82), signal("clock", 1980, 1400)],
        ONSET_MS,
    )
    assert [one.name for one in moved] == ["clock", "temperature"]
    clock = moved[0]
    assert clock.strength == -1.0
    assert clock.before == pytest.approx(1980, abs=1)
    assert clock.after == pytest.approx(1400, abs=1)
    assert str(clock) == (
        f"clock of gpu-1 fell from {clock.before:,.4g} to {clock.after:,.4g} with the onset"
        " (rank correlation -1.00, n=40)"
    )


def test_units_and_outliers_do_not_matter() -> None:
    """Any growing function of the values gives the same ranks."""
    one = signal("queue", 3, 5)
    other = Signal(one.name, one.instance, one.at_ms, np.exp(one.value))
    first, second = ranked([one], ONSET_MS), ranked([other], ONSET_MS)
    assert [m.strength for m in first] == [m.strength for m in second]


def test_of_many_signals_none_moved_by_chance() -> None:
    """A hundred that do nothing: at most one is named in twenty onsets."""
    found = 0
    for round_ in range(20):
        still = [signal(f"s{round_}-{i}", 0, 0) for i in range(100)]
        found += len(ranked(still, ONSET_MS))
    assert found <= 1


@pytest.mark.parametrize("n", [2, 8])
def test_few_values_say_nothing(n: int) -> None:
    """However far apart they are."""
    assert ranked([signal("clock", 0, 9, n=n, noise=0.0)], ONSET_MS) == []


def test_a_constant_signal_says_nothing_and_a_step_does() -> None:
    """Ties are counted: a flag that flips is as strong as can be."""
    flat, step = signal("flat", 1, 1, noise=0.0), signal("throttled", 0, 1, noise=0.0)
    assert [(one.name, one.strength) for one in ranked([flat, step], ONSET_MS)] == [
        ("throttled", 1.0)
    ]


def test_values_are_gathered_by_name_and_instance() -> None:
    """In order of time, whatever order they come in."""
    found = gathered([("b", "1", 20, 2.0), ("a", "", 5, 1.0), ("b", "1", 10, 1.0)])
    assert [(one.name, one.instance) for one in found] == [("a", ""), ("b", "1")]
    assert found[1].at_ms.tolist() == [10, 20]
    assert found[1].value.tolist() == [1.0, 2.0]
