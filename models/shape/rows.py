"""Parts and unions of the rows of a tick."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.anomalies import TickRows


def some(rows: TickRows, at: NDArray[np.bool_] | NDArray[np.intp]) -> TickRows:
    """Return the rows at these places, or where `at` [N] is true."""
    return TickRows(rows.keys, rows.key[at], rows.ms[at], rows.covariates, rows.covariate[at])


def together(parts: Sequence[TickRows]) -> TickRows:
    """Return the rows of all parts, at least one, which have the same covariates.

    Their keys may differ, so the union names none.
    """
    first = parts[0]
    return TickRows(
        (),
        np.concatenate([part.key for part in parts]),
        np.concatenate([part.ms for part in parts]),
        first.covariates,
        np.concatenate([part.covariate for part in parts]),
    )
