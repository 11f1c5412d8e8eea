"""Sampled requests of one group as named columns, for what sums cannot answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    """

    ids: tuple[str, ...]
    ts_ns: NDArray[np.int64]
    stages: tuple[str, ...]
    stage_ms: Floats
    covariates: tuple[str, ...]
    covariate: Floats

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
    tau = sample.tau[sample.group] if len(sample.group) else np.zeros(0, np.uint64)
    # A group whose records are all kept has the largest hash as its limit, that one included.
    everything = tau == np.iinfo(np.uint64).max
    at = np.flatnonzero((sample.hash < tau) | everything)
    stages = len(summary.stages)
    return Sampled(
        ids=tuple(sample.ids[i] for i in at.tolist()),
        ts_ns=sample.ts_ns[at],
        stages=summary.stages,
        stage_ms=sample.values[at, :stages],
        covariates=summary.covariates,
        covariate=sample.values[at, stages:],
    )


def in_band(summary: Summary, rows: Sampled, band: Band) -> NDArray[np.bool_]:
    """Return [M] which sampled requests lie in a band of the whole summary, such as `SLOW`."""
    low, high = band_limits_ms(summary, band)
    total = rows.stage(TOTAL)
    return (total >= low) & (total <= high)


__all__ = ["FAST", "SLOW", "Sampled", "in_band", "sampled"]
