"""The native format: flat JSON objects, as the record is defined."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from tailbudget.schemas import ledger
from tailbudget.schemas.records import NO_SERVICE, Columns, Decoded, Rejected
from tailbudget.streams.sources import fields, repair
from tailbudget.streams.sources.base import Rules, SourceMessage
from tailbudget.streams.sources.lines import Lines, split
from tailbudget.streams.sources.ndjson import Reader, Table
from tailbudget.streams.sources.renamed import renamed
from tailbudget.streams.sources.services import Batch, judge
from tailbudget.streams.sources.tally import Tally

CULPRIT: Final[Mapping[str, str]] = {
    ledger.NO_ID: fields.ID,
    ledger.NO_TIMESTAMP: fields.TIME,
    ledger.BAD_TIMESTAMP: fields.TIME,
    ledger.NO_TOTAL: fields.TOTAL,
    ledger.NOT_A_NUMBER: fields.TOTAL,
}
"""Which of our columns a row is rejected for."""


class NativeDecoder:
    """Decodes the native format; see the package docstring for what it promises."""

    name = "native"
    says: tuple[str, ...] = ()
    tool: str | None = None
    first_offset: int | None = None

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._reader = Reader(rules)

    def decode(self, messages: Sequence[SourceMessage]) -> Decoded:
        """Decode one micro-batch; never raises for what a message contains."""
        return self.decode_lines(split(messages, self._rules.max_record_bytes))

    def finish(self) -> Decoded | None:
        """Return None: nothing is held."""
        return None

    @classmethod
    def natives(cls, values: Sequence[bytes], rules: Rules) -> list[bytes]:  # noqa: ARG003
        """Return native records: the lines themselves."""
        return list(values)

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
        row = table.row

        def reject(at: int, reason: str) -> None:
            line = int(row[at])
            detail = _detail(lines.lines[line], self._rules.origin(CULPRIT[reason]))
            dead.append((line, lines.reject(line, reason, detail)))

        offset, arrival_ns = lines.offset[row], lines.arrival_ns[row]
        frame = renamed(table.frame, offset, arrival_ns, self._rules)
        return judge(Batch(frame, offset, arrival_ns, reject), self._rules, tally)


def _detail(line: bytes, column: str) -> str:
    """Return what a refused row has in the cell that it was refused for."""
    try:
        value = repair.read(line.removeprefix(repair.BOM).decode()).get(column)
        text = json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):  # nested too deeply for all but the fast reader
        return f"{column} is not usable"
    return f"{column} is missing" if value is None else f"{column} is {text[:120]}"
