"""What if more lookups hit the cache? A part of each miss becomes a hit."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.paired_p99 import Replayed, whole
from tailbudget.models.replay import Layout, changed_total
from tailbudget.models.sampled import Sampled
from tailbudget.schemas.summary import TOTAL

Floats = NDArray[np.float64]

_HIT: Final = frozenset({"hit", "hits", "hitrate", "cached"})
_MISS: Final = frozenset({"miss", "misses", "missed"})
_FEWEST: Final = 20  # hits, so that their median means something


def tells_hits(name: str) -> bool:
    """Tell whether a column's name, such as "kv_cache_hit", says that it tells hits or misses."""
    return bool(_words(name) & (_HIT | _MISS))


def hits_of(rows: Sampled, named: str = "") -> Floats | None:
    """Return [M] 1 for a hit, 0 for a miss, NaN where it was not measured; None without any.

    A share between, of several lookups, counts as a hit from a half.
    """
    columns = [name for name in (named, *rows.covariates) if tells_hits(name)]
    if not columns or columns[0] not in rows.covariates:
        return None
    values = rows.of(columns[0])
    present = values[~np.isnan(values)]
    if not len(present) or present.min() < 0 or present.max() > 1:
        return None
    hit = np.where(np.isnan(values), np.nan, values >= 0.5)
    return hit if _words(columns[0]) & _HIT else 1 - hit


def more_hits(rows: Sampled, lay: Layout, stage: str, named: str, to: float) -> Replayed | None:
    """Return the requests with hits raised to a share; None where no hit ratio was measured.

    Each miss stays one with the chance that the new ratio leaves it, and else takes what the
    median hit takes. At a ratio that is reached already nothing changes.
    """
    hit = hits_of(rows, named)
    if hit is None or np.nansum(hit) < _FEWEST:
        return None
    ratio = float(np.nanmean(hit))
    # A hit that skips the stage takes no time in it.
    total, took = rows.stage(TOTAL), np.nan_to_num(rows.stage(stage))
    if ratio >= to:
        return whole(total, total)
    then = changed_total(rows, lay, stage, np.minimum(took, np.median(took[hit == 1])))
    misses = np.flatnonzero(hit == 0)
    turned = (to - ratio) / (1 - ratio)
    stays = np.ones(len(total))
    stays[misses] -= turned
    row = np.concatenate([np.arange(len(total)), misses])
    share = np.concatenate([stays, np.full(len(misses), turned)])
    return Replayed(
        row=row,
        now_ms=total[row],
        then_ms=np.concatenate([total, then[misses]]),
        now_share=share,
        then_share=share,
    )


def _words(name: str) -> frozenset[str]:
    return frozenset(re.split(r"[^a-z]+", name.lower()))
