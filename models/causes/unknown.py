"""What to say when no cause is established: where the time goes, and what to measure next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tailbudget.models.causes.carrier import carrier
from tailbudget.models.causes.gap import Part
from tailbudget.models.causes.names import Role, is_external, is_waiting, role
from tailbudget.models.causes.picture import Picture
from tailbudget.models.causes.weighed import NAMED, Weighed
from tailbudget.models.causes.words import in_ms, num
from tailbudget.models.instants import rfc3339
from tailbudget.schemas.proposals import Cause, CauseName
from tailbudget.schemas.summary import UNATTRIBUTED

_QUARTER: Final = 0.25
"""Share of the gap that is worth a sentence: as much as a cause needs to be named."""


_WORTH: Final = 0.05
"""Score from which what was weighed is told."""


def unmeasured(missing: str) -> Cause:
    """Return the answer when not even the gap could be attributed."""
    return Cause(
        cause=CauseName.UNKNOWN,
        stage="",
        score=0.0,
        evidence=("no cause can be established from what was measured",),
        against=(),
        missing=(missing,),
    )


def unknown(picture: Picture, weighed: Sequence[Weighed]) -> Cause:
    """Return what is left, when none of what was weighed reaches `NAMED`."""
    weighed = [one for one in weighed if one.score >= _WORTH]
    tied = sum(one.score for one in weighed)
    part = max(picture.stages, key=lambda part: part.level_ms + part.rest_ms)
    evidence = [
        f"no cause reaches {NAMED}: "
        + (", ".join(f"{one.cause} {one.score:.2f}" for one in weighed) or "nothing was found"),
        (
            f"{part.stage} takes {in_ms(part.delta_ms)} longer in slow requests; "
            f"{in_ms(part.level_ms + part.rest_ms)} of it remain at equal inputs"
        ),
    ]
    change = _change(picture, part)
    if change:
        evidence.append(change[0])
    carried = carrier(picture)
    if carried:
        evidence.append(carried.sentence)
    hints = tuple(text for one in weighed for text in one.missing)
    missing = (*(change[1:] if change else ()), *hints, *_next(picture))
    return Cause(
        cause=CauseName.UNKNOWN,
        stage=part.stage,
        score=max(1 - tied, 0.0),
        evidence=tuple(evidence),
        against=tuple(text for one in weighed for text in one.evidence[:1]),
        missing=tuple(dict.fromkeys(missing)),
        cohort=carried.cohort if carried else "",
    )


def _change(picture: Picture, part: Part) -> tuple[str, str] | None:
    """Say when a stage became slower at equal inputs, if it did so for good or a while."""
    spans = picture.split.spans
    if picture.share(part.level_ms) < _QUARTER or len(spans) < 2:
        return None
    order = np.argsort(spans.start_ns)
    levels = part.levels_ms[order]
    steps = [
        (abs(levels[at:].mean() - levels[:at].mean()) * (at * (len(levels) - at)) ** 0.5, at)
        for at in range(1, len(levels))
    ]
    at = max(steps)[1]
    when = rfc3339(int(spans.start_ns[order[at]]))
    before, after = levels[:at].mean(), levels[at:].mean()
    text = f"at equal inputs {part.stage} went from {num(before)} to {in_ms(after)} at about {when}"
    return text, f"compare with a log from before {when} (`--baseline`): what was changed then?"


def _next(picture: Picture) -> list[str]:
    """Return what would let causes be told that cannot be told now."""
    names = [part.stage for part in picture.stages]
    texts = []
    left = next((row for row in picture.table.rows if row.stage == UNATTRIBUTED), None)
    if left and left.tail_share_pct and left.tail_share_pct > 100 * _QUARTER:
        texts.append(f"time what is in no stage: {left.tail_share_pct:.0f} % of the difference")
    if Role.SHAPE not in map(role, picture.requests.features.covariates):
        texts.append("log what shapes the input, such as sequence_length or batch_size")
    if not any(map(is_waiting, names)):
        texts.append("time the wait before work begins as a stage of its own, such as queue_ms")
    if picture.instances is None:
        texts.append("name the replica that served each request (a dimension such as instance)")
    if not picture.flags and any(is_external(name, picture.external) for name in names):
        texts.append("log whether a cache had the answer (a dimension such as cache_hit)")
    if not picture.evidence.deploys_known:
        texts.append("send deploy and scale-up events (`--deploys`, or the deploys topic)")
    return texts
