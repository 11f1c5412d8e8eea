"""Is the tail slow because processes start, or also without that?

A p99 counts failed requests as slower than all others, with and without the cold windows alike.
Below 100 requests the p99 is the maximum and no figure; below `requests_needed` the target is
judged only where chance does not decide, as in the snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tailbudget.models.binomial import upper_tail
from tailbudget.models.cold_windows import cold_windows
from tailbudget.models.evidence import Evidence
from tailbudget.models.figures import figure
from tailbudget.models.ranks import Ranks, ranks, requests_needed
from tailbudget.models.sketch import nearest_rank
from tailbudget.models.snapshot import CHANCE
from tailbudget.models.suspects import suspects
from tailbudget.schemas.sections import ColdStart, ColdWindow
from tailbudget.schemas.slo import QUANTILES, SloTarget
from tailbudget.schemas.summary import Summary

COLD: Final = "cold_start"
NOT_COLD: Final = "not_cold_start"
NOT_COMPUTABLE: Final = "not_computable"

_P99: Final = QUANTILES["p99"]


@dataclass(frozen=True, slots=True)
class _Side:
    """The requests of one side, `failed` of them slower than all of `ok`."""

    ok: Ranks | None
    failed: int

    @property
    def n(self) -> int:
        return (self.ok.n if self.ok else 0) + self.failed

    @property
    def p99_ms(self) -> float | None:
        rank = nearest_rank(self.n, _P99)
        return self.ok.value_ms(rank) if self.ok and rank < self.n else None

    def within(self, slo_ms: float) -> bool | None:
        """Tell whether the p99 is within the target; None when the requests do not say."""
        over = self.failed + (self.ok.slower_than(slo_ms) if self.ok else 0)
        allowed = 1 - _P99
        if self.n >= requests_needed(_P99):
            return over <= self.n * allowed
        if over > 1 and upper_tail(over, self.n, float(allowed)) < CHANCE:
            return False
        # So few cannot show that all is well; the sentence says how few they are.
        calm = self.p99_ms is not None and over <= self.n * allowed
        return True if calm else None


def cold_start(evidence: Evidence, slo: SloTarget | None) -> ColdStart:
    """Return the figures with and without cold windows, the verdict, and what is suspected."""
    windows = tuple(w for w in evidence.cold_windows if _inside(w, evidence))
    everything = _side(evidence.total)
    warm = _side(evidence.warm) if windows and evidence.warm is not None else None
    excluded = everything.n - warm.n if warm else 0
    steady = warm if excluded else None
    found = suspects(evidence)
    target_ms = slo.p99_ms if slo else None
    if steady is None:
        verdict, note = _without(evidence, windows)
    else:
        verdict, note = _verdict(everything, steady, target_ms)
    if found:
        note += f"; {len(found)} suspected start{'s' * (len(found) > 1)} that no event announced"
    return ColdStart(
        deploys=windows,
        excluded=excluded,
        unfiltered_p99_ms=everything.p99_ms,
        filtered_p99_ms=steady.p99_ms if steady else None,
        verdict=verdict,
        suspected=found,
        note=note,
    )


def _side(summary: Summary) -> _Side:
    if not len(summary.pane_ns):
        return _Side(None, 0)
    ok = ranks(summary)
    return _Side(ok, max(int(summary.requests[0]) - ok.n, 0))


def _inside(window: ColdWindow, evidence: Evidence) -> bool:
    return window.start_ns < evidence.end_ns and window.end_ns > evidence.start_ns


def _without(evidence: Evidence, windows: tuple[ColdWindow, ...]) -> tuple[str, str]:
    """Return the verdict and its sentence when nothing could be left out."""
    if not evidence.deploys_known:
        return NOT_COMPUTABLE, "nobody said which deploys there were"
    if not windows:
        return NOT_COLD, "no deploy or scale-up in this span: there is nothing to leave out"
    return NOT_COLD, "no request came within a cold window: there is nothing to leave out"


def _verdict(everything: _Side, steady: _Side, slo_ms: float | None) -> tuple[str, str]:
    """Return the verdict and its sentence, from both sides."""
    figures = f"p99 {_ms(everything)} with cold windows, {_ms(steady)} without"
    if not steady.n:
        return NOT_COMPUTABLE, f"{figures}: every request came within a cold window"
    if slo_ms is None:
        return NOT_COMPUTABLE, f"{figures}; there is no p99 target to judge them by"
    figures += _few(steady)
    target = f"the target of {slo_ms:,.10g} ms"
    whole, without = everything.within(slo_ms), steady.within(slo_ms)
    if whole is None or without is None:
        return NOT_COMPUTABLE, f"{figures}: too few requests to judge {target}"
    if whole:
        return NOT_COLD, f"{figures}: {target} is met with cold windows too"
    if without:
        return COLD, f"{figures}: the steady state is within {target}, cold windows break it"
    return NOT_COLD, f"{figures}: {target} is missed in the steady state too"


def _ms(side: _Side) -> str:
    if side.p99_ms is not None:
        return f"{figure(side.p99_ms)} ms"
    if nearest_rank(side.n, _P99) >= side.n:
        return f"unknown (n={side.n:,}: it would be the maximum)"
    return "a failed request"


def _few(side: _Side) -> str:
    needed = requests_needed(_P99)
    return f" (of {side.n:,} requests, fewer than {needed:,})" if side.n < needed else ""


__all__ = ["COLD", "NOT_COLD", "NOT_COMPUTABLE", "cold_start", "cold_windows"]
