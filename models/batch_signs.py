"""Signs of batch and offline work, each with its figures.

None is proof: a quiet service has no concurrency, a customer of its own has one caller, a video
model takes minutes. So several must agree, and one of them must be decisive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.evidence import Evidence
from tailbudget.models.ranks import ranks
from tailbudget.models.slots import Slots, slots_of
from tailbudget.schemas.cohorts import NONE
from tailbudget.schemas.slo import QUANTILES

CALLER_DIMS: Final = (
    "caller", "client", "client_id", "user", "user_id", "tenant", "customer", "api_key", "job",
    "job_id", "source", "account",
)  # fmt: skip
"""Cohort dimensions that name who asked."""

_MINUTE_MS: Final = 60_000.0
"""Callers that wait in person are gone by then: a minute is the default limit of nginx
(`proxy_read_timeout`) and of AWS load balancers (idle timeout)."""

_ONE: Final = (0.5, 1.5)
"""Mean requests in flight of a worker that takes one after the other: about one, while a quiet
service has next to none."""

_FEWEST: Final = 20  # requests from which one caller is a sign
_RUNS: Final = 3
_DAY_NS: Final = 86_400 * 10**9
_HOUR_NS: Final = 3_600 * 10**9
_WITHIN: Final = ((_DAY_NS, 10 * 60 * 10**9), (_HOUR_NS, 60 * 10**9))
"""A schedule's period, and within what its runs begin: people do not come by the minute."""

_SILENT: Final = 0.8
"""Share of the span without requests: a working day leaves two thirds of a day silent."""


@dataclass(frozen=True, slots=True)
class Sign:
    """One sign.

    Attributes:
        name: "sequential", "minutes", "one_caller" or "schedule".
        decisive: whether it is of the kind that one of the agreeing signs must be.
        sentence: its figures.
    """

    name: str
    decisive: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class _Run:
    """A stretch of work without a long silence in it."""

    start_ns: int
    end_ns: int


def signs(evidence: Evidence) -> tuple[Sign, ...]:
    """Return the signs that are seen; none for an empty evidence."""
    slots = slots_of(evidence.timeline)
    if not len(slots) or not slots.n.sum():
        return ()
    looks: tuple[Callable[[Evidence, Slots], Sign | None], ...] = (
        _minutes, _schedule, _sequential, _one_caller,
    )  # fmt: skip
    return tuple(sign for look in looks if (sign := look(evidence, slots)) is not None)


def _minutes(evidence: Evidence, _: Slots) -> Sign | None:
    p50 = ranks(evidence.total).quantile_ms(QUANTILES["p50"])
    if p50 is None or p50 < _MINUTE_MS:
        return None
    return Sign("minutes", True, f"half of the requests take {p50 / _MINUTE_MS:,.3g} min or longer")


def _sequential(evidence: Evidence, slots: Slots) -> Sign | None:
    busy_ns = sum(run.end_ns - run.start_ns for run in _runs(evidence, slots, 0))
    in_flight = float(slots.sum_ms.sum()) * 1e6 / busy_ns
    if not _ONE[0] <= in_flight <= _ONE[1]:
        return None
    text = f"{in_flight:.2g} requests in flight on average while it works: one after the other"
    return Sign("sequential", False, text)


def _one_caller(evidence: Evidence, slots: Slots) -> Sign | None:
    for dimension in CALLER_DIMS:
        names = {dict(cohort).get(dimension, NONE) for cohort in evidence.cohorts.cohorts}
        if len(names) == 1 and names != {NONE} and slots.requests.sum() >= _FEWEST:
            text = (
                f"one caller ({dimension}={names.pop()}) for all {slots.requests.sum():,} requests"
            )
            return Sign("one_caller", False, text)
    return None


def _schedule(evidence: Evidence, slots: Slots) -> Sign | None:
    """Return the sign when runs begin at the same time of day (or hour), with silence between."""
    for period_ns, within_ns in _WITHIN:
        runs = list(_runs(evidence, slots, period_ns // 4))
        if len(runs) < _RUNS:
            continue
        starts = np.array([run.start_ns for run in runs])
        busy_ns = sum(run.end_ns - run.start_ns for run in runs)
        silent = 1 - busy_ns / int(runs[-1].end_ns - starts[0])
        spread_ns = _spread_ns(starts, period_ns)
        if silent < _SILENT or spread_ns > within_ns + evidence.slot_ns:
            continue
        when = "day" if period_ns == _DAY_NS else "hour"
        return Sign(
            "schedule",
            True,
            f"{len(runs)} runs begin within {max(spread_ns / 6e10, 1):.0f} min of the same time of "
            f"the {when}, with {100 * silent:.0f} % silence between",
        )
    return None


def _runs(evidence: Evidence, slots: Slots, silence_ns: int) -> Iterator[_Run]:
    """Yield the stretches in which requests come or are worked on, silences of a length apart."""
    longest = np.where(np.isfinite(slots.max_ms), slots.max_ms, 0.0) * 1e6
    ends = np.maximum.accumulate(slots.start_ns + evidence.slot_ns + longest.astype(np.int64))
    cuts = np.flatnonzero(slots.start_ns[1:] > ends[:-1] + silence_ns)
    first = 0
    for last in (*cuts.tolist(), len(slots) - 1):
        yield _Run(int(slots.start_ns[first]), int(ends[last]))
        first = last + 1


def _spread_ns(starts: NDArray[np.int64], period_ns: int) -> int:
    """Return the least stretch of a period, which is a circle, that holds all starts."""
    phases = np.sort(starts % period_ns)
    gaps = np.diff(np.append(phases, phases[0] + period_ns))
    return int(period_ns - gaps.max())
