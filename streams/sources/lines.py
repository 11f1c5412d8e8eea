"""From messages to records: one line each, with where it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeGuard

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas import ledger
from tailbudget.schemas.records import Rejected
from tailbudget.streams.sources.base import SourceBatch, SourceMessage
from tailbudget.streams.sources.repair import read

_BLANK: Final = b" \t\r\n"
RAW_BYTES: Final = 1024


@dataclass(frozen=True, slots=True)
class Lines:
    """The records of a micro-batch, still text.

    Attributes:
        lines: [n] one record each, without a newline inside.
        raw: [n] what was received, where `lines` is a translation of it.
        offset: [n] offset of the message that held the record.
        arrival_ns: [n] when that message arrived.
        blob: `lines`, joined by newlines.
        exact: each line is one record; else a line is one message, to be taken apart by `exactly`
            unless there turn out to be as many records as messages.
        tombstones: arrival of each message without a value.
        rejected: records that are too long to be read, with their arrival.
    """

    lines: list[bytes]
    raw: list[bytes]
    offset: NDArray[np.int64]
    arrival_ns: NDArray[np.int64]
    blob: bytes
    exact: bool = True
    tombstones: tuple[int, ...] = ()
    rejected: tuple[tuple[int, Rejected], ...] = ()

    def reject(self, row: int, reason: str, detail: str) -> Rejected:
        """Return record `row` as a dead letter."""
        offset = int(self.offset[row])
        same = np.flatnonzero(self.offset == offset)
        if len(same) > 1:
            detail = f"record {row - int(same[0]) + 1} of its message: {detail}"
        return Rejected(offset, reason, detail, self.raw[row][:RAW_BYTES])


def split(messages: Sequence[SourceMessage], max_record_bytes: int) -> Lines:
    """Return the records of `messages`; not yet exact where all seem to be one record each."""
    batch = SourceBatch.of(messages)
    values, offset, arrival = batch.values, batch.offset, batch.arrival_ns
    if _seem_single(values) and max(map(len, values), default=0) <= max_record_bytes:
        return Lines(values, values, offset, arrival, b"\n".join(values), exact=False)
    return _split_each(values, offset, arrival, max_record_bytes)


def apart(messages: Sequence[SourceMessage], max_record_bytes: int) -> Lines:
    """Return each message as one record, whatever is in it; blank ones are tombstones."""
    batch = SourceBatch.of(messages)
    lines: list[bytes] = []
    row: list[int] = []
    rejected: list[tuple[int, Rejected]] = []
    tombstones: list[int] = []
    for index, value in enumerate(batch.values):
        arrival_ns = int(batch.arrival_ns[index])
        if not value or value.isspace():
            tombstones.append(arrival_ns)
        elif len(value) > max_record_bytes:
            dead = _oversize(value, int(batch.offset[index]), max_record_bytes)
            rejected.append((arrival_ns, dead))
        else:
            lines.append(value)
            row.append(index)
    at = np.array(row, np.int64)
    return Lines(
        lines, lines, batch.offset[at], batch.arrival_ns[at], b"",
        tombstones=tuple(tombstones), rejected=tuple(rejected),
    )  # fmt: skip


def exactly(lines: Lines) -> Lines:
    """Return lines of one record each, blank lines left out."""
    if lines.exact:
        return lines
    longest = max(map(len, lines.lines), default=0)
    return _split_each(lines.lines, lines.offset, lines.arrival_ns, longest)


def _seem_single(values: list[bytes | None]) -> TypeGuard[list[bytes]]:
    """Return whether none is blank; a source that holds several records a message shows at once."""
    if not all(values) or any(map(bytes.isspace, values)):  # type: ignore[arg-type]
        return False
    return not values or b"\n" not in (values[0] or b"").rstrip()


def _split_each(
    values: Sequence[bytes | None],
    offset: NDArray[np.int64],
    arrival: NDArray[np.int64],
    max_record_bytes: int,
) -> Lines:
    lines: list[bytes] = []
    source: list[int] = []
    rejected: list[tuple[int, Rejected]] = []
    tombstones: list[int] = []
    for index, value in enumerate(values):
        records = _records(value or b"")
        if not records:
            tombstones.append(int(arrival[index]))
        if len(value or b"") > max_record_bytes and max(map(len, records)) > max_record_bytes:
            dead = [record for record in records if len(record) > max_record_bytes]
            place = int(offset[index])
            rejected += [(int(arrival[index]), _oversize(d, place, max_record_bytes)) for d in dead]
            records = [record for record in records if len(record) <= max_record_bytes]
        lines += records
        source += [index] * len(records)
    rows = np.array(source, dtype=np.int64)
    return Lines(
        lines,
        lines,
        offset[rows],
        arrival[rows],
        b"\n".join(lines),
        tombstones=tuple(tombstones),
        rejected=tuple(rejected),
    )


def _records(value: bytes) -> list[bytes]:
    records = value.split(b"\n")
    if not all(records) or any(map(bytes.isspace, records)):
        records = [line for line in records if line.strip(_BLANK)]
    if len(records) > 1 and not records[0].rstrip(_BLANK).endswith(b"}") and _is_object(value):
        return [value.replace(b"\n", b" ")]  # one object, written over several lines
    return records


def _is_object(value: bytes) -> bool:
    try:
        return isinstance(read(value.decode()), dict)
    except (ValueError, RecursionError):
        return False


def _oversize(record: bytes, offset: int, max_record_bytes: int) -> Rejected:
    detail = f"{len(record):,} bytes; at most {max_record_bytes:,} are read"
    return Rejected(offset, ledger.OVERSIZE, detail, record[:RAW_BYTES])
