"""Shapes of batches that the random ones seldom have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tailbudget.models.merge import merge
from tailbudget.schemas.wire import decode, encode


@pytest.mark.parametrize(("n", "cohorts"), [(20_000, 1), (20_000, 3), (6_000, 2_500)])
def test_large_batches_in_pieces(trials: Any, n: int, cohorts: int) -> None:
    """Many rows of one group, or many groups of few rows, split and merge to the same."""
    columns = trials.batch(n, n, missing=0.05)
    columns = replace(
        columns,
        cohorts=tuple((("tenant", str(i)),) for i in range(cohorts)),
        cohort=np.random.default_rng(n).integers(0, cohorts, n).astype(np.int32),
    )
    whole = trials.summary(columns)
    thirds = [trials.summary(trials.rows(columns, np.arange(i, n, 3))) for i in range(3)]
    trials.same(merge(thirds, keep=trials.keep), whole)
    trials.same(decode(encode(whole)), whole, exact=True)
    assert whole.requests.sum() == n
    assert (
        whole.n[:, 0].sum()
        == whole.profile.n.sum()
        == whole.moments.n[:, 0, 0].sum()
        + int(np.isnan(columns.covariate[0][columns.outcome == 0]).sum())
    )
