"""Whatever a message or a file of any format holds: only our errors, and counts add up."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from real_samples import SAMPLES

from tailbudget.schemas import ledger
from tailbudget.schemas.errors import TailbudgetError
from tailbudget.schemas.records import Decoded
from tailbudget.schemas.settings import Settings
from tailbudget.streams.audit_log import Wanted, open_log
from tailbudget.streams.log_report import Asked, make
from tailbudget.streams.sources import FORMATS, HOLDING, Rules, SourceMessage, decoder

NOW_NS = 1_800_000_000 * 10**9
PIECES = [
    b"null", b"-1", b"1e400", b"NaN", b'"', b"{", b"}", b"[", b"]", b",", b"\\", b"\0", b"\xff\xfe",
    b"\xc3\x28", b"\xef\xbb\xbf", b"\n", b"\r\n", b"true", b'"\\ud800"', b"9" * 40, b"[" * 200,
    b'{"a":' * 200, b"0000-00-00", b"\x0a\xff\xff\xff\xff\x0f", b"\x0c\x7f\xff\xff\xff", b"",
]  # fmt: skip

edits = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.integers(0, 30),
        st.sampled_from(PIECES) | st.binary(max_size=6),
    ),
    max_size=4,
)


def edited(text: bytes, changes: Iterable[tuple[float, int, bytes]], kept: float) -> bytes:
    """Replace some bytes of a sample by others, and cut the end off."""
    for place, size, piece in changes:
        at = int(place * len(text))
        text = text[:at] + piece + text[at + size :]
    return text[: int(kept * len(text))] if kept < 1 else text


def of(name: str) -> st.SearchStrategy[bytes]:
    """Return samples of a format with edits, those of others, and bytes of no format."""
    whole = st.sampled_from([0.1, 0.5, 0.9]) | st.floats(0, 1) | st.just(1.0)
    own = st.builds(edited, st.sampled_from(SAMPLES[name]), edits, whole)
    other = st.sampled_from(sorted(SAMPLES)).flatmap(lambda one: st.sampled_from(SAMPLES[one]))
    return st.one_of(own, own, own, st.binary(max_size=60), other)


def count(parts: Iterable[Decoded]) -> dict[str, int]:
    """Check that rows and dead letters are what the ledger says, and return the ledger."""
    found: dict[str, int] = {}
    rows = dead = 0
    for part in parts:
        rows += sum(map(len, part.services))
        dead += len(part.rejected)
        for (_, _, reason), number in part.ledger.items():
            assert number > 0
            assert reason in ledger.MEANING
            found[reason] = found.get(reason, 0) + number
    assert found.get(ledger.ACCEPTED, 0) == rows
    assert sum(n for reason, n in found.items() if ledger.is_rejected(reason)) == dead
    return found


@pytest.mark.parametrize("name", sorted(FORMATS))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_messages_of_any_content(name: str, data: st.DataObject) -> None:
    """A topic's decoder takes what comes; in one batch or message by message it is the same."""
    values = data.draw(st.lists(of(name) | st.none(), min_size=1, max_size=4))
    messages = [SourceMessage(value, n, NOW_NS) for n, value in enumerate(values)]
    one, each = decoder(name, Rules(service="x")), decoder(name, Rules(service="x"))
    whole = [one.decode(messages)]
    apart = [each.decode([message]) for message in messages]
    for instance, parts in ((one, whole), (each, apart)):
        rest = instance.finish()
        assert (rest is not None) == (name in HOLDING)
        parts.extend([rest] if rest is not None else [])
    assert count(whole) == count(apart)


@pytest.mark.parametrize("name", sorted(FORMATS))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_files_of_any_content(name: str, data: st.DataObject) -> None:
    """A file is read, refused or damaged, with a name for it; named as a format or recognised."""
    text = b"\n".join(data.draw(st.lists(of(name), min_size=1, max_size=3)))
    suffix = data.draw(st.sampled_from([".json", ".jsonl", ".csv", ".log", ".pb", "", ".jsonl.gz"]))
    packed = gzip.compress(text, 1) if suffix.endswith("gz") else text
    packed = packed[: len(packed) - data.draw(st.integers(0, 3))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"log{suffix}"
        path.write_bytes(packed)
        wanted = Wanted(format=data.draw(st.sampled_from([None, name])))
        with suppress(TailbudgetError):
            count(open_log(path, wanted, now_ns=NOW_NS))


SCRAPE = (
    b"# HELP http_request_duration_seconds of requests\n"
    b"# TYPE http_request_duration_seconds histogram\n"
    b'http_request_duration_seconds_bucket{code="200",le="0.5"} 90\n'
    b'http_request_duration_seconds_bucket{code="200",le="+Inf"} 100\n'
    b'http_request_duration_seconds_sum{code="200"} 5.5\n'
    b'http_request_duration_seconds_count{code="200"} 100\n'
)


@settings(max_examples=200, deadline=None)
@given(edits, st.floats(0.1, 1), st.sampled_from([b"", b"# EOF\n"]))
@example([(0.0, 0, b"\x1f\x8b")], 1.0, b"")
def test_scrapes_of_any_content(
    changes: list[tuple[float, int, bytes]], kept: float, end: bytes
) -> None:
    """A scrape of Prometheus is read, refused or damaged, and its bounds are in order."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "metrics.prom"
        path.write_bytes(edited(SCRAPE, changes, kept) + end)
        with suppress(TailbudgetError):
            for row in make(Settings(), Asked(path, Wanted(), NOW_NS)).audit.bounds:
                assert row.high_ms is None or row.low_ms < row.high_ms
