"""The report of histograms: bounds of percentiles against the targets, and nothing else.

Buckets say how many requests were at most so long. They name no request, so that nothing can be
attributed; and a percentile is somewhere in its bucket, so that a target within it stays open.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from tailbudget.models.buckets import Buckets
from tailbudget.models.ranks import requests_needed
from tailbudget.schemas.bounds import END_TO_END, REASON, Bound
from tailbudget.schemas.slo import QUANTILES, SloTarget
from tailbudget.schemas.verdicts import Audit, Provenance, Verdict

_SAID: Final = MappingProxyType(
    {"ok": Verdict.OK, "breach": Verdict.BREACH, "undecidable": Verdict.UNDECIDED}
)
_WORST_FIRST: Final = (Verdict.BREACH, Verdict.UNDECIDED, Verdict.INSUFFICIENT, Verdict.OK)


@dataclass(frozen=True, slots=True)
class Measured:
    """One histogram, all of its series added up.

    Attributes:
        of: what it is of, as `Bound.of` says.
        metric: its name.
        buckets: its counts; failed requests are beyond every bound where they are told apart.
        failed: requests that failed; None where nothing tells them apart.
    """

    of: str
    metric: str
    buckets: Buckets
    failed: int | None = None


def add_buckets(parts: Sequence[Buckets]) -> Buckets:
    """Return the sum of histograms, at the bounds that all of them have.

    The count at a bound is exact, so that a sum at common bounds is exact too, only coarser.

    Raises:
        ValueError: there is none.
    """
    if not parts:
        raise ValueError("no histogram")
    common = set.intersection(*(set(part.upper_ms) for part in parts))
    upper = tuple(sorted(common))
    counts = [dict(zip(part.upper_ms, part.count, strict=True)) for part in parts]
    sums = [part.sum_ms for part in parts if part.sum_ms is not None]
    return Buckets(
        upper,
        tuple(sum(count[bound] for count in counts) for bound in upper),
        math.fsum(sums) if len(sums) == len(parts) else None,
    )


def all_failed(buckets: Buckets) -> Buckets:
    """Return the same requests beyond every bound: failures are slower than every target."""
    nothing = (0,) * (len(buckets.upper_ms) - 1)
    return Buckets(buckets.upper_ms, (*nothing, buckets.n), None)


def bounds_report(
    histograms: Sequence[Measured],
    *,
    service: str,
    slo: SloTarget | None,
    source: str,
    assumptions: Iterable[str] = (),
) -> Audit:
    """Return the report of the histograms of a service, the whole request among them.

    Args:
        histograms: each of something else; the first one of `END_TO_END` is judged.
        service: the service's name.
        slo: what was promised; None judges nothing.
        source: what was read.
        assumptions: what was found rather than told.

    Raises:
        ValueError: none is of the whole request.
    """
    whole = next((one for one in histograms if one.of == END_TO_END), None)
    if whole is None:
        raise ValueError("no histogram is of the whole request")
    targets = dict(slo.items()) if slo else {}
    judged = tuple(_rows(whole, targets))
    others = (row for one in histograms if one is not whole for row in _rows(one, {}))
    return Audit(
        verdict=_verdict(judged, whole.buckets.n),
        provenance=Provenance(
            service=service,
            start=None,
            end=None,
            n=whole.buckets.n,
            n_ok=None if whole.failed is None else whole.buckets.n - whole.failed,
            n_failed=whole.failed,
            slo=slo,
            source=source,
            assumptions=tuple(assumptions),
        ),
        end_to_end=(),
        stages=(),
        tail_driver=None,
        cohorts=(),
        ledger={},
        warnings=tuple(_warnings(whole)),
        refused=f"nothing is attributed: {REASON}",
        bounds=(*judged, *others),
    )


def _rows(one: Measured, targets: Mapping[str, float]) -> Iterator[Bound]:
    for name, q in QUANTILES.items():
        found = one.buckets.bounds_ms(q)
        if found is None:
            continue
        low, high = found
        yield Bound(
            of=one.of,
            metric=one.metric,
            n=one.buckets.n,
            mean_ms=one.buckets.mean_ms,
            percentile=name,
            low_ms=low,
            high_ms=high if math.isfinite(high) else None,
            slo_ms=targets.get(name),
            status=_status(one.buckets, q, targets.get(name)),
        )


def _status(buckets: Buckets, q: Fraction, target_ms: float | None) -> Verdict | None:
    if buckets.n < requests_needed(q):
        return Verdict.INSUFFICIENT
    return None if target_ms is None else _SAID[buckets.decide(q, target_ms)]


def _verdict(rows: Sequence[Bound], n: int) -> Verdict:
    if not n:
        return Verdict.NO_DATA
    said = {row.status for row in rows if row.slo_ms is not None}
    return next((worst for worst in _WORST_FIRST if worst in said), Verdict.INSUFFICIENT)


def _warnings(whole: Measured) -> Iterator[str]:
    yield f"{whole.metric} counts since its process began: the report is of all of that time"
    if whole.failed is None:
        yield "no label tells failures apart: one that was counted at all passes for a success"
    if whole.buckets.mean_ms is None and not whole.failed:
        yield "the mean is not known, for no sum is told"
