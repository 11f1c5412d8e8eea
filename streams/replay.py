"""Put a log onto Kafka, line by line as it is, on the log's own timeline."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import ConfigResource, ResourceType

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.kafka import RequestTopic
from tailbudget.streams.kafka import ClientConfig, admin
from tailbudget.streams.log_lines import LogLines
from tailbudget.streams.log_time import detect_format, timeline
from tailbudget.streams.packing import PACK_BYTES, PACK_SPAN_MS, Pack, pack
from tailbudget.streams.publish import Publisher

AUTO: Final = "auto"
_LIVE_SPAN_MS: Final = 100


@dataclass(frozen=True, slots=True)
class Pacing:
    """How fast a log is replayed.

    Attributes:
        speed: 1 takes as long as the log did, 10 a tenth of it; None is as fast as it goes.
        pack_bytes: records are packed into messages of about this size; 0 packs none.
        report_s: seconds between two reports.
        now_ns: reads the clock, nanoseconds since the epoch.
        wait: waits that many seconds, or less; true says that the replay shall stop.
    """

    speed: float | None = None
    pack_bytes: int = PACK_BYTES
    report_s: float = 2.0
    now_ns: Callable[[], int] = time.time_ns
    wait: Callable[[float], bool] = field(default_factory=lambda: Event().wait)

    @property
    def span_ms(self) -> int:
        """Longest span of the log's time in one message."""
        if self.speed is None:
            return PACK_SPAN_MS
        return min(PACK_SPAN_MS, max(1, round(_LIVE_SPAN_MS * self.speed)))


@dataclass(frozen=True, slots=True)
class Replayed:
    """How far a replay is, or what it did.

    Attributes:
        lines: published.
        messages: that they travel in.
        blank: lines that held nothing; not published.
        oversize: numbers of lines that are too long to publish, the first 100 of them.
        oversize_count: how many they are.
        first_ms: earliest message time, milliseconds since the epoch; None while there is none.
        last_ms: latest message time.
        share: of the file that has been read; None when its size is unknown.
    """

    lines: int
    messages: int
    blank: int
    oversize: tuple[int, ...]
    oversize_count: int
    first_ms: int | None
    last_ms: int | None
    share: float | None

    def __str__(self) -> str:
        text = f"{self.lines:,} lines in {self.messages:,} messages"
        if self.share is not None:
            text = f"{self.share:4.0%}  {text}"
        if self.oversize_count:
            text += f"; {self.oversize_count:,} too long (line {self.oversize[0]:,} is the first)"
        return text


def parse_speed(text: str) -> float | None:
    """Return the speed that "max", "1x" or "10x" means.

    Raises:
        ConfigError: it is none of these.
    """
    if text == "max":
        return None
    try:
        speed = float(text.removesuffix("x"))
    except ValueError:
        speed = 0.0
    if not 0 < speed < float("inf"):
        raise ConfigError(f"--speed {text!r} is no speed", remedy="write max, 1x, 10x, 0.5x, …")
    return speed


def choose_topic(
    requests: Sequence[RequestTopic], format_name: str, *, topic: str | None, service: str | None
) -> RequestTopic:
    """Return the request topic that workers decode as `format_name`.

    Args:
        requests: the request topics of the settings.
        format_name: format of the log.
        topic: name of the wanted topic; None takes the first that fits.
        service: service that records without one shall belong to; None takes any.

    Raises:
        ConfigError: none fits, and what the settings should say.
    """
    for entry in requests:
        named = topic is None or entry.topic == topic
        if named and entry.format == format_name and service in (None, entry.service):
            return entry
    wanted = {
        "topic": topic or f"tailbudget.requests-{format_name}",
        "service": service or "null",
        "format": format_name,
    }
    text = ", ".join(f"{key}: {value}" for key, value in wanted.items())
    have = "; ".join(f"{e.topic}: {e.format}, service {e.service or 'null'}" for e in requests)
    raise ConfigError(
        f"no request topic{f' {topic!r}' if topic else ''} takes the format {format_name!r}"
        f"{f' for service {service!r}' if service else ''} (kafka.requests has {have})",
        remedy=f"add to kafka.requests: {{{text}}}",
    )


