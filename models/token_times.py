"""Times of tokens, and goodput: how many requests met all of their targets.

A request is good when it succeeded and keeps every target that is set. One with a single output
token has no time of an output token, and keeps that target, as in vLLM's benchmark. What does not
tell its time to the first token cannot be known to keep it, and is not good.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.columns import with_stages
from tailbudget.models.ranks import ranks, requests_needed
from tailbudget.models.sketch import nearest_rank
from tailbudget.schemas.records import GOODPUT, TOKEN_TIMES, TPOT, TTFT, Columns, Outcome
from tailbudget.schemas.slo import QUANTILES
from tailbudget.schemas.summary import TOTAL, Summary
from tailbudget.schemas.token_timing import (
    Goodput,
    GoodputTarget,
    TokenRow,
    TokenTiming,
    TokenTimings,
)

_NS_PER_S: Final = 1e9

Floats = NDArray[np.float64]


def with_goodput(columns: Columns, target: GoodputTarget | None) -> Columns:
    """Return the rows with the total of the good ones as a stage; without a target, as they are."""
    if not target:
        return columns
    stages = dict(zip(columns.stages, columns.stage_ms, strict=True))
    first, each = (stages.get(name, np.full(len(columns), np.nan)) for name in (TTFT, TPOT))
    good = (columns.outcome == Outcome.OK) & ~np.isnan(columns.total_ms)
    if target.ttft_ms is not None:
        good &= first <= target.ttft_ms
    if target.tpot_ms is not None:
        good &= (each <= target.tpot_ms) | (np.isnan(each) & ~np.isnan(first))
    if target.e2e_ms is not None:
        good &= columns.total_ms <= target.e2e_ms
    if not good.any():
        return columns
    stages[GOODPUT] = np.where(good, columns.total_ms, np.nan)
    return with_stages(columns, stages)


def token_timings(
    total: Summary,
    definition: TokenTiming | None,
    target: GoodputTarget | None,
    span_ns: int | None,
) -> TokenTimings | None:
    """Return what a one-group summary says of tokens; None where nothing is told or promised.

    Args:
        total: the summary, of records that went through `with_goodput` with this target.
        definition: what its source means by the times.
        target: what a good request keeps; None counts none.
        span_ns: from the first request to the last; None where they have no times.
    """
    rows = tuple(_rows(total))
    if not rows and not target:
        return None
    goodput = _goodput(total, target, span_ns) if target else None
    return TokenTimings(definition if rows else None, rows, goodput)


def tells_tokens(total: Summary) -> bool:
    """Return whether any request tells a time of its tokens."""
    return any(_count(total, name) for name in TOKEN_TIMES)


def _rows(total: Summary) -> Iterator[TokenRow]:
    for name in TOKEN_TIMES:
        if not _count(total, name):
            continue
        found = ranks(total, name)
        values = [
            found.value_ms(nearest_rank(found.n, q)) if found.n >= requests_needed(q) else None
            for q in QUANTILES.values()
        ]
        yield TokenRow(name, found.n, *values)


def _goodput(total: Summary, target: GoodputTarget, span_ns: int | None) -> Goodput:
    n, good = int(total.requests.sum()), _count(total, GOODPUT)
    answered = _count(total, TOTAL)
    promised = target.ttft_ms is not None or target.tpot_ms is not None
    return Goodput(
        ttft_ms=target.ttft_ms,
        tpot_ms=target.tpot_ms,
        e2e_ms=target.e2e_ms,
        n=n,
        good=good,
        share_pct=100 * good / n if n else None,
        per_s=good / span_ns * _NS_PER_S if span_ns else None,
        untold=answered - _count(total, TTFT) if promised else 0,
    )


def _count(total: Summary, stage: str) -> int:
    if stage not in total.stages or not len(total.cohorts):
        return 0
    return int(total.n[0, total.stages.index(stage)])
