"""Files that are made to hurt: endless, nested without end, packed, of another encoding."""

from __future__ import annotations

import gzip
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import cramjam
import pytest
from logs import NOW_NS, Read
from real_samples import SAMPLES

from tailbudget.schemas.errors import DecodeError, TailbudgetError
from tailbudget.streams.audit_log import Wanted, open_log
from tailbudget.streams.inspection import inspect
from tailbudget.streams.mapping_file import with_mapping
from tailbudget.streams.sources import FORMATS, Rules, SourceMessage, decoder

MB = 1_000_000
ROW = b'{"request_id":"a","timestamp":1772445600,"total_ms":5'

ENDLESS: dict[str, bytes] = {
    "log.jsonl": ROW + b',"note":"',
    "log.json": b"[" + ROW + b',"note":"',
    "log.csv": b'request_id,timestamp,total_ms\na,1772445600,"',
    "log.log": b'127.0.0.1 - - [02/Mar/2026:10:00:00 +0000] "GET ',
    "trace.json": b'{"data":[{"traceID":"a1","spans":[{"spanID":"',
    "spans.json": b'[{"traceId":"a1","id":"b2","timestamp":1,"name":"',
    "result.json": b'{"benchmarks":[{"requests":"',
    "otlp.pb": b"\x0a\xff\xff\xff\x7f\x0a\x00",
    "framed.pb": b"\x00\xf0\x00\x00\x0a\x00",
    "zipkin.bin": b"\x0c\x7f\xff\xff\xff\x0a\x00\x01\x00",
    "metrics.prom": b'# HELP a b\na_bucket{le="',
}
"""How files begin of which the rest is one line, or one document, of any length."""

PROBE = """
import resource, sys, time
from pathlib import Path
from tailbudget.schemas.errors import TailbudgetError
from tailbudget.schemas.settings import Settings
from tailbudget.streams.audit_log import Wanted
from tailbudget.streams.log_report import Asked, make
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
def read(path):
    try:
        make(Settings(), Asked(Path(path), Wanted(), time.time_ns()))
        return "read"
    except TailbudgetError as error:
        return type(error).__name__ + " " + str(error)[:200].replace(chr(10), " ")
read(sys.argv[1])
before = peak()
said = read(sys.argv[2])
print(peak() - before, said)
"""

MOST_MB = 500
"""A document may have 128 MB, and is held twice; all else is read in pieces of at most 16 MB."""


def growth(path: Path) -> tuple[int, str]:
    """Return the megabytes that reading a file takes above those of a small one, and its end."""
    small = path.parent / "small.jsonl"
    small.write_bytes((ROW + b"}\n") * 50)
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(small), str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    taken, said = done.stdout.split(" ", 1)
    return int(taken), said.strip()


def endless(path: Path, begin: bytes, size: int) -> Path:
    """Write a beginning, and nothing but spaces or zeros behind it, as a file with holes."""
    with path.open("wb") as file:
        file.write(begin)
        file.truncate(size)
    return path


@pytest.mark.parametrize("name", ENDLESS)
def test_a_line_without_end_takes_bounded_memory(name: str, tmp_path: Path) -> None:
    """300 MB of one line are an error, or a rejected row, whatever they claim to be."""
    taken, said = growth(endless(tmp_path / name, ENDLESS[name], 300 * MB))
    assert taken < MOST_MB
    assert said == "read" or said.split()[0] in {"DecodeError", "Refused"}, said


@pytest.mark.thorough
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ENDLESS)
def test_a_gigabyte_of_one_line(name: str, tmp_path: Path) -> None:
    """The same at 1 GB: what is held does not grow with the file."""
    taken, said = growth(endless(tmp_path / name, ENDLESS[name], 1_000 * MB))
    assert taken < MOST_MB
    assert said == "read" or said.split()[0] in {"DecodeError", "Refused"}, said


def _gzip(begin: bytes, size: int, path: Path) -> None:
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(begin)
        for _ in range(size // MB):
            file.write(b"\0" * MB)


def _zstd(begin: bytes, size: int, path: Path) -> None:
    path.write_bytes(bytes(cramjam.zstd.compress(begin + b"\0" * size)))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["log.jsonl", "log.csv", "result.json", "metrics.prom"])
@pytest.mark.parametrize("pack", [_gzip, _zstd])
def test_a_bomb_takes_bounded_memory(
    name: str, pack: Callable[[bytes, int, Path], None], tmp_path: Path
) -> None:
    """300 MB in some kilobytes are read in pieces, as if they lay there."""
    path = tmp_path / f"{name}.{'gz' if pack is _gzip else 'zst'}"
    pack(ENDLESS[name], 300 * MB, path)
    assert path.stat().st_size < 2 * MB
    taken, said = growth(path)
    assert taken < MOST_MB
    assert said == "read" or said.split()[0] in {"DecodeError", "Refused"}, said


def test_a_bomb_within_a_bomb_is_no_log(tmp_path: Path) -> None:
    """Compression is taken off once: what is inside is then no text."""
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(gzip.compress(gzip.compress(ROW + b"}\n")))
    with pytest.raises(TailbudgetError):
        Read(open_log(path, now_ns=NOW_NS))


