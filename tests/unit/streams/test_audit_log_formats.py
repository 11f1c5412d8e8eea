"""The same requests, read from logs of every kind."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from logs import NOW_NS, WRITERS, Read, as_csv, as_frame, as_lines, as_parquet, cells, records
from logs import write as write_log

from tailbudget.schemas.errors import ConfigError, DecodeError
from tailbudget.streams.audit_log import Found, Progress, Wanted, open_frame, open_log

ROWS = records(700)
KINDS = [f"{kind}{packing}" for kind in WRITERS for packing in ("", ".gz", ".zst")]


def read(path: Path, wanted: Wanted = Wanted()) -> tuple[Found, Read]:  # noqa: B008 - frozen
    reading = open_log(path, wanted, now_ns=NOW_NS)
    return reading.found, Read(reading)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Found, Read]:
    """What the JSON lines hold."""
    return read(write_log(tmp_path_factory.mktemp("expected"), ROWS, "jsonl"))


def test_the_expected_is_what_was_written(expected: tuple[Found, Read]) -> None:
    """Every row is there, with its stages, covariates and cohort."""
    found, log = expected
    columns = log.only
    assert list(columns.ids) == [row["request_id"] for row in ROWS]
    assert columns.stages == ("queue", "run")
    assert columns.covariates == ("input_tokens",)
    assert found.rules.default.cohort_dims == ("route", "region", "cache_hit", "pod")
    assert found.replica == "pod"
    assert columns.cohorts[columns.cohort[1]] == (
        ("route", "b"),
        ("region", "eu"),
        ("cache_hit", "false"),
        ("pod", "p1"),
    )
    assert columns.offset.tolist() == list(range(700))
    assert log.ledger["accepted"] == 700
    assert log.ledger["failed"] == sum(row["status"] == "timeout" for row in ROWS)
    assert log.ledger["missing.negative_stage"] == sum(row["queue_ms"] < 0 for row in ROWS)
    assert log.ledger["unknown_column"] == 700  # the notes


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_file_gives_the_same(
    kind: str, tmp_path: Path, expected: tuple[Found, Read]
) -> None:
    """Rows, counts and what was found do not depend on how the log is written."""
    found, log = read(write_log(tmp_path, ROWS, kind))
    assert cells(log.only) == cells(expected[1].only)
    assert log.ledger == expected[1].ledger
    assert found.rules == expected[0].rules
    assert found.assumptions == expected[0].assumptions
    assert found.format == {"jsonl": "native", "json": "native"}.get(
        base := kind.split(".", 1)[0], base
    )


@pytest.mark.parametrize(
    "frame",
    [
        as_frame(ROWS),
        as_frame(ROWS).lazy(),
        as_frame(ROWS).to_arrow(),
        as_frame(ROWS).to_arrow().combine_chunks().to_batches()[0],
    ],
    ids=["polars", "lazy", "table", "batch"],
)
def test_every_frame_gives_the_same(frame: object, expected: tuple[Found, Read]) -> None:
    """A frame in memory is read as a file of the same rows."""
    reading = open_frame(frame, now_ns=NOW_NS)
    assert reading.found.format == "frame"
    log = Read(reading)
    assert cells(log.only) == cells(expected[1].only)
    assert log.ledger == expected[1].ledger


def test_pandas_gives_the_same(expected: tuple[Found, Read]) -> None:
    """A frame of pandas too, in which NaN is a missing cell and integers turn to floats."""
    pandas = pytest.importorskip("pandas")
    rows = [{**row, "status": str(row["status"])} for row in ROWS]
    frame = pandas.DataFrame(rows)
    frame["timestamp"] = pandas.to_datetime(frame["timestamp"])
    log = Read(open_frame(frame, now_ns=NOW_NS))
    assert cells(log.only) == cells(expected[1].only)
    assert log.ledger == expected[1].ledger


def test_no_frame_is_refused() -> None:
    """A list of rows is no frame, and the error says what is."""
    with pytest.raises(ConfigError, match="a list is no frame"):
        open_frame(ROWS, now_ns=NOW_NS)


def test_a_directory_is_one_log(tmp_path: Path, expected: tuple[Found, Read]) -> None:
    """Files of all kinds are read in the order of their names, rows counted on."""
    folder = tmp_path / "logs"
    (folder / "deep").mkdir(parents=True)
    write_log(folder, ROWS[:200], "jsonl", "1")
    write_log(folder, ROWS[200:450], "csv.gz", "2")
    write_log(folder, ROWS[450:460], "json", "3")
    write_log(folder / "deep", ROWS[460:], "parquet.zst", "4")
    (folder / "notes.txt").write_text("not a log")
    (folder / "_SUCCESS").touch()
    reading = open_log(folder, now_ns=NOW_NS)
    log = Read(reading)
    assert cells(log.only) == cells(expected[1].only)
    assert reading.found.format == "csv+native+parquet"
    assert reading.found.rules == expected[0].rules
    assert f"files that are no log by their name: {folder}/notes.txt" in reading.found.assumptions
    assert reading.where(0) == f"{folder}/1.jsonl, row 1"
    assert reading.where(449) == f"{folder}/2.csv.gz, row 250"
    assert reading.where(699) == f"{folder}/deep/4.parquet.zst, row 240"


@pytest.mark.parametrize("kind", ["jsonl", "csv.gz", "parquet", "json.zst"])
def test_standard_input(kind: str, tmp_path: Path) -> None:
    """A pipe is read like a file, whatever it carries."""
    path = write_log(tmp_path, ROWS, kind)
    code = (
        "from pathlib import Path; from tailbudget.streams.audit_log import open_log;"
        f"r = open_log(Path('-'), now_ns={NOW_NS});"
        "print(r.found.format, sum(len(c) for d in r for c in d.services), r.where(9))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=path.read_bytes(),
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    name = {"jsonl": "native", "json": "native"}.get(base := kind.split(".", 1)[0], base)
    assert done.stdout.decode() == f"{name} 700 standard input, row 10\n"


def test_progress_goes_from_nothing_to_all(tmp_path: Path) -> None:
    """Rows and share grow, and end at the whole log."""
    for kind in ("jsonl", "csv.gz", "parquet"):
        folder = tmp_path / kind
        folder.mkdir()
        for number in range(3):
            write_log(folder, ROWS, kind, str(number))
        told: list[Progress] = []
        Read(open_log(folder, progress=told.append, now_ns=NOW_NS))
        assert [one.rows for one in told] == [700, 1400, 2100]
        shares = [one.share or 0.0 for one in told]
        assert shares == sorted(shares)
        assert shares[-1] == pytest.approx(1.0)
        assert told[1].name == str(folder / f"1.{kind}")


def test_rows_of_a_table_that_are_none_are_rejected(tmp_path: Path) -> None:
    """A row with too few cells costs only itself, and the rows after it keep their numbers."""
    lines = as_csv(ROWS[:6]).splitlines()
    lines[3] = b"just,three,cells"
    lines.append(b"the,end")
    path = tmp_path / "log.csv"
    path.write_bytes(b"\n".join(lines) + b"\n")
    _, log = read(path)
    assert log.only.offset.tolist() == [0, 1, 3, 4, 5]
    assert [(r.offset, r.reason, r.detail) for r in log.rejected] == [
        (2, "rejected.not_object", "3 cells under 13 names"),
        (6, "rejected.not_object", "2 cells under 13 names"),
    ]
    assert log.rejected[0].raw == b"just,three,cells"


def test_cells_of_a_table_are_judged_like_json(tmp_path: Path) -> None:
    """Numbers as text, NaN, infinities and what is no number mean the same in every format."""
    odd = ["12.5", " 12 ", "nan", "-Infinity", "12.5ms", "1,250.0", None, "9e15", "-1"]
    rows = [{**ROWS[1], "request_id": f"o{i}", "total_ms": t} for i, t in enumerate(odd)]
    got = [read(write_log(tmp_path, rows, kind))[1] for kind in ("jsonl", "csv", "parquet")]
    for log in got:
        assert list(log.only.ids) == ["o0", "o1"]
        assert log.ledger == {
            "accepted": 2,
            "quarantined.not_finite": 2,
            "rejected.not_a_number": 2,
            "rejected.no_total": 1,
            "quarantined.total_out_of_range": 1,
            "quarantined.negative_total": 1,
            "unknown_column": 9,
        }
        assert [r.offset for r in log.rejected] == [4, 5, 6]
    assert got[1].rejected[0].detail == "total_ms is '12.5ms'"


def test_nan_of_a_frame_is_no_missing_cell() -> None:
    """NaN and infinity in a frame are values that were written, as in JSON."""
    frame = as_frame(ROWS[:4]).with_columns(
        pl.Series("total_ms", [float("nan"), float("inf"), 5.0, 6.0]),
        pl.Series("status", ["ok"] * 4),
        pl.Series("queue_ms", [1.0, 1.0, float("nan"), 1.0]),
    )
    log = Read(open_frame(frame, now_ns=NOW_NS))
    assert log.ledger["quarantined.not_finite"] == 2
    assert log.ledger["missing.not_finite_stage"] == 1
    assert log.only.total_ms.tolist() == [5, 6]


def test_durations_and_labels_of_a_frame_carry_their_meaning() -> None:
    """A duration has its unit, a categorical its text, and a float id no decimals."""
    base = as_frame(ROWS[:40])
    frame = base.with_columns(
        pl.Series("total_ms", [1_500_000] * 40).cast(pl.Duration("us")),
        pl.Series("status", ["ok"] * 40),
        base["route"].cast(pl.Categorical),
        pl.Series("request_id", np.arange(40.0)),
        pl.Series("queue_ms", range(40)),
    )
    columns = Read(open_frame(frame, now_ns=NOW_NS)).only
    assert set(columns.total_ms.tolist()) == {1500.0}
    assert list(columns.ids)[:3] == ["0", "1", "2"]
    assert dict(columns.cohorts[columns.cohort[1]])["route"] == "b"
    assert columns.stage_ms[columns.stages.index("queue")].tolist() == list(range(40))


def test_several_services_are_told_apart(tmp_path: Path) -> None:
    """Records say whose they are; the named service has the rest."""
    rows: list[dict[str, Any]] = [
        {**row, "service": [None, "chat", "rank"][i % 3]} for i, row in enumerate(ROWS[:90])
    ]
    for kind in ("jsonl", "csv", "parquet"):
        _, log = read(write_log(tmp_path, rows, kind), Wanted(service="chat"))
        assert {name: len(columns) for name, columns in log.columns.items()} == {
            "chat": 60,
            "rank": 30,
        }


def test_damaged_files_are_named(tmp_path: Path) -> None:
    """A file that ends early, or is not of its format, is an error that names it."""
    whole = {
        "log.jsonl.gz": write_log(tmp_path, ROWS, "jsonl.gz", "a").read_bytes()[:-20],
        "log.csv.zst": write_log(tmp_path, ROWS, "csv.zst", "b").read_bytes()[:-20],
        "log.parquet": as_parquet(ROWS)[:-30],
        "log.csv": b"total_ms,total_ms\n1,2\n",
        "other.log": b"10.0.0.1 - - [08/Mar/2026] GET /\n" * 5,
        "bad.csv": b"request_id,total_ms\nr\xff\xfe,1\n",
    }
    for name, data in whole.items():
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(DecodeError) as error:
            read(path)
        assert str(path) in error.value.message
        assert error.value.remedy


def test_a_missing_log_is_an_error_of_usage(tmp_path: Path) -> None:
    """A path that is not there, or a directory without a log, is said so."""
    with pytest.raises(ConfigError, match="there is no log"):
        read(tmp_path / "none.csv")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(ConfigError, match=r"no file in .* is a log"):
        read(tmp_path)


def test_a_log_without_suffix_is_told_by_its_content(tmp_path: Path) -> None:
    """What a file holds counts where its name says nothing."""
    for index, (kind, writer) in enumerate(WRITERS.items()):
        path = tmp_path / f"log{index}"
        path.write_bytes(writer(ROWS))
        found, log = read(path)
        assert found.format == {"jsonl": "native", "json": "native"}.get(kind, kind)
        assert len(log.only) == 700


def test_objects_over_several_lines_are_records(tmp_path: Path) -> None:
    """JSON values one after another, each pretty-printed, are read like an array's elements."""
    text = as_lines(ROWS[:5]).replace(b',"', b',\n  "')
    path = tmp_path / "log.json"
    path.write_bytes(text)
    _, log = read(path)
    assert list(log.only.ids) == [f"r{i}" for i in range(5)]


