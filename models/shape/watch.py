"""Which covariates come and go: a regression on one that vanished must be chosen anew."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.shape.roles import SLOTS, Choice, role_of

_ROWS: Final = 200
"""So many rows decide that a covariate has gone, or has come."""


class CovariateWatch:
    """Counts, per stage, rows that lack a covariate and rows that have a new one."""

    def __init__(self) -> None:
        self._rows: dict[int, float] = {}
        self._lacking: dict[int, float] = {}
        self._new: dict[tuple[int, str], int] = {}

    def outdated(
        self,
        stage: int,
        choice: Choice,
        names: Sequence[str],
        rows: tuple[NDArray[np.float64], NDArray[np.bool_]],
    ) -> bool:
        """Count rows (covariate [N, C], complete [N]); say whether to choose anew."""
        covariate, complete = rows
        seen = self._rows.get(stage, 0.0) + len(complete)
        lacking = self._lacking.get(stage, 0.0) + float((~complete).sum())
        fade = 0.5 if seen > 2 * _ROWS else 1.0
        self._rows[stage], self._lacking[stage] = seen * fade, lacking * fade
        gone = lacking >= _ROWS / 2 and lacking > 0.5 * seen
        return gone or self._has_come(stage, choice, names, covariate)

    def forget(self, stage: int) -> None:
        """Begin to count anew."""
        self._rows.pop(stage, None)
        self._lacking.pop(stage, None)
        self._new = {at: n for at, n in self._new.items() if at[0] != stage}

    def _has_come(
        self, stage: int, choice: Choice, names: Sequence[str], covariate: NDArray[np.float64]
    ) -> bool:
        new = [c for c, name in enumerate(names) if name not in choice.offered]
        for c in new:
            at = (stage, names[c])
            self._new[at] = self._new.get(at, 0) + int(np.isfinite(covariate[:, c]).sum())
        return any(self._new[stage, names[c]] >= _ROWS and _room(choice, names[c]) for c in new)


def _room(choice: Choice, name: str) -> bool:
    role = role_of(name)
    return any(r == role and n is None for r, n in zip(SLOTS, choice.names, strict=True))
