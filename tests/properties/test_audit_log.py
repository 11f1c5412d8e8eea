"""Any requests, in a log of any kind, cut anywhere: the same rows and the same counts."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logs import NOW_NS, WRITERS, Read, as_frame, as_lines, cells, write

from tailbudget.streams.audit_log import Wanted, open_log, tables
from tailbudget.streams.audit_log.json_text import element_blocks, line_blocks
from tailbudget.streams.sources import Rules, ServiceRules, SourceMessage, decoder
from tailbudget.streams.sources.base import Origin
from tailbudget.streams.sources.frames import FrameDecoder

SERVICE = ServiceRules(covariates=("size",), cohort_dims=("route", "hit"))
RULES = Rules(service="chat", default=SERVICE)

numbers = st.none() | st.floats(-10, 1e9) | st.sampled_from([0.0, 1e9, 8.64e7, float("nan")])
word = st.none() | st.text("ab7 ,;\"'é\n{}[]\\", min_size=1, max_size=6).filter(str.strip)
record = st.fixed_dictionaries(
    {
        "request_id": word,
        "timestamp": st.sampled_from(
            ["2026-03-02T10:00:00Z", "2026-03-02T09:00:00.123456789+01:00", "1772445600.5", "soon"]
        ),
        "total_ms": numbers,
        "status": st.sampled_from([None, "ok", "200", "timeout", "429", "odd"]),
        "scheduled_ts": st.none() | st.integers(1_772_445_590_000, 1_772_445_610_000).map(str),
        "run_ms": numbers,
        "size": numbers,
        "route": word,
        "hit": st.none() | st.booleans(),
        "weight": st.none() | st.floats(0.5, 4),
        "other": word,
    }
)
logs = st.lists(record, min_size=1, max_size=12)


def as_json(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows in which NaN is written as other writers do; orjson would write null."""
    return [
        {k: "NaN" if isinstance(v, float) and np.isnan(v) else v for k, v in row.items()}
        for row in rows
    ]


def everything(log: Read) -> tuple[Any, ...]:
    rows = {name: cells(columns) for name, columns in log.columns.items()}
    dead = sorted((one.offset, one.reason) for one in log.rejected)
    return rows, dict(log.ledger), dead


@settings(max_examples=40, deadline=None)
@given(logs, st.lists(st.tuples(st.integers(0, 12), st.sampled_from(sorted(WRITERS))), max_size=3))
def test_any_cut_and_format_gives_the_same(
    rows: list[dict[str, Any]], cuts: list[tuple[int, str]]
) -> None:
    """A directory of pieces of any format holds what one file of JSON lines does."""
    written = as_json(rows)
    # Absent columns would be refused by a reader that names them: one row has them all.
    full = {"request_id": "z", "timestamp": "2026-03-02T10:00:00Z", "status": "error"}
    filler = {"total_ms": 1.0, "size": 1.0, "route": "a", "hit": True}
    written.insert(0, dict.fromkeys(rows[0], None) | full | filler)
    wanted = Wanted(rules=RULES)
    with tempfile.TemporaryDirectory() as name:
        once = Read(open_log(write(Path(name), written, "jsonl"), wanted, now_ns=NOW_NS))
    places = sorted(min(place, len(written)) for place, _ in cuts)
    edges = [0, *places, len(written)]
    kinds = [kind for _, kind in cuts] + ["jsonl"]
    with tempfile.TemporaryDirectory() as name:
        for index, kind in enumerate(kinds):
            piece = written[edges[index] : edges[index + 1]]
            if piece:
                write(Path(name), piece, kind, f"part{index}")
        again = Read(open_log(Path(name), wanted, now_ns=NOW_NS))
    assert everything(again) == everything(once)


@settings(max_examples=60, deadline=None)
@given(logs, st.integers(1, 5))
def test_frames_are_decoded_as_json_is(rows: list[dict[str, Any]], size: int) -> None:
    """A typed frame, in batches of any size, gives what its rows give as JSON lines."""
    frame = as_frame(rows).with_columns(pl.col("timestamp").cast(pl.String))
    lines = [as_lines([row]) for row in as_json(rows)]
    messages = [SourceMessage(line, i, NOW_NS) for i, line in enumerate(lines)]
    expected = Read([decoder("native", RULES).decode(messages)])
    one = FrameDecoder(RULES)
    cuts = [slice(low, low + size) for low in range(0, len(rows), size)]
    row = np.arange(len(rows))
    got = Read(one.decode(frame[cut], row[cut], NOW_NS) for cut in cuts)
    assert everything(got) == everything(expected)


