"""News of an incident edits or answers its message where the channel can, over real HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler
from typing import Any

import apprise.plugins.opsgenie
import apprise.plugins.pagerduty
import pytest
from alerts import BURN, burn
from http_serving import serving
from pydantic import SecretStr

from tailbudget.schemas.alert import Alert
from tailbudget.schemas.connections import ChatChannel
from tailbudget.schemas.errors import ChatError
from tailbudget.schemas.messages import ChatMessage
from tailbudget.sinks.chat import AppriseChat
from tailbudget.streams.delivery.composing import composed
from tailbudget.streams.delivery.notice import Notice


@dataclass
class Api:
    """A chat system's API on this machine.

    Attributes:
        said: method, path with its query, and JSON of each request.
        answers: (status, JSON) of the next requests; after them 200 and `usual`.
        usual: what it answers by default.
    """

    port: int = 0
    said: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    answers: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    usual: dict[str, Any] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
def api() -> Iterator[Api]:
    """Serve an API on a free port."""
    state = Api()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.said.append((self.command, self.path, body))
            status, said = state.answers.pop(0) if state.answers else (200, state.usual)
            text = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_PATCH = do_POST  # noqa: N815 - the name that http.server calls

        def log_message(self, *_: object) -> None:
            """Stay silent."""

    with serving(Handler) as state.port:
        yield state


FIRING = BURN
OVER = burn(state="resolved", sequence=2)


def message(*alerts: Alert, follows: str = "") -> ChatMessage:
    """Return the message about alerts."""
    given = [Notice(one, one.to_payload(), lambda: None) for one in alerts]
    chat = AppriseChat(ChatChannel(name="any", url=SecretStr("json://nowhere")))
    return composed(given, chat.limits, follows=follows)


def opened(url: str, **set_to: Any) -> AppriseChat:
    """Return a channel whose plugin talks to the API."""
    chat = AppriseChat(ChatChannel(name="ops", url=SecretStr(url)))
    for name, value in {"request_rate_per_sec": 0, **set_to}.items():
        setattr(chat._plugin, name, value)
    return chat


def slack(api: Api) -> AppriseChat:
    api.usual = {"ok": True, "channel": "C0123", "ts": "1772445600.000100"}
    token = f"xoxb-1234-1234-{'a' * 24}"
    return opened(f"slack://{token}/#ops", api_url=f"{api.url}/api/{{}}")


def discord(api: Api) -> AppriseChat:
    api.usual = {"id": "77"}
    url = f"discord://{'1' * 24}/{'a' * 64}"
    return opened(url, notify_url=f"{api.url}/api/webhooks")


def telegram(api: Api) -> AppriseChat:
    api.usual = {"ok": True, "result": {"message_id": 5}}
    url = f"tgram://123456789:{'a' * 35}/4242/"
    return opened(url, notify_url=f"{api.url}/bot")


def test_slack_answers_in_the_thread(api: Api) -> None:
    """A bot's recovery stands in the thread of what it recovers from; after a restart too."""
    handle = slack(api).send(message(FIRING))
    assert handle == "+C0123:1772445600.000100"
    assert slack(api).send(message(OVER, follows=handle)) == handle
    first, second = (body for _, _, body in api.said)
    assert "thread_ts" not in first
    assert (second["channel"], second["thread_ts"]) == ("C0123", "1772445600.000100")


def test_a_lost_slack_thread_is_a_new_message(api: Api) -> None:
    """Slack says 200 and that there is no such thread: the news comes all the same, once."""
    chat = slack(api)
    api.answers = [(200, {"ok": False, "error": "thread_not_found"})]
    chat.send(message(OVER, follows="+C0123:1.1"))
    threads = [body.get("thread_ts") for _, _, body in api.said]
    assert threads == ["1.1", None]
    assert api.said[-1][2]["channel"] == "#ops"


def test_discord_edits_its_message(api: Api) -> None:
    """The message turns into its recovery; one that is gone is told anew."""
    chat = discord(api)
    handle = chat.send(message(FIRING))
    assert handle == "77"
    assert chat.send(message(OVER, follows=handle)) == "77"
    assert [(how, path.partition("?")) for how, path, _ in api.said] == [
        ("POST", (f"/api/webhooks/{'1' * 24}/{'a' * 64}", "?", "wait=true")),
        ("PATCH", (f"/api/webhooks/{'1' * 24}/{'a' * 64}/messages/77", "", "")),
    ]
    assert api.said[1][2]["embeds"][0]["title"].startswith("[RESOLVED]")
    api.answers = [(404, {})]
    chat.send(message(OVER, follows="78"))
    assert [how for how, _, _ in api.said[2:]] == ["PATCH", "POST"]


def test_discord_leaves_a_message_about_several(api: Api) -> None:
    """Of several alerts some may go on: their message is not written over."""
    chat = discord(api)
    several = message(FIRING, replace(FIRING, alert="slo:other"))
    assert chat.send(several) == ""


def test_telegram_answers_the_message(api: Api) -> None:
    """The recovery is a reply, in plain text; where the message is gone, Telegram sends it."""
    chat = telegram(api)
    handle = chat.send(message(FIRING))
    assert handle == "5"
    chat.send(message(OVER, follows=handle))
    reply = api.said[1][2]
    assert reply["reply_parameters"] == {"message_id": 5, "allow_sending_without_reply": True}
    assert reply["chat_id"] == 4242
    assert "**" not in reply["text"]


def test_a_server_that_wants_time_gets_it(api: Api) -> None:
    """429 to an edit is tried again, not doubled as a new message."""
    chat = discord(api)
    api.answers = [(429, {})]
    with pytest.raises(ChatError) as refused:
        chat.send(message(OVER, follows="77"))
    assert refused.value.retryable
    assert [how for how, _, _ in api.said] == ["PATCH"]


def test_an_api_that_is_away_is_no_lost_handle() -> None:
    """Nobody answers: it is tried again as news, and no URL is in the error."""
    chat = discord(Api(port=9))
    with pytest.raises(ChatError) as refused:
        chat.send(message(OVER, follows="77"))
    assert refused.value.retryable
    assert "a" * 64 not in str(refused.value)


def test_pagerduty_resolves_its_incident(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both events have one key, and the second resolves; each alert is told by itself."""
    monkeypatch.setitem(apprise.plugins.pagerduty.PAGERDUTY_API_LOOKUP, "us", api.url)
    url = f"pagerduty://{'i' * 32}@{'a' * 32}"
    opened(url).send(message(FIRING))
    opened(url).send(message(OVER))
    events = [(body["event_action"], body["dedup_key"]) for _, _, body in api.said]
    assert [action for action, _ in events] == ["trigger", "resolve"]
    assert events[0][1] == events[1][1]
    assert opened(url).limits.alone


def test_opsgenie_closes_its_alert(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its alias, which a restarted worker knows too."""
    monkeypatch.setitem(apprise.plugins.opsgenie.OPSGENIE_API_LOOKUP, "us", f"{api.url}/alerts")
    api.usual = {"requestId": "r1"}
    url = f"opsgenie://{'0' * 8}-aaaa-bbbb-cccc-{'0' * 12}/"
    handle = opened(url).send(message(FIRING))
    opened(url).send(message(OVER, follows=handle))
    assert api.said[0][2]["alias"] == handle
    assert api.said[1][1] == f"/alerts/{handle}/close?identifierType=alias"
