"""External dependency: a call to another process became slow, whoever asked for what.

Share: what such a stage adds to the gap, less what inputs, fan-out, measured cache misses, one
replica, stragglers among parallel calls and cold windows explain. Established: how evenly slow
requests spread over cohorts (1 when as all calls do), times 0.9 where whole spans of time were
slow, and 0.6 where slow calls are scattered; 0.2 where scattered calls make a second mode and no
flag says whether a cache had the answer, for misses look the same.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tailbudget.models.causes.cache_miss import stage_modes, tied_share
from tailbudget.models.causes.cold import cold_share
from tailbudget.models.causes.contention import neighbour
from tailbudget.models.causes.fanout import straggler_share
from tailbudget.models.causes.gap import Part
from tailbudget.models.causes.input_shape import credible
from tailbudget.models.causes.modes import Modes
from tailbudget.models.causes.names import Role, is_external, role
from tailbudget.models.causes.picture import Picture
from tailbudget.models.causes.values import Values
from tailbudget.models.causes.weighed import Weighed
from tailbudget.models.causes.words import in_ms
from tailbudget.schemas.proposals import CauseName

_SCATTERED: Final = 0.6
_LIKE_MISSES: Final = 0.2
_AT_ONCE: Final = 0.9
_NARROW: Final = 0.5


def weigh(picture: Picture) -> Weighed | None:
    """Return the cause; None when no external stage is slower in slow requests."""
    own = [
        (own_ms(picture, part), part)
        for part in picture.stages
        if is_external(part.stage, picture.external)
    ]
    ms, part = max(own, key=lambda row: row[0], default=(0.0, None))
    if part is None or ms <= 0:
        return None
    at_once = _at_once(picture, part.stage)
    breadth, narrow = _breadth(picture, part.stage)
    modes = None if picture.flags else stage_modes(picture, part.stage)
    base = _LIKE_MISSES if modes else _SCATTERED
    share = picture.share(ms)
    for other in (tied_share, cold_share, straggler_share, _of_one_replica):
        share *= 1 - other(picture)
    return Weighed(
        cause=CauseName.EXTERNAL_DEPENDENCY,
        stage=part.stage,
        share=share,
        established=(base + (_AT_ONCE - base) * at_once) * breadth * picture.confidence,
        evidence=_evidence(picture, part, (ms, breadth, at_once)),
        against=_narrow(breadth, narrow) + _against(part, ms, at_once, modes),
        missing=(f"time {part.stage} at the other side, and log its answer's status",),
    )


def _at_once(picture: Picture, stage: str) -> float:
    """Return how far the slow calls of a stage are slow because all calls of their time are.

    Of those requests that make the call: the others do not say whether it was slow.
    """
    rows, spans = picture.requests, picture.split.spans
    column = rows.stages.index(stage)
    calls = rows.stage_ms[:, column] > 0
    ms, of, slow = picture.split.adjusted_ms[calls, column], spans.of[calls], rows.slow[calls]
    n, sums = np.bincount(of, minlength=len(spans)), np.bincount(of, ms, len(spans))
    others = np.where(n[of] > 1, (sums[of] - ms) / np.maximum(n[of] - 1, 1), ms)
    usual = float(np.median(sums[n > 0] / n[n > 0]))
    if not slow.any() or ms[slow].mean() <= usual:
        return 0.0
    share = (others[slow].mean() - usual) / (ms[slow].mean() - usual)
    return float(np.clip(share, 0.0, 1.0))


def own_ms(picture: Picture, part: Part) -> float:
    """Return what a stage adds to the gap at equal inputs and fan-out."""
    explained = sum(
        max(ms, 0.0) * credible(picture, part.stage, name)
        for name, ms in part.by_covariate.items()
        if role(name) in (Role.SHAPE, Role.FANOUT)
    )
    return max(part.delta_ms - explained, 0.0)


def _of_one_replica(picture: Picture) -> float:
    return neighbour(picture)[0]


def _breadth(picture: Picture, stage: str) -> tuple[float, str]:
    """Return how evenly slow requests spread over the narrowest dimension, and its name."""
    spread = [
        (_overlap(values, stage, picture.table.slow_n), values.dimension)
        for values in picture.others
    ]
    return min(spread, default=(1.0, ""))


def _overlap(values: Values, stage: str, slow_n: int) -> float:
    """Return the overlap of slow requests and callers, mended for how few slow requests there are.

    With n requests over V values chance alone takes about 0.4 sqrt(V / n) of it.
    """
    calls = values.carriers[:, values.stages.index(stage)]
    chance = 0.4 * math.sqrt(len(values.names) / slow_n)
    return min(float(np.minimum(values.slow, calls / max(int(calls.sum()), 1)).sum()) + chance, 1.0)


def _evidence(picture: Picture, part: Part, figures: tuple[float, float, float]) -> tuple[str, ...]:
    ms, breadth, at_once = figures
    row = next(row for row in picture.table.rows if row.stage == part.stage)
    declared = part.stage in picture.external
    texts = [
        (
            f"{part.stage} takes {in_ms(row.mean_slow_ms)} in slow requests and "
            f"{in_ms(row.mean_fast_ms)} in fast ones; it is a call to another process by its "
            f"{'declaration' if declared else 'name'}"
        ),
        f"{in_ms(ms)} of the difference remain at equal inputs",
    ]
    if breadth >= _NARROW and picture.others:
        texts.append(
            f"slow requests spread over cohorts as all calls do (overlap {100 * breadth:.0f} %)"
        )
    if at_once > 0.25:
        texts.append(
            f"{100 * at_once:.0f} % of what its slow calls take longer lies in spans of time in "
            "which all calls were slow"
        )
    return tuple(texts)


def _narrow(breadth: float, dimension: str) -> tuple[str, ...]:
    if breadth >= _NARROW:
        return ()
    text = f"slow requests gather in few values of {dimension} (overlap {100 * breadth:.0f} %)"
    return (text,)


def _against(part: Part, ms: float, at_once: float, modes: Modes | None) -> tuple[str, ...]:
    texts = []
    if at_once < 0.5:
        like = ": misses of a cache would look the same" if modes else ""
        texts.append(f"slow calls are scattered over time, not slow at once{like}")
    if part.delta_ms - ms > ms:
        texts.append(f"inputs explain {in_ms(part.delta_ms - ms)} of {in_ms(part.delta_ms)}")
    return tuple(texts)