def test_an_element_that_is_no_record_costs_only_itself(tmp_path: Path) -> None:
    """Nested objects, brackets in text and elements of other kinds do not confuse an array."""
    strange = (
        b'{"request_id":"x","timestamp":1772445600,"total_ms":5,"n":{"a":["]}",{}]},"t":"\\"]"}'
    )
    path = tmp_path / "log.json"
    path.write_bytes(b"\xef\xbb\xbf [ " + strange + b", null, 7, [] ,\n " + strange + b"]\n")
    _, log = read(path)
    assert log.only.offset.tolist() == [0, 4]
    assert [(r.offset, r.reason) for r in log.rejected] == [
        (1, "rejected.not_object"),
        (2, "rejected.not_object"),
        (3, "rejected.not_object"),
    ]


def test_an_endless_line_is_rejected_and_located(tmp_path: Path) -> None:
    """A line beyond the bound of memory is counted, and the rows after it keep their numbers."""
    lines = as_lines(ROWS[:4]).splitlines()
    lines.insert(2, b'{"request_id":"' + b"x" * 31_000_000 + b'"}')
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join(lines))
    _, log = read(path)
    assert log.only.offset.tolist() == [0, 1, 3, 4]
    assert [(r.offset, r.reason) for r in log.rejected] == [(2, "rejected.oversize")]


