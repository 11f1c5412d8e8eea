"""Would another model help? Why not, where the tail comes from something else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tailbudget.models.cuts import cut_of, quantile_of
from tailbudget.models.evidence import Evidence
from tailbudget.models.figures import figure
from tailbudget.models.fix_case import Case, case_of
from tailbudget.models.optimizations import named
from tailbudget.models.paired_p99 import FEWEST_SAMPLED, P99
from tailbudget.models.places import FORWARD, place_of
from tailbudget.schemas.findings import Findings
from tailbudget.schemas.proposals import Cause, CauseName
from tailbudget.schemas.sections import StageRow
from tailbudget.schemas.summary import TOTAL


def why_no_swap(evidence: Evidence, found: Findings, causes: Sequence[Cause]) -> str:
    """Return why a smaller or faster model is not what helps; empty where it might be."""
    strongest = next(iter(named(causes)), None)
    if strongest is None:
        return ""
    case = case_of(evidence, found, strongest)
    if place_of(case.stage) != FORWARD:
        return _elsewhere(case.stage, found.stages)
    if strongest.cause is CauseName.INPUT_SHAPE and strongest.covariate in case.rows.covariates:
        return _by_shape(case)
    return ""


def _elsewhere(stage: str, table: Sequence[StageRow]) -> str:
    """Say how little of a slow request the model is, where that is known and small."""
    shares = [row.p99_share_pct for row in table if place_of(row.stage) == FORWARD]
    known = [share for share in shares if share is not None]
    if not known or not stage or sum(known) >= 50:
        return ""
    return (
        f"A model swap would not help: the model takes {sum(known):.0f} % of slow requests, and"
        f" what makes them slow is {stage}."
    )


def _by_shape(case: Case) -> str:
    """Say what the requests without the long inputs have, and how fast a model would need to be."""
    rows, covariate = case.rows, case.cause.covariate
    x, total = rows.of(covariate), rows.stage(TOTAL)
    cut = cut_of(x, case.weight, lambda at: np.where(x > at, np.nan, total), case.target_ms)
    if cut is None or len(total) < FEWEST_SAMPLED:
        return ""
    longer = x > cut
    now = quantile_of(total, case.weight, P99)
    rest = quantile_of(total[~longer], case.weight[~longer], P99)
    goal = case.target_ms or rest
    if now is None or rest is None or goal is None or not rest <= goal < now:
        return ""
    share = 100 * case.weight[longer].sum() / case.weight.sum()
    return (
        f"A model swap would not help: {share:.1f} % of requests have"
        f" {covariate} above {figure(cut, 6)}, and without those p99 is {figure(rest)} ms already;"
        f" to reach {figure(goal)} ms with them, requests would have to be {now / goal:.1f} times"
        f" as fast (estimate), for inputs that other fixes keep away."
    )
