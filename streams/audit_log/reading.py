"""A log as blocks of decoded records."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

import numpy as np
import orjson

from tailbudget.schemas import refusals
from tailbudget.schemas.errors import ConfigError, Refused
from tailbudget.schemas.records import TOKEN_TIMES, Decoded
from tailbudget.schemas.rows import DeployRow
from tailbudget.schemas.token_timing import DEFINITIONS
from tailbudget.streams.audit_log import names
from tailbudget.streams.audit_log.aggregates import refusal
from tailbudget.streams.audit_log.blocks import Block, FrameBlock, LineBlock, Part
from tailbudget.streams.audit_log.discovery import discover
from tailbudget.streams.audit_log.latency import Units, require_latency
from tailbudget.streams.audit_log.sample import ROWS, Sample, sample_of
from tailbudget.streams.audit_log.wanted import Found, Progress, Wanted
from tailbudget.streams.log_time import NATIVE
from tailbudget.streams.sources import FORMATS, Decoder, Rules, SourceBatch, decoder, fields
from tailbudget.streams.sources.frames import FrameDecoder
from tailbudget.streams.sources.mapping import Mapped

Report = Callable[[Progress], None]

MAPPED: Final = "mapped"
"""Format of rows that were mapped already."""

_SHOWN: Final = 100
_SAMPLE_BYTES: Final = 64_000_000
"""Bytes of text that the sample takes at most: a message of spans may be of megabytes."""


@dataclass(frozen=True, slots=True)
class Log:
    """What is to be read.

    Attributes:
        name: for messages.
        parts: its files, or its one frame or query.
        said: what a reader must know of it, before anything was read.
    """

    name: str
    parts: Sequence[Part]
    said: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Piece:
    """A block, and how far the reading is when it has been decoded."""

    block: Block
    progress: Progress


class LogReading:
    """A log that was found to be readable; it can be iterated over once.

    Attributes:
        found: what was assumed.
        rows: rows read so far, of any kind.
        deploys: changes of versions that were seen so far; only traces show them.
    """

    def __init__(self, log: Log, wanted: Wanted, now_ns: int, report: Report) -> None:
        """Read the first rows, and decide how to read all.

        Args:
            log: what to read.
            wanted: what the caller named.
            now_ns: the time of reading: no row may be younger, and one without a time has it.
            report: told how far the reading is.

        Raises:
            Refused: there is no request to audit in it.
            ConfigError: what was named is not in it, or it cannot be opened.
            DecodeError: a file is damaged.
        """
        wanted.check()
        self.rows = 0
        self.deploys: tuple[DeployRow, ...] = ()
        self._begun = False
        self._log, self._now_ns, self._report = log, now_ns, report
        self._bases = [0]
        pieces = self._pieces()
        taken = _first(pieces)
        first = [piece.block for piece in taken]
        base = _base(wanted)
        sample = sample_of(first, base)
        _require_named(sample, wanted.columns.keys(), wanted)
        _refuse_aggregates(sample, log.name, first)
        self._refuse_strange(sample, first, base)
        require_latency(sample, log.name, [part.head for part in log.parts if part.head])
        _require_named(sample, _columns_of(wanted), wanted)
        self.found = _found(log, first, sample, base, wanted)
        self._check_units(first)
        self._rest: Iterator[_Piece] = chain(taken, pieces)

    def __iter__(self) -> Iterator[Decoded]:
        """Yield the records, in their order.

        Raises:
            Refused: nearly all rows contradict themselves.
            DecodeError: a file is damaged.
            RuntimeError: it was iterated over before.
        """
        if self._begun:
            raise RuntimeError(f"{self._log.name} was read already; open it again")
        self._begun = True
        decode, units = _Decoders(self.found.rules, self._now_ns), Units()
        for piece in self._rest:
            decoded = decode(piece.block)
            units.add(decoded)
            self.deploys += decoded.deploys
            yield decoded
            self.rows = piece.progress.rows
            self._report(piece.progress)
        for decoded in decode.finish():
            units.add(decoded)
            self.deploys += decoded.deploys
            yield decoded
        units.check(self._log.name)

    def where(self, offset: int) -> str:
        """Return the file and the number of a row in it, as its `offset` names it."""
        part = min(bisect_right(self._bases, offset), len(self._log.parts)) - 1
        return f"{self._log.parts[part].name}, row {offset - self._bases[part] + 1:,}"

    def _pieces(self) -> Iterator[_Piece]:
        """Yield all blocks, rows counted on from part to part."""
        for index, part in enumerate(self._log.parts):
            base = end = self._bases[index]
            for block in part.blocks():
                moved = block.moved(base)
                end = moved.end
                yield _Piece(moved, Progress(part.name, end, self._share(index)))
            self._bases.append(end)

    def _share(self, index: int) -> float | None:
        parts = self._log.parts
        now = parts[index].share()
        total = sum(part.size_bytes for part in parts)
        if now is None or len(parts) == 1 or not total:
            return now
        done = sum(part.size_bytes for part in parts[:index])
        return (done + now * parts[index].size_bytes) / total

    def _refuse_strange(self, sample: Sample, first: Sequence[Block], base: Rules) -> None:
        """Refuse a log of a known format of which no row is a request, and say why that is."""
        name = first[0].format if first else NATIVE
        if sample.records or name == NATIVE or name not in FORMATS:
            return
        decode = _Decoders(base, self._now_ns)
        found = [decode(first[0].head(_SHOWN)), *decode.finish()]
        why = [one.detail for part in found for one in part.rejected]
        counts = {reason for part in found for _, _, reason in part.ledger}
        raise Refused(
            refusals.NO_ROWS,
            f"{self._log.name} was read as {name}: none of the first {sample.rows:,} rows is a"
            f" request; {(why or [', '.join(sorted(counts)) or 'they hold none'])[0]}",
            "give another --log-format; docs/sources.md says what each format holds",
        )

    def _check_units(self, first: Sequence[Block]) -> None:
        decode, units, rows = _Decoders(self.found.rules, self._now_ns), Units(), 0
        for block in first:
            part = block.head(ROWS - rows)
            rows += len(part.row)
            units.add(decode(part))
        for decoded in decode.finish():
            units.add(decoded)
        units.check(self._log.name)


class _Decoders:
    """The decoders of all formats of a log; each remembers its columns."""

    def __init__(self, rules: Rules, now_ns: int) -> None:
        self._rules = rules
        self._now_ns = now_ns
        self._frames = FrameDecoder(rules)
        self._lines: dict[str, Decoder] = {}

    def __call__(self, block: Block) -> Decoded:
        if isinstance(block, FrameBlock) and self._rules.mapping is not None:
            block = _as_lines(block, self._rules.mapping)
        if isinstance(block, FrameBlock):
            return self._frames.decode(block.frame, block.row, self._now_ns, block.rejected)
        one = self._lines.get(block.format)
        if one is None and block.format == MAPPED:
            one = self._lines[MAPPED] = decoder("native", replace(self._rules, mapping=None))
        elif one is None:
            one = self._lines[block.format] = decoder(block.format, self._rules)
        arrival_ns = np.full(len(block.row), self._now_ns)
        return one.decode(SourceBatch([*block.values], block.row, arrival_ns))

    def finish(self) -> Iterator[Decoded]:
        """Yield what the decoders still hold."""
        for one in self._lines.values():
            decoded = one.finish()
            if decoded is not None:
                yield decoded


def _as_lines(block: FrameBlock, mapping: Mapped) -> LineBlock:
    """Return rows by a mapping, as the records that their JSON would give."""
    rows = (mapping.record(row) for row in block.frame.iter_rows(named=True))
    values = [orjson.dumps(row, default=str) for row in rows]
    return LineBlock(MAPPED, values, block.row, block.end)


def _first(pieces: Iterator[_Piece]) -> list[_Piece]:
    """Take blocks until they hold the sample."""
    taken: list[_Piece] = []
    rows = size = 0
    while rows < ROWS and size < _SAMPLE_BYTES and (piece := next(pieces, None)) is not None:
        taken.append(piece)
        rows += len(piece.block.row)
        if isinstance(piece.block, LineBlock):
            size += sum(map(len, piece.block.values))
    return taken


def _base(wanted: Wanted) -> Rules:
    rules = wanted.rules or Rules()
    return replace(
        rules,
        service=wanted.service or rules.service,
        timezone=wanted.timezone or rules.timezone,
        columns={**rules.columns, **wanted.columns},
        pattern=wanted.pattern or rules.pattern,
        mapping=wanted.mapping or rules.mapping,
    )


def _found(log: Log, first: Sequence[Block], sample: Sample, base: Rules, wanted: Wanted) -> Found:
    found = discover(sample, base, wanted)
    formats = sorted({block.format for block in first})
    timed = fields.TIME in sample.columns
    numbered = fields.ID not in sample.columns
    said = [*log.said, *found.said]
    said += [one for name in formats if name in FORMATS for one in FORMATS[name].says]
    if any(f"{name}_ms" in sample.columns for name in TOKEN_TIMES):
        said += [f"token timings of {n}: {DEFINITIONS[n]}" for n in formats if n in DEFINITIONS]
    if sample.naive_times and base.timezone is None:
        said.append("times without a zone: read as UTC")
    elif sample.naive_times:
        said.append(f"times without a zone: {base.timezone}, the earlier of an hour it has twice")
    if not timed:
        said.append(_no_times(sample))
    if numbered:
        said.append("request ids: the numbers of the rows, for there is no request_id")
    rules = replace(found.rules, ids_from_rows=numbered, times_from_arrival=not timed)
    return Found("+".join(formats), rules, tuple(said), timed, found.replica)


def _no_times(sample: Sample) -> str:
    likely = sorted(name for name in sample.columns if names.is_time(name))
    hint = f"; if {likely[0]} is one, give --columns timestamp={likely[0]}" if likely else ""
    return f"times are unknown, for there is no timestamp{hint}"


def _refuse_aggregates(sample: Sample, name: str, first: Sequence[Block]) -> None:
    """Refuse what is of the form of a tool's results, but lists no requests."""
    tools = (FORMATS[one.format].tool for one in first if one.format in FORMATS)
    tool = next(filter(None, tools), None)
    if tool is not None and sample.rows and not sample.records:
        raise refusal(name, tool)


def _columns_of(wanted: Wanted) -> set[str]:
    stages = {f"{stage.removesuffix('_ms')}_ms" for stage in wanted.stages or ()}
    return {*stages, *(wanted.covariates or ()), *(wanted.cohort_dims or ())}


def _require_named(sample: Sample, named: AbstractSet[str], wanted: Wanted) -> None:
    """Refuse names that no row has; settings may name columns that are not there."""
    absent = sorted(named - sample.columns.keys())
    if not absent or not sample.records:
        return
    origin = wanted.columns.get(absent[0])
    raise ConfigError(
        f"no row of the first {sample.rows:,} has a column"
        f" {(origin.column if origin else absent[0])!r}",
        remedy=f"there are {', '.join(sorted(sample.columns))}",
    )
