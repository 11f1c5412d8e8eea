"""How much of a change is the workload's: the baseline's system under today's requests.

The baseline's requests are given today's mix, as J. DiNardo, N. Fortin and T. Lemieux do with wages
(Econometrica 64 (1996) 1001), in two steps. The cohorts' shares first, which is exact: the sketch
of each cohort of the baseline counts as much as the cohort does today. Then the shape of the
input, for which no sums suffice: sampled requests are matched by `models.matching`, and the
result scales the first step's.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.evidence import Evidence
from tailbudget.models.matching import Matched, shape_ratio
from tailbudget.models.ranks import ranks, requests_needed
from tailbudget.models.sampled import Sampled, sampled
from tailbudget.models.sketch import BUCKETS, bucket_index, representative
from tailbudget.schemas.cohorts import Cohort, without_instance
from tailbudget.schemas.records import ATTEMPTS
from tailbudget.schemas.summary import TOTAL, Summary

Floats = NDArray[np.float64]

SYSTEM_DIMS: Final = ("model_variant", "model", "variant", "version", "release", "deployment")
"""Dimensions that whoever runs the service chooses: a new value is a change of the system."""

FEWEST: Final = 30
"""Requests of a cohort that say how long it takes; a baseline with fewer does not know it."""


@dataclass(frozen=True, slots=True)
class Mix:
    """What today's workload does to a quantile of the baseline; None is "cannot be told".

    Attributes:
        cohort_ms: by the cohorts' shares; None without cohorts.
        shape_ms: by the shape of the input beyond that; None without common covariates, and on
            fewer sampled requests than the quantile takes.
        new_share: share of today's requests of cohorts that the baseline does not know.
        covariates: those that were matched.
        rows: sampled requests, of the baseline and of today.
    """

    cohort_ms: float | None
    shape_ms: float | None
    new_share: float
    covariates: tuple[str, ...]
    rows: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Population:
    """The successful requests of one side, as far as they are compared.

    Attributes:
        total: one group.
        cohorts: one group a cohort.
        cohort_of: cohort of each sampled request of `total`, by the hash of its id.
    """

    total: Summary
    cohorts: Summary
    cohort_of: Mapping[int, Cohort]

    def histograms(self) -> dict[Cohort, Floats]:
        """Return [BUCKETS] successful requests of each cohort, instances put together."""
        stages = len(self.cohorts.stages)
        group, stage = np.divmod(self.cohorts.cell, stages)
        mine = stage == self.cohorts.stages.index(TOTAL)
        names = [without_instance(cohort) for cohort in self.cohorts.cohorts]
        number = {name: i for i, name in enumerate(dict.fromkeys(names))}
        row = np.array([number[name] for name in names], np.int64)[group[mine]]
        key = row * BUCKETS + self.cohorts.bucket[mine]
        table = np.bincount(key, self.cohorts.count[mine], len(number) * BUCKETS)
        return dict(zip(number, table.reshape(-1, BUCKETS), strict=True))

    def names(self, rows: Sampled) -> list[Cohort]:
        """Return the cohort of each sampled request."""
        cohorts = (self.cohort_of.get(id_hash, ()) for id_hash in rows.hash.tolist())
        return [without_instance(cohort) for cohort in cohorts]


def everything(evidence: Evidence) -> Population:
    """Return all successful requests."""
    return Population(evidence.total, evidence.cohorts, evidence.cohort_of)


def outside_cold(evidence: Evidence) -> Population:
    """Return those outside of cold windows; all of them when there are no windows."""
    if evidence.warm is None or evidence.warm_cohorts is None:
        return everything(evidence)
    return Population(evidence.warm, evidence.warm_cohorts, evidence.cohort_of)


def without(cohort: Cohort, dims: Sequence[str]) -> Cohort:
    """Return a cohort without some of its dimensions."""
    return tuple(pair for pair in cohort if pair[0] not in dims)


def workload_mix(before: Population, now: Population, quantile: Fraction) -> Mix:
    """Return what today's workload does to a quantile of the baseline's successful requests."""
    old, new, q = before.histograms(), now.histograms(), float(quantile)
    plain = sum(old.values(), np.zeros(BUCKETS))
    mixed, new_share = _mixed(old, new)
    at, moved = _quantile(plain, q), _quantile(mixed, q)
    first, second = sampled(before.total), sampled(now.total)
    covariates = common_covariates(first, second)
    ratio = None
    if min(len(first), len(second)) >= requests_needed(quantile):
        sides = _matched(before, first, covariates), _matched(now, second, covariates)
        ratio = shape_ratio(*sides, q)
    return Mix(
        cohort_ms=moved - at if any(old) or any(new) else None,
        shape_ms=None if ratio is None else moved * (ratio - 1),
        new_share=new_share,
        covariates=covariates,
        rows=(len(first), len(second)),
    )


def common_covariates(before: Sampled, now: Sampled) -> tuple[str, ...]:
    """Return the covariates that both sides carry and that vary in either."""
    shared = [name for name in before.covariates if name in now.covariates and name != ATTEMPTS]
    return tuple(
        name for name in shared if _varies(np.concatenate([before.of(name), now.of(name)]))
    )


def _varies(values: Floats) -> bool:
    known = values[~np.isnan(values)]
    return len(known) > 0 and bool(known.min() < known.max())


def _mixed(old: Mapping[Cohort, Floats], new: Mapping[Cohort, Floats]) -> tuple[Floats, float]:
    """Return the baseline's sketch under today's shares, and the share of unknown cohorts.

    A cohort with a new version of the system is taken for its old ones. A cohort that the
    baseline cannot know in any version is new work, and stands for itself.
    """
    versions: defaultdict[Cohort, Floats] = defaultdict(lambda: np.zeros(BUCKETS))
    for name, counts in old.items():
        versions[without(name, SYSTEM_DIMS)] += counts
    mixed, unknown = np.zeros(BUCKETS), 0.0
    for name, counts in new.items():
        n = counts.sum()
        stand_in = old.get(name)
        if stand_in is None or stand_in.sum() < FEWEST:
            stand_in = versions.get(without(name, SYSTEM_DIMS))
        if stand_in is None or stand_in.sum() < FEWEST:
            stand_in, unknown = counts, unknown + n
        if n:
            mixed += stand_in * (n / stand_in.sum())
    return mixed, unknown / max(mixed.sum(), 1.0)


def _quantile(counts: Floats, quantile: float) -> float:
    """Return a quantile, between the edges of its bucket: small changes must not jump."""
    used = np.flatnonzero(counts)
    below = np.cumsum(counts[used])
    at = min(int(np.searchsorted(below, quantile * below[-1])), len(used) - 1)
    middle = representative(used[at : at + 1])
    width = np.ldexp(1.0, np.frexp(middle)[1] - 7)
    inside = 1 - (below[at] - quantile * below[-1]) / counts[used[at]]
    return float((middle + width * (inside - 0.5))[0])


def _matched(side: Population, rows: Sampled, covariates: tuple[str, ...]) -> Matched:
    columns = [rows.of(name) for name in covariates]
    total = rows.stage(TOTAL)
    names = side.names(rows)
    return Matched(
        total_ms=total,
        weight=calibrated(side.total, total),
        names=names,
        kinds=[without(name, SYSTEM_DIMS) for name in names],
        covariate=np.array(columns).reshape(len(covariates), len(rows)).T,
    )


_STRATA: Final = np.array([*np.arange(1, 10) / 10, 0.95, 0.97, 0.98, 0.985, 0.99, 0.995])


def calibrated(summary: Summary, total_ms: Floats) -> Floats:
    """Return weights [M] that give sampled latencies the spread of all of them.

    The sample has a few requests too many or too few in the tail; the sketch knows how many there
    are. Post-stratification: C.-E. Särndal, B. Swensson and J. Wretman, Model Assisted Survey
    Sampling (1992), 7.6.
    """
    exact = ranks(summary)
    counts = np.zeros(BUCKETS)
    counts[exact.bucket] = np.diff(exact.cumulated, prepend=0)
    stratum = np.searchsorted(_STRATA, (np.cumsum(counts) - counts / 2) / max(exact.n, 1))
    wanted = np.bincount(stratum, counts, len(_STRATA) + 1)
    mine = stratum[bucket_index(total_ms)]
    have = np.bincount(mine, minlength=len(_STRATA) + 1)
    weights: Floats = wanted[mine] / have[mine]
    return weights