def run(
    config: ClientConfig,
    log: Path,
    target: Callable[[str], RequestTopic],
    *,
    format_name: str = AUTO,
    pacing: Pacing | None = None,
    report: Callable[[Replayed], None] = lambda _: None,
) -> Replayed:
    """Publish every line of `log` and return the counts; ends early when `pacing.wait` says so.

    A message's Kafka timestamp is the time that the log reached then, so that a record stamped
    ahead of its neighbours is seen to be.

    Args:
        config: as `streams.kafka.client_config` returns it.
        log: JSON lines, plain, .gz or .zst; "-" is standard input.
        target: gives the topic for the log's format; raises ConfigError when there is none.
        format_name: the log's format; "auto" finds it out.
        pacing: how fast.
        report: told how far it is.

    Raises:
        ConfigError: the log cannot be opened, or no topic fits.
        DecodeError: the log is not of JSON lines, or damaged.
        BrokerError: no broker answers, the topic is missing, or a message was not taken.
    """
    pacing = pacing or Pacing()
    with LogLines(log) as source:
        found, lines = detect_format(source)
        chosen = found if format_name == AUTO else format_name
        topic = target(chosen).topic
        with Publisher(config) as publisher:
            replay = _Replay(source, publisher, topic)
            for message in _paced(lines, pacing, chosen):
                replay.send(message)
                replay.report_when_due(pacing, report)
        return replay.state()


def retention_warning(config: ClientConfig, topic: str, oldest_ms: int, now_ms: int) -> str | None:
    """Say that the broker may delete a replay, for it counts retention from a record's own time.

    None when it keeps them, or does not say how long.
    """
    resource = ConfigResource(ResourceType.TOPIC, topic)
    client = admin(config)
    try:
        entries = client.describe_configs([resource])[resource].result(10)
        retention_ms = int(entries["retention.ms"].value)
    except (KafkaException, KeyError, TypeError, ValueError):
        return None
    if retention_ms < 0 or now_ms - oldest_ms < retention_ms:
        return None
    return (
        f"topic {topic} keeps records for {retention_ms / 3_600_000:g} h of their own time and"
        f" this log is {(now_ms - oldest_ms) / 3_600_000:,.0f} h old: the broker may delete it"
        f" within minutes; run a worker now, or set retention.ms=-1 on the topic"
    )


class _Replay:
    def __init__(self, source: LogLines, publisher: Publisher, topic: str) -> None:
        self._source = source
        self._publisher = publisher
        self._topic = topic
        self._lines = self._messages = 0
        self._first_ms: int | None = None
        self._last_ms: int | None = None
        self._reported_ns: int | None = None

    def send(self, message: Pack) -> None:
        self._publisher.send_pack(self._topic, message)
        self._lines += message.records
        self._messages += 1
        at = message.timestamp_ms
        self._first_ms = at if self._first_ms is None else min(self._first_ms, at)
        self._last_ms = at if self._last_ms is None else max(self._last_ms, at)

    def report_when_due(self, pacing: Pacing, report: Callable[[Replayed], None]) -> None:
        now_ns = pacing.now_ns()
        if self._reported_ns is None:
            self._reported_ns = now_ns
        elif now_ns - self._reported_ns >= pacing.report_s * 1e9:
            self._reported_ns = now_ns
            report(self.state())

    def state(self) -> Replayed:
        source = self._source
        share = source.read_bytes() / source.size_bytes if source.size_bytes else None
        return Replayed(
            self._lines,
            self._messages,
            source.blank,
            tuple(source.oversize),
            source.oversize_count,
            self._first_ms,
            self._last_ms,
            share,
        )


def _paced(lines: Iterator[bytes], pacing: Pacing, format_name: str) -> Iterator[Pack]:
    timed = timeline(lines, pacing.now_ns(), format_name)
    stamped = ((line, at // 1_000_000) for line, at in timed)
    began_ns = pacing.now_ns()
    first_ms: int | None = None
    for message in pack(stamped, max_bytes=pacing.pack_bytes, span_ms=pacing.span_ms):
        first_ms = message.timestamp_ms if first_ms is None else first_ms
        ahead_s = 0.0
        if pacing.speed is not None:
            due_ns = (message.timestamp_ms - first_ms) * 1e6 / pacing.speed
            ahead_s = max(due_ns - (pacing.now_ns() - began_ns), 0.0) / 1e9
        if pacing.wait(ahead_s):
            return
        yield message
