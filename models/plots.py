"""Points for the charts of a report, few enough to draw."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.evidence import Evidence
from tailbudget.models.instants import rfc3339
from tailbudget.models.sampled import sampled
from tailbudget.models.sketch import quantiles, representative, stage_counts
from tailbudget.schemas.findings import Findings
from tailbudget.schemas.plots import Plots, Slot
from tailbudget.schemas.sections import ShapeRow
from tailbudget.schemas.slo import QUANTILES
from tailbudget.schemas.summary import TOTAL, Summary

MAX_BARS: Final = 60
"""Bars of a histogram: each is then a few pixels wide on a phone."""

MAX_POINTS: Final = 500
"""Points of a scatter: more hide each other."""

_BARS_AN_OCTAVE: Final = (8, 4, 2, 1)
"""An eighth of an octave holds at least five buckets of the sketch, so that bars stay even."""

Points = tuple[tuple[float, float, str], ...]


def plots(evidence: Evidence, found: Findings) -> Plots:
    """Return the points of all charts; what was not measured has none."""
    strongest = strongest_fit(found.shape)
    return Plots(
        histogram=histogram(evidence.total),
        timeline=tuple(_slots(evidence.timeline)),
        scatter_stage=strongest.stage if strongest else "",
        scatter_covariate=strongest.covariate if strongest else "",
        scatter=_scatter(evidence.total, strongest) if strongest else (),
        cold_windows=evidence.cold_windows,
    )


def histogram(total: Summary) -> tuple[tuple[float, int], ...]:
    """Return (upper edge in milliseconds, successful requests), the edges even on a log scale.

    The first bar is empty: its edge is where the second begins. Empty bars in between are there.
    """
    counts = stage_counts(total, TOTAL)
    bucket = np.flatnonzero(counts)
    if not len(bucket):
        return ()
    octaves = np.log2(representative(bucket))
    per = _fineness(octaves)
    at = np.floor(octaves * per).astype(np.int64)
    low = int(at[0])
    bars = np.bincount(at - low, counts[bucket]).astype(np.int64)
    edges = [2.0 ** ((low + k) / per) for k in range(len(bars) + 1)]
    return tuple(zip(edges, [0, *bars.tolist()], strict=True))


def strongest_fit(shape: tuple[ShapeRow, ...]) -> ShapeRow | None:
    """Return the fit that explains the largest share of the variance; None without any."""
    known = [row for row in shape if row.r2 is not None]
    return max(known, key=lambda row: row.r2 or 0.0, default=None)


def _fineness(octaves: NDArray[np.float64]) -> int:
    span = float(octaves[-1] - octaves[0])
    fitting = (per for per in _BARS_AN_OCTAVE if math.ceil(span * per) < MAX_BARS)
    return next(fitting, _BARS_AN_OCTAVE[-1])


def _slots(timeline: Summary) -> Iterator[Slot]:
    s = timeline.stages.index(TOTAL)
    cells = np.arange(len(timeline.pane_ns)) * len(timeline.stages) + s
    first, end = np.searchsorted(timeline.cell, cells), np.searchsorted(timeline.cell, cells + 1)
    for g, time_ns in enumerate(timeline.pane_ns.tolist()):
        part = slice(int(first[g]), int(end[g]))
        p50, p99 = _p50_p99(timeline, g, s, part)
        n, failed = int(timeline.requests[g]), int(timeline.failed[g])
        yield Slot(rfc3339(time_ns), n, failed, p50, p99)


def _p50_p99(
    timeline: Summary, g: int, s: int, part: slice
) -> tuple[float, float] | tuple[None, None]:
    if not timeline.n[g, s]:
        return None, None
    low, high = float(timeline.min_ms[g, s]), float(timeline.max_ms[g, s])
    wanted = (QUANTILES["p50"], QUANTILES["p99"])
    found = quantiles(timeline.bucket[part], timeline.count[part], wanted, low, high)
    return float(found[0]), float(found[1])


def _scatter(total: Summary, fit: ShapeRow) -> Points:
    """Return sampled points in the order of their hashes, any first part of which is uniform."""
    rows = sampled(total)
    if fit.stage not in rows.stages or fit.covariate not in rows.covariates:
        return ()
    x, y = rows.of(fit.covariate), rows.stage(fit.stage)
    at = np.flatnonzero(np.isfinite(x) & np.isfinite(y))[:MAX_POINTS]
    return tuple((float(x[i]), float(y[i]), rows.ids[i]) for i in at.tolist())
