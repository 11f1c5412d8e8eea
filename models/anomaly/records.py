"""Sampled whole requests, and the rows of a tick that they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tailbudget.models.causes.names import NO_COMPONENT
from tailbudget.models.sample import fair
from tailbudget.schemas.anomalies import StageCohort, TickRows
from tailbudget.schemas.cohorts import Cohort, cohort_text, without_instance
from tailbudget.schemas.summary import TOTAL, Summary

_REMEMBERED: Final = 4096


@dataclass(frozen=True, slots=True)
class Records:
    """Requests out of the samples of summaries.

    Attributes:
        ts_ns: [M] event time.
        hash: [M] hash of the request id, uniform.
        cohorts: texts of the cohorts, the instance left out of each.
        cohort: [M] index into `cohorts`.
        stages: [S] stages that are judged.
        ms: [M, S] their times; NaN where a request has none.
        covariates: [C] names.
        covariate: [M, C] NaN is missing.
    """

    ts_ns: NDArray[np.int64]
    hash: NDArray[np.uint64]
    cohorts: tuple[str, ...]
    cohort: NDArray[np.int64]
    stages: tuple[str, ...]
    ms: NDArray[np.float64]
    covariates: tuple[str, ...]
    covariate: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.ts_ns)


def records_of(summary: Summary) -> Records:
    """Return the uniform sample of a summary, without those that are kept for being slow.

    The stages are the service's own; of a service that has none the total is judged. Instances
    are taken together: they do the same work, and a new one has nothing to learn anew.
    """
    sample = summary.sample
    kept = fair(sample)
    own = [s for s, name in enumerate(summary.stages) if name not in NO_COMPONENT]
    shown = own or [summary.stages.index(TOTAL)]
    texts = [_text(cohort) for cohort in summary.cohorts]
    cohorts = tuple(sorted(set(texts)))
    number = {text: i for i, text in enumerate(cohorts)}
    of_group = np.array([number[text] for text in texts], np.int64)
    values = sample.values[kept]
    return Records(
        ts_ns=sample.ts_ns[kept],
        hash=sample.hash[kept],
        cohorts=cohorts,
        cohort=of_group[sample.group[kept]],
        stages=tuple(summary.stages[s] for s in shown),
        ms=values[:, shown],
        covariates=summary.covariates,
        covariate=values[:, len(summary.stages) :],
    )


def joined(parts: Sequence[Records]) -> Records:
    """Return the records of all parts, which may differ in stages, covariates and cohorts.

    Raises:
        ValueError: there is no part.
    """
    if len(parts) == 1:
        return parts[0]
    cohorts = tuple(sorted({text for part in parts for text in part.cohorts}))
    stages = tuple(sorted({name for part in parts for name in part.stages}))
    covariates = tuple(sorted({name for part in parts for name in part.covariates}))
    number = {text: i for i, text in enumerate(cohorts)}
    of = [np.array([number[text] for text in part.cohorts], np.int64) for part in parts]
    return Records(
        ts_ns=np.concatenate([part.ts_ns for part in parts]),
        hash=np.concatenate([part.hash for part in parts]),
        cohorts=cohorts,
        cohort=np.concatenate([of[i][part.cohort] for i, part in enumerate(parts)]),
        stages=stages,
        ms=np.concatenate([_spread(part.ms, part.stages, stages) for part in parts]),
        covariates=covariates,
        covariate=np.concatenate(
            [_spread(part.covariate, part.covariates, covariates) for part in parts]
        ),
    )


def some(records: Records, at: NDArray[np.intp] | NDArray[np.bool_]) -> Records:
    """Return the records at these places."""
    return replace(
        records,
        ts_ns=records.ts_ns[at],
        hash=records.hash[at],
        cohort=records.cohort[at],
        ms=records.ms[at],
        covariate=records.covariate[at],
    )


def thinned(records: Records, most: int) -> Records:
    """Return at most so many records: those of the smallest hashes, in their order."""
    if len(records) <= most:
        return records
    return some(records, np.sort(np.argpartition(records.hash, most)[:most]))


def rows_of(records: Records) -> TickRows:
    """Return one row for every stage that a request has."""
    stages = len(records.stages)
    record, stage = np.nonzero(np.isfinite(records.ms))
    found, key = np.unique(records.cohort[record] * stages + stage, return_inverse=True)
    keys = tuple(
        StageCohort(records.stages[k % stages], records.cohorts[k // stages])
        for k in found.tolist()
    )
    return TickRows(
        keys=keys,
        key=key.astype(np.int64).reshape(-1),
        ms=records.ms[record, stage],
        covariates=records.covariates,
        covariate=records.covariate[record],
    )


def _spread(
    values: NDArray[np.float64], names: tuple[str, ...], wanted: tuple[str, ...]
) -> NDArray[np.float64]:
    """Return the columns that are wanted; one that is not there is NaN."""
    if names == wanted:
        return values
    spread = np.full((len(values), len(wanted)), np.nan)
    spread[:, [wanted.index(name) for name in names]] = values
    return spread


@lru_cache(_REMEMBERED)
def _text(cohort: Cohort) -> str:
    return cohort_text(without_instance(cohort))
