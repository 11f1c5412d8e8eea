"""What a fix is applied to: a cause, in the sampled requests of what was measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.evidence import Evidence
from tailbudget.models.replay import Layout, layout
from tailbudget.models.sampled import Sampled, sampled
from tailbudget.models.strata import Strata, strata
from tailbudget.schemas.findings import Findings
from tailbudget.schemas.proposals import Cause
from tailbudget.schemas.summary import TOTAL

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Case:
    """What a fix is applied to.

    Attributes:
        evidence: what was measured.
        rows: its uniform sample.
        layers: the sample by latency.
        weight: [M] how many requests each of the sample stands for.
        lay: how its stages lie in time.
        cause: the cause that the fix treats.
        stage: the stage that it acts through; empty when there is none.
        target_ms: what p99 is to reach; None without a target.
    """

    evidence: Evidence
    rows: Sampled
    layers: Strata
    weight: Floats
    lay: Layout
    cause: Cause
    stage: str
    target_ms: float | None


def case_of(evidence: Evidence, found: Findings, cause: Cause) -> Case:
    """Return the case of a cause; one without a stage acts through the tail driver."""
    rows = sampled(evidence.total)
    layers = strata(evidence.total, rows.stage(TOTAL))
    driver = found.tail_driver.stage if found.tail_driver else ""
    stage = cause.stage if cause.stage not in ("", TOTAL) else driver
    return Case(
        evidence=evidence,
        rows=rows,
        layers=layers,
        weight=layers.weights(np.ones((1, len(rows))))[0],
        lay=layout(rows, found.stages),
        cause=cause,
        stage=stage if stage in rows.stages else "",
        target_ms=found.slo.p99_ms if found.slo else None,
    )
