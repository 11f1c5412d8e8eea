"""Does a fix of the catalogue come into question for a cause?"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from tailbudget.models.fix_case import Case
from tailbudget.models.hit_ratio import hits_of, tells_hits
from tailbudget.models.load import load_slots
from tailbudget.models.replay import matching
from tailbudget.models.what_if import beside
from tailbudget.schemas.catalogue import Fix
from tailbudget.schemas.cohorts import is_instance
from tailbudget.schemas.findings import Findings
from tailbudget.schemas.proposals import CauseName


def signs_of(case: Case, found: Findings) -> AbstractSet[str]:
    """Return the signs (`catalogue.Sign`) that hold, and "miss_ratio" where one was measured."""
    kinds = {window.kind for window in case.evidence.cold_windows}
    dimension = case.cause.cohort.partition("=")[0]
    instance = is_instance(dimension)
    held = {
        "covariate": case.cause.covariate in case.rows.covariates,
        "cohort": bool(dimension) and not instance,
        "instance": instance,
        "deploys": "deploy" in kinds,
        "scale_ups": "scale_up" in kinds or bool(found.cold_start.suspected),
        "load_varies": load_slots(case.evidence) is not None,
        "miss_ratio": _miss_ratio(case, dimension),
    }
    return {sign for sign, holds in held.items() if holds}


def applies(fix: Fix, case: Case, signs: AbstractSet[str]) -> bool:
    """Tell whether a fix comes into question.

    No cache without a measured miss ratio, and nothing in parallel without another stage.
    """
    cause, when = case.cause, fix.applies_when
    if cause.cause not in fix.causes or not set(when.signs) <= signs:
        return False
    caching = cause.cause is CauseName.CACHE_MISS or fix.effect.kind == "hit_ratio"
    if caching and "miss_ratio" not in signs:
        return False
    if fix.effect.kind == "parallel" and not beside(case, fix.effect):
        return False
    return all(
        not patterns or matching((name,), patterns)
        for name, patterns in ((case.stage, when.stages), (cause.covariate, when.covariates))
    )


def _miss_ratio(case: Case, dimension: str) -> bool:
    return tells_hits(dimension) or hits_of(case.rows, case.cause.covariate) is not None
