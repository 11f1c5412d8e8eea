"""A regression of the real stack: the page marks it and says how much and why, without reload."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from opened import Opened
from playwright.sync_api import Browser, Page, expect
from up_process import Up

pytestmark = [pytest.mark.browser, pytest.mark.timeout(1_200)]

ONSET_MS = 600_000
"""The scenario's dependency becomes slow after six minutes; the rest is patience."""

END_MS = 240_000
"""It lasts less than a minute, and an alarm ends by a test of its own."""

STARTS = """async (colour) => {
  const { getInstanceByDom } = await import("/static/vendor/echarts-6.1.0.esm.min.js");
  const { colour: shown } = await import("/static/js/chart.js");
  const { series } = getInstanceByDom(document.querySelector("#latency .chart")).getOption();
  const bands = series.flatMap((one) => one.markArea?.data ?? []);
  return bands.filter(([from]) => from.itemStyle.color === shown(colour))
    .map(([from, to]) => [from.xAxis / 1000, to.xAxis / 1000]);
}"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """The stack, with a service whose vector store becomes slower."""
    data = tmp_path_factory.mktemp("regression") / "data"
    with Up(data, "--scenario", "dependency x1.6", "--rate", "40") as running:
        yield running


def bands(page: Page) -> list[list[float]]:
    """Return from when to when regressions lie behind the latency, seconds since 1970."""
    found: list[list[float]] = page.evaluate(STARTS, "--anomaly")
    return found


def test_a_regression_is_marked_with_its_effect_and_cause(up: Up, browser: Browser) -> None:
    """Nothing before it; then a band from its onset, what it costs and why, and its end."""
    with Opened(browser) as opened:
        page = opened.page
        page.goto(f"{up.url}/services/chat?last=15m&stage=retrieve&input=candidates")
        page.evaluate("window.never_reloaded = true")
        opened.settled()
        expect(page.locator("#latency canvas")).to_be_visible(timeout=60_000)
        assert bands(page) == []
        marked = page.locator("#latency .key .anomaly")
        expect(marked).to_be_visible(timeout=ONSET_MS)
        (band,) = bands(page)
        told = page.locator("#happenings tbody tr").filter(has_text="regression")
        expect(told).to_have_count(1)
        expect(told).to_contain_text("retrieve")
        expect(told).to_contain_text(re.compile(r"\+[\d.]+ ms \(\+[\d.]+ %\) against [\d.]+ ms"))
        expect(told).to_contain_text("external dependency", timeout=60_000)
        expect(page.locator("#shape .extra")).to_contain_text("slower than its input explains")
        expect(told).to_contain_text("ended", timeout=END_MS)
        opened.settled()
        (whole,) = bands(page)
        assert whole[0] == pytest.approx(band[0], abs=5)
        assert 15 < whole[1] - whole[0] < 150
        assert page.evaluate("window.never_reloaded")
