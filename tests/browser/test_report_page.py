"""The report in a real browser: a Chromium without a window."""

from __future__ import annotations

from pathlib import Path

import audits
import pytest
from playwright.sync_api import Browser, Page, expect

from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.html_report import html

pytestmark = pytest.mark.browser

HOSTILE = "</script><img src=http://127.0.0.1:9/x onerror=alert(1)>"


class Opened:
    """A page that was opened, with all it complained about and asked for."""

    def __init__(self, page: Page, path: Path) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(path.as_uri())

    def charts(self) -> int:
        """Return how many charts are to be seen."""
        return self.page.locator("figure:visible .main-svg:first-child").count()

    def overflow(self) -> int:
        """Return how many pixels the page is wider than its window."""
        width: int = self.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        return width


def save(audit: Audit, folder: Path) -> Path:
    """Write a report to a file."""
    path = folder / "report.html"
    path.write_text(html(audit), encoding="utf-8")
    return path


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
@pytest.mark.parametrize("name", ["", HOSTILE, "x" * 5_000], ids=["tame", "hostile", "long"])
def test_page_draws_all_and_asks_for_nothing(
    browser: Browser, tmp_path: Path, width: int, scheme: str, name: str
) -> None:
    """Six charts, no complaint, no request but for the file, nothing beyond the window."""
    audit = audits.hostile(name) if name else audits.breach()
    page = browser.new_page(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    opened = Opened(page, save(audit, tmp_path))
    page.wait_for_selector("#chart-timeline .main-svg")
    assert opened.charts() == 6
    assert opened.complaints == []
    assert opened.requests == [(tmp_path / "report.html").as_uri()]
    assert opened.overflow() <= 0
    page.close()


def test_tables_are_there_without_scripts(browser: Browser, tmp_path: Path) -> None:
    """With scripts off the tables say it all, and no empty frame of a chart is left."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(save(audits.breach(), tmp_path).as_uri())
    assert page.locator("figure:visible").count() == 0
    assert page.locator("table:visible").count() > 12
    assert "480.2 ms" in page.locator("#end_to_end").inner_text()
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(browser: Browser, tmp_path: Path, scheme: str) -> None:
    """Every colour of text has at least 4.5 to 1 against what is behind it (WCAG 2.2, AA)."""
    page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
    page.goto(save(audits.sparse(), tmp_path).as_uri())
    names = ("text", "soft", "link", "good", "warn", "bad")
    for behind in ("page", "panel"):
        ratios = {name: page.evaluate(CONTRAST, [f"--{name}", f"--{behind}"]) for name in names}
        assert {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}
    page.close()


def test_charts_follow_the_colours_of_the_page(browser: Browser, tmp_path: Path) -> None:
    """When the reader turns to dark, and on paper, the text of the charts is the page's."""
    page = browser.new_page(color_scheme="light")
    page.goto(save(audits.breach(), tmp_path).as_uri())
    page.wait_for_selector("#chart-stages .ytick text")
    colour = "getComputedStyle(document.body).color"
    light = page.evaluate(colour)
    expect(page.locator("#chart-stages .ytick text").first).to_have_css("fill", light)
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate(colour)
    assert dark != light
    expect(page.locator("#chart-stages .ytick text").first).to_have_css("fill", dark)
    page.emulate_media(color_scheme="dark", media="print")
    expect(page.locator("body")).to_have_css("color", "rgb(0, 0, 0)")
    page.close()


def test_page_prints(browser: Browser, tmp_path: Path) -> None:
    """The report fits on pages of paper."""
    page = browser.new_page()
    page.goto(save(audits.breach(), tmp_path).as_uri())
    page.wait_for_selector("#chart-timeline .main-svg")
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert 4 <= printed.count(b"/Type /Page\n") <= 20
    page.close()


CONTRAST = """([text, behind]) => {
  const style = getComputedStyle(document.documentElement);
  const luminance = (name) => {
    const probe = document.createElement("i");
    probe.style.color = style.getPropertyValue(name);
    document.body.append(probe);
    const parts = getComputedStyle(probe).color.match(/[0-9.]+/g).slice(0, 3).map(Number);
    probe.remove();
    const [r, g, b] = parts.map((part) => {
      const share = part / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const [high, low] = [luminance(text), luminance(behind)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}"""