@settings(max_examples=60, deadline=None)
@given(logs, st.sampled_from(["ns", "us", "ms", "s"]))
def test_renamed_columns_are_the_same_columns(rows: list[dict[str, Any]], unit: str) -> None:
    """Other names change nothing, in JSON or in a frame; a unit changes its column alone."""
    rules = Rules(
        service="chat",
        default=SERVICE,
        columns={"request_id": Origin("key"), "size": Origin("n"), "run_ms": Origin("took", unit)},
    )
    names = {"request_id": "key", "size": "n", "run_ms": "took"}
    scale = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}[unit]
    theirs = [{names.get(k, k): v for k, v in row.items()} for row in as_json(rows)]
    ours = [
        {k: v * scale if k == "run_ms" and isinstance(v, float) else v for k, v in row.items()}
        for row in as_json(rows)
    ]

    def read(some: list[dict[str, Any]], how: Rules) -> tuple[Any, ...]:
        messages = [SourceMessage(as_lines([row]), i, NOW_NS) for i, row in enumerate(some)]
        return everything(Read([decoder("native", how).decode(messages)]))

    found, wanted = read(theirs, rules), read(ours, RULES)
    for one in (found, wanted):
        for columns in one[0].values():
            for values in columns["stages"].values():
                values[:] = [None if v is None else float(f"{v:.12g}") for v in values]
    assert found == wanted


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=60), st.integers(40, 400))
def test_rows_of_a_table_are_numbered_around_those_that_are_none(
    widths: list[int], block_bytes: int
) -> None:
    """Wherever blocks end, each row of the right width has its number, and each other is dead."""
    lines = ["a,b", *(",".join([f"r{i}"] * width) for i, width in enumerate(widths))]
    data = "\n".join(lines).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "_CSV_BYTES", block_bytes)
        blocks = list(tables.csv_blocks(io.BytesIO(data), data, "log"))
    got = [
        (n, a) for b in blocks if b.frame.height for n, a in zip(b.row, b.frame["a"], strict=True)
    ]
    assert got == [(i, f"r{i}") for i, width in enumerate(widths) if width == 2]
    dead = [one.offset for block in blocks for one in block.rejected]
    assert dead == [i for i, width in enumerate(widths) if width != 2]


class Trickle:
    """A stream that gives a few bytes a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self._data, self._size = data, size

    def read(self, _: int) -> bytes:
        part, self._data = self._data[: self._size], self._data[self._size :]
        return part


@settings(max_examples=80, deadline=None)
@given(logs, st.integers(1, 40), st.sampled_from([b",", b" ,\n", b",\r\n  "]))
def test_elements_are_found_wherever_reads_end(
    rows: list[dict[str, Any]], size: int, comma: bytes
) -> None:
    """Arrays, lines, and values one after another, whatever size the pieces have."""
    lines = as_lines(rows).splitlines()
    array = b" [\n" + comma.join(lines) + b"\n]\n"
    for text in (array, b"\n".join(lines), b" ".join(lines)):
        blocks = element_blocks(Trickle(text, size), "native", "log")  # type: ignore[arg-type]
        assert [value for block in blocks for value in block.values] == lines
    texts = [b'"a,"', b'"b}"', b"[1, [2]]", b'{"a": {"b": "},"}}']
    blocks = element_blocks(Trickle(b"[" + b",".join(texts) + b"]", size), "native", "log")  # type: ignore[arg-type]
    assert [value for block in blocks for value in block.values] == texts
    blocks = line_blocks(Trickle(b"\n".join(lines), size), "native")  # type: ignore[arg-type]
    got = [(int(row), v) for b in blocks for row, v in zip(b.row, b.values, strict=True)]
    assert got == list(enumerate(lines))
