"""The dashboard of the real stack: a fault comes and goes, and every link and filter works."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from opened import AXE, Opened
from PIL import Image
from playwright.sync_api import Browser, expect
from up_process import Up

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

BREACH_MS = 180_000
"""The simulated fault begins after a minute; the rest is patience with a busy machine."""

CHARTS = ("latency", "burn", "stages", "heat", "waterfall", "shape")
PANELS = (*CHARTS, "diagnosis", "cohorts", "causes", "fixes", "requests", "ledger", "happenings")


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """The stack, with its simulated service and the fault in it."""
    with Up(tmp_path_factory.mktemp("up") / "data") as running:
        yield running


def test_a_fault_shows_and_passes_without_reload(up: Up, browser: Browser) -> None:
    """The page goes from fine to breach, names tail driver and cause, and goes back to fine."""
    with Opened(browser) as opened:
        page = opened.page
        page.goto(up.url)
        page.get_by_role("link", name="chat", exact=True).click(timeout=60_000)
        page.get_by_role("button", name="5m", exact=True).click()
        page.evaluate("window.never_reloaded = true")
        expect(page.locator("#live")).to_have_text("live", timeout=30_000)
        verdict = page.locator("#verdict")
        expect(verdict).to_have_text("ok", timeout=60_000)
        expect(verdict).to_have_text("breach", timeout=BREACH_MS)
        expect(page.locator("#now")).to_contain_text("tail driver retrieve", timeout=60_000)
        diagnosis = page.locator("#diagnosis")
        expect(diagnosis).to_contain_text("BREACH", timeout=60_000)
        expect(diagnosis).to_contain_text("retrieve", timeout=60_000)
        expect(diagnosis).to_contain_text("external dependency", timeout=60_000)
        expect(page.locator("#causes")).to_contain_text("retrieve takes")
        expect(page.locator("#happenings")).to_contain_text("alert firing", timeout=60_000)
        expect(verdict).to_have_text("ok", timeout=BREACH_MS)
        expect(page.locator("#happenings")).to_contain_text("alert resolved", timeout=60_000)
        assert page.evaluate("window.never_reloaded")


def test_links_lead_to_each_page_and_back(up: Up, browser: Browser) -> None:
    """From the overview to the service, the alerts and SQL, each with something in it."""
    with Opened(browser) as opened:
        page = opened.page
        page.goto(f"{up.url}/?zone=Asia%2FKolkata")
        expect(page.locator("#services canvas")).to_have_count(1, timeout=30_000)
        page.get_by_role("link", name="chat", exact=True).click()
        opened.settled()
        expect(page).to_have_url(re.compile("/services/chat.*zone=Asia"))
        for panel in CHARTS:
            expect(page.locator(f"#{panel} canvas").first).to_be_visible()
        for panel in PANELS:
            expect(page.locator(f"#{panel} .state")).to_be_hidden()
        page.get_by_role("link", name="Alerts").click()
        expect(page.locator("#standing tbody tr").first).to_contain_text("resolved", timeout=30_000)
        expect(page.locator("#notices")).to_contain_text("delivered")
        page.locator("#standing").get_by_role("link", name="chat").first.click()
        opened.settled()
        page.get_by_role("link", name="SQL").click()
        expect(page.locator("#sql-service")).to_have_value("chat")
        page.get_by_role("link", name="tailbudget").click()
        expect(page.locator("#services tbody tr")).to_have_count(1)


def test_a_cohort_filters_every_panel_and_the_address_keeps_it(up: Up, browser: Browser) -> None:
    """One click narrows all; the address brings the same view, and the filter comes off again."""
    with Opened(browser) as opened:
        page = opened.page
        page.goto(f"{up.url}/services/chat?last=15m")
        opened.settled()
        everything = page.locator("#diagnosis .note-line").inner_text()
        page.locator("#cohorts").get_by_role("button", name="search", exact=True).first.click()
        expect(page).to_have_url(re.compile("where=route%3Dsearch"))
        expect(page.locator("#filters .chip")).to_contain_text("route = search")
        opened.settled()
        assert page.locator("#diagnosis .note-line").inner_text() != everything
        expect(page.locator("#requests tbody tr").first).to_contain_text("route=search")
        shared = page.url
        with Opened(browser) as other:
            other.page.goto(shared)
            other.settled()
            expect(other.page.locator("#filters .chip")).to_contain_text("route = search")
        page.get_by_role("button", name="Remove the filter route").click()
        opened.settled()
        expect(page.locator("#filters .chip")).to_have_count(0)
        page.go_back()
        expect(page.locator("#filters .chip")).to_have_count(1)
        opened.settled()


def test_ranges_zones_and_inputs_are_chosen(up: Up, browser: Browser) -> None:
    """A range is drawn or chosen; times follow the zone, and the scatter its choice."""
    with Opened(browser, zone="Europe/Berlin") as opened:
        page = opened.page
        page.goto(f"{up.url}/services/chat")
        opened.settled()
        expect(page.locator("#zone")).to_have_value("Europe/Berlin")
        before = page.locator("#range").inner_text()
        page.locator("#zone").select_option("America/Caracas")
        expect(page.locator("#range")).not_to_have_text(before)
        for last in ("5m", "15m", "1h", "6h", "24h", "7d", "30d"):
            page.get_by_role("button", name=last, exact=True).click()
            opened.settled()
            expect(page.locator("#latency canvas")).to_be_visible()
        page.get_by_role("button", name="5m", exact=True).click()
        opened.settled()
        page.locator("#shape-stage").select_option("prefill")
        page.locator("#shape-input").select_option("input_tokens")
        expect(page).to_have_url(re.compile("stage=prefill&input=input_tokens"))
        expect(page.locator("#shape .extra")).to_contain_text("r²")
        chart = page.locator("#latency .chart")
        chart.scroll_into_view_if_needed()
        box = chart.bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 150)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + 150, steps=5)
        page.mouse.up()
        expect(page).to_have_url(re.compile(r"from=\d+&to=\d+"))
        opened.settled()
        drawn = page.url
        page.get_by_role("button", name="Earlier", exact=True).click()
        opened.settled()
        assert parse_qs(urlsplit(page.url).query)["to"] < parse_qs(urlsplit(drawn).query)["to"]
        page.get_by_role("button", name="Later", exact=True).click()
        opened.settled()
        assert page.url == drawn
        page.get_by_role("button", name="Back to the newest").click()
        opened.settled()
        assert "from=" not in page.url


def test_every_ready_query_answers(up: Up, browser: Browser) -> None:
    """Each of the ten is asked by one click, most with a chart; a wrong one says why."""
    with Opened(browser) as opened:
        page = opened.page
        page.goto(f"{up.url}/sql")
        expect(page.locator("#sql-service")).to_have_value("chat")
        buttons = page.locator("#ready button")
        assert buttons.count() == 10
        drawn = 0
        for at in range(10):
            buttons.nth(at).click()
            expect(page.locator("#said")).to_contain_text("rows in", timeout=30_000)
            assert page.locator("#result tbody tr").count() or at == 9
            drawn += page.locator("#result canvas").is_visible()
        assert drawn >= 7
        page.locator("#sql-text").fill("DROP TABLE panes")
        page.locator("#sql-text").press("Control+Enter")
        expect(page.locator("#result .state")).to_contain_text("Remedy:")
        opened.complaints.clear()  # the browser itself tells of the refusal's status


def test_figures_are_taken_away(up: Up, browser: Browser, tmp_path: Path) -> None:
    """A chart is saved as a picture, and its figures as CSV and JSON that agree."""
    with Opened(browser) as opened:
        page = opened.page
        page.goto(f"{up.url}/services/chat?last=5m")
        opened.settled()
        saved = {}
        for kind in ("PNG", "CSV", "JSON"):
            with page.expect_download() as waiting:
                page.locator("#latency summary").click()
                page.locator("#latency").get_by_role("button", name=kind).click()
            saved[kind] = tmp_path / waiting.value.suggested_filename
            waiting.value.save_as(saved[kind])
        assert saved["PNG"].read_bytes().startswith(b"\x89PNG")
        rows = list(csv.DictReader(saved["CSV"].open(encoding="utf-8", newline="")))
        same = json.loads(saved["JSON"].read_text())
        assert [float(row["p50_ms"]) for row in rows][:5] == [row["p50_ms"] for row in same][:5]
        page.locator("#latency").get_by_role("button", name="Table").click()
        assert page.locator("#latency tbody tr").count() >= len(rows) - 2
        expect(page.locator("#latency canvas")).to_be_hidden()


@pytest.mark.parametrize("path", ["/", "/services/chat?last=5m", "/alerts"])
def test_every_panel_is_a_picture(up: Up, browser: Browser, tmp_path: Path, path: str) -> None:
    """With its chart or its rows in it: no panel is the blank paper that a failure would leave."""
    with Opened(browser, dark=True) as opened:
        page = opened.page
        page.goto(f"{up.url}{path}")
        opened.settled()
        shown = page.locator(".panel:has(summary:visible)").all()
        # By their ids: another panel may come into sight meanwhile, as news of a regression does.
        for name in [one.get_attribute("id") for one in shown]:
            panel = page.locator(f"#{name}")
            with page.expect_download() as waiting:
                panel.locator("summary").click()
                panel.get_by_role("button", name="PNG").click()
            place = tmp_path / waiting.value.suggested_filename
            waiting.value.save_as(place)
            with Image.open(place) as picture:
                drawn = picture.convert("RGB").crop((0, 100, picture.width, picture.height - 60))
            assert len(drawn.getcolors(1 << 24) or ()) > 20


def test_all_is_reached_by_keyboard(up: Up, browser: Browser) -> None:
    """Tab goes over the skip link and the pages to the ranges; Enter works them."""
    with Opened(browser) as opened:
        page = opened.page
        page.goto(f"{up.url}/services/chat")
        opened.settled()
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("#main")).to_be_focused()
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="5m", exact=True)).to_be_focused()
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("last=5m"))
        opened.settled()
        summary = page.locator("#latency summary")
        summary.focus()
        page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        expect(page.locator("#latency").get_by_role("button", name="PNG")).to_be_focused()
        page.keyboard.press("Escape")
        expect(summary).to_be_focused()
        expect(page.locator("#latency").get_by_role("button", name="PNG")).to_be_hidden()


def test_axe_is_the_one_that_was_released() -> None:
    """What is vendored for tests is byte for byte the file of the package."""
    released = "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c"
    assert hashlib.sha256(AXE.read_bytes()).hexdigest() == released


@pytest.mark.parametrize(
    ("width", "scheme"), [(1440, "light"), (1024, "dark"), (390, "light"), (390, "dark")]
)
@pytest.mark.parametrize(
    "path", ["/", "/services/chat?last=5m", "/alerts", "/sql?q=SELECT%201%20AS%20n"]
)
def test_pages_are_accessible_and_fit(
    up: Up, browser: Browser, path: str, width: int, scheme: str
) -> None:
    """axe-core finds no serious fault, and nothing is wider than the window."""
    with Opened(browser, width=width, dark=scheme == "dark") as opened:
        opened.page.goto(f"{up.url}{path}")
        expect(opened.page.locator("#live")).to_have_text("live", timeout=30_000)
        opened.settled()
        if path == "/":
            expect(opened.page.locator("#services canvas")).to_have_count(1, timeout=30_000)
        assert opened.faults() == []
        assert opened.overflow() <= 0
