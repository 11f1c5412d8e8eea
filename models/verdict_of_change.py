"""What a comparison comes to, in a word and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tailbudget.models.decompose import COLD_START, FAILURES, REGRESSION, WORKLOAD
from tailbudget.models.sides import Side
from tailbudget.schemas.comparison import Change, Part

_WORD: Final = {
    FAILURES: "failures",
    COLD_START: "cold_start",
    WORKLOAD: "workload",
    REGRESSION: "regression",
}
_BECAUSE: Final = {
    FAILURES: "failures, which count as slower than all others",
    COLD_START: "requests in cold windows",
    WORKLOAD: "the workload: which requests come, not how they are served",
    REGRESSION: "a change of the service under the same workload",
}


def verdict_of(
    total: Sequence[Change], sides: tuple[Side, Side], parts: Sequence[Part]
) -> tuple[str, str]:
    """Return the verdict on the p99 of all requests and a sentence that says so.

    Args:
        total: the rows of the total.
        sides: the baseline and today.
        parts: the change of the p99 taken apart; empty when it is not a number.
    """
    p99 = next(row for row in total if row.percentile == "p99")
    if p99.changed is None:
        n = min(side.n for side in sides)
        return "insufficient", f"a p99 takes 1,000 requests on both sides; one has {n:,}"
    if not p99.changed:
        moved = [row.percentile for row in total if row.changed]
        also = f"; {' and '.join(moved)} did" if moved else ""
        return "unchanged", f"the p99 did not change by more than chance gives{also}"
    if not parts:
        return _by_failures(*sides)
    return _by_parts(p99, parts)


def _by_failures(before: Side, now: Side) -> tuple[str, str]:
    """Judge where a p99 is a failure, and has no milliseconds."""
    shares = [100 * side.failed / side.n for side in (before, now)]
    said = "{:.3g} % failed before, {:.3g} % now".format(*shares)
    if shares[1] > shares[0]:
        return "failures", f"the p99 is a failure: {said}"
    return "improved", f"fewer requests fail: {said}"


def _by_parts(p99: Change, parts: Sequence[Part]) -> tuple[str, str]:
    """Name the largest part that goes the way of the change."""
    change = p99.delta_ms or 0.0
    way = 1.0 if change > 0 else -1.0
    most = max(parts, key=lambda part: way * part.delta_ms)
    said = f"the p99 changed by {change:+,.4g} ms, {most.delta_ms:+,.4g} ms of it by "
    if change < 0 and most.part != WORKLOAD:
        return "improved", said + _BECAUSE[most.part]
    return _WORD[most.part], said + _BECAUSE[most.part]
