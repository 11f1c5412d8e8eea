"""One shape model by itself, fed with dictionaries or tables: what river's interfaces stand on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.shape.service import Learnt, ServiceShapes
from tailbudget.models.shape.terms import terms
from tailbudget.schemas.anomalies import StageCohort, TickRows

Floats = NDArray[np.float64]

_KEY: Final = (StageCohort("y", ""),)


class OneKey:
    """The regression of a single stage and cohort.

    Attributes:
        shapes: the models, of which there is one.
    """

    def __init__(self) -> None:
        self.shapes = ServiceShapes()
        self.shapes.resolve(_KEY)

    @property
    def ready(self) -> bool:
        """Return whether enough was learnt to predict."""
        return bool(self.shapes.bank.ready[0])

    def predict(self, rows: TickRows) -> tuple[Floats, Floats]:
        """Return [N] what is expected and [N, 7] the slots; NaN where a row lacks a covariate."""
        read = self.shapes.read(rows.key, rows)
        expected = self.shapes.bank.predict(rows.key, terms(read.values))
        return np.where(read.complete, expected, np.nan), read.values

    def learn(self, rows: TickRows) -> Learnt:
        """Learn the rows whose time is finite and positive; fit again when that is worth it."""
        sound = np.isfinite(rows.ms) & (rows.ms > 0)
        some = TickRows(
            _KEY, rows.key[sound], rows.ms[sound], rows.covariates, rows.covariate[sound]
        )
        learnt = self.shapes.learn(some.key, some)
        self.shapes.refit(0.0)
        return learnt


def one_row(x: Mapping[Any, Any], ms: float = float("nan")) -> TickRows:
    """Return a row from a dictionary; what is no number is left out."""
    there = {str(name): float(v) for name, v in x.items() if isinstance(v, int | float | np.number)}
    names = tuple(sorted(there))
    values = np.array([[there[name] for name in names]]).reshape(1, len(names))
    return TickRows(_KEY, np.zeros(1, np.int64), np.array([float(ms)]), names, values)


def many_rows(names: tuple[str, ...], covariate: Floats, ms: Floats | None = None) -> TickRows:
    """Return rows from a matrix [N, C]."""
    order = sorted(range(len(names)), key=lambda c: names[c])
    time = np.full(len(covariate), np.nan) if ms is None else ms
    key = np.zeros(len(covariate), np.int64)
    return TickRows(_KEY, key, time, tuple(names[c] for c in order), covariate[:, order])
