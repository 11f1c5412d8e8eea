"""Which signals changed when a stage became slower?

A signal is what hardware, an engine or a platform measures of itself: a clock, a temperature, the
length of a queue. Its values before and after the onset are compared by ranks (Mann and Whitney
1947, normal approximation with the correction for ties): no unit, scale or distribution matters.
With many signals some differ by chance, so that each must be as improbable as 1 % by the number
of signals compared (Bonferroni).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.figures import figure

LEAST_BEFORE: Final = 5
LEAST_AFTER: Final = 5
"""Fewer values can't be as improbable as is asked for, or only when they all differ."""

LEVEL: Final = 0.01


@dataclass(frozen=True, slots=True)
class Signal:
    """Values of one signal of one instance.

    Attributes:
        name: what was measured.
        instance: of which replica; empty: of the service.
        at_ms: [N] when.
        value: [N] finite.
    """

    name: str
    instance: str
    at_ms: NDArray[np.int64]
    value: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Moved:
    """A signal that changed with the onset.

    Attributes:
        name: what was measured.
        instance: of which replica; empty: of the service.
        strength: correlation of its ranks with before and after, -1 (all fell) to 1 (all rose).
        before: median before.
        after: median after.
        n: values compared.
    """

    name: str
    instance: str
    strength: float
    before: float
    after: float
    n: int

    def __str__(self) -> str:
        of = f" of {self.instance}" if self.instance else ""
        way = "rose" if self.strength > 0 else "fell"
        return (
            f"{self.name}{of} {way} from {figure(self.before)} to {figure(self.after)}"
            " with the onset"
            f" (rank correlation {self.strength:+.2f}, n={self.n:,})"
        )


def ranked(signals: Sequence[Signal], onset_ms: int) -> list[Moved]:
    """Return the signals that changed with an onset, the strongest first.

    Args:
        signals: values of about as long before the onset as after it.
        onset_ms: when the stage became slower.
    """
    compared = [(one, one.at_ms >= onset_ms) for one in signals]
    known = [
        (one, after)
        for one, after in compared
        if (~after).sum() >= LEAST_BEFORE and after.sum() >= LEAST_AFTER
    ]
    level = LEVEL / max(len(known), 1)
    moved = [_moved(one, after, level) for one, after in known]
    return sorted(
        (one for one in moved if one is not None),
        key=lambda one: (-abs(one.strength), -one.n, one.name, one.instance),
    )


def gathered(values: Iterable[tuple[str, str, int, float]]) -> list[Signal]:
    """Return the series of (name, instance, milliseconds, value), in order of their names."""
    series: dict[tuple[str, str], list[tuple[int, float]]] = {}
    for name, instance, at_ms, value in values:
        series.setdefault((name, instance), []).append((at_ms, value))
    return [_series(key, series) for key in sorted(series)]


def _series(
    key: tuple[str, str], series: Mapping[tuple[str, str], list[tuple[int, float]]]
) -> Signal:
    at_ms, value = zip(*sorted(series[key]), strict=True)
    return Signal(*key, np.array(at_ms, np.int64), np.array(value, np.float64))


def _moved(one: Signal, after: NDArray[np.bool_], level: float) -> Moved | None:
    """Return how a signal changed; None when chance may have done it."""
    n, late = len(one.value), int(after.sum())
    early = n - late
    distinct, place, count = np.unique(one.value, return_inverse=True, return_counts=True)
    if len(distinct) == 1:
        return None
    ends = np.cumsum(count)
    ranks = (ends - (count - 1) / 2)[place]
    above = float(ranks[after].sum()) - late * (late + 1) / 2
    strength = 2 * above / (early * late) - 1
    ties = float((count.astype(np.float64) ** 3 - count).sum()) / (n * (n - 1))
    spread = math.sqrt(early * late / 12 * (n + 1 - ties))
    z = max(abs(above - early * late / 2) - 0.5, 0.0) / spread
    if math.erfc(z / math.sqrt(2)) > level:
        return None
    before, since = (float(np.median(one.value[side])) for side in (~after, after))
    return Moved(one.name, one.instance, strength, before, since, n)
