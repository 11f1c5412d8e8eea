"""How much of slow and of fast requests each part takes, such that the parts add up.

Means over a band come from the tail profile, of all requests. How the branches of a parallel group
share its time is told by the sampled requests of the band: each has the time in which it is the
longest, as a ratio to the group's stages together (a ratio estimate, Cochran, Sampling Techniques
(1977), chapter 6), and together no more than the other stages leave of the total. Without sampled
requests the group has all that the other stages leave, up to its stages together: by how much its
branches overlap is then unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tailbudget.models.attribution import Structure
from tailbudget.models.breakdown import Breakdown, Floats
from tailbudget.schemas.summary import TOTAL, UNATTRIBUTED
from tailbudget.schemas.verdicts import TailTable


@dataclass(frozen=True, slots=True)
class Shares:
    """Mean milliseconds of each part; containers have none.

    Attributes:
        fast: by stage, over the fast band; the total is among them.
        slow: likewise over the slow band.
    """

    fast: dict[str, float]
    slow: dict[str, float]

    def gap_ms(self, part: str) -> float | None:
        """Return what a part adds to the difference of the totals; None for a container.

        Over all parts it adds up exactly: unattributed time is what the others leave, below 0
        where stages overlap by so little that they count as serial.
        """
        if part == UNATTRIBUTED:
            return _rest(self.slow) - _rest(self.fast)
        return self.slow[part] - self.fast[part] if part in self.slow else None

    def slow_share_pct(self, part: str) -> float | None:
        """Return the share of the slow band's total; None for a container, or of no time."""
        whole = max(self.slow[TOTAL], self.slow[TOTAL] - _rest(self.slow))
        if part not in self.slow or whole <= 0:
            return None
        ms = max(_rest(self.slow), 0.0) if part == UNATTRIBUTED else self.slow[part]
        return 100 * ms / whole


def shares(table: TailTable, relations: Structure, rows: Breakdown) -> Shares:
    """Return the parts of a slow-minus-fast table."""
    means = [(table.total.mean_fast_ms, table.total.mean_slow_ms)]
    means += [(row.mean_fast_ms, row.mean_slow_ms) for row in table.rows]
    names = [TOTAL, *(row.stage for row in table.rows)]
    fast, slow = (dict(zip(names, band, strict=True)) for band in zip(*means, strict=True))
    return Shares(
        fast=_parts(fast, relations, rows, rows.fast), slow=_parts(slow, relations, rows, rows.slow)
    )


def _parts(
    means: dict[str, float], relations: Structure, rows: Breakdown, weight: Floats
) -> dict[str, float]:
    parts = {name: means[name] for name in (TOTAL, *relations.serial)}
    branches = [name for group in relations.groups for name in group]
    if branches:
        found = _branches(means, relations, rows, weight)
        together, room = sum(found.values()), max(_rest(parts), 0.0)
        squeeze = min(room / together, 1.0) if together else 1.0
        parts |= {name: ms * squeeze for name, ms in found.items()}
    unattributed = means[UNATTRIBUTED] if relations.plain else max(_rest(parts), 0.0)
    return parts | {UNATTRIBUTED: unattributed}


def _branches(
    means: dict[str, float], relations: Structure, rows: Breakdown, weight: Floats
) -> dict[str, float]:
    """Return the time of each branch before it is squeezed into what there is."""
    names = tuple(name for group in relations.groups for name in group)
    if not rows.requests or not weight.any():
        return {name: means[name] for name in names}
    ms = rows.of(names)
    longest = weight @ relations.path_ms(names, ms)
    result: dict[str, float] = {}
    for group in relations.groups:
        at = [names.index(name) for name in group]
        seen = float((weight @ ms[:, at]).sum())
        whole = sum(means[name] for name in group)
        ratio = whole / seen if seen else 0.0
        result |= dict(zip(group, (longest[at] * ratio).tolist(), strict=True))
    return result


def _rest(parts: dict[str, float]) -> float:
    """Return the total less the parts, unattributed time not among them."""
    covered = [ms for name, ms in parts.items() if name not in (TOTAL, UNATTRIBUTED)]
    return parts[TOTAL] - float(np.sum(covered))
