"""Delivery against real HTTP servers: once, in order, within limits, whatever they answer."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from alerts import BURN, T0_NS, breach, burn
from chat_receiver import HANG, ChatReceiver
from faust.types import TP
from pydantic import SecretStr
from random_records import random_columns, stored_panes

from tailbudget.schemas.alert import Alert
from tailbudget.schemas.connections import ChatChannel
from tailbudget.schemas.errors import ChatError
from tailbudget.sinks.chat import AppriseChat, FakeChat
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.delivery import backoff, sender
from tailbudget.streams.delivery.agent import Delivery
from tailbudget.streams.delivery.backoff import Backoff
from tailbudget.streams.delivery.grouping import grouped
from tailbudget.streams.delivery.last_hour import LastHourPictures
from tailbudget.streams.delivery.notice import Notice
from tailbudget.streams.delivery.offsets import Offsets
from tailbudget.streams.delivery.rate import Rate
from tailbudget.streams.delivery.told import Decision, Told
from tailbudget.streams.embedded import free_port

TOPIC = TP("alerts", 0)
PATIENCE_S = 30.0


async def until(condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in other threads
            await asyncio.sleep(0.02)


@dataclass
class Consumer:
    """Remembers what was declared finished."""

    reached: dict[TP, int] = field(default_factory=dict)

    def advance(self, tp: TP, offset: int) -> None:
        self.reached[tp] = offset


@dataclass
class Running:
    """A delivery with its consumer, fed by hand."""

    delivery: Delivery
    consumer: Consumer
    offset: int = 0

    async def feed(self, *alerts: Alert) -> None:
        """Give alerts as if read from the topic."""
        for alert in alerts:
            await self.delivery.take(TOPIC, self.offset, orjson.dumps(alert.to_payload()))
            self.offset += 1

    async def settled(self) -> None:
        """Wait until every message is finished."""
        await until(lambda: self.consumer.reached.get(TOPIC, 0) >= self.offset)


@asynccontextmanager
async def running(store: ClickHouse, *channels: Any, **more: Any) -> AsyncIterator[Running]:
    """Run a delivery to (settings, chat) pairs."""
    consumer = Consumer()
    failures: list[BaseException] = []

    def spawn(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        task.add_done_callback(
            lambda done: (
                None
                if done.cancelled() or not done.exception()
                else failures.append(done.exception() or RuntimeError())
            )
        )
        return task

    delivery = Delivery(channels, store, lambda: consumer, spawn=spawn, **more)
    try:
        yield Running(delivery, consumer)
    finally:
        await delivery.stop()
    assert failures == []


def hook(receiver: ChatReceiver, name: str = "hook", **more: Any) -> tuple[ChatChannel, Any]:
    """Return a JSON webhook at a receiver, without pictures."""
    url = SecretStr(f"json://127.0.0.1:{receiver.port}/s3cr3t-t0ken")
    channel = ChatChannel(name=name, url=url, **{"picture": False, **more})
    return channel, AppriseChat(channel)


def fake(name: str = "fake", **more: Any) -> tuple[ChatChannel, FakeChat]:
    """Return a channel in memory."""
    return ChatChannel(name=name, url=SecretStr("json://nowhere"), **more), FakeChat(name)


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a test's coroutine."""
    asyncio.run(work)


@pytest.fixture
def receiver() -> Any:
    """A webhook that is down until it is opened."""
    with ChatReceiver(free_port()) as made:
        yield made


