"""A regression of the real stack: the page marks it and says how much and why, without reload."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import orjson
import pytest
from opened import Opened
from playwright.sync_api import Browser, Page, expect
from up_process import Up

from tailbudget.schemas.settings import Settings
from tailbudget.streams import simulate
from tailbudget.streams.kafka import kafka_config
from tailbudget.streams.scenario import Fault, Route, Scenario
from tailbudget.streams.traffic import ScenarioTraffic

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]

LEARNT_S = 150.0
"""When the fault begins: the models of a service of one cohort are ready by then."""

FAULT_S = 60.0
PATIENCE_MS = 120_000
RAG = Scenario(
    service="rag",
    rate=60.0,
    routes=(Route("search", 1.0, 900, 0.6, 16, documents=6),),
    variants=(("small", 1.0, 1.0),),
    regions=(("eu", 1.0, 4.0),),
    tiers=(("pro", 1.0),),
    faults=(Fault("retrieve", 12.0, LEARNT_S, FAULT_S),),
)
CONFIG = """
services:
  rag:
    slo: {p50_ms: 400, p95_ms: 800, p99_ms: 1200}
"""

BANDS = """async () => {
  const { getInstanceByDom } = await import("/static/vendor/echarts-6.1.0.esm.min.js");
  const { colour } = await import("/static/js/chart.js");
  const { series } = getInstanceByDom(document.querySelector("#latency .chart")).getOption();
  const bands = series.flatMap((one) => one.markArea?.data ?? []);
  return bands.filter(([from]) => from.itemStyle.color === colour("--anomaly"))
    .map(([from, to]) => [from.xAxis / 1000, to.xAxis / 1000]);
}"""


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """The stack, with a second service whose vector store becomes slower."""
    folder = tmp_path_factory.mktemp("regression")
    config = folder / "tailbudget.yaml"
    config.write_text(CONFIG)
    with (
        Up(folder / "data", "--config", str(config), "--rate", "1") as running,
        published(folder / "data"),
    ):
        yield running


@contextmanager
def published(data: Path) -> Iterator[None]:
    """Publish the service's traffic to the broker of a stack."""
    bootstrap = orjson.loads((data / "worker.json").read_bytes())["bootstrap"]
    kafka = Settings.model_validate({"kafka": {"bootstrap": bootstrap}}).kafka
    topics = simulate.Topics(kafka.requests[0].topic, kafka.deploys_topic)
    ended = Event()
    thread = Thread(
        target=simulate.run,
        args=(kafka_config(kafka), ScenarioTraffic(RAG), topics),
        kwargs={"pace": simulate.Pace(wait=ended.wait)},
    )
    thread.start()
    yield
    ended.set()
    thread.join()


def bands(page: Page) -> list[list[float]]:
    """Return from when to when regressions lie behind the latency, seconds since 1970."""
    found: list[list[float]] = page.evaluate(BANDS)
    return found


def test_a_regression_is_marked_with_its_effect_and_cause(up: Up, browser: Browser) -> None:
    """Nothing before it; then a band from its onset, what it costs and why, and its end."""
    with Opened(browser) as opened:
        page = opened.page
        page.goto(up.url)
        page.get_by_role("link", name="rag", exact=True).click(timeout=60_000)
        page.get_by_role("button", name="5m", exact=True).click()
        page.evaluate("window.never_reloaded = true")
        opened.settled()
        expect(page.locator("#latency canvas")).to_be_visible()
        assert bands(page) == []
        marked = page.locator("#latency .key .anomaly")
        expect(marked).to_be_visible(timeout=LEARNT_S * 1000 + PATIENCE_MS)
        ((since, _),) = bands(page)
        told = page.locator("#happenings tbody tr").filter(has_text="regression")
        expect(told).to_contain_text("retrieve")
        expect(told).to_contain_text(re.compile(r"\+[\d,.]+ ms \(\+[\d,.]+ %\) against [\d.]+ ms"))
        expect(told).to_contain_text("cause: external dependency", timeout=PATIENCE_MS)
        diagnosis = page.locator("#diagnosis")
        expect(diagnosis).to_contain_text("Slower than its inputs explain", timeout=PATIENCE_MS)
        page.locator("#shape-stage").select_option("retrieve")
        expect(page.locator("#shape .extra")).to_contain_text("slower than its input explains")
        expect(told).to_contain_text("ended", timeout=FAULT_S * 1000 + PATIENCE_MS)
        opened.settled()
        ((first, last),) = bands(page)
        assert first == pytest.approx(since, abs=5)
        assert FAULT_S / 2 < last - first < 2 * FAULT_S
        assert page.evaluate("window.never_reloaded")
