"""Judge the percentiles of a span of requests against their targets.

Failures count: on the basis "all" a failed request is slower than every other, so that a service
that answers few requests fast is never green. A second row counts the successful ones alone.
Where records say when they were due, totals count from then and the basis is "scheduled"; the
second row is then of the successful ones as logged.

A target is missed when more than its share of the requests are beyond it. Those are counted one
by one (`Summary.over`), so the judgement never hangs on the rounding of the sketch: p99 is missed
exactly when over / requests > 1 %.

A percentile p takes 10 / (1 - p) requests. Fewer show a breach only when the requests beyond the
target are too many for chance; they never show that all is well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from tailbudget.models.binomial import upper_tail
from tailbudget.models.ranks import Ranks, ranks, requests_needed
from tailbudget.models.sketch import nearest_rank
from tailbudget.schemas.records import LOGGED
from tailbudget.schemas.slo import QUANTILES, SloTarget
from tailbudget.schemas.summary import FAILED, Summary
from tailbudget.schemas.verdicts import ALL, SCHEDULED, SUCCESS, Percentile, Verdict

AT_RISK_SHARE: Final = 0.9
"""A percentile beyond this share of its target is at risk."""

CHANCE: Final = 0.05
"""Too few requests show a breach when chance gives as many beyond the target this rarely."""

_WORST_FIRST: Final = (Verdict.BREACH, Verdict.AT_RISK, Verdict.OK, Verdict.INSUFFICIENT)


@dataclass(frozen=True, slots=True)
class _Basis:
    """The requests that a row counts: `failed` of them are slower than all of `ranks`."""

    name: str
    ranks: Ranks
    failed: int
    failure: str

    @property
    def n(self) -> int:
        return self.ranks.n + self.failed

    @property
    def noun(self) -> str:
        return "successful requests" if self.name == SUCCESS else "requests"


def snapshot(total: Summary, slo: SloTarget | None) -> tuple[Percentile, ...]:
    """Return p50, p95, p99 and the maximum of a one-group summary, of all and of successes."""
    bases = _bases(total)
    targets = dict(slo.items()) if slo else {}
    return tuple(
        row
        for basis in bases
        for row in (
            *(_percentile(basis, name, q, targets.get(name)) for name, q in QUANTILES.items()),
            _maximum(basis),
        )
    )


def verdict(rows: Iterable[Percentile]) -> Verdict:
    """Return the worst judgement; insufficient when no target was judged, no_data without any."""
    rows = tuple(rows)
    said = {row.status for row in rows}
    for worst in _WORST_FIRST:
        if worst in said:
            return worst
    return Verdict.NO_DATA if Verdict.NO_DATA in said else Verdict.INSUFFICIENT


def allowed_share(percentile: str) -> Fraction:
    """Return the share of requests that may be beyond the target of a percentile."""
    return 1 - QUANTILES[percentile]


def _bases(total: Summary) -> Sequence[_Basis]:
    ok = ranks(total)
    failed = max(int(total.requests[0]) - ok.n, 0)
    scheduled = LOGGED in total.stages and ranks(total, LOGGED).n > 0
    first = _Basis(SCHEDULED if scheduled else ALL, ok, failed, _failure_text(total, ok))
    return first, _Basis(SUCCESS, ranks(total, LOGGED) if scheduled else ok, 0, "")


def _percentile(basis: _Basis, name: str, q: Fraction, slo_ms: float | None) -> Percentile:
    rank = nearest_rank(basis.n, q)
    measured = basis.ranks.value_ms(rank)
    over = None if slo_ms is None else basis.ranks.slower_than(slo_ms) + basis.failed
    status = _status(basis, q, over)
    if status is Verdict.OK and slo_ms is not None and measured is not None:
        status = Verdict.AT_RISK if measured > AT_RISK_SHARE * slo_ms else Verdict.OK
    return Percentile(
        percentile=name,
        measured_ms=measured,
        slo_ms=slo_ms,
        headroom_ms=None if slo_ms is None or measured is None else slo_ms - measured,
        status=status,
        basis=basis.name,
        note="; ".join(_notes(basis, name, q, status, slo_ms)),
        n=basis.n,
        over=over,
    )


def _status(basis: _Basis, q: Fraction, over: int | None) -> Verdict | None:
    n = basis.n
    if n >= requests_needed(q):
        if over is None:
            return None
        return Verdict.BREACH if over > n * (1 - q) else Verdict.OK
    if not basis.ranks.n:
        return Verdict.NO_DATA
    # One bad request among few is an accident, whatever the arithmetic says.
    if over is not None and over > 1 and upper_tail(over, n, float(1 - q)) < CHANCE:
        return Verdict.BREACH
    return Verdict.INSUFFICIENT


def _notes(
    basis: _Basis, name: str, q: Fraction, status: Verdict | None, slo_ms: float | None
) -> Iterable[str]:
    n, rank = basis.n, nearest_rank(basis.n, q)
    if not basis.ranks.n:
        yield f"no measurement: all {n:,} requests failed" if n else f"no {basis.noun}"
    if n and rank > basis.ranks.n:
        yield basis.failure
    if status is Verdict.INSUFFICIENT:
        rest = f"; this {name} is the maximum" if rank == n else f", needs {requests_needed(q):,}"
        yield f"insufficient (n={n:,}{rest})"
    counted = basis.ranks.exact_ms is not None or slo_ms in basis.ranks.slower
    if slo_ms is not None and basis.ranks.n and not counted:
        yield "judged by the sketch: this target was not counted"


def _maximum(basis: _Basis) -> Percentile:
    return Percentile(
        percentile="max",
        measured_ms=None if basis.failed or not basis.ranks.n else basis.ranks.max_ms,
        slo_ms=None,
        headroom_ms=None,
        status=None if basis.n else Verdict.NO_DATA,
        basis=basis.name,
        note=basis.failure if basis.failed else "",
        n=basis.n,
        over=None,
    )


def _failure_text(total: Summary, ok: Ranks) -> str:
    """Say how slow a failure is at least, where its limits are beyond anything that is asked."""
    s = total.stages.index(FAILED)
    limit_ms = float(total.min_ms[0, s])
    known = int(total.n[0, s]) == int(total.failed[0]) > 0
    if known and limit_ms >= max((ok.max_ms, 0.001, *total.thresholds_ms)):
        return f"over {limit_ms:,.10g} ms (timeout)"
    return "failed"
