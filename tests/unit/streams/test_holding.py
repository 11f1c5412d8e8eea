"""Where a new owner starts, and what it passes over."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from faust.types import TP
from otlp import T0_NS as OTLP_NS
from otlp import S, as_json
from requests_of import PANE_NS, SECOND_NS, T0_NS

from tailbudget.schemas.errors import BrokerError
from tailbudget.schemas.settings import StreamSettings
from tailbudget.streams.dedup import Dedup
from tailbudget.streams.gathering import batch
from tailbudget.streams.holding import Holding
from tailbudget.streams.intake import Intake
from tailbudget.streams.sources import HOLDING, Rules, decoder

PLACE = TP("requests", 0)


@dataclass
class Kept:
    """Positions in memory, that may be away."""

    offsets: dict[TP, int] = field(default_factory=dict)
    away: bool = False

    async def read(self, partitions: Collection[TP]) -> Mapping[TP, int]:
        return {tp: at for tp, at in self.offsets.items() if tp in partitions}

    async def write(self, offsets: Mapping[TP, int]) -> None:
        if self.away and offsets:
            raise BrokerError("away", remedy="wait")
        self.offsets |= offsets


class Owner:
    """A source under one assignment, and the seeks that were asked for."""

    def __init__(
        self,
        kept: Kept,
        committed: int,
        name: str = "native",
        rules: Rules = Rules(service="chat"),  # noqa: B008 - frozen
        **settings: Any,
    ) -> None:
        self.sought: list[tuple[TP, int]] = []
        spans = name in HOLDING
        self.holding = Holding(StreamSettings(**settings), kept, self._seek, spans=spans)
        starts = asyncio.run(self.holding.starts({PLACE: committed}))
        self.decoder = decoder(name, rules)
        self.source = Intake(
            key="requests:0:1",
            generation=1,
            committed=committed,
            start=committed,
            position=starts[PLACE],
            pane_ns=PANE_NS,
            grace_ns=10 * SECOND_NS,
            dedup=Dedup(1000),
            attempts=self.holding.attempts(),
            held_from=starts[PLACE],
            decoder=self.decoder,
        )

    async def _seek(self, tp: TP, offset: int) -> None:
        self.sought.append((tp, offset))

    def replay(self, messages: list[Any]) -> list[int]:
        fresh = self.holding.replay(PLACE, self.source, messages, self.decoder)
        return [message.offset for message in asyncio.run(fresh)]

    def commit(self, messages: list[Any]) -> None:
        """Take messages, and commit behind them."""
        self.source.add(self.decoder.decode(read(messages)), messages[-1].offset + 1)
        pending = self.source.cut()
        asyncio.run(self.holding.before_commit({PLACE: (self.source, pending)}))
        self.source.committed, self.source.held_from = pending.end, pending.held_from


def read(messages: list[Any]) -> Any:
    return batch(messages, T0_NS * 2)


def message(offset: int, attempt: int, status: str) -> Any:
    row = {"request_id": f"r{offset}", "operation_id": "x", "attempt": attempt, "total_ms": 100}
    row |= {"timestamp": (T0_NS + offset * SECOND_NS) // 10**6, "status": status}
    return SimpleNamespace(offset=offset, timestamp=T0_NS // 10**6, value=orjson.dumps(row))


def test_a_position_is_kept_before_the_first_commit_past_a_held_attempt() -> None:
    """It is the offset committed so far; a source that holds nothing keeps none."""
    kept = Kept()
    owner = Owner(kept, 5)
    owner.commit([message(5, 1, "ok")])
    assert kept.offsets == {}
    owner.commit([message(6, 1, "timeout"), message(7, 0, "ok")])
    assert kept.offsets == {PLACE: 6}
    assert (owner.source.committed, owner.source.held_from) == (8, 6)


def test_without_a_kept_position_nothing_is_committed() -> None:
    """A broker that does not take it stops the commit: a restart would lose the attempt."""
    owner = Owner(Kept(away=True), 5)
    with pytest.raises(BrokerError):
        owner.commit([message(5, 1, "timeout")])


def test_the_position_follows_what_is_held() -> None:
    """It moves up as operations end; while the broker does not take it, the old one serves."""
    kept = Kept()
    owner = Owner(kept, 5)
    owner.commit([message(5, 1, "timeout"), message(6, 2, "ok")])
    owner.commit([message(7, 1, "timeout")])
    kept.away = True
    asyncio.run(owner.holding.advance({PLACE: owner.source}))
    assert kept.offsets == {PLACE: 7}
    owner.commit([message(8, 2, "ok")])
    asyncio.run(owner.holding.advance({PLACE: owner.source}))
    assert kept.offsets == {PLACE: 7}
    kept.away = False
    asyncio.run(owner.holding.advance({PLACE: owner.source}))
    assert kept.offsets == {PLACE: 9}


def test_a_new_owner_holds_what_the_old_one_held() -> None:
    """It reads below the committed offset, counts nothing there, and goes on behind it."""
    kept = Kept()
    Owner(kept, 5).commit([message(5, 1, "timeout"), message(6, 2, "timeout")])
    owner = Owner(kept, 7)
    assert (owner.source.position, owner.source.empty) == (5, True)
    messages = [message(5, 1, "timeout"), message(6, 2, "timeout"), message(7, 3, "ok")]
    assert owner.replay(messages) == [7]
    assert (owner.source.position, owner.source.records) == (7, 0)
    owner.source.add(owner.decoder.decode(read(messages[2:])), 8)
    (columns,) = owner.source.cut().columns["chat"]
    assert columns.total_ms.tolist() == [2_100]
    assert owner.sought == []


def test_polls_from_before_the_seek_are_read_again() -> None:
    """Messages at the committed offset that come first are left, and the start sought once."""
    kept = Kept({PLACE: 5})
    owner = Owner(kept, 7)
    assert owner.replay([message(7, 3, "ok")]) == []
    assert owner.replay([message(8, 1, "ok")]) == []
    assert owner.sought == [(PLACE, 5)]
    assert owner.replay([message(5, 1, "timeout")]) == []
    assert owner.replay([message(7, 3, "ok")]) == [7]  # 6 is gone: nothing more to wait for


def span(offset: int, trace: int, number: int, parent: int, end_s: float) -> Any:
    value = as_json([S(trace, number, parent, "r", 0, end_s * 1_000, service="chat")])
    return SimpleNamespace(offset=offset, timestamp=OTLP_NS // 10**6, value=value)


def test_a_new_owner_holds_spans_too() -> None:
    """A trace of which the spans lie on both sides of the committed offset is one request."""
    kept = Kept()
    rules = Rules(trace_wait_ns=15 * SECOND_NS)
    first = Owner(kept, 5, name="otlp_json", rules=rules, retry_hold_s=0)
    messages = [span(5, 7, 2, 1, 1), span(6, 8, 1, 0, 2), span(7, 7, 1, 0, 3), span(8, 9, 1, 0, 60)]
    first.commit(messages[:2])
    assert kept.offsets == {PLACE: 5}
    second = Owner(kept, 7, name="otlp_json", rules=rules, retry_hold_s=0)
    assert second.source.position == 5
    assert second.replay(messages[:3]) == [7]
    second.source.add(second.decoder.decode(read(messages[2:])), 9)
    (columns,) = second.source.cut().columns["chat"]
    assert sorted(columns.total_ms.tolist()) == [2_000, 3_000]
    assert second.source.cut().held_from == 8


def test_offsets_that_were_set_back_start_anew() -> None:
    """A position behind the committed offset belongs to attempts that come again."""
    kept = Kept({PLACE: 9})
    owner = Owner(kept, 5)
    assert owner.source.position == 5
    owner.commit([message(5, 1, "timeout")])
    assert kept.offsets == {PLACE: 5}


def test_a_hold_of_nothing_joins_nothing() -> None:
    """Each attempt counts for itself, and no position is asked for or kept."""
    kept = Kept({PLACE: 5})
    owner = Owner(kept, 7, retry_hold_s=0)
    assert owner.source.position == 7
    owner.source.add(owner.decoder.decode(read([message(7, 1, "timeout")])), 8)
    assert owner.source.cut().columns["chat"][0].total_ms.tolist() == [100]
