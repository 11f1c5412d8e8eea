"""Fixes for the causes that were found, most milliseconds of p99 an hour of work first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from tailbudget.models.evidence import Evidence
from tailbudget.models.fix_case import Case, case_of
from tailbudget.models.fix_conditions import applies, signs_of
from tailbudget.models.what_if import what_if
from tailbudget.schemas.catalogue import Catalogue, Fix
from tailbudget.schemas.findings import Findings
from tailbudget.schemas.proposals import Cause, CauseName, Optimization

BAR: Final = 0.25
"""A cause that explains less than a quarter of the tail gets no fix: most of it would stay."""

MOST: Final = 8
"""Fixes of a report; more are no ranking but a list."""


def optimizations(
    evidence: Evidence, found: Findings, causes: Sequence[Cause], catalogue: Catalogue
) -> tuple[Optimization, ...]:
    """Return the fixes, the highest-leverage one first, those without an estimate last.

    A mitigation and a long-term fix are both among them where the catalogue has them.
    """
    best: dict[str, Optimization] = {}
    for cause in named(causes):
        for fix in _for_cause(case_of(evidence, found, cause), found, catalogue):
            if fix.key not in best or _order(fix) < _order(best[fix.key]):
                best[fix.key] = fix
    return _shortened(sorted(best.values(), key=_order))


def named(causes: Iterable[Cause]) -> tuple[Cause, ...]:
    """Return the causes that are known and clear the bar, the strongest first."""
    above = [c for c in causes if c.cause is not CauseName.UNKNOWN and c.score >= BAR]
    return tuple(sorted(above, key=lambda cause: -cause.score))


def _for_cause(case: Case, found: Findings, catalogue: Catalogue) -> Iterator[Optimization]:
    signs = signs_of(case, found)
    for key, fix in catalogue.fixes.items():
        if applies(fix, case, signs):
            yield _optimization(key, fix, case)


def _optimization(key: str, fix: Fix, case: Case) -> Optimization:
    saving = what_if(case, fix.effect)
    saved = saving.saved_ms
    return Optimization(
        fix=fix.fix,
        cause=case.cause.cause,
        p99_saved_ms=saved,
        interval_ms=saving.interval_ms,
        hours=fix.hours,
        ms_per_hour=None if saved is None else saved / fix.hours,
        quality_risk=fix.quality_risk,
        reversible=fix.reversible,
        verify=fix.verify,
        key=key,
        horizon=fix.horizon,
        basis=saving.basis,
    )


def _order(fix: Optimization) -> tuple[bool, float, float, str]:
    return fix.ms_per_hour is None, -(fix.ms_per_hour or 0.0), fix.hours, fix.key


def _shortened(ranked: Sequence[Optimization]) -> tuple[Optimization, ...]:
    """Keep the first few; of a horizon that would be missing, its first in place of the last."""
    kept = list(ranked[:MOST])
    for horizon in ("short", "long"):
        lacking = all(fix.horizon != horizon for fix in kept)
        if lacking and (later := [fix for fix in ranked[MOST:] if fix.horizon == horizon]):
            kept[-1] = later[0]
    return tuple(kept)
