"""Which columns are stages, covariates and cohort dimensions, where nobody named them.

Everything is told by the names and by the first rows, so that it does not depend on how a log is
cut; and everything is said, so that a reader can disagree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tailbudget.schemas.records import TOKEN_TIMES
from tailbudget.schemas.services import DEFAULT_COHORT_DIMS, DEFAULT_COVARIATES
from tailbudget.streams.audit_log import names
from tailbudget.streams.audit_log.sample import MANY, Column, Sample
from tailbudget.streams.audit_log.wanted import Wanted
from tailbudget.streams.sources import fields
from tailbudget.streams.sources.base import Rules, ServiceRules

LABELS: Final = frozenset({"model", "version", "endpoint", "zone", "method", "cache_hit"})
"""Names of dimensions that are kept though they have one value in the first rows."""

ROWS_PER_VALUE: Final = 20
"""A column of text with fewer rows a value is no label: the p50 of a cohort takes 20 requests."""

MAX_COHORTS: Final = 2000
"""Combinations of values that are kept apart, as many as the stream does (`stream.max_cohorts`)."""


@dataclass(frozen=True, slots=True)
class Discovered:
    """What was found out.

    Attributes:
        rules: how to read all rows.
        said: a sentence for each thing that nobody named.
        replica: the dimension of the replicas, if there is one.
    """

    rules: Rules
    said: tuple[str, ...]
    replica: str | None


def discover(sample: Sample, base: Rules, wanted: Wanted) -> Discovered:
    """Fill in what was not named.

    Args:
        sample: the first rows.
        base: rules without columns, or those of the settings.
        wanted: what was named.
    """
    said: list[str] = []
    if wanted.rules is not None:
        service = _named(base.default, wanted)
        services = {name: _named(own, wanted) for name, own in base.services.items()}
        rules = replace(base, default=service, services=services)
        return Discovered(rules, (), _replica(service.cohort_dims))
    stages = _stages(sample, wanted, said)
    covariates = _covariates(sample, wanted, said)
    dims = _dims(sample, wanted, covariates, said)
    rules = replace(base, default=ServiceRules(covariates, dims, stages))
    replica = _replica(dims)
    if replica is not None and wanted.cohort_dims is None:
        said.append(f"replicas: the values of {replica}")
    said += _unnamed(sample, rules.default)
    return Discovered(rules, tuple(said), replica)


def _named(rules: ServiceRules, wanted: Wanted) -> ServiceRules:
    return ServiceRules(
        rules.covariates if wanted.covariates is None else wanted.covariates,
        rules.cohort_dims if wanted.cohort_dims is None else wanted.cohort_dims,
        rules.stages if wanted.stages is None else wanted.stages,
    )


def _stages(sample: Sample, wanted: Wanted, said: list[str]) -> tuple[str, ...] | None:
    """Return None for every "*_ms" column, those that turn up later included."""
    if wanted.stages is not None:
        return wanted.stages
    taken = {*(wanted.covariates or ()), *(wanted.cohort_dims or ())}
    timed = {
        column.name: stage
        for column in _sorted(sample)
        if (stage := fields.stage_of(column.name)) and column.name not in taken
    }
    texts = [name for name in timed if not sample.columns[name].numbers]
    numbers = tuple(stage for name, stage in timed.items() if name not in texts)
    stages = tuple(stage for stage in numbers if stage not in TOKEN_TIMES)
    said.append(f"stages: every *_ms column ({', '.join(stages) or 'there is none'})")
    if not texts:
        return None
    said.append(f"no stages, for they hold no numbers: {', '.join(texts)}")
    return stages


def _covariates(sample: Sample, wanted: Wanted, said: list[str]) -> tuple[str, ...]:
    if wanted.covariates is not None:
        return wanted.covariates
    dims = set(wanted.cohort_dims or ())
    texts = {column.name for column in sample.columns.values() if not column.numbers}
    known = [name for name in DEFAULT_COVARIATES if name not in texts | dims]
    sized = [
        column.name
        for column in _free(sample)
        if column.name not in {*known, *dims} and column.is_numeric and not column.is_flag
        if names.is_size(column.name)
    ]
    present = [name for name in known if name in sample.columns]
    if present:
        said.append(f"input shape, by known names: {', '.join(present)}")
    if sized:
        said.append(f"input shape, numbers named like counts or sizes: {', '.join(sized)}")
    if not present and not sized:
        said.append("input shape: no column is named like one")
    return (*known, *sized)


def _dims(
    sample: Sample, wanted: Wanted, covariates: Sequence[str], said: list[str]
) -> tuple[str, ...]:
    if wanted.cohort_dims is not None:
        return wanted.cohort_dims
    known = [n for n in DEFAULT_COHORT_DIMS if n in sample.columns and n not in covariates]
    free = [c for c in _free(sample) if c.name not in {*known, *covariates}]
    labels = sorted((c for c in free if _is_label(c)), key=lambda c: len(c.values or ()))
    chosen: list[str] = list(known)
    dropped: list[str] = []
    for name in (column.name for column in labels):
        fits = _combinations(sample, [*chosen, name]) <= MAX_COHORTS
        (chosen if fits else dropped).append(name)
    said.append(f"cohorts: {_and_why(known, [n for n in chosen if n not in known])}")
    if dropped:
        said.append(
            f"no cohorts by {', '.join(dropped)}: more than {MAX_COHORTS:,} combinations of values"
        )
    many = [c.name for c in free if names.is_replica(c.name) and c.values is None]
    if many:
        said.append(f"no cohorts by {', '.join(many)}: more than {MANY} values")
    return tuple(chosen)


def _and_why(known: Sequence[str], labels: Sequence[str]) -> str:
    parts = []
    if known:
        parts.append(f"by known names: {', '.join(known)}")
    if labels:
        parts.append(f"labels and flags of at most {MANY} values: {', '.join(labels)}")
    return "; ".join(parts) or "no column has labels of few values"


def _is_label(column: Column) -> bool:
    values = column.values
    if values is None or column.free:
        return False
    if names.is_replica(column.name):
        return True
    if not names.is_label(column.name) or (column.is_numeric and not column.is_flag):
        return False
    if column.name in LABELS:
        return True
    return len(values) >= 2 and column.n >= ROWS_PER_VALUE * len(values)


def _combinations(sample: Sample, dims: Sequence[str]) -> int:
    return len({tuple(row.get(dim) for dim in dims) for row in sample.labels})


def _replica(dims: Sequence[str]) -> str | None:
    return next((dim for dim in dims if names.is_replica(dim)), None)


def _unnamed(sample: Sample, rules: ServiceRules) -> Iterator[str]:
    layout = fields.layout(frozenset(sample.columns), rules)
    if layout.unknown:
        yield f"in no figure: {', '.join(layout.unknown)}"


def _sorted(sample: Sample) -> list[Column]:
    return [sample.columns[name] for name in sorted(sample.columns)]


def _free(sample: Sample) -> list[Column]:
    """Return the columns that mean nothing by their name alone."""
    return [
        column
        for column in _sorted(sample)
        if column.name not in fields.FIXED and fields.stage_of(column.name) is None
    ]
