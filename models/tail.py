"""Which stage makes slow requests slow? The slow-minus-fast table, from the tail profile.

A band is a span of ranks among the successful requests. The profile keeps sums by coarse bucket
of the total; where a band begins or ends inside a bucket, the bucket's requests are taken to be
exchangeable and that fraction of its sums is counted.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.ranks import Ranks, ranks
from tailbudget.models.rows import COARSE
from tailbudget.models.sketch import nearest_rank
from tailbudget.schemas.records import NO_PART
from tailbudget.schemas.summary import FAILED, TOTAL, Profile, Summary
from tailbudget.schemas.verdicts import TailDriver, TailRow, TailTable

Band = tuple[str | float, str | float]
"""From and to, both inclusive: a percentile such as "p95", milliseconds, or "max"."""

SLOW: Final[Band] = ("p95", "p99")
FAST: Final[Band] = ("p40", "p50")

_NS_PER_MS: Final = 1e6


def slow_band(threshold: str | float) -> Band:
    """Return the slow band that a threshold stands for: "p95", "p99" or milliseconds."""
    return SLOW if threshold == SLOW[0] else (threshold, "max")


def slow_fast(summary: Summary, slow: Band = SLOW, fast: Band = FAST) -> TailTable | None:
    """Return the slow-minus-fast table of a one-group summary; None when a band is empty.

    Raises:
        ValueError: the summary has not exactly one group, or a band names no percentile.
    """
    order = ranks(summary)
    slow_n, slow_means = _band_means(summary, _rank_span(order, slow))
    fast_n, fast_means = _band_means(summary, _rank_span(order, fast))
    if slow_means is None or fast_means is None:
        return None
    pairs = {
        stage: (float(fast_means[s]), float(slow_means[s]))
        for s, stage in enumerate(summary.stages)
        if stage != FAILED and stage not in NO_PART
    }
    low, high = pairs.pop(TOTAL)
    rows = tuple(_row(stage, pair, high - low) for stage, pair in pairs.items())
    return TailTable(slow_n, fast_n, _row(TOTAL, (low, high), high - low), rows, _driver(rows))


def band_limits_ms(summary: Summary, band: Band) -> tuple[float, float]:
    """Return the first and the last latency of a band; (inf, -inf) when it is empty.

    Raises:
        ValueError: the summary has not exactly one group, or the band names no percentile.
    """
    order = ranks(summary)
    first, last = _rank_span(order, band)
    low, high = order.value_ms(first), order.value_ms(last)
    if low is None or high is None or first > last:
        return np.inf, -np.inf
    return low, high


def band_shares(summary: Summary, band: Band) -> NDArray[np.float64]:
    """Return [R] which share of the requests of each bucket of the profile a band takes.

    Raises:
        ValueError: the summary has not exactly one group, or the band names no percentile.
    """
    return _shares(summary.profile, _rank_span(ranks(summary), band))


def band_counts(whole: Summary, parts: Summary, band: Band) -> NDArray[np.float64]:
    """Return [G] how many successful requests of each group lie in a band of the whole.

    Args:
        whole: one group; its ranks are the band's.
        parts: the same requests, or some of them, in any groups.
        band: such as `SLOW`.

    Raises:
        ValueError: `whole` has not exactly one group, or the band names no percentile.
    """
    share = np.zeros(COARSE)
    share[whole.profile.bucket] = _shares(whole.profile, _rank_span(ranks(whole), band))
    profile = parts.profile
    counts = np.zeros(len(parts.pane_ns))
    np.add.at(counts, profile.group, share[profile.bucket] * profile.n)
    return counts


def _rank_span(order: Ranks, band: Band) -> tuple[int, int]:
    """Return the first and the last rank of a band; the first is larger when it is empty."""
    lower, upper = band
    if isinstance(lower, str):
        first = _rank(order, lower)
    else:
        first = order.n - order.slower_than(lower) + 1
    if isinstance(upper, str):
        return first, _rank(order, upper)
    return first, order.n - order.slower_than(upper)


def _rank(order: Ranks, name: str) -> int:
    if name == "max":
        return order.n
    if not name.startswith("p"):
        raise ValueError(f"want a percentile such as p95, or max, not {name!r}")
    return nearest_rank(order.n, Fraction(name[1:]) / 100)


def _band_means(summary: Summary, span: tuple[int, int]) -> tuple[int, NDArray[np.float64] | None]:
    """Return the size of a band and the mean of each stage over it, in milliseconds."""
    profile = summary.profile
    size = int(span[1] - span[0] + 1)
    if size < 1 or not len(profile.n):
        return 0, None
    return size, _shares(profile, span) @ profile.stage_ns / (size * _NS_PER_MS)


def _shares(profile: Profile, span: tuple[int, int]) -> NDArray[np.float64]:
    """Return [R] which share of each coarse bucket lies between two ranks."""
    last = np.cumsum(profile.n)
    inside = np.minimum(last, span[1]) - np.maximum(last - profile.n, span[0] - 1)
    share: NDArray[np.float64] = np.maximum(inside, 0) / profile.n
    return share


def _row(stage: str, pair: tuple[float, float], total_delta_ms: float) -> TailRow:
    delta = pair[1] - pair[0]
    # A stage may outgrow the total while another shrinks; it still explains no more than all.
    share = min(100 * delta / total_delta_ms, 100.0) if total_delta_ms > 0 else None
    return TailRow(stage, pair[0], pair[1], delta, share)


def _driver(rows: tuple[TailRow, ...]) -> TailDriver | None:
    most = max(rows, key=lambda row: row.delta_ms, default=None)
    if most is None or most.delta_ms <= 0:
        return None
    return TailDriver(
        stage=most.stage,
        mean_fast_ms=most.mean_fast_ms,
        mean_slow_ms=most.mean_slow_ms,
        delta_ms=most.delta_ms,
        tail_share_pct=most.tail_share_pct,
    )
