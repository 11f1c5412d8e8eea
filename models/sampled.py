"""Sampled requests of one group as named columns, for what sums cannot answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.sample import fair
from tailbudget.models.sketch import bucket_index
from tailbudget.models.tail import FAST, SLOW, Band, band_limits_ms
from tailbudget.schemas.summary import TOTAL, Summary

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sampled:
    """A uniform sample of the successful requests of a one-group summary.

    The slowest few, which a summary keeps besides, are not among them: they would bias.

    Attributes:
        ids: [M] request ids.
        ts_ns: [M] event time.
        stages: names of the columns of `stage_ms`.
        stage_ms: [M, S] milliseconds; NaN is missing.
        covariates: names of the columns of `covariate`.
        covariate: [M, C] NaN is missing.
        hash: [M] hash of the request id.
    """

    ids: tuple[str, ...]
    ts_ns: NDArray[np.int64]
    stages: tuple[str, ...]
    stage_ms: Floats
    covariates: tuple[str, ...]
    covariate: Floats
    hash: NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.ts_ns)

    def stage(self, name: str) -> Floats:
        """Return [M] milliseconds of a stage.

        Raises:
            ValueError: there is no such stage.
        """
        column: Floats = self.stage_ms[:, self.stages.index(name)]
        return column

    def of(self, covariate: str) -> Floats:
        """Return [M] values of a covariate.

        Raises:
            ValueError: there is no such covariate.
        """
        column: Floats = self.covariate[:, self.covariates.index(covariate)]
        return column


def sampled(summary: Summary) -> Sampled:
    """Return the uniform sample of a summary of one group (none of an empty summary)."""
    sample = summary.sample
    at = fair(sample)
    stages = len(summary.stages)
    return Sampled(
        ids=tuple(sample.ids[i] for i in at.tolist()),
        ts_ns=sample.ts_ns[at],
        stages=summary.stages,
        stage_ms=sample.values[at, :stages],
        covariates=summary.covariates,
        covariate=sample.values[at, stages:],
        hash=sample.hash[at],
    )


def in_band(summary: Summary, rows: Sampled, band: Band) -> NDArray[np.bool_]:
    """Return [M] which sampled requests lie in a band of the whole summary, such as `SLOW`.

    A percentile is known to its sketch bucket: all requests of the buckets in which a band begins
    and ends are in it. Milliseconds are exact.
    """
    low, high = band_limits_ms(summary, band)
    if low > high:
        return np.zeros(len(rows), np.bool_)
    total = rows.stage(TOTAL)
    bucket = bucket_index(total)
    first, last = bucket_index(np.array([low, high])).tolist()
    inside: NDArray[np.bool_] = (bucket >= first) & (bucket <= last)
    lower, upper = band
    if not isinstance(lower, str):
        inside &= total > lower
    if not isinstance(upper, str):
        inside &= total <= upper
    return inside


__all__ = ["FAST", "SLOW", "Sampled", "in_band", "sampled"]
