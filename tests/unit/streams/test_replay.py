"""Replaying a log onto Kafka."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import cramjam
import orjson
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition
from new_topics import create_topics

from tailbudget.schemas.errors import BrokerError, ConfigError, DecodeError
from tailbudget.schemas.kafka import RequestTopic
from tailbudget.streams.embedded import EmbeddedBroker
from tailbudget.streams.kafka import client_config
from tailbudget.streams.log_lines import LogLines
from tailbudget.streams.replay import (
    Pacing,
    Replayed,
    choose_topic,
    parse_speed,
    retention_warning,
    run,
)
from tailbudget.streams.scenario import Scenario
from tailbudget.streams.traffic import records

START_NS = 1_772_445_600_000_000_000
LINES = records(Scenario(rate=100), START_NS, 0, 10)


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    log_path = tmp_path_factory.mktemp("broker") / "broker.log"
    with EmbeddedBroker(log_path=log_path) as broker:
        yield broker.bootstrap


def to(topic: str) -> RequestTopic:
    return RequestTopic(topic=topic)


def consume(bootstrap: str, topic: str, messages: int, partitions: int = 2) -> list[Message]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test"})
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
    got: list[Message] = []
    for _ in range(60):
        if len(got) >= messages:
            break
        got += consumer.consume(messages, timeout=1.0)
    got += consumer.consume(1, timeout=0.3)
    consumer.close()
    return got


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
@pytest.mark.parametrize("pack_bytes", [0, 4096])
def test_every_line_arrives_once(
    bootstrap: str, tmp_path: Path, suffix: str, pack_bytes: int
) -> None:
    """The topic holds the lines of the file, packed or not, compressed or not."""
    topic = f"once{suffix}.{pack_bytes}"
    create_topics(client_config(bootstrap), {topic: 2})
    log = tmp_path / f"log.jsonl{suffix}"
    data = b"\n".join(LINES)
    if suffix == ".gz":
        data = gzip.compress(data)
    elif suffix == ".zst":
        data = bytes(cramjam.zstd.compress(data))
    log.write_bytes(data)
    done = run(
        client_config(bootstrap),
        log,
        lambda found: to(topic) if found == "native" else to("wrong"),
        pacing=Pacing(pack_bytes=pack_bytes),
    )
    got = consume(bootstrap, topic, done.messages)
    assert sorted(row for m in got for row in m.value().split(b"\n")) == sorted(LINES)
    assert done.lines == len(LINES)
    assert done.share == 1
    assert len(got) == done.messages == (len(LINES) if pack_bytes == 0 else len(got))
    assert {m.partition() for m in got} == {0, 1}


def test_messages_carry_the_time_of_the_log(bootstrap: str, tmp_path: Path) -> None:
    """The Kafka timestamp follows the log, and a row stamped a day ahead does not move it."""
    create_topics(client_config(bootstrap), {"times": 1})
    log = tmp_path / "log.jsonl"
    seconds = [0, 1, 2, 86_403, 4, 5, 6]
    log.write_text("".join(f'{{"timestamp":{1_772_445_600 + s}}}\n' for s in seconds))
    done = run(client_config(bootstrap), log, lambda _: to("times"), pacing=Pacing(pack_bytes=0))
    got = consume(bootstrap, "times", 7, partitions=1)
    assert [m.timestamp()[1] // 1000 - 1_772_445_600 for m in got] == [1, 1, 2, 4, 5, 6, 6]
    assert (done.first_ms, done.last_ms) == (1_772_445_601_000, 1_772_445_606_000)


def test_blank_and_oversize_lines_are_counted_not_published(tmp_path: Path) -> None:
    """The line after an oversize one is read, and the oversize one is located."""
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"a\r\n\n" + b"x" * 5000 + b"\nb\n\n" + b"y" * 11 + b"\n" + b"z" * 10)
    with LogLines(log, max_line_bytes=10) as lines:
        assert list(lines) == [b"a", b"b", b"z" * 10]
        assert (lines.read, lines.blank) == (7, 2)
        assert (lines.oversize, lines.oversize_count) == ([3, 6], 2)
        assert lines.read_bytes() == lines.size_bytes


class Clock:
    """A clock that moves by what somebody waits."""

    def __init__(self, stop_after_s: float = 1e9) -> None:
        self.waited_s = 0.0
        self.stop_after_s = stop_after_s

    def now_ns(self) -> int:
        return START_NS + 86_400 * 10**9 + round(self.waited_s * 1e9)

    def wait(self, seconds: float) -> bool:
        self.waited_s += seconds
        return self.waited_s >= self.stop_after_s


@pytest.mark.parametrize(("speed", "expected_s"), [(None, 0), (1.0, 10), (10.0, 1)])
def test_speed_sets_how_long_it_takes(
    bootstrap: str, tmp_path: Path, speed: float | None, expected_s: float
) -> None:
    """Ten seconds of log take ten at 1x, one at 10x, and none at full speed."""
    topic = f"speed-{expected_s:g}"
    create_topics(client_config(bootstrap), {topic: 2})
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"\n".join(LINES))
    clock = Clock()
    reports: list[Replayed] = []
    done = run(
        client_config(bootstrap),
        log,
        lambda _: to(topic),
        pacing=Pacing(speed=speed, now_ns=clock.now_ns, wait=clock.wait),
        report=reports.append,
    )
    assert done.lines == len(LINES)
    assert clock.waited_s == pytest.approx(expected_s, abs=0.25)
    assert len(reports) == int(expected_s / 2.2)
    assert [report.lines for report in reports] == sorted(report.lines for report in reports)


def test_stops_when_told(bootstrap: str, tmp_path: Path) -> None:
    """A replay that is told to stop says how many lines it published, and those arrive."""
    create_topics(client_config(bootstrap), {"stop": 2})
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"\n".join(LINES))
    clock = Clock(stop_after_s=3)
    pacing = Pacing(speed=1, now_ns=clock.now_ns, wait=clock.wait)
    done = run(client_config(bootstrap), log, lambda _: to("stop"), pacing=pacing)
    assert 200 < done.lines < 400
    got = consume(bootstrap, "stop", done.messages)
    assert sum(m.value().count(b"\n") + 1 for m in got) == done.lines


def test_a_damaged_file_says_how_far_it_was_read(bootstrap: str, tmp_path: Path) -> None:
    """A truncated gzip file is an error that names the last good line."""
    create_topics(client_config(bootstrap), {"damaged": 1})
    log = tmp_path / "log.jsonl.gz"
    log.write_bytes(gzip.compress(b"\n".join(LINES))[:-2000])
    with pytest.raises(DecodeError, match=r"log\.jsonl\.gz is damaged after line \d\d"):
        run(client_config(bootstrap), log, lambda _: to("damaged"))


def test_wrong_paths_and_topics_are_named(bootstrap: str, tmp_path: Path) -> None:
    """A log or a topic that does not exist is named."""
    log = tmp_path / "log.jsonl"
    with pytest.raises(ConfigError, match=r"cannot read the log .*log\.jsonl"):
        run(client_config(bootstrap), log, lambda _: to("missing"))
    log.write_bytes(LINES[0])
    with pytest.raises(BrokerError, match="topic 'missing' does not exist"):
        run(client_config(bootstrap), log, lambda _: to("missing"))


def test_the_topic_follows_the_format() -> None:
    """The first request topic of the log's format is taken, of that service when one is asked."""
    native, bench, other = (
        RequestTopic(topic="a"),
        RequestTopic(topic="b", format="aiperf", service="bench"),
        RequestTopic(topic="c", format="aiperf", service="other"),
    )
    topics = (native, bench, other)
    assert choose_topic(topics, "native", topic=None, service=None) is native
    assert choose_topic(topics, "aiperf", topic=None, service=None) is bench
    assert choose_topic(topics, "aiperf", topic=None, service="other") is other
    assert choose_topic(topics, "aiperf", topic="c", service=None) is other


