"""What can be batched, cached and made smaller: general knowledge, tied to what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tailbudget.models.figures import figure
from tailbudget.models.places import FORWARD
from tailbudget.schemas.brief import Option
from tailbudget.schemas.proposals import CauseName
from tailbudget.schemas.verdicts import Audit, leading

_BATCHING: Final[Mapping[str, str]] = {
    "Dynamic": "P95 grows by up to its wait limit at low load, and falls at high load.",
    "Micro": "splits large requests: their P95 falls, per-call overhead rises.",
    "Continuous": "requests join at each token, so P95 no longer follows the longest neighbour.",
}

_CACHING: Final[Mapping[str, str]] = {
    "Embedding": "invalid after a new embedding model, tokeniser or document version.",
    "KV": "lives for one generation; invalid after new weights, precision or eviction.",
    "Prefix": "invalid after any change of the shared prompt, template or adapter.",
    "Response": "invalid after a new model, prompt, user data or expiry.",
}

_REDUCTIONS: Final[Mapping[str, str]] = {
    "Pruning": "gains only where the hardware uses the sparsity.",
    "Quantisation": "less memory traffic; compare quality.",
    "Distillation": "retraining; highest quality risk.",
    "Smaller architecture": "retraining, or another model; compare quality.",
    "Operator fusion": "same answers within tolerance; compile per shape.",
}


def batching(audit: Audit, queue_pct: float | None) -> tuple[Option, ...]:
    """Return ways to batch; the wait that P95 leaves room for stands with the first."""
    row = leading(audit.end_to_end).get("p95")
    room = None if row is None else row.headroom_ms
    if room is None:
        said = "No P95 target: its room for waiting is unknown."
    elif room > 0:
        said = f"Keep that limit below the measured {figure(room)} ms headroom."
    else:
        said = "P95 has no measured headroom for it."
    if queue_pct is not None:
        said += f" Queueing is {queue_pct:.0f} % of slow time."
    return tuple(
        Option(name, f"{text} {said}" if name == "Dynamic" else text)
        for name, text in _BATCHING.items()
    )


def caching(*, miss_measured: bool) -> tuple[Option, ...]:
    """Return the caches; without a measured miss ratio none is recommended."""
    note = "Miss ratio measured." if miss_measured else "No miss ratio measured: measure it first."
    return (*(Option(name, text) for name, text in _CACHING.items()), Option("Evidence", note))


def reductions(audit: Audit, forward_pct: float | None) -> tuple[Option, ...]:
    """Return ways to make the model smaller, with the most that they can reach."""
    if forward_pct is None:
        bound = f"the share of the {FORWARD} is not measured."
    else:
        bound = f"the {FORWARD} is {forward_pct:.0f} % of slow time; no reduction saves more."
    cause = audit.causes[0] if audit.causes else None
    if cause is not None and cause.cause is CauseName.INPUT_SHAPE and cause.covariate:
        bound += (
            f" The tail comes from {cause.covariate}: a model swap speeds all requests up alike,"
            " and leaves these the slowest."
        )
    return (*(Option(name, text) for name, text in _REDUCTIONS.items()), Option("Bound", bound))
