"""The native format: flat JSON objects, as the record is defined."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tailbudget.schemas import ledger
from tailbudget.schemas.records import Columns, Decoded, Rejected
from tailbudget.streams.sources import fields, repair
from tailbudget.streams.sources.base import NO_SERVICE, Rules, SourceMessage
from tailbudget.streams.sources.columns import Rows, build
from tailbudget.streams.sources.lines import Lines, split
from tailbudget.streams.sources.ndjson import Reader, Table
from tailbudget.streams.sources.tally import Tally

_CULPRIT = {
    ledger.NO_ID: fields.ID,
    ledger.NO_TIMESTAMP: fields.TIME,
    ledger.BAD_TIMESTAMP: fields.TIME,
    ledger.NO_TOTAL: fields.TOTAL,
    ledger.NOT_A_NUMBER: fields.TOTAL,
}


class NativeDecoder:
    """Decodes the native format; see the package docstring for what it promises."""

    name = "native"

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._reader = Reader(rules)

    def decode(self, messages: Sequence[SourceMessage]) -> Decoded:
        """Decode one micro-batch; never raises for what a message contains."""
        return self.decode_lines(split(messages, self._rules.max_record_bytes))

    def decode_lines(self, lines: Lines) -> Decoded:
        """Decode records that are already apart."""
        tally = Tally()
        table = self._reader.read(lines)
        lines = table.lines
        dead = self._refused(lines, tally)
        for row, fault in table.faults:
            dead.append((row, lines.reject(row, fault.reason, fault.detail)))
            tally.add(self._default, int(lines.arrival_ns[row]), fault.reason)
        services, unknown = self._services(lines, table, tally, dead)
        return Decoded(
            services=services,
            rejected=tuple(item for _, item in sorted(dead, key=lambda pair: pair[0])),
            ledger=dict(tally.counts),
            unknown=unknown | table.beyond,
        )

    @property
    def _default(self) -> str:
        return self._rules.service or NO_SERVICE

    def _refused(self, lines: Lines, tally: Tally) -> list[tuple[int, Rejected]]:
        for arrival_ns in lines.tombstones:
            tally.add(self._default, arrival_ns, ledger.TOMBSTONE)
        for arrival_ns, rejected in lines.rejected:
            tally.add(self._default, arrival_ns, rejected.reason)
        return [(-1, rejected) for _, rejected in lines.rejected]

    def _services(
        self, lines: Lines, table: Table, tally: Tally, dead: list[tuple[int, Rejected]]
    ) -> tuple[tuple[Columns, ...], frozenset[str]]:
        services: list[Columns] = []
        unknown: set[str] = set()
        for service, frame, row in _by_service(table, self._default):

            def reject(at: int, reason: str, row: NDArray[np.int64] = row) -> None:
                line = int(row[at])
                detail = _detail(lines.lines[line], reason)
                dead.append((line, lines.reject(line, reason, detail)))

            rows = Rows(service, frame, lines.offset[row], lines.arrival_ns[row], reject, tally)
            columns, strange = build(rows, self._rules)
            unknown.update(strange)
            if columns is not None:
                services.append(columns)
        return tuple(services), frozenset(unknown)


def _by_service(
    table: Table, default: str
) -> Iterator[tuple[str, pl.DataFrame, NDArray[np.int64]]]:
    """Yield (service, its rows, the indices of their lines); one service costs nothing."""
    frame, row = table.frame, table.row
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


def _detail(line: bytes, reason: str) -> str:
    """Return what a refused row has in the cell that it was refused for."""
    column = _CULPRIT[reason]
    try:
        value = repair.read(line.removeprefix(repair.BOM).decode()).get(column)
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):  # nested too deeply for all but the fast reader
        return f"{column} is not usable"
    return f"{column} is missing" if value is None else f"{column} is {text[:120]}"
