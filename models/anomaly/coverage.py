"""Whether anything like a row was seen before: what was not is not judged."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.per_key import Field, PerKey
from tailbudget.models.shape.roles import SLOTS

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

SEEN: Final = 5.0
"""A size of which fewer rows were seen, within half an octave, is unseen."""
_HALF_NOVEL: Final = 30.0
_MEMORY_ROWS: Final = 40.0
_WORK: Final = [i for i, role in enumerate(SLOTS) if role == "work"]


class Coverage(PerKey):
    """How much of a key's traffic was of shapes that it has not seen.

    Attributes:
        unseen: [K] share of the latest rows.
        accepted: [K] the new normal is being learnt.
    """

    FIELDS: ClassVar[Mapping[str, Field]] = {"unseen": ((), 0.0), "accepted": ((), False)}
    unseen: Floats
    accepted: Mask

    def judge(self, key: Integers, seen: Floats) -> Mask:
        """Return [N] which rows may be judged, given how often each slot was seen [N, 7].

        Sizes decide. Load does not: a fault makes queues that were never seen before.
        """
        shown: Mask = seen[:, _WORK].min(axis=1, initial=np.inf) >= SEEN
        rows = np.bincount(key, minlength=self.size)
        hidden = np.bincount(key, ~shown, self.size)
        share = np.minimum(rows / _MEMORY_ROWS, 1.0)
        self.unseen += share * (hidden / np.maximum(rows, 1) - self.unseen)
        return shown

    @staticmethod
    def novelty(seen: Floats) -> Floats:
        """Return [N] 0 for familiar rows, near 1 for those whose like was hardly seen."""
        least = seen.min(axis=1, initial=np.inf)
        novelty: Floats = _HALF_NOVEL / (_HALF_NOVEL + least)
        return novelty
