"""`tailbudget check --send-test CHANNEL` against a real HTTP server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from chat_receiver import ChatReceiver
from typer.testing import CliRunner

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.settings import Settings
from tailbudget.streams.check import send_test
from tailbudget.streams.cli.app import app
from tailbudget.streams.embedded import free_port


@pytest.fixture
def receiver() -> Iterator[ChatReceiver]:
    """A webhook."""
    with ChatReceiver(free_port()) as made:
        made.open()
        yield made


def values(receiver: ChatReceiver) -> dict[str, object]:
    """Return settings with the webhook as a channel."""
    url = f"json://127.0.0.1:{receiver.port}/s3cr3t"
    return {"chat": [{"name": "on-call", "url": url}]}


def test_a_message_arrives_that_says_it_is_a_test(receiver: ChatReceiver, tmp_path: Path) -> None:
    """Exit 0 and one message, without a broker or a database."""
    path = tmp_path / "tailbudget.yaml"
    path.write_text(yaml.safe_dump(values(receiver)), encoding="utf-8")
    answer = CliRunner().invoke(app, ["check", "-c", str(path), "--send-test", "on-call"])
    assert answer.exit_code == 0
    assert "on-call: took a test message" in answer.output
    (taken,) = receiver.taken
    assert taken["title"] == "[TEST] tailbudget reaches this channel"
    assert "nothing is wrong" in taken["message"]


def test_a_refusal_is_said_without_the_secret(receiver: ChatReceiver, tmp_path: Path) -> None:
    """Exit 1 with the status, and the URL is not shown; it is not tried again."""
    receiver.answers += [(403, {})]
    path = tmp_path / "tailbudget.yaml"
    path.write_text(yaml.safe_dump(values(receiver)), encoding="utf-8")
    answer = CliRunner().invoke(app, ["check", "-c", str(path), "--send-test", "on-call"])
    assert answer.exit_code == 1
    assert "HTTP 403" in answer.output
    assert "s3cr3t" not in answer.output
    assert (len(receiver.refused), receiver.taken) == (1, [])


def test_an_unknown_channel_is_named(receiver: ChatReceiver) -> None:
    """The remedy lists the channels that there are."""
    with pytest.raises(ConfigError, match="no chat channel 'pager'") as caught:
        send_test(Settings.model_validate(values(receiver)), "pager")
    assert "on-call" in caught.value.remedy
