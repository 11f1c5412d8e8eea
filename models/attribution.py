"""What a request's time is made up of, when stages hold others or run at the same time.

The parts of a request are the stages that hold no others, groups of stages that run at the same
time, each as long as its longest stage, and what is left of the total: unattributed time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from tailbudget.models.breakdown import Breakdown, Floats, breakdown
from tailbudget.models.nesting import Container, differ, encloser, sums_of_others
from tailbudget.models.overlap import crowded, parallel_groups
from tailbudget.models.tail import FAST, slow_band
from tailbudget.schemas.summary import Summary

_MOST_DOUBTFUL: Final = 8


@dataclass(frozen=True, slots=True)
class Structure:
    """How the stages of a service relate.

    Attributes:
        containers: stages that hold others, and are added to nothing.
        groups: stages that run at the same time, two or more each.
        serial: the other stages.
    """

    containers: tuple[Container, ...]
    groups: tuple[tuple[str, ...], ...]
    serial: tuple[str, ...]

    @property
    def plain(self) -> bool:
        """Whether all stages run one after the other, so that they just add up."""
        return not self.containers and not self.groups

    def covered_ms(self, names: tuple[str, ...], ms: Floats) -> Floats:
        """Return [M] the time that the parts cover: stages, and the longest of each group.

        What a change would save is the difference of two of these, with the stage's times as they
        are and as they would be: one branch of several that are equally long saves nothing.

        Args:
            names: of the columns of `ms`; all of this structure are among them.
            ms: [M, len(names)] times; NaN is no time.
        """
        times = np.nan_to_num(ms)
        serial = times[:, [names.index(name) for name in self.serial]]
        covered: Floats = serial.sum(axis=1) + self.path_ms(names, times).sum(axis=1)
        return covered

    def path_ms(self, names: tuple[str, ...], ms: Floats) -> Floats:
        """Return [M, len(names)] the time of each branch where it is the longest of its group.

        Branches that are equally long share the time; other columns are 0.
        """
        path = np.zeros(ms.shape)
        for group in self.groups:
            at = [names.index(name) for name in group]
            branches = ms[:, at]
            longest = branches.max(axis=1, keepdims=True)
            first = (branches == longest) & (longest > 0)
            path[:, at] = first * longest / np.maximum(first.sum(axis=1, keepdims=True), 1)
        return path


def structure(total: Summary, threshold: str | float) -> Structure:
    """Find out how the stages of a one-group summary relate, from its sample or its profile.

    Without a sample (windows) a stage that encloses others, with time of its own, is not told from
    one that runs beside them.

    Raises:
        ValueError: the summary has not exactly one group, or the threshold names no percentile.
    """
    return structure_of(breakdown(total, slow_band(threshold), FAST))


def structure_of(rows: Breakdown) -> Structure:
    """Find out how the stages relate."""
    containers = _credible(rows, sums_of_others(rows, crowded=crowded(rows, rows.names)))
    leaves = _without(rows.names, containers)
    while crowded(rows, leaves):
        found = encloser(rows, leaves)
        if found is None:
            break
        containers.append(found)
        leaves = _without(leaves, containers)
    groups = parallel_groups(rows, leaves)
    together = {name for group in groups for name in group}
    serial = tuple(name for name in leaves if name not in together)
    containers.sort(key=lambda one: one.stage)
    return Structure(tuple(containers), groups, serial)


def _credible(rows: Breakdown, sums: tuple[Container, ...]) -> list[Container]:
    """Return the sums that are no accident.

    Where requests don't differ, 60 is the sum of 40 and 20 though it holds neither. Of such sums
    those are taken without which the other stages fit into the total and cover most of it; all of
    them where they never fit.
    """
    sure = [one for one in sums if differ(rows, one.stage)]
    doubtful = [one for one in sums if one not in sure]
    if not doubtful or len(doubtful) > _MOST_DOUBTFUL:
        return list(sums)
    best, most = list(sums), 0.0
    for count in range(len(doubtful) + 1):
        for some in combinations(doubtful, count):
            leaves = _without(rows.names, [*sure, *some])
            covered = float(rows.weight @ rows.of(leaves).sum(axis=1))
            if covered > most and not crowded(rows, leaves):
                best, most = [*sure, *some], covered
    return best


def _without(names: tuple[str, ...], containers: list[Container]) -> tuple[str, ...]:
    held = {one.stage for one in containers}
    return tuple(name for name in names if name not in held)
