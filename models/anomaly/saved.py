"""The state of a guard as bytes, and back."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final, TypeVar

import numpy as np

from tailbudget.models.state_bytes import pack, unpack
from tailbudget.schemas.errors import WireError

if TYPE_CHECKING:
    from tailbudget.models.anomaly.guard import Guard

SCHEMA: Final = "tailbudget.guard/1"
PER_KEY: Final = (
    *("calibration", "tests", "jitter", "clumps", "sizes", "alarms", "effects", "coverage"),
)
"""The parts of a guard that have one row a key."""
_TIMES: Final = ("ticked_s", "learnt_s", "refit_s", "cold_until_s")

G = TypeVar("G", bound="Guard")


def dump(guard: Guard) -> bytes:
    """Return the state of a guard; equal states give equal bytes."""
    arrays = {f"bank.{name}": array for name, array in guard.shapes.bank.arrays().items()}
    for part in (*PER_KEY, "pooled"):
        named = getattr(guard, part).arrays()
        arrays |= {f"{part}.{name}": array for name, array in named.items()}
    arrays["times"] = np.array([getattr(guard, name) for name in _TIMES])
    small = {
        "shapes": guard.shapes.small(),
        "counts": dict(sorted(guard.counts.items())),
        "said": sorted(guard.said.cohorts.items()),
    }
    return pack(SCHEMA, small, arrays)


def load(guard: G, body: bytes) -> G:
    """Put a state into a new guard.

    Raises:
        WireError: it is damaged, or of another version.
    """
    small, arrays = unpack(SCHEMA, body)
    try:
        parts = {
            part: {name: arrays[f"{part}.{name}"] for name in getattr(guard, part).FIELDS}
            for part in (*PER_KEY, "pooled")
        }
        bank = {name: arrays[f"bank.{name}"] for name in guard.shapes.bank.FIELDS}
        guard.shapes.restore(small["shapes"], bank)
        guard.counts = Counter(small["counts"])
        guard.said.cohorts = {int(stage): list(keys) for stage, keys in small["said"]}
        for name, value in zip(_TIMES, arrays["times"].tolist(), strict=True):
            setattr(guard, name, value)
    except (KeyError, TypeError, ValueError) as error:
        raise WireError(f"the state of a guard lacks {error}") from error
    for part in PER_KEY:
        getattr(guard, part).restore(parts[part], len(guard.shapes.keys))
    guard.pooled.restore(parts["pooled"], len(guard.shapes.stages))
    guard.grow(len(guard.shapes.keys))
    return guard
