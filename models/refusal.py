"""When an audit says no: work that has no latency budget, and fixes that nothing supports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from tailbudget.models.batch_signs import Sign, signs
from tailbudget.models.causes import NAMED
from tailbudget.models.causes.names import NO_COMPONENT
from tailbudget.models.evidence import Evidence
from tailbudget.schemas.findings import Findings
from tailbudget.schemas.proposals import Cause, CauseName

BATCH: Final = "batch_workload"
"""The reason of a refusal for batch or offline work."""

_BATCH_WORDS: Final = ("batch", "offline", "nightly", "training", "evaluation", "backfill")
WORKLOADS: Final = ("online", *_BATCH_WORDS)
"""What a workload may be declared to be."""

_HANDOFF: Final = (
    "Use a throughput or profiling tool: measure items a second and cost for a whole run, and "
    "profile the job (py-spy, torch.profiler, Nsight Systems)"
)
_AGREEING: Final = 2
"""Signs that must agree, one of them decisive: each alone is also true of some live service."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no audit is given.

    Attributes:
        reason: a permanent name, such as "batch_workload".
        detail: the signs with their figures, a sentence without its full stop.
        handoff: what to use instead, likewise.
    """

    reason: str
    detail: str
    handoff: str


def refusal(evidence: Evidence, *, declared: str | None) -> Refusal | None:
    """Return why the evidence is not to be audited; None when it is.

    Args:
        evidence: of one service.
        declared: what the user says the workload is, such as "batch" or "online"; what is said
            goes before what is seen. None says nothing.
    """
    if declared is not None and declared.strip():
        said = declared.strip().lower()
        if said not in _BATCH_WORDS:
            return None
        return Refusal(BATCH, f"The workload is declared to be {said}", _HANDOFF)
    seen = signs(evidence)
    if len(seen) < _AGREEING or not any(sign.decisive for sign in seen):
        return None
    return Refusal(BATCH, _detail(seen), _HANDOFF)


def is_attributed(found: Findings) -> bool:
    """Return whether any stage of a request was timed."""
    return any(row.stage not in NO_COMPONENT for row in found.stages)


def may_recommend(found: Findings, causes: Sequence[Cause]) -> str:
    """Return why no fix may be recommended; empty when one may.

    A fix takes a measured attribution to stages and a cause that is named.
    """
    if not is_attributed(found):
        return "no stage is timed, so no fix can be named: log the stages of a request"
    if found.tail_driver is None:
        return "slow requests take no longer than fast ones: there is no tail to fix"
    named = [one for one in causes if one.cause is not CauseName.UNKNOWN and one.score >= NAMED]
    if named:
        return ""
    next_step = next((text for one in causes for text in one.missing), "")
    return "no fix without a named cause" + (f": {next_step}" if next_step else "")


def _detail(seen: Sequence[Sign]) -> str:
    texts = "; ".join(sign.sentence for sign in seen)
    return f"This looks like batch or offline work: {texts}"