def test_thirty_five_cohorts_survive_400_and_429(
    clickhouse: ClickHouse, receiver: ChatReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case 35: 400 once is plain text once, 429 is a wait of 3 s, and one message arrives."""
    url = SecretStr(f"mmost://127.0.0.1:{receiver.port}/abcdefghijklmnop")
    channel = ChatChannel(name="team", url=url)
    chat = AppriseChat(channel)
    receiver.answers += [(400, {}), (429, {"Retry-After": "3"})]
    receiver.open()
    waits: list[float] = []
    real_sleep = asyncio.sleep

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await real_sleep(min(seconds, 0.05))

    async def test() -> None:
        async with running(clickhouse, (channel, chat)) as here:
            await here.feed(*(breach(number) for number in range(35)))
            await here.settled()

    monkeypatch.setattr(asyncio, "sleep", sleep)
    run(test())
    # The 400 is followed at once by plain text, which meets the 429; then the same message again.
    assert len(receiver.refused) == 2
    assert len(receiver.taken) == 1
    assert 3.0 in waits
    text = receiver.taken[0]["text"]
    assert text == receiver.refused[0]["text"]
    assert chat.limits.measure(text) <= 4000
    assert re.search(r"^\+\d+ more$", text, re.MULTILINE)
    assert len(receiver.refused[1]["text"]) <= 2000
    rows = clickhouse.query("SELECT outcome, count() FROM alert_notices FINAL GROUP BY outcome")
    assert rows.rows == (("delivered", 35),)


def test_a_server_that_fails_in_every_way(
    clickhouse: ClickHouse, receiver: ChatReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Down, 500, 429, closed, never answering: each change arrives once, in order."""
    monkeypatch.setattr(backoff, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(backoff, "LONGEST_WAIT_S", 0.1)

    async def test() -> None:
        async with running(clickhouse, hook(receiver)) as here:
            await here.feed(BURN)
            await asyncio.sleep(0.3)
            assert receiver.taken == []
            receiver.answers += [(500, {}), (429, {"Retry-After": "0"}), (HANG, {})]
            receiver.open()
            await here.settled()
            await here.feed(burn(state="resolved", sequence=2, before="firing"))
            await here.settled()
            assert (here.delivery.delivered, here.delivery.undelivered) == (2, 0)

    run(test())
    assert receiver.alerts() == [("chat", "firing"), ("chat", "resolved")]
    assert len(receiver.refused) == 3


def test_a_channel_that_is_down_keeps_no_other_waiting(
    clickhouse: ClickHouse, receiver: ChatReceiver
) -> None:
    """While one server is away the other channel hears of everything, and nothing is committed."""
    settings, other = fake()

    async def test() -> None:
        async with running(clickhouse, hook(receiver), (settings, other)) as here:
            for sequence, state in enumerate(("firing", "resolved", "firing", "resolved"), 1):
                await here.feed(burn(state=state, sequence=sequence))
            await until(lambda: len(other.sent) == 4 and here.delivery.waiting == 4)
            assert here.consumer.reached.get(TOPIC, 0) == 0
            receiver.open()
            await here.settled()

    run(test())
    assert [message.state for message in other.sent] == ["firing", "resolved"] * 2
    assert [state for _, state in receiver.alerts()] == ["firing", "resolved"] * 2


def test_a_restart_neither_repeats_nor_loses(
    clickhouse: ClickHouse, receiver: ChatReceiver
) -> None:
    """Read again from the topic, each change goes to the channels that have not taken it."""
    settings, first = fake()
    again = FakeChat("fake")

    async def before() -> None:
        async with running(clickhouse, hook(receiver), (settings, first)) as here:
            await here.feed(BURN)
            await until(lambda: clickhouse.last_notices("chat"))

    async def after() -> None:
        async with running(clickhouse, hook(receiver), (settings, again)) as here:
            await here.feed(BURN, BURN)
            await here.settled()
            await here.feed(burn(state="resolved", sequence=2))
            await here.settled()

    run(before())
    receiver.open()
    run(after())
    assert [message.state for message in first.sent] == ["firing"]
    assert [message.state for message in again.sent] == ["resolved"]
    assert [state for _, state in receiver.alerts()] == ["firing", "resolved"]
    assert [row.sequence for row in clickhouse.last_changes("chat")] == [2]


def test_a_lost_partition_is_left_to_others(clickhouse: ClickHouse) -> None:
    """What waits when the partition goes is dropped uncommitted; read again it is told."""
    settings, chat = fake()
    chat.failures += [ChatError("away", retry_after_s=0.2)]

    async def test() -> None:
        async with running(clickhouse, (settings, chat)) as here:
            await here.feed(BURN)
            await until(lambda: not chat.failures)
            here.delivery.revoke()
            await asyncio.sleep(0.5)
            assert chat.sent == []
            assert here.consumer.reached == {}
            here.offset = 0
            await here.feed(BURN)
            await here.settled()
            assert len(chat.sent) == 1
            assert here.delivery.waiting == 0

    run(test())


def test_what_comes_after_the_end_is_left_to_the_next(clickhouse: ClickHouse) -> None:
    """A stopped delivery sends nothing and commits nothing, though the topic is still read."""
    settings, chat = fake()

    async def test() -> None:
        async with running(clickhouse, (settings, chat)) as here:
            await here.delivery.stop()
            await here.feed(BURN)
            await asyncio.sleep(0.3)
            assert (chat.sent, here.consumer.reached) == ([], {})

    run(test())


def test_a_refusal_for_good_is_given_up_once(
    clickhouse: ClickHouse, receiver: ChatReceiver
) -> None:
    """404 is tried once, a 400 once more as plain text; both are counted, and kept with errors."""
    receiver.answers += [(404, {}), (400, {}), (400, {})]
    receiver.open()

    async def test() -> None:
        async with running(clickhouse, hook(receiver)) as here:
            await here.feed(BURN)
            await here.settled()
            await here.feed(burn(alert="slo:other"))
            await here.settled()
            assert (here.delivery.delivered, here.delivery.undelivered) == (0, 2)

    run(test())
    assert (len(receiver.refused), receiver.taken) == (3, [])
    row = clickhouse.last_notices("chat")[0]
    assert (row.outcome, row.attempts) == ("refused", 1)
    assert "HTTP 404" in row.error
    assert "s3cr3t" not in row.error


def test_secrets_are_in_no_log(
    clickhouse: ClickHouse,
    receiver: ChatReceiver,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Not even when every library logs all it can, and the channel refuses."""
    caplog.set_level(logging.DEBUG)
    receiver.answers += [(404, {})]
    receiver.open()

    async def test() -> None:
        async with running(clickhouse, hook(receiver)) as here:
            await here.feed(BURN, burn(alert="slo:b"), burn(service="other"))
            await here.settled()

    run(test())
    printed = capsys.readouterr()
    assert "alert given up" in printed.out + printed.err
    assert "s3cr3t" not in caplog.text + printed.out + printed.err


def test_channels_hear_what_they_asked_for(clickhouse: ClickHouse) -> None:
    """By service, severity and cohort; and an objective may name the only ones."""
    pages, pager = fake("pages", severities=("page",))
    search, team = fake("search", cohorts=("route=search*",))
    other, else_ = fake("other", services=("rank",))
    own, mine = fake("own", services=("nobody",))

    async def test() -> None:
        pairs = ((pages, pager), (search, team), (other, else_), (own, mine))
        async with running(clickhouse, *pairs) as here:
            await here.feed(
                burn(alert="a", severity="ticket"),
                burn(alert="b", cohort="route=search,region=eu"),
                burn(alert="c", channels=("own",)),
            )
            await here.settled()

    run(test())
    heard = [[m.alert for m in chat.sent] for chat in (pager, team, else_, mine)]
    assert heard == [["b"], ["b"], [], ["c"]]


def test_foreign_messages_are_counted_and_skipped(clickhouse: ClickHouse) -> None:
    """What is no alert of ours holds nothing up."""
    settings, chat = fake()

    async def test() -> None:
        async with running(clickhouse, (settings, chat)) as here:
            for value in (b"{", b"[]", b'{"service": "x"}', None):
                await here.delivery.take(TOPIC, here.offset, value)
                here.offset += 1
            await here.settled()
            assert here.delivery.foreign == 4

    run(test())


def test_the_picture_comes_from_the_stored_hour(
    clickhouse: ClickHouse, receiver: ChatReceiver
) -> None:
    """A channel that takes files gets a PNG when there is something to draw, else none."""
    clickhouse.write_panes(stored_panes(random_columns(1, 300)))
    patient = LastHourPictures(clickhouse, PATIENCE_S)
    receiver.open()

    async def test() -> None:
        async with running(clickhouse, hook(receiver, picture=True), picture=patient) as here:
            await here.feed(BURN)
            await here.settled()
            await here.feed(burn(service="unknown"))
            await here.settled()

    run(test())
    with_picture, without = receiver.taken
    assert [one["mimetype"] for one in with_picture["attachments"]] == ["image/png"]
    assert without["attachments"] == []


def test_the_picture_is_begun_while_others_may_join(
    clickhouse: ClickHouse, receiver: ChatReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It costs a first alert no time besides; the alerts that join have the same picture."""
    monkeypatch.setattr(sender, "GROUP_S", 1.0)
    drawn: list[str] = []
    receiver.open()

    async def draw(alert: Alert) -> bytes:
        drawn.append(alert.alert)
        return b"\x89PNG\r\n\x1a\n"

    async def test() -> None:
        async with running(clickhouse, hook(receiver, picture=True), picture=draw) as here:
            await here.feed(BURN)
            await until(lambda: drawn)
            await here.feed(breach(1))
            await here.settled()

    run(test())
    assert drawn == [BURN.alert]
    assert len(receiver.taken) == 1
    assert len(receiver.taken[0]["attachments"]) == 1


def decide(told: Told, *alerts: Alert) -> list[str]:
    """Return what is decided of each, and note what is told."""
    said = []
    for alert in alerts:
        decision = told.decide(alert)
        if decision is Decision.TELL:
            told.note(alert)
        said.append(decision.value)
    return said


def test_every_decision_has_its_reason() -> None:
    """Beginnings and ends are told, quiet states are not, and nothing twice."""
    told = Told()
    said = decide(
        told,
        burn(state="pending", sequence=1),
        burn(state="resolved", sequence=2),
        burn(sequence=3),
        burn(sequence=3),
        burn(state="no_data", sequence=4, before="firing"),
        burn(sequence=5, before="no_data", change_reason="data_came_back"),
        burn(sequence=6, before="firing", change_reason="severity_rose"),
        burn(state="muted", sequence=7),
        burn(state="resolved", sequence=8),
        burn(state="no_data", sequence=9),
    )
    assert said == [
        "quiet_state",
        "its_beginning_was_not_told",
        "tell",
        "already_told",
        "tell",
        "tell",
        "already_told",
        "quiet_state",
        "tell",
        "quiet_state",
    ]


def test_an_objective_may_ask_not_to_tell_ends() -> None:
    """Then the next beginning is told all the same, also after a restart."""
    told = Told()
    quiet = {"tell_resolved": False, "tell_no_data": False}
    assert decide(
        told,
        burn(**quiet),
        burn(state="no_data", sequence=2, **quiet),
        burn(state="resolved", sequence=3, **quiet),
        burn(sequence=4, **quiet),
    ) == ["tell", "not_asked_for", "not_asked_for", "tell"]


def test_a_ticket_that_becomes_a_page_is_told() -> None:
    """Only upwards."""
    ticket = burn(severity="ticket")
    rose = burn(severity="page", sequence=2, change_reason="severity_rose")
    assert decide(Told(), ticket, rose) == ["tell", "tell"]


def test_messages_of_the_first_form_are_told_once() -> None:
    """Without numbers, a breach that is found anew after a restart is not told again."""
    first = Alert("chat", "p99", "firing", "chat/p99/1", T0_NS, "why")
    anew = Alert("chat", "p99", "firing", "chat/p99/2", T0_NS + 5, "why")
    over = Alert("chat", "p99", "resolved", "chat/p99/2", T0_NS + 9, "why")
    said = decide(Told(), first, first, anew, over)
    assert said == ["tell", "already_told", "already_told", "tell"]


def notices(*alerts: Alert) -> Sequence[Notice]:
    """Return notices of alerts."""
    return [Notice(alert, {}, lambda: None) for alert in alerts]


def test_groups_keep_the_order_of_an_alert() -> None:
    """Same service and state join; a change never goes before an earlier one of its alert."""
    made = grouped(
        notices(
            burn(alert="a"),
            burn(alert="b"),
            burn(alert="a", state="resolved"),
            burn(alert="c"),
            burn(alert="a"),
            burn(service="other", alert="a"),
        )
    )
    assert [[n.alert.alert for n in group] for group in made] == [
        ["a", "b", "c"],
        ["a"],
        ["a"],
        ["a"],
    ]
    assert [group[0].alert.state for group in made] == ["firing", "resolved", "firing", "firing"]


def test_the_rate_lets_a_burst_through_and_then_spreads() -> None:
    """Twenty at once, then one every three seconds; a quiet minute fills it up again."""
    rate = Rate(20)
    assert [rate.take(0.0) for _ in range(20)] == [0.0] * 20
    assert [rate.take(0.0) for _ in range(2)] == pytest.approx([3.0, 6.0])
    assert rate.take(120.0) == 0.0


def test_waits_grow_and_end() -> None:
    """Twice as long each time up to ten seconds; a server's own wish goes first; 15 min end it."""
    away = ChatError("away")
    waits = Backoff(0.0)
    assert [waits.after(away, 1.0) for _ in range(7)] == [0.5, 1, 2, 4, 8, 10, 10]
    assert waits.after(ChatError("slow down", retry_after_s=33.0), 1.0) == 33.0
    assert waits.after(ChatError("slow down", retry_after_s=9e9), 1.0) == 300.0
    assert waits.after(away, 901.0) is None
    assert waits.after(ChatError("no", retryable=False), 1.0) is None
    assert waits.after(None, 1.0) is None
    assert waits.attempts == 12


def test_an_offset_is_reached_when_all_before_it_are() -> None:
    """Messages finish in any order; the first unfinished one holds the rest."""
    consumer = Consumer()
    offsets = Offsets(consumer.advance)
    for offset in (5, 6, 9):
        offsets.begin(TOPIC, offset)
    offsets.finish(TOPIC, 6)
    assert consumer.reached == {TOPIC: 5}
    offsets.finish(TOPIC, 5)
    assert consumer.reached == {TOPIC: 9}
    offsets.finish(TOPIC, 9)
    assert consumer.reached == {TOPIC: 10}
    assert len(offsets) == 0
