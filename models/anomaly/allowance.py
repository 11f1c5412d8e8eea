"""How large a shift is no news: what a test subtracts before it accumulates anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.anomaly.calibration import Calibration
from tailbudget.models.anomaly.normal import cdf
from tailbudget.models.anomaly.tick import FAR_POINTS, TAIL_POINTS, TAIL_SHARES, Tick

Floats = NDArray[np.float64]

LEAST_EFFECT: Final = 0.05
"""A stage that is slower by less than 5 % is left alone."""
LEAST_EFFECT_OF_TAIL: Final = 0.02
"""More slow rows are news when they lengthen the mean by 2 %: the tail lengthens by far more."""
LEAST_EFFECT_OF_WAITING: Final = 0.70
"""A queue follows the load by more than its covariates say; only a large change is news."""
JITTER_SIGMAS: Final = 2.5
_LEVERAGE: Final = 1.5
_NOVELTY: Final = 0.15  # of the latency, where nothing of such a shape was seen
_TAIL_SHIFT: Final = 1.0  # of the jitter's allowance, on the tail: its jitter has one of its own
_FAR_SHIFT: Final = 1.2  # likewise on the far tail, which has none
_SLACK: Final = 1.1
_LEAST_SHARE: Final = 0.002
_OF_WAITING: Final = 0.2


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is no news, by key.

    Attributes:
        mean: [K] of the mean score, in standard deviations.
        tail: [K, 4] share of rows beyond each of `TAIL_POINTS`, then of `FAR_POINTS`.
        usual: [K, 4] the same without allowance.
    """

    mean: Floats
    tail: Floats
    usual: Floats


@dataclass(frozen=True, slots=True)
class Doubt:
    """What is known of a key's own variation.

    Attributes:
        spread: [K] standard deviation of the residual's logarithm.
        jitter: [K] variance of the slow jitter of the mean score.
        tail_jitter: [K, 2] of the tail shares.
        leverage: [K] standard error of the prediction at these shapes.
        waiting: [K] the stage is a queue.
        calibration: the residuals of what was learnt.
        rows: [K] how many.
    """

    spread: Floats
    jitter: Floats
    tail_jitter: Floats
    leverage: Floats
    waiting: NDArray[np.bool_]
    calibration: Calibration
    rows: Floats


def allowance(tick: Tick, doubt: Doubt) -> Allowance:
    """Return how much of a tick is no news."""
    least = np.where(doubt.waiting, LEAST_EFFECT_OF_WAITING, LEAST_EFFECT) / doubt.spread
    slow = JITTER_SIGMAS * np.sqrt(doubt.jitter)
    unsure = _LEVERAGE * np.minimum(doubt.leverage, 3.0) + _NOVELTY * tick.novelty / doubt.spread
    points, shares = np.array(TAIL_POINTS), np.array(TAIL_SHARES)
    shifted = cdf((_TAIL_SHIFT * slow + unsure)[:, None] - points) - shares
    moved = np.maximum(JITTER_SIGMAS * np.sqrt(doubt.tail_jitter), shifted)
    waiting = np.where(doubt.waiting, _OF_WAITING, 0.0)[:, None]
    usual, allowed = _far(doubt, (_FAR_SHIFT * slow + unsure)[:, None])
    tail = np.concatenate([shares * _SLACK + moved, allowed], axis=1)
    return Allowance(
        mean=np.maximum(least, slow) + unsure,
        tail=np.minimum(waiting + tail, 0.6),
        usual=np.concatenate([np.broadcast_to(shares, usual.shape), usual], axis=1),
    )


def _far(doubt: Doubt, by_jitter: Floats) -> tuple[Floats, Floats]:
    """Return [K, 2] the usual and the allowed share of rows beyond `FAR_POINTS`.

    Jitter moves all rows: the share that it may lift beyond a point is read off the history.
    """
    points = np.array(FAR_POINTS)
    usual = np.clip(doubt.calibration.share_beyond(points[None, :]), _LEAST_SHARE, 0.5)
    lifted = doubt.calibration.share_beyond(points - np.minimum(by_jitter, points))
    chance = 2 * np.sqrt(usual / np.maximum(doubt.rows, 1.0)[:, None])
    # A share of the least effect: so many more rows, each slower as those there are.
    excess = doubt.calibration.excess_beyond(points[None, :])
    least = LEAST_EFFECT_OF_TAIL / np.maximum(excess, 1.0)
    return usual, np.maximum(lifted, usual) + np.maximum(chance, _LEAST_SHARE) + least
