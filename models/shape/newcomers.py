"""Rows of stages and cohorts that have no regression yet, held until there are enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

_MOST_ROWS: Final = 400
"""Rows of one key; twice as many as it needs to begin."""
_MOST_PARTS: Final = 32
"""More batches than these are put together into one."""


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
    """Holds rows by stage, of each key a bounded number."""

    def __init__(self) -> None:
        self._held: dict[int, list[Held]] = {}
        self._rows: dict[int, int] = {}
        self._of_key: dict[int, int] = {}

    def add(self, stage: int, rows: Held) -> None:
        """Hold some rows of one stage, but none of a key of which there are enough."""
        keys, counts = np.unique(rows.key, return_counts=True)
        full = [key for key in keys.tolist() if self._of_key.get(key, 0) >= _MOST_ROWS]
        if full:
            rows = _without(rows, full)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
            if key not in full:
                self._of_key[key] = self._of_key.get(key, 0) + count
        parts = self._held.setdefault(stage, [])
        parts.append(rows)
        self._rows[stage] = self._rows.get(stage, 0) + len(rows.ms)
        if len(parts) > _MOST_PARTS:
            parts[:] = [self.rows(stage)]

    def count(self, stage: int) -> int:
        """Return how many rows of a stage are held."""
        return self._rows.get(stage, 0)

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

    def drop(self, stage: int, keys: NDArray[np.int64]) -> None:
        """Let go of the rows of some keys of a stage."""
        for key in keys.tolist():
            self._of_key.pop(key, None)
        parts = [_without(part, keys) for part in self._held.get(stage, ())]
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


def _without(part: Held, keys: ArrayLike) -> Held:
    other = ~np.isin(part.key, keys)
    return Held(part.names, part.key[other], part.covariate[other], part.ms[other])
