"""The covariates of rows, put into the slots of each row's stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.shape.roles import SLOTS, Choice
from tailbudget.models.shape.terms import LARGEST

Floats = NDArray[np.float64]

_USUAL: Final = 0.9


@dataclass(frozen=True, slots=True)
class Slotted:
    """Values of rows in the slots of their stages.

    Attributes:
        values: [N, 7] each divided by its scale; 0 where the slot is empty or not needed.
        complete: [N] every slot that the row's key needs has a finite value of at least 0.
    """

    values: Floats
    complete: NDArray[np.bool_]


def slotted(
    names: Sequence[str],
    covariate: Floats,
    choice: Sequence[Choice | None],
    stage: NDArray[np.int64],
    needed: NDArray[np.bool_],
) -> Slotted:
    """Put rows into slots.

    Args:
        names: of the columns of `covariate`.
        covariate: [N, C]; NaN is missing.
        choice: of each stage.
        stage: [N] of each row.
        needed: [N, 7] which slots the row's key can't do without.
    """
    column, scale = _table(tuple(names), tuple(choice))
    # Two more columns: empty slots read 0, and a covariate that is not offered is missing.
    wide = np.column_stack([covariate, np.zeros(len(covariate)), np.full(len(covariate), np.nan)])
    values = wide[np.arange(len(wide))[:, None], column[stage]] / scale[stage]
    sound = np.isfinite(values) & (values >= 0)
    complete: NDArray[np.bool_] = np.logical_and.reduce(sound | ~needed, axis=1)
    values = np.where(needed & sound, np.minimum(values, LARGEST), 0.0)
    return Slotted(values, complete)


def needed_of(values: Floats) -> NDArray[np.bool_]:
    """Return [7] which slots of a key are usually filled, from raw slot values [N, 7]."""
    share = (np.isfinite(values) & (values >= 0)).mean(axis=0)
    result: NDArray[np.bool_] = share >= _USUAL
    return result


def raw(names: Sequence[str], covariate: Floats, choice: Choice) -> Floats:
    """Return [N, 7] the values of one stage's rows as they are; NaN is missing."""
    column, scale = _table(tuple(names), (choice,))
    wide = np.column_stack([covariate, np.zeros(len(covariate)), np.full(len(covariate), np.nan)])
    result: Floats = wide[:, column[0]] / scale[0]
    return result


@lru_cache(maxsize=256)
def _table(
    names: tuple[str, ...], choice: tuple[Choice | None, ...]
) -> tuple[NDArray[np.int64], Floats]:
    at = {name: i for i, name in enumerate(names)}
    column = np.full((len(choice), len(SLOTS)), len(names), np.int64)
    scale = np.ones((len(choice), len(SLOTS)))
    for s, chosen in enumerate(choice):
        if chosen is not None:
            for j, name in enumerate(chosen.names):
                if name is not None:
                    column[s, j] = at.get(name, len(names) + 1)
            scale[s] = chosen.scales
    return column, scale
