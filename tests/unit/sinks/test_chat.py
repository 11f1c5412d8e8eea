"""Chat: one suite over the fake and over Apprise with a real HTTP receiver, and the words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

import pytest
from http_serving import serving
from pydantic import SecretStr

from tailbudget.schemas.alert import Alert
from tailbudget.schemas.connections import ChatChannel
from tailbudget.schemas.errors import ChatError, ConfigError
from tailbudget.schemas.messages import ChatMessage
from tailbudget.sinks.chat import UNLIMITED, AppriseChat, Chat, FakeChat, open_channels
from tailbudget.sinks.chat_text import query_text
from tailbudget.sinks.http_answers import retry_after_s
from tailbudget.streams.delivery.composing import composed
from tailbudget.streams.delivery.notice import Notice

T0_NS = 1_772_445_600 * 10**9  # 2026-03-02T10:00:00Z

ALERT = Alert(
    service="chat_<b>*|",
    alert="p99",
    state="firing",
    alert_id="a1",
    at_ns=T0_NS + 60 * 10**9,
    since_ns=T0_NS,
    severity="",
    measured_ms=1234.5,
    slo_ms=200.0,
    reason="confident breach over 5 min",
)


@dataclass
class Receiver:
    """A webhook on this machine that answers what the test tells it to."""

    port: int = 0
    bodies: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    answers: list[tuple[int, Mapping[str, str]]] = field(default_factory=list)
    text: bytes = b"ok"


class Target(Protocol):
    """A channel under test, with the way to make it fail and to see what arrived."""

    @property
    def chat(self) -> Chat: ...
    def fail_next(self, status: int, headers: Mapping[str, str]) -> None: ...
    def arrived(self) -> list[str]: ...


@dataclass
class FakeTarget:
    chat: FakeChat = field(default_factory=FakeChat)

    def fail_next(self, status: int, headers: Mapping[str, str]) -> None:
        wait = retry_after_s(headers)
        error = ChatError("refused", retryable=status >= 429, retry_after_s=wait)
        self.chat.failures.append(error)

    def arrived(self) -> list[str]:
        return [message.title for message in self.chat.sent]


@dataclass
class JsonTarget:
    receiver: Receiver
    chat: AppriseChat

    def fail_next(self, status: int, headers: Mapping[str, str]) -> None:
        self.receiver.answers.append((status, headers))

    def arrived(self) -> list[str]:
        return [body["title"] for _, body in self.receiver.bodies]


class SlackTarget(JsonTarget):
    def arrived(self) -> list[str]:
        titles = [body["attachments"][0]["title"] for _, body in self.receiver.bodies]
        return [t.replace("&lt;", "<").replace("&gt;", ">") for t in titles]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """Serve a receiver on a free port."""
    state = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, headers = state.answers.pop(0) if state.answers else (200, {})
            if status == 200:
                state.bodies.append((self.path, body))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(state.text)))
            self.end_headers()
            self.wfile.write(state.text)

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    with serving(Handler) as state.port:
        yield state


@pytest.fixture(params=["fake", "json", "slack"])
def target(request: pytest.FixtureRequest, receiver: Receiver) -> Target:
    """Return each kind of channel in turn."""
    if request.param == "fake":
        return FakeTarget()
    if request.param == "json":
        url = SecretStr(f"json://127.0.0.1:{receiver.port}/hook")
        return JsonTarget(receiver, AppriseChat(ChatChannel(name="hook", url=url)))
    slack = AppriseChat(ChatChannel(name="slack", url=SecretStr(f"slack://{SLACK}")))
    # Apprise knows the host of Slack's webhooks by itself; the rest of its plugin is as in life.
    slack._plugin.webhook_url = f"http://127.0.0.1:{receiver.port}/services"
    slack._plugin.request_rate_per_sec = 0
    return SlackTarget(receiver, slack)


SLACK = "T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7/"


def message(**changes: Any) -> ChatMessage:
    """Return the message of `ALERT` with changes."""
    alert = replace(ALERT, **changes)
    return composed([Notice(alert, alert.to_payload(), lambda: None)], UNLIMITED)


def test_a_message_arrives_once(target: Target) -> None:
    """What is sent arrives once, with its title."""
    target.chat.send(message())
    assert target.arrived() == ["[FIRING] chat_<b>*| p99 breaches its SLO"]


def test_too_many_requests_says_how_long_to_wait(target: Target) -> None:
    """A 429 with Retry-After is retryable after that time, and the same message then arrives."""
    target.fail_next(429, {"Retry-After": "3"})
    with pytest.raises(ChatError) as caught:
        target.chat.send(message())
    assert (caught.value.retryable, caught.value.retry_after_s) == (True, 3.0)
    target.chat.send(message())
    assert target.arrived() == [message().title]


def test_a_bad_request_is_not_sent_again(target: Target) -> None:
    """A 400 says that the same message will never be taken."""
    target.fail_next(400, {})
    with pytest.raises(ChatError) as caught:
        target.chat.send(replace(message(), plain=""))
    assert not caught.value.retryable
    assert target.arrived() == []


@pytest.mark.parametrize(
    ("status", "retryable"),
    [(408, True), (429, True), (500, True), (503, True), (401, False), (404, False)],
)
def test_status_decides_whether_to_retry(
    receiver: Receiver, status: int, *, retryable: bool
) -> None:
    """Statuses that pass by themselves are retryable; refusals of the message are not."""
    url = SecretStr(f"json://127.0.0.1:{receiver.port}/hook")
    chat = AppriseChat(ChatChannel(name="hook", url=url))
    receiver.answers.append((status, {}))
    with pytest.raises(ChatError, match=rf"'hook' refused the message: HTTP {status}") as caught:
        chat.send(message())
    assert caught.value.retryable is retryable
    assert caught.value.retry_after_s is None


def test_no_answer_is_retryable() -> None:
    """A channel whose host refuses the connection is worth another try."""
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        port = server.server_port
    url = SecretStr(f"json://127.0.0.1:{port}/hook")
    with pytest.raises(ChatError, match="does not answer") as caught:
        AppriseChat(ChatChannel(name="hook", url=url)).send(message())
    assert caught.value.retryable


def test_a_webhook_receives_the_alert_as_json(receiver: Receiver) -> None:
    """A JSON webhook receives the whole alert beside the words, and each its own."""
    url = SecretStr(f"json://127.0.0.1:{receiver.port}/hook?:team=serving")
    chat = AppriseChat(ChatChannel(name="hook", url=url))
    chat.send(message())
    chat.send(message(state="resolved", alert_id="a2"))
    (path, first), (_, second) = receiver.bodies
    assert path == "/hook"
    assert (first["alert"], first["type"], first["team"]) == (
        ALERT.to_payload(),
        "failure",
        "serving",
    )
    assert (second["alert"]["alert_id"], second["type"]) == ("a2", "success")


def test_slack_receives_escaped_text(receiver: Receiver) -> None:
    """Slack's own signs in a name arrive escaped, and the query is a code block."""
    slack = AppriseChat(ChatChannel(name="slack", url=SecretStr(f"slack://{SLACK}")))
    slack._plugin.webhook_url = f"http://127.0.0.1:{receiver.port}/services"
    slack.send(message())
    path, body = receiver.bodies[0]
    text = body["attachments"][0]["text"]
    assert path == f"/services/{SLACK.rstrip('/')}"
    assert "`chat_&lt;b&gt;*|` *p99*: 1,234 ms, SLO 200 ms" in text
    assert "```\nSELECT" in text


