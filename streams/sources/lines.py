"""From messages to records: one line each, with where it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeGuard, overload

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas import ledger
from tailbudget.schemas.records import Rejected
from tailbudget.streams.sources.base import SourceBatch, SourceMessage
from tailbudget.streams.sources.repair import read

_BLANK: Final = b" \t\r\n"
RAW_BYTES: Final = 1024
_NEWLINE: Final = ord("\n")
_OPEN: Final = ord("{")
_CLOSE: Final = ord("}")
_MOST_BLANKS: Final = 64


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

    lines: Sequence[bytes]
    raw: Sequence[bytes]
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
    packed = _split_packed(values, offset, arrival, max_record_bytes)
    return packed or _split_each(values, offset, arrival, max_record_bytes)


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


def _split_packed(
    values: list[bytes | None], offset: NDArray[np.int64], arrival: NDArray[np.int64], most: int
) -> Lines | None:
    """Return what `_split_each` does where each line seems to be an object, else None.

    That is where each newline stands between "}", perhaps with blanks behind it, and "{": inside of
    a value nothing may.
    """
    full = [value for value in values if value]
    if len(full) < len(values) or not full or max(map(len, full)) > most:
        return None
    blob = b"\n".join(full)
    letters = np.frombuffer(blob, np.uint8)
    ends = np.flatnonzero(letters == _NEWLINE)
    if letters[0] != _OPEN or len(ends) == 0 or ends[-1] == len(letters) - 1:
        return None
    if not (letters[ends + 1] == _OPEN).all() or not _closed(letters, ends):
        return None
    first = np.cumsum([0, *(len(value) + 1 for value in full[:-1])])
    source = np.searchsorted(first, np.append(0, ends + 1), "right") - 1
    lines = _Apart(blob, len(source))
    return Lines(lines, lines, offset[source], arrival[source], blob)


def _closed(letters: NDArray[np.uint8], ends: NDArray[np.intp]) -> bool:
    """Return whether "}" is the last letter before each of these places that is no blank."""
    at = ends - 1
    for _ in range(_MOST_BLANKS):
        last = letters[at]
        blank = (last == _BLANK[0]) | (last == _BLANK[1]) | (last == _BLANK[2])
        if not blank.any():
            return bool((last == _CLOSE).all())
        at = at - blank  # the text begins with no blank, so this ends in it
    return False


class _Apart(Sequence[bytes]):
    """Lines of a text, taken apart only when one is asked for: mostly none is."""

    def __init__(self, blob: bytes, count: int) -> None:
        self._blob = blob
        self._count = count
        self._lines: list[bytes] | None = None

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if self._lines is None:
            self._lines = self._blob.split(b"\n")
        return self._lines[index]


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
