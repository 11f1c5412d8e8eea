"""Rows of several services to the columns of each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tailbudget.schemas.records import NO_SERVICE, Columns
from tailbudget.streams.sources import fields
from tailbudget.streams.sources.base import Rules
from tailbudget.streams.sources.columns import Rows, build
from tailbudget.streams.sources.tally import Tally

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of any services.

    Attributes:
        frame: [n] rows under our names, as `renamed` returns them.
        offset: [n] offset of each.
        arrival_ns: [n] when each arrived.
        reject: called with (row, reason) for each row that is no record.
    """

    frame: pl.DataFrame
    offset: Ints
    arrival_ns: Ints
    reject: Callable[[int, str], None]


def judge(batch: Batch, rules: Rules, tally: Tally) -> tuple[tuple[Columns, ...], frozenset[str]]:
    """Return the accepted rows of each service and the unknown columns; count all."""
    services: list[Columns] = []
    unknown: set[str] = set()
    for service, own, row in _by_service(batch.frame, rules.service or NO_SERVICE):

        def reject(at: int, reason: str, row: Ints = row) -> None:
            batch.reject(int(row[at]), reason)

        rows = Rows(service, own, batch.offset[row], batch.arrival_ns[row], reject, tally)
        columns, strange = build(rows, rules)
        unknown.update(strange)
        if columns is not None:
            services.append(columns)
    return tuple(services), frozenset(unknown)


def _by_service(frame: pl.DataFrame, default: str) -> Iterator[tuple[str, pl.DataFrame, Ints]]:
    """Yield (service, its rows, their indices); one service costs nothing."""
    row = np.arange(frame.height)
    name = frame[fields.SERVICE]
    if not frame.height:
        return
    if name.null_count() == frame.height:
        yield default, frame, row
    elif name.null_count() == 0 and name[0] and bool((name == name[0]).all()):
        yield name[0], frame, row
    else:
        name = name.fill_null(default).replace("", default)
        for service in sorted(name.unique().to_list()):
            mine = (name == service).to_numpy()
            yield service, frame.filter(mine), row[mine]
