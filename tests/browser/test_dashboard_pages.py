"""The dashboard with hostile names, with nothing, with old records, and with many panes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pytest
from clickhouse_store import fresh_store
from dashboard_site import Site
from opened import Opened
from past import PastService
from playwright.sync_api import Browser, Page, expect
from random_records import random_columns
from requests_of import PANE_NS, T0_NS, columns_of

from tailbudget.sinks.clickhouse import ClickHouse

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

SCRIPT = "<script>alert(1)</script>"
PICTURE = "\"'><img src=http://127.0.0.1:9/x onerror=alert(1)>"
ARABIC = "مسار \u202eevil"
LONG = "x" * 5_000
HOSTILE = (SCRIPT, PICTURE, ARABIC, LONG)
PANES = 10_000


@pytest.fixture(scope="module")
def store(clickhouse_path: Path) -> Iterator[ClickHouse]:
    """A service with hostile routes, and one of a hostile name."""
    with fresh_store(clickhouse_path) as opened:
        PastService(opened, "chat").write(random_columns(1, 6_000, routes=HOSTILE, span_s=300))
        PastService(opened, SCRIPT).write(random_columns(2, 500, service=SCRIPT))
        yield opened


@pytest.fixture(scope="module")
def site(store: ClickHouse) -> Iterator[Site]:
    """The dashboard over them."""
    with Site(store) as running:
        yield running


@pytest.mark.parametrize("route", HOSTILE, ids=["script", "quotes", "arabic", "long"])
def test_routes_may_be_called_anything(site: Site, browser: Browser, route: str) -> None:
    """A hostile route is text in every panel and in the filter, and still filters."""
    with Opened(browser, width=1024) as opened:
        page = opened.page
        page.goto(f"{site.url}/services/chat?last=15m&where={quote(f'route={route}', safe='')}")
        opened.settled()
        expect(page.locator("#filters .chip")).to_contain_text(f"route = {route}"[:60])
        expect(page.locator("#requests tbody tr").first).to_contain_text(route[:8])
        expect(page.locator("#latency canvas")).to_be_visible()
        assert page.locator("img, main script").count() == 0
        assert opened.overflow() <= 0
        assert opened.faults() == []


def test_hostile_values_are_chosen_from_the_table(site: Site, browser: Browser) -> None:
    """A click on each route of the cohort table filters by it, to the letter."""
    with Opened(browser) as opened:
        page = opened.page
        for route in HOSTILE:
            page.goto(f"{site.url}/services/chat")
            opened.settled()
            rows = page.locator("#cohorts tbody tr").filter(
                has=page.get_by_text("route", exact=True)
            )
            rows.get_by_role("button").filter(has_text=route[:30]).first.click()
            opened.settled()
            assert (
                page.evaluate("new URLSearchParams(location.search).get('where')")
                == f"route={route}"
            )
            expect(page.locator("#requests tbody tr").first).to_be_visible()


def test_a_service_of_a_hostile_name_is_reached(site: Site, browser: Browser) -> None:
    """Its link in the overview leads to its page."""
    with Opened(browser) as opened:
        page = opened.page
        page.goto(site.url)
        page.get_by_role("link", name=SCRIPT).click()
        expect(page.locator("h1")).to_have_text(SCRIPT)
        opened.settled()
        expect(page.locator("#latency canvas")).to_be_visible()


def test_old_records_are_called_old(site: Site, browser: Browser) -> None:
    """Where nothing came for long, the page says how old its newest record is."""
    with Opened(browser) as opened:
        opened.page.goto(f"{site.url}/services/chat")
        expect(opened.page.locator("#stale")).to_contain_text(
            "The newest record is", timeout=30_000
        )
        opened.settled()


def test_what_is_not_there_is_said(site: Site, browser: Browser) -> None:
    """An unknown service, an empty cohort and a missing SLO each say what is the matter."""
    with Opened(browser) as opened:
        page = opened.page
        page.goto(f"{site.url}/services/nobody")
        expect(page.locator("#trouble")).to_contain_text("Nothing was recorded", timeout=30_000)
        expect(page.locator("#verdict")).to_have_text("no data")
        expect(page.locator("#latency .state")).to_contain_text("Nothing was recorded")
        page.goto(f"{site.url}/services/chat?where=route%3Dnobody")
        expect(page.locator("#latency .state")).to_contain_text("No request", timeout=30_000)
        expect(page.locator("#cohorts .state")).to_contain_text("No request", timeout=30_000)
        page.goto(f"{site.url}/services/chat")
        expect(page.locator("#burn .state")).to_contain_text("Nothing is promised", timeout=30_000)
        opened.settled()
        opened.complaints.clear()  # the browser itself tells of the unknown service's status


def test_nothing_at_all_is_said(browser: Browser, clickhouse_path: Path) -> None:
    """A fresh database has no service and no alert; once records come, they show without reload."""
    with fresh_store(clickhouse_path) as store, Site(store) as site, Opened(browser) as opened:
        page = opened.page
        page.goto(f"{site.url}/alerts")
        expect(page.locator("#standing .state")).to_contain_text("No alert", timeout=30_000)
        page.goto(site.url)
        expect(page.locator("#services .state")).to_contain_text(
            "Nothing was recorded yet", timeout=30_000
        )
        PastService(store, "fresh").write(random_columns(3, 100, service="fresh"))
        expect(page.get_by_role("link", name="fresh")).to_be_visible(timeout=30_000)


def test_a_server_that_ends_is_missed(store: ClickHouse, browser: Browser) -> None:
    """The page says that it is cut off and keeps what it shows."""
    with Opened(browser) as opened:
        with Site(store) as site:
            opened.page.goto(f"{site.url}/services/chat")
            opened.settled()
        expect(opened.page.locator("#live")).to_contain_text("cut off", timeout=30_000)
        expect(opened.page.locator("#latency canvas")).to_be_visible()
        opened.complaints.clear()  # the browser itself tells that nobody answers


def first_paint_ms(page: Page, url: str) -> float:
    """Return the median of three first paints of an address, as the browser measures them."""
    took = []
    for _ in range(3):
        page.goto(url)
        page.wait_for_function(PAINTED)
        took.append(float(page.evaluate(FIRST)))
    return sorted(took)[1]


FIRST = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
PAINTED = "() => performance.getEntriesByName('first-contentful-paint').length > 0"
MOST_TIMES = 15.0
"""What a page may take longer than one line of text from the same server. A style sheet and a dozen
scripts stand between, but no figure: those come later, however many there are."""


def test_first_paint_does_not_wait_for_panes(browser: Browser, clickhouse_path: Path) -> None:
    """With 10,000 panes the page paints soon beside an empty one, and then draws them all."""
    with fresh_store(clickhouse_path) as store:
        at_ns = [T0_NS + pane * PANE_NS for pane in range(PANES)]
        took_ms = np.random.default_rng(5).lognormal(4, 1, PANES).tolist()
        PastService(store, "chat").write(columns_of(took_ms, ts_ns=at_ns))
        assert store.query("SELECT count() FROM panes WHERE stage = '(pane)'").rows == ((PANES,),)
        with Site(store) as site, Opened(browser) as opened:
            empty_ms = first_paint_ms(opened.page, f"{site.url}/healthz")
            opened.complaints.clear()  # the browser looks for an icon that a text has not
            full_ms = first_paint_ms(opened.page, f"{site.url}/services/chat?last=30d")
            expect(opened.page.locator("#latency canvas")).to_be_visible(timeout=60_000)
            expect(opened.page.locator("#heat canvas").first).to_be_visible()
        assert full_ms < MOST_TIMES * empty_ms
