"""Joining decoded micro-batches, so that the sums over them are taken once a tick."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.cohorts import Cohort
from tailbudget.schemas.records import Columns

T = TypeVar("T", bound=np.generic)


def concat(parts: Sequence[Columns]) -> Columns:
    """Return the rows of all parts, in order, as one.

    A stage or covariate that a part lacks is missing (NaN) in its rows.

    Raises:
        ValueError: there are no parts, or they belong to different services.
    """
    if len({part.service for part in parts}) != 1:
        raise ValueError("concat wants parts of one service")
    if len(parts) == 1:
        return parts[0]
    cohorts: dict[Cohort, int] = {}
    codes = []
    for part in parts:
        table = [cohorts.setdefault(cohort, len(cohorts)) for cohort in part.cohorts]
        codes.append(np.asarray(table, np.int32)[part.cohort])
    stages = tuple(sorted({name for part in parts for name in part.stages}))
    covariates = tuple(sorted({name for part in parts for name in part.covariates}))
    return Columns(
        service=parts[0].service,
        cohorts=tuple(cohorts),
        cohort=np.concatenate(codes),
        id_hash=np.concatenate([part.id_hash for part in parts]),
        ids=_Chain([part.ids for part in parts]),
        ts_ns=np.concatenate([part.ts_ns for part in parts]),
        outcome=np.concatenate([part.outcome for part in parts]),
        total_ms=np.concatenate([part.total_ms for part in parts]),
        limit_ms=np.concatenate([part.limit_ms for part in parts]),
        weight=_weights(parts),
        stages=stages,
        stage_ms=_rows(stages, [(part.stages, part.stage_ms) for part in parts]),
        covariates=covariates,
        covariate=_rows(covariates, [(part.covariates, part.covariate) for part in parts]),
        offset=np.concatenate([part.offset for part in parts]),
        operation=_optional([part.operation for part in parts], parts),
        attempt=_optional([part.attempt for part in parts], parts),
    )


def take(columns: Columns, keep: NDArray[np.bool_]) -> Columns:
    """Return the rows where `keep` is true; `keep` has one flag a row."""
    return pick(columns, np.flatnonzero(keep))


def pick(columns: Columns, rows: NDArray[np.intp]) -> Columns:
    """Return the rows at these indices, in their order."""
    return _chosen(columns, rows, _Picked(columns.ids, rows))


def run(columns: Columns, low: int, high: int) -> Columns:
    """Return the rows [low, high), without a copy."""
    return _chosen(columns, slice(low, high), _Picked(columns.ids, np.arange(low, high)))


def _chosen(columns: Columns, rows: slice | NDArray[np.intp], ids: Sequence[str]) -> Columns:
    return Columns(
        service=columns.service,
        cohorts=columns.cohorts,
        cohort=columns.cohort[rows],
        id_hash=columns.id_hash[rows],
        ids=ids,
        ts_ns=columns.ts_ns[rows],
        outcome=columns.outcome[rows],
        total_ms=columns.total_ms[rows],
        limit_ms=columns.limit_ms[rows],
        weight=None if columns.weight is None else columns.weight[rows],
        stages=columns.stages,
        stage_ms=columns.stage_ms[:, rows],
        covariates=columns.covariates,
        covariate=columns.covariate[:, rows],
        offset=columns.offset[rows],
        operation=None if columns.operation is None else columns.operation[rows],
        attempt=None if columns.attempt is None else columns.attempt[rows],
    )


def with_stages(columns: Columns, stages: Mapping[str, NDArray[np.float64]]) -> Columns:
    """Return the rows with these stages [n] each, and no others."""
    names = tuple(sorted(stages))
    return replace(columns, stages=names, stage_ms=np.array([stages[name] for name in names]))


def detached(columns: Columns) -> Columns:
    """Return rows that keep nothing of their batch alive: they may stay for long."""
    return replace(columns, ids=tuple(columns.ids[row] for row in range(len(columns))))


def relabel(columns: Columns, cohorts: Sequence[Cohort]) -> Columns:
    """Return the same rows with each cohort renamed; equal new names become one cohort."""
    table: dict[Cohort, int] = {}
    codes = [table.setdefault(cohort, len(table)) for cohort in cohorts]
    cohort = np.asarray(codes, np.int32)[columns.cohort]
    return replace(columns, cohorts=tuple(table), cohort=cohort)


def _optional(values: Sequence[NDArray[T] | None], parts: Sequence[Columns]) -> NDArray[T] | None:
    """Return a column that parts may lack, 0 in the rows of those; None where all lack it."""
    kind = next((column.dtype for column in values if column is not None), None)
    if kind is None:
        return None
    return np.concatenate(
        [np.zeros(len(p), kind) if v is None else v for v, p in zip(values, parts, strict=True)]
    )


def gather(ids: Sequence[str], at: NDArray[np.intp]) -> list[str]:
    """Look up ids at these indices, all at once where they are kept in something that can."""
    look_up = getattr(ids, "gather", None)
    return list(map(ids.__getitem__, at.tolist()) if look_up is None else look_up(at))


def _weights(parts: Sequence[Columns]) -> NDArray[np.int64] | None:
    if all(part.weight is None for part in parts):
        return None
    return np.concatenate(
        [np.ones(len(p), np.int64) if p.weight is None else p.weight for p in parts]
    )


def _rows(
    names: tuple[str, ...], parts: list[tuple[tuple[str, ...], NDArray[np.float64]]]
) -> NDArray[np.float64]:
    if all(own == names for own, _ in parts):
        return np.concatenate([values for _, values in parts], axis=1)
    out = []
    for own, values in parts:
        block = np.full((len(names), values.shape[1]), np.nan)
        block[[names.index(name) for name in own]] = values
        out.append(block)
    return np.concatenate(out, axis=1)


class _Chain(Sequence[str]):
    """Several sequences of ids seen as one; only the few sampled ids are ever looked up."""

    def __init__(self, parts: Sequence[Sequence[str]]) -> None:
        self._parts = parts
        self._ends = list(accumulate(len(part) for part in parts))
        self._starts = [0, *self._ends]

    def __len__(self) -> int:
        return self._ends[-1]

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = int(index)
        part = bisect_right(self._ends, index)
        return self._parts[part][index - self._starts[part]]

    def gather(self, at: NDArray[np.intp]) -> list[str]:
        """Look up ids at these indices."""
        of = np.searchsorted(self._ends, at, "right")
        found = np.empty(len(at), object)
        for part in np.unique(of).tolist():
            mine = np.flatnonzero(of == part)
            found[mine] = gather(self._parts[part], at[mine] - self._starts[part])
        return list(found.tolist())


class _Picked(Sequence[str]):
    """Ids at chosen rows of another sequence."""

    def __init__(self, ids: Sequence[str], rows: NDArray[np.intp]) -> None:
        self._ids = ids
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self._ids[int(row)] for row in self._rows[index]]
        return self._ids[int(self._rows[index])]

    def gather(self, at: NDArray[np.intp]) -> list[str]:
        """Look up ids at these indices."""
        return gather(self._ids, self._rows[at])