def test_an_unknown_url_is_refused_without_showing_it() -> None:
    """A URL that no plugin understands is a settings error that keeps its secrets."""
    channel = ChatChannel(name="ops", url=SecretStr("slacc://T1/hunter2"))
    with pytest.raises(ConfigError, match=r"'ops'.*slacc://") as caught:
        open_channels([channel])
    assert "hunter2" not in str(caught.value)


def test_a_name_cannot_leave_its_quotes() -> None:
    """A service name with a quote stays one SQL text and one code span."""
    assert r"service = 'it\'s \\'" in query_text("it's \\", None)
    assert message(service="a`b").body.startswith("`a'b` ")


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({"Retry-After": "3"}, 3.0),
        (
            {
                "Retry-After": "Mon, 02 Mar 2026 10:00:30 GMT",
                "Date": "Mon, 02 Mar 2026 10:00:00 GMT",
            },
            30.0,
        ),
        ({"Retry-After": "Mon, 02 Mar 2026 10:00:30 GMT"}, None),
        ({"Retry-After": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_both_forms(
    headers: Mapping[str, str], wait_s: float | None
) -> None:
    """Seconds and dates are read, a date against the server's own clock."""
    assert retry_after_s(headers) == wait_s


def test_a_channel_hears_of_its_services() -> None:
    """Patterns choose the services that a channel hears of."""
    channel = ChatChannel(name="x", url=SecretStr("json://h"), services=("chat*", "rank"))
    assert [channel.wants(name) for name in ("chat-eu", "rank", "ranker")] == [True, True, False]
