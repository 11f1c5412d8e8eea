"""The pages themselves: what they may load, what they escape, and whom they answer how."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from urllib.parse import quote

import pytest
import requests
from alerts import burn
from dashboard_site import Site
from pages import DOCS, text
from past import PastService
from random_records import random_columns

from tailbudget.schemas.errors import ClickHouseError
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.alert_log import change_row
from tailbudget.streams.dashboard.asked import LASTS_S, POINTS, step_s
from tailbudget.streams.dashboard.queries import READY

STATIC = files("tailbudget.streams.dashboard") / "static"
VENDORED = {
    "echarts-6.1.0.esm.min.js": "28515f26aa57f87eb1e4ed4eb446927eaf329b5f5e02b4bfd4b0264fea40d1da"
}
HOSTILE = (
    "<script>alert(1)</script>",
    "\"'><img src=x onerror=alert(1)>",
    "a/b?c#d",
    "عربي",
    "x" * 5_000,
)
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def site(clickhouse: ClickHouse) -> Iterator[Site]:
    """A dashboard over an empty database."""
    with Site(clickhouse) as running:
        yield running


def test_the_chart_library_is_the_one_that_was_released() -> None:
    """What is vendored is byte for byte the file of the package, with its licence beside it."""
    vendor = STATIC / "vendor"
    found = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in vendor.iterdir()
        if path.name.endswith(".js")
    }
    assert found == VENDORED
    assert "Apache License" in (vendor / "echarts-LICENSE.txt").read_text()
    assert "Apache ECharts" in (vendor / "echarts-NOTICE.txt").read_text()


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/alerts",
        "/sql",
        "/services/chat",
        "/data/services",
        "/static/page.css",
        "/healthz",
        "/nowhere",
    ],
)
def test_every_answer_is_guarded(site: Site, path: str) -> None:
    """No answer lets a page load or run what is not ours, or be framed."""
    headers = site.get(path, headers=BROWSER).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", ["/", "/alerts", "/sql", "/services/chat"])
def test_pages_name_nothing_from_outside(site: Site, path: str) -> None:
    """Scripts, styles and pictures are ours, and nothing is written into the page to be run."""
    page = site.get(path, headers=BROWSER).text
    loaded = re.findall(r'(?:src|href)="([^"#]+)"', page)
    assert loaded
    assert all(link.startswith("/") and not link.startswith("//") for link in loaded)
    assert not re.search(r"<script(?![^>]*\bsrc=)|\bon\w+=|\bstyle=", page)


@pytest.mark.parametrize("name", HOSTILE, ids=["script", "quotes", "path", "arabic", "long"])
def test_a_service_may_be_called_anything(site: Site, name: str) -> None:
    """Its name stands in the page as text."""
    response = site.get(f"/services/{quote(name, safe='')}", headers=BROWSER)
    assert response.status_code == 200
    assert "<script>alert" not in response.text
    assert "<img" not in response.text
    assert f'data-service="{_escaped(name)}"' in response.text


def _escaped(name: str) -> str:
    signs = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;"}
    return "".join(signs.get(letter, letter) for letter in name)


def test_programs_get_json_and_browsers_a_page(site: Site) -> None:
    """`/services/NAME` answers by what is accepted; without an audit JSON is a 404."""
    page = site.get("/services/chat", headers=BROWSER)
    assert page.headers["Content-Type"].startswith("text/html")
    told = site.get("/services/chat")
    assert told.headers["Content-Type"].startswith("application/json")
    assert (told.status_code, told.json()) == (404, {})


def test_an_empty_database_is_no_error(site: Site) -> None:
    """There is no service and no alert, which pages say."""
    assert site.data("/data/services") == {"services": []}
    assert site.data("/data/alerts") == {"alerts": [], "changes": [], "notices": []}


def test_pages_hear_of_every_change(clickhouse: ClickHouse) -> None:
    """What is written is told, and the stream ends with the server rather than hold it."""
    heard: list[dict[str, int]] = []

    def listen(url: str) -> None:
        with requests.get(f"{url}/events", stream=True, timeout=60) as response:
            told = response.iter_lines(chunk_size=1)
            heard.extend(json.loads(line[6:])["tables"] for line in told if line[:5] == b"data:")

    with Site(clickhouse) as site:
        thread = threading.Thread(target=listen, args=(site.url,), daemon=True)
        thread.start()
        _wait_for(lambda: bool(heard))
        assert "panes" not in heard[0]
        PastService(clickhouse, "chat").write(random_columns(1, 50))
        _wait_for(lambda: "panes" in heard[-1])
        clickhouse.write_changes([change_row(burn())])
        _wait_for(lambda: "alert_changes" in heard[-1])
    thread.join(30)
    assert not thread.is_alive()


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_trouble_of_clickhouse_is_told(
    site: Site, clickhouse: ClickHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Data say what is the matter with a 503, for the page to show."""

    def away(*_: object, **__: object) -> None:
        raise ClickHouseError("nobody answers", remedy="start it")

    monkeypatch.setattr(clickhouse, "query", away)
    response = site.get("/data/services")
    assert response.status_code == 503
    assert response.json() == {"error": "nobody answers", "remedy": "start it"}


def test_ready_queries_are_those_of_the_documentation() -> None:
    """The page asks the ten questions of docs/sql.md, in its order."""
    ten = text(DOCS / "sql.md").partition("## Ten queries")[2].partition("\n## ")[0]
    questions = re.findall(r"^([A-Z].*\?)$", ten, re.MULTILINE)
    assert [ready.question for ready in READY] == questions
    assert len(questions) == 10


@pytest.mark.parametrize("pane_s", [1, 2, 3, 4, 6, 10, 12, 30, 60])
def test_points_are_few_and_whole_panes(pane_s: int) -> None:
    """However long the range and the panes, a series has at most so many points of whole panes."""
    for span_s in (*LASTS_S.values(), 1, 7, 100_000_000):
        step = step_s(span_s, pane_s)
        assert step % pane_s == 0
        assert span_s / step <= POINTS


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("127.0.0.1:99", 200),
        ("[::1]:99", 200),
        ("LOCALHOST", 200),
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("[", 403),
        ("10.0.0.1", 403),
    ],
)
def test_a_foreign_name_that_leads_here_is_refused(site: Site, host: str, status: int) -> None:
    """A page elsewhere that points its own name at us (DNS rebinding) reads nothing."""
    assert site.get("/data/services", headers={"Host": host}).status_code == status
