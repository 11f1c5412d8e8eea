"""Requests as rows of component times: what tells how stages relate.

The sampled requests are the rows. Windows keep no sample: then the buckets of the tail profile
are the rows, each the mean request of its bucket, weighted by how many it stands for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.sampled import in_band, sampled
from tailbudget.models.sketch import RELATIVE_ERROR
from tailbudget.models.tail import Band, band_shares
from tailbudget.schemas.records import NO_PART
from tailbudget.schemas.summary import FIXED_STAGES, TOTAL, Summary

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

NEARLY_EVERY: Final = 0.95
"""Share of the rows in which something must hold: clocks and rounding spoil a few."""

SAME: Final = 2 * RELATIVE_ERROR
"""Times that differ by a smaller share are the same: a sketch bucket is that wide."""


_NS_PER_MS: Final = 1e6


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Component times of M rows.

    Attributes:
        names: the components: stages of the records, without those that we add.
        ms: [M, K] time of each; 0 where a request has none.
        total_ms: [M] the whole request.
        weight: [M] requests that a row stands for.
        slow: [M] likewise, those in the slow band only.
        fast: [M] likewise, those in the fast band only.
        requests: whether each row is one request; else it is the mean of several.
    """

    names: tuple[str, ...]
    ms: Floats
    total_ms: Floats
    weight: Floats
    slow: Floats
    fast: Floats
    requests: bool

    def __len__(self) -> int:
        return len(self.total_ms)

    def of(self, names: tuple[str, ...]) -> Floats:
        """Return [M, len(names)] times of some components."""
        return self.ms[:, [self.names.index(name) for name in names]]

    def nearly_every(self, holds: Flags, among: Flags | None = None) -> bool:
        """Tell whether something holds in nearly every row, and in nearly every slow one.

        Args:
            holds: [M] where it does.
            among: [M] rows to look at; None means all.
        """
        return all(_mostly(weight, holds, among) for weight in (self.weight, self.slow))

    def usually(self, holds: Flags, among: Flags) -> bool:
        """Tell whether something holds in nearly every one of some rows, slow ones or not."""
        return _mostly(self.weight, holds, among)


def _mostly(weight: Floats, holds: Flags, among: Flags | None) -> bool:
    looked_at = weight if among is None else weight * among
    return float(looked_at @ holds) >= NEARLY_EVERY * float(looked_at.sum())


def breakdown(total: Summary, slow: Band, fast: Band) -> Breakdown:
    """Return the rows of a one-group summary.

    Raises:
        ValueError: the summary has not exactly one group, or a band names no percentile.
    """
    names = components(total)
    columns = [total.stages.index(name) for name in names]
    rows = sampled(total)
    if len(rows):
        every = np.ones(len(rows))
        return Breakdown(
            names=names,
            ms=np.nan_to_num(rows.stage_ms[:, columns]),
            total_ms=rows.stage(TOTAL),
            weight=every,
            slow=every * in_band(total, rows, slow),
            fast=every * in_band(total, rows, fast),
            requests=True,
        )
    profile = total.profile
    n = profile.n.astype(np.float64)
    means = profile.stage_ns / (n[:, None] * _NS_PER_MS)
    return Breakdown(
        names=names,
        ms=means[:, columns],
        total_ms=means[:, total.stages.index(TOTAL)],
        weight=n,
        slow=n * band_shares(total, slow),
        fast=n * band_shares(total, fast),
        requests=False,
    )


def components(total: Summary) -> tuple[str, ...]:
    """Return the stages of which a request is made up, as far as the records time them."""
    s = {name: at for at, name in enumerate(total.stages)}
    return tuple(
        name
        for name in total.stages[len(FIXED_STAGES) :]
        if name not in NO_PART and total.n[0, s[name]]
    )