def test_arrow_streams_are_frames() -> None:
    """Whatever has Arrow's stream interface is read; here, a reader of record batches."""
    table = as_frame(ROWS).to_arrow()
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=90))
    assert len(Read(open_frame(reader, now_ns=NOW_NS)).only) == 700


def test_quotes_and_newlines_in_a_table(tmp_path: Path) -> None:
    """A quoted cell may hold the delimiter, a quote and a newline; semicolons delimit too."""
    rows = [{**row, "route": 'a;"b"\nc'} for row in ROWS[:30]]
    text = as_csv(rows).decode()
    for data in (text, text.replace(",", ";").replace("a;", "a;")):
        path = tmp_path / "log.csv"
        path.write_bytes(data.encode())
        columns = read(path)[1].only
        assert len(columns) == 30
        assert columns.cohorts[0][0] == ("route", 'a;"b"\nc')
    assert io.StringIO(text).readline().startswith("request_id,")


def test_a_log_is_read_once() -> None:
    """A second reading would find nothing, and look like an empty log: it is an error."""
    reading = open_frame(as_frame(ROWS), now_ns=NOW_NS)
    assert len(Read(reading).only) == 700
    with pytest.raises(RuntimeError, match="open it again"):
        Read(reading)


def test_text_that_is_stored_as_bytes(expected: tuple[Found, Read]) -> None:
    """Writers of Parquet that do not say that bytes are text mean the same."""
    frame = as_frame(ROWS).with_columns(
        pl.col("request_id", "status", "route", "region", "pod", "note").cast(pl.Binary)
    )
    log = Read(open_frame(frame.to_arrow(), now_ns=NOW_NS))
    assert cells(log.only) == cells(expected[1].only)
