"""Silences: made, listed and ended by the command line, and what they mute."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from audited_logs import Command
from clickhouse_server import ClickHouseServer
from clickhouse_store import fresh_store

from tailbudget.schemas.errors import ClickHouseError, ConfigError
from tailbudget.schemas.objectives import Correction
from tailbudget.schemas.silences import Silence
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.silences import Silences
from tailbudget.streams.silencing import read

HOUR_NS = 3600 * 10**9
T0_NS = 1_772_445_600 * 10**9
LASTING = Silence("a1", "chat", "", 0, 2**62, "load test", 1)


def why(store: ClickHouse, alert: str, *maintenance: Correction, now_ns: int = T0_NS) -> str:
    """Return why an alert of "chat" is muted."""
    return asyncio.run(Silences(store).mute("chat", maintenance))(alert, now_ns)


def test_a_silence_mutes_its_service_or_one_alert(clickhouse: ClickHouse) -> None:
    """Now, by the clock on the wall, whatever event time says; nothing else."""
    assert why(clickhouse, "p99") == ""
    now_ns = time.time_ns()
    one = replace(LASTING, alert="p99", begins_ns=now_ns - HOUR_NS, ends_ns=now_ns + HOUR_NS)
    clickhouse.write_silence(one)
    clickhouse.write_silence(replace(one, id="b2", alert="", ends_ns=now_ns - 1, reason="over"))
    clickhouse.write_silence(replace(one, id="c3", service="search", reason="another"))
    assert (why(clickhouse, "p99"), why(clickhouse, "p95")) == ("load test", "")
    clickhouse.write_silence(replace(one, id="d4", alert="", reason="all of it"))
    assert why(clickhouse, "slo:latency") == "all of it"


def test_maintenance_mutes_by_event_time(clickhouse: ClickHouse) -> None:
    """During its span, its end excluded."""
    upgrade = Correction(T0_NS, T0_NS + HOUR_NS, "upgrade")
    assert why(clickhouse, "p99", upgrade) == "upgrade"
    assert why(clickhouse, "p99", upgrade, now_ns=T0_NS + HOUR_NS) == ""


def test_silences_stay_known_while_clickhouse_is_away(
    clickhouse: ClickHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was read last goes on muting."""
    now_ns = time.time_ns()
    clickhouse.write_silence(replace(LASTING, ends_ns=now_ns + HOUR_NS))
    silences = Silences(clickhouse)

    def away(_: int) -> list[Silence]:
        raise ClickHouseError("away")

    async def test() -> str:
        muted = await silences.mute("chat", ())
        monkeypatch.setattr(clickhouse, "silences", away)
        await silences.refresh()
        return muted("p99", T0_NS)

    assert asyncio.run(test()) == "load test"


def test_the_command_makes_lists_and_ends(
    tailbudget: Command, clickhouse_server: ClickHouseServer, tmp_path: Path
) -> None:
    """A silence is listed with its reason until it is ended."""
    target = clickhouse_server.target()
    with fresh_store(target) as store:
        (tmp_path / "tailbudget.yaml").write_text(
            f"clickhouse: {{interface: http, host: 127.0.0.1, port: {target.port},"
            f" username: {target.username}, password: {target.password},"
            f" database: {store.target.database}}}\n"
        )
        assert "no silence runs" in tailbudget("silence", "--list").out
        made = tailbudget(
            "silence", "chat", "--alert", "p99", "--for", "2h", "--reason", "load [test]"
        )
        (kept,) = store.silences(time.time_ns())
        assert (kept.service, kept.alert, kept.reason) == ("chat", "p99", "load [test]")
        assert kept.ends_ns - kept.begins_ns == 2 * HOUR_NS
        assert made.out.startswith(f"{kept.id}: chat p99 is silent until ")
        listed = tailbudget("silence", "--list").out
        assert all(said in listed for said in (kept.id, "chat p99", "load [test]"))
        assert tailbudget("silence", "--end", kept.id).out == f"ended {kept.id}: chat p99\n"
        assert store.silences(time.time_ns()) == []
        again = tailbudget("silence", "--end", kept.id)
        assert (again.status, "there is none" in again.err) == (2, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give a SERVICE"),
        (("chat", "--list"), "one of them"),
        (("chat", "--for", "2h"), "needs --for and --reason"),
        (("chat", "--reason", "why"), "needs --for and --reason"),
        (("chat", "--for", "soon", "--reason", "why"), "is no duration"),
    ],
)
def test_what_is_missing_is_said(tailbudget: Command, words: tuple[str, ...], said: str) -> None:
    """A silence without an end or a reason is refused."""
    answer = tailbudget("silence", *words)
    assert (answer.status, said in answer.err) == (2, True)


@pytest.mark.parametrize(
    "sent", [None, [], {}, {"id": "a"}, {**orjson.loads(orjson.dumps(LASTING)), "version": "1"}]
)
def test_a_worker_takes_silences_only(sent: Any) -> None:
    """Anything else is refused with what is wanted; a silence comes back as it was."""
    with pytest.raises(ConfigError, match="no silence"):
        read(sent)
    assert read(orjson.loads(orjson.dumps(LASTING))) == LASTING
