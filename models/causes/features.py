"""Covariates as the terms of a fit: each one, its square, and the products of two."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.causes.spans import Spans
from tailbudget.models.sampled import Sampled

Floats = NDArray[np.float64]

_PRESENT: Final = 0.9
"""Share of the requests that carry a covariate; the others are taken to have its mean."""

_PRODUCTS: Final = 5  # covariates beyond which products are too many for a sample of 2,048
_TIED: Final = 0.05


@dataclass(frozen=True, slots=True)
class Features:
    """Terms of a fit, each of mean 0 and variance 1.

    Attributes:
        covariates: [C] those that vary and that nearly all requests carry.
        values: [M, F] terms.
        owner: [F, C] which share of a term is a covariate's: a product is half of each.
        plain: [F] the term is a covariate itself.
    """

    covariates: tuple[str, ...]
    values: Floats
    owner: Floats
    plain: NDArray[np.bool_]

    def tied(self, spans: Spans) -> bool:
        """Tell whether no covariate varies within the spans by more than 5 % of its variance."""
        if not self.covariates:
            return False
        everywhere = np.ones(len(self.values), np.bool_)
        within = spans.within(self.values[:, self.plain], everywhere).var(axis=0)
        return bool((within < _TIED).all())


def features_of(rows: Sampled) -> Features:
    """Return the terms of the covariates of sampled requests."""
    columns: list[Floats] = []
    names: list[str] = []
    for name in rows.covariates:
        values = rows.of(name)
        known = np.isfinite(values)
        if known.sum() < max(_PRESENT * len(values), 3) or not np.ptp(values[known]):
            continue
        columns.append(_standard(np.where(known, values, values[known].mean())))
        names.append(name)
    terms = _terms(columns)
    values = (
        np.stack([column for column, _ in terms], axis=1) if terms else np.zeros((len(rows), 0))
    )
    owner = np.zeros((len(terms), len(names)))
    for f, (_, owners) in enumerate(terms):
        owner[f, list(owners)] = 1 / len(owners)
    plain = np.arange(len(terms)) < len(names)
    return Features(tuple(names), values, owner, plain)


def _terms(columns: Sequence[Floats]) -> list[tuple[Floats, tuple[int, ...]]]:
    """Return the terms with the covariates that they are of."""
    terms = [(column, (c,)) for c, column in enumerate(columns)]
    squares = [(column * column, (c,)) for c, column in enumerate(columns)]
    products = [
        (columns[a] * columns[b], (a, b)) for a, b in combinations(range(len(columns)), 2)
    ] if len(columns) <= _PRODUCTS else []  # fmt: skip
    return terms + [(_standard(column), of) for column, of in squares + products if np.ptp(column)]


def _standard(values: Floats) -> Floats:
    spread = values.std()
    result: Floats = (values - values.mean()) / (spread or 1.0)
    return result