def nested(sample: bytes, depth: int) -> list[bytes]:
    """Return a sample within lists and objects, and lists and objects within it."""
    begin = sample.find(b"{")
    inside = (
        sample[: begin + 1] + b'"x":' + b"[" * depth + b"]" * depth + b"," + sample[begin + 1 :]
    )
    return [
        b"[" * depth + sample + b"]" * depth,
        b'{"a":' * depth + sample + b"}" * depth,
        b'{"data":[' * depth + sample + b"]}" * depth,
        b'{"event":' * depth + sample + b"}" * depth,
        inside if begin >= 0 else sample,
        b"[" * depth,
    ]


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_nesting_without_end(name: str, tmp_path: Path) -> None:
    """A topic or a file of up to a hundred thousand levels raises no error that is not ours."""
    for depth in (200, 990, 100_000):
        for text in nested(SAMPLES[name][0][:20_000], depth):
            one = decoder(name, Rules(service="x"))
            one.decode([SourceMessage(text, 0, NOW_NS)])
            one.finish()
            path = tmp_path / "log.json"
            path.write_bytes(text)
            for wanted in (Wanted(), Wanted(format=name)):
                with suppress(TailbudgetError):
                    Read(open_log(path, wanted, now_ns=NOW_NS))


def test_nesting_is_looked_at_and_mapped(tmp_path: Path) -> None:
    """`inspect` passes nested cells over; a mapping keeps them, or rejects the row for them."""
    path, mapping = tmp_path / "log.jsonl", tmp_path / "mapping.yaml"
    mapping.write_text("columns: {request_id: request_id, total_ms: total_ms}\nkeep: [x]\n")
    for depth in (200, 990):
        for begin, end in ((b"[", b"]"), (b'{"a":', b"}")):
            path.write_bytes(ROW + b',"x":' + begin * depth + b"1" + end * depth + b"}\n")
            assert inspect(path).mapping is not None
            log = Read(open_log(path, with_mapping(Wanted(), mapping), now_ns=NOW_NS))
            kept = log.ledger["accepted"]
            assert (kept, log.ledger["rejected.not_of_format"]) == (depth == 200, depth != 200)


TEXTS = {
    "log.csv": "request_id,timestamp,total_ms,route\n"
    + "".join(f"r{n},1772445600,{n}.5,/café\n" for n in range(30)),
    "log.jsonl": "".join(
        f'{{"request_id":"r{n}","timestamp":1772445600,"total_ms":5,"route":"/café"}}\n'
        for n in range(30)
    ),
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(
    ("encoding", "said"),
    [("utf-16", "UTF-16"), ("utf-16-le", "UTF-16"), ("utf-32", "UTF-32"), ("latin-1", "no UTF-8")],
)
def test_other_encodings_are_named(name: str, encoding: str, said: str, tmp_path: Path) -> None:
    """A file in another encoding is an error that says which, and how to convert it."""
    path = tmp_path / name
    path.write_bytes(TEXTS[name].encode(encoding))
    with pytest.raises(DecodeError, match=said) as caught:
        open_log(path, now_ns=NOW_NS)
    assert "iconv" in caught.value.remedy
    path.write_bytes(TEXTS[name].encode("utf-8-sig"))
    assert len(Read(open_log(path, now_ns=NOW_NS)).only) == 30


def test_one_row_in_another_encoding_costs_only_itself(tmp_path: Path) -> None:
    """Of lines of JSON the others are read; it is rejected as what it is."""
    path = tmp_path / "log.jsonl"
    odd = b'{"request_id":"odd","timestamp":1772445600,"total_ms":5,"route":"\xe9"}\n'
    path.write_bytes(TEXTS["log.jsonl"].encode() + odd)
    log = Read(open_log(path, now_ns=NOW_NS))
    assert len(log.only) == 30
    assert log.ledger["rejected.not_utf8"] == 1


@pytest.mark.parametrize("kept", [0.3, 0.7, 0.99])
def test_truncated_files_are_damaged_or_cost_their_end(kept: float, tmp_path: Path) -> None:
    """A compressed file that ends early is an error; a cut line or element is one rejected row."""
    text = TEXTS["log.jsonl"].encode() * 200
    packed = gzip.compress(text)
    path = tmp_path / "log.jsonl.gz"
    path.write_bytes(packed[: int(kept * len(packed))])
    with pytest.raises(DecodeError, match="damaged"):
        Read(open_log(path, now_ns=NOW_NS))
    path = tmp_path / "log.jsonl"
    path.write_bytes(text[: int(kept * len(text)) - 7])
    log = Read(open_log(path, now_ns=NOW_NS))
    assert sum(n for reason, n in log.ledger.items() if reason.startswith("rejected")) <= 1
    path = tmp_path / "spans.pb"
    framed = struct.pack(">I", len(SAMPLES["otlp_proto"][0])) + SAMPLES["otlp_proto"][0]
    path.write_bytes((framed * 50)[: int(kept * 50 * len(framed)) - 3])
    with pytest.raises(DecodeError, match=r"early|length"):
        Read(open_log(path, now_ns=NOW_NS))


@pytest.mark.parametrize("name", ["aiperf", "dynamo", "guidellm", "native"])
def test_a_field_that_is_nested_costs_its_record(name: str) -> None:
    """Lists where a time or an id belongs are no time and no id, however deep they are."""
    for field in (b"1772445600", b'"request_id"', b"T0", b"timestamp_ns", b"request_received_ms"):
        for text in SAMPLES[name]:
            deep = text.replace(
                b'"' + field + b'":', b'"' + field + b'":' + b"[" * 300 + b"]" * 300 + b',"y":'
            )
            decoder(name, Rules(service="x")).decode([SourceMessage(deep, 0, NOW_NS)])


def test_a_lone_carriage_return_in_a_header(tmp_path: Path) -> None:
    """A table whose header no reader takes is damaged, and says so."""
    path = tmp_path / "log.csv"
    path.write_bytes(b"\r\x01")
    with pytest.raises(DecodeError, match=r"log\.csv is damaged"):
        open_log(path, Wanted(), now_ns=0)