def test_no_topic_for_the_format_says_what_to_set() -> None:
    """The error shows what the settings have, and the entry that is missing."""
    with pytest.raises(ConfigError, match="'a' takes the format 'aiperf'") as caught:
        choose_topic((RequestTopic(topic="a"),), "aiperf", topic="a", service="bench")
    assert "{topic: a, service: bench, format: aiperf}" in caught.value.remedy


@pytest.mark.parametrize(("text", "speed"), [("max", None), ("1x", 1), ("0.5x", 0.5), ("10", 10)])
def test_reads_a_speed(text: str, speed: float | None) -> None:
    """Speeds are written as max or as a factor."""
    assert parse_speed(text) == speed


@pytest.mark.parametrize("text", ["fast", "0x", "-1x", "nan", "infx", ""])
def test_refuses_what_is_no_speed(text: str) -> None:
    """Anything else is a usage error."""
    with pytest.raises(ConfigError, match="is no speed"):
        parse_speed(text)


def test_says_nothing_of_retention_where_nothing_is_deleted(bootstrap: str) -> None:
    """A broker without retention gives no warning."""
    create_topics(client_config(bootstrap), {"kept": 1})
    assert retention_warning(client_config(bootstrap), "kept", 0, 10**13) is None


def test_a_row_is_published_as_it_is(bootstrap: str, tmp_path: Path) -> None:
    """Odd spacing, bytes that are not UTF-8 and a byte-order mark reach the decoder unchanged."""
    create_topics(client_config(bootstrap), {"raw": 1})
    rows = [b'{ "request_id" : "a" }', b"\xef\xbb\xbf" + orjson.dumps({"b": 1}), b"\xff\xfe{"]
    log = tmp_path / "log.jsonl"
    log.write_bytes(b"\n".join(rows))
    run(client_config(bootstrap), log, lambda _: to("raw"))
    (message,) = consume(bootstrap, "raw", 1, partitions=1)
    assert message.value().split(b"\n") == rows
