"""Rows of stages and cohorts that have no regression yet, held until there are enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MOST: Final = 4000
"""Rows held for one stage; the oldest go first."""


@dataclass(frozen=True, slots=True)
class Held:
    """Rows of one stage.

    Attributes:
        names: of the columns of `covariate`.
        key: [N].
        covariate: [N, C].
        ms: [N].
    """

    names: tuple[str, ...]
    key: NDArray[np.int64]
    covariate: Floats
    ms: Floats


class Newcomers:
    """Holds rows by stage."""

    def __init__(self) -> None:
        self._held: dict[int, list[Held]] = {}
        self._rows: dict[int, int] = {}

    def add(self, stage: int, rows: Held) -> None:
        """Hold some rows of one stage."""
        parts = self._held.setdefault(stage, [])
        parts.append(rows)
        self._rows[stage] = self._rows.get(stage, 0) + len(rows.ms)
        while self._rows[stage] > _MOST and len(parts) > 1:
            self._rows[stage] -= len(parts.pop(0).ms)

    def count(self, stage: int, key: int | None = None) -> int:
        """Return how many rows of a stage, or of one key of it, are held."""
        if key is None:
            return self._rows.get(stage, 0)
        return sum(int((part.key == key).sum()) for part in self._held.get(stage, ()))

    def rows(self, stage: int) -> Held:
        """Return the rows of a stage, at least one, with the columns of all of them."""
        parts = self._held[stage]
        names = tuple(sorted({name for part in parts for name in part.names}))
        return Held(
            names,
            np.concatenate([part.key for part in parts]),
            np.concatenate([_aligned(part, names) for part in parts]),
            np.concatenate([part.ms for part in parts]),
        )

    def drop(self, stage: int, key: int) -> None:
        """Let go of the rows of one key."""
        parts = [_without(part, key) for part in self._held.get(stage, ())]
        self._held[stage] = [part for part in parts if len(part.ms)]
        self._rows[stage] = sum(len(part.ms) for part in self._held[stage])

    def stages(self) -> Sequence[int]:
        """Return the stages of which rows are held."""
        return [stage for stage, count in self._rows.items() if count]


def _aligned(part: Held, names: tuple[str, ...]) -> Floats:
    aligned = np.full((len(part.ms), len(names)), np.nan)
    for c, name in enumerate(part.names):
        aligned[:, names.index(name)] = part.covariate[:, c]
    return aligned


def _without(part: Held, key: int) -> Held:
    other = part.key != key
    return Held(part.names, part.key[other], part.covariate[other], part.ms[other])
