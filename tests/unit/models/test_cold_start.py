"""Cold windows from events, and the p99 with and without them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import orjson
from gathered import T0_NS, gathered

from tailbudget.models.cold_start import cold_start
from tailbudget.models.cold_windows import cold_windows
from tailbudget.models.evidence import Evidence
from tailbudget.schemas.rows import DeployRow
from tailbudget.schemas.sections import ColdWindow
from tailbudget.schemas.slo import SloTarget
from tailbudget.streams.agents.deploys import deploy_row

CASES = Path(__file__).parents[2] / "data" / "cases"
S = 1_000_000_000
TARGET = SloTarget(p99_ms=200.0)


def event(at_s: float, version: str = "v1", **other: str) -> DeployRow:
    """Return an event of the service "svc" in production."""
    at_ns = T0_NS + round(at_s * S)
    return DeployRow(
        other.get("service", "svc"), other.get("env", "prod"), version, at_ns, at_ns,
        other.get("kind", "deploy"),
    )  # fmt: skip


def spans(windows: Iterable[ColdWindow]) -> list[tuple[float, float]]:
    """Return windows in seconds."""
    return [((w.start_ns - T0_NS) / S, (w.end_ns - T0_NS) / S) for w in windows]


def case_11(events: bool) -> Evidence:  # noqa: FBT001
    """Return the evidence of case 11, with or without its events."""
    lines = (CASES / "11_deploy_requests.jsonl").read_bytes().splitlines()
    rows = [orjson.loads(line) for line in lines]
    deploys = [
        deploy_row(line) for line in (CASES / "11_deploy_events.jsonl").read_bytes().splitlines()
    ]
    columns = {
        name: [row[name] for row in rows] for name in ("request_id", "timestamp", "total_ms")
    }
    windows = cold_windows(deploys, "scorer", 5, None)
    return gathered(columns, thresholds_ms=(200.0,), cold_windows=windows if events else None)


def test_one_version_announced_thrice_is_one_deploy() -> None:
    """Case 11: one window from 600 to 940 s, 57 rows; filtered 100 ms, unfiltered 900 ms."""
    said = cold_start(case_11(events=True), TARGET)
    assert spans(said.deploys) == [(600, 940)]
    assert said.excluded == 57
    assert said.filtered_p99_ms is not None
    assert said.unfiltered_p99_ms is not None
    assert abs(said.filtered_p99_ms / 100 - 1) < 1 / 128
    assert abs(said.unfiltered_p99_ms / 900 - 1) < 1 / 128
    assert said.verdict == "cold_start"
    assert "the steady state is within the target of 200 ms, cold windows break it" in said.note
    assert "of 543 requests, fewer than 1,000" in said.note
    assert said.suspected == ()


def test_without_events_filtered_is_not_computable() -> None:
    """It is None, never the unfiltered figure."""
    said = cold_start(case_11(events=False), TARGET)
    assert (said.filtered_p99_ms, said.excluded) == (None, 0)
    assert said.verdict == "not_computable"
    assert said.note == "nobody said which deploys there were"


def test_no_deploy_in_the_span_leaves_nothing_to_filter() -> None:
    """That there was none, or none near, is known: it is not a cold start."""
    for windows in ((), (ColdWindow(0, 10, "v0", "deploy"),)):
        said = cold_start(gathered({"total_ms": [100.0] * 200}, cold_windows=windows), TARGET)
        assert (said.deploys, said.filtered_p99_ms, said.verdict) == ((), None, "not_cold_start")
        assert "nothing to leave out" in said.note


def steady_and_cold(steady_ms: float, cold_ms: float, **failing: int) -> Evidence:
    """Return 3,000 requests of which the first 100 lie in a cold window."""
    total = np.r_[np.full(100, cold_ms), np.full(2_900, steady_ms)]
    status = np.full(3_000, "ok", object)
    status[: failing.get("cold", 0)] = "error"
    status[2_000 : 2_000 + failing.get("steady", 0)] = "error"
    window = ColdWindow(T0_NS, T0_NS + 100 * S, "v1", "deploy")
    return gathered({"total_ms": total, "status": status}, cold_windows=(window,))


def test_a_steady_state_beyond_the_target_is_no_cold_start() -> None:
    """The cold windows are not why the target is missed."""
    said = cold_start(steady_and_cold(300, 900), TARGET)
    assert said.verdict == "not_cold_start"
    assert "is missed in the steady state too" in said.note


def test_a_target_that_is_met_needs_no_cause() -> None:
    """Cold windows that break nothing are no verdict."""
    said = cold_start(steady_and_cold(100, 150), TARGET)
    assert said.verdict == "not_cold_start"
    assert "is met with cold windows too" in said.note


def test_failures_are_slower_than_all_on_both_figures() -> None:
    """As many failures as beyond the p99 make it unknown, and break the target."""
    said = cold_start(steady_and_cold(100, 100, cold=50), TARGET)
    assert said.unfiltered_p99_ms is None
    assert said.filtered_p99_ms is not None
    assert said.verdict == "cold_start"
    assert "p99 a failed request with cold windows" in said.note
    both = cold_start(steady_and_cold(100, 100, cold=50, steady=50), TARGET)
    assert (both.filtered_p99_ms, both.verdict) == (None, "not_cold_start")


def test_too_few_requests_have_no_p99() -> None:
    """Below 100 the p99 is the maximum: None, and the sentence says so."""
    window = ColdWindow(T0_NS, T0_NS + 20 * S, "v1", "deploy")
    said = cold_start(
        gathered({"total_ms": [900.0] * 20 + [100.0] * 50}, cold_windows=(window,)), TARGET
    )
    assert (said.unfiltered_p99_ms, said.filtered_p99_ms) == (None, None)
    assert said.verdict == "not_computable"
    assert "unknown (n=50: it would be the maximum)" in said.note


def test_without_a_target_the_figures_stand_alone() -> None:
    """Both are told, and neither is judged."""
    said = cold_start(case_11(events=True), None)
    assert said.filtered_p99_ms is not None
    assert said.verdict == "not_computable"
    assert "there is no p99 target" in said.note


def test_everything_cold_leaves_no_steady_state() -> None:
    """A span within a cold window says nothing about the rest."""
    window = ColdWindow(T0_NS - S, T0_NS + 10_000 * S, "v1", "deploy")
    said = cold_start(gathered({"total_ms": [900.0] * 500}, cold_windows=(window,)), TARGET)
    assert (said.excluded, said.filtered_p99_ms, said.verdict) == (500, None, "not_computable")
    assert "every request came within a cold window" in said.note


def test_other_services_environments_and_versions() -> None:
    """Others' events are ignored; another version, or the same much later, is another deploy."""
    events = [
        event(0), event(100), event(1_000), event(50, "v2"),
        event(10, service="billing"), event(20, env="staging"),
    ]  # fmt: skip
    assert spans(cold_windows(events, "svc", 5, "prod")) == [(0, 400), (50, 350), (1_000, 1_300)]
    assert spans(cold_windows(events, "svc", 5, "staging")) == [(20, 320)]
    assert cold_windows(events, "other", 5, None) == ()


def test_nobody_says_which_environment() -> None:
    """Then production is taken; without any of it, whatever the service has."""
    events = [event(0, env="prod"), event(500, env="staging")]
    assert spans(cold_windows(events, "svc", 5, None)) == [(0, 300)]
    assert spans(cold_windows(events[1:], "svc", 5, None)) == [(500, 800)]
    assert spans(cold_windows([event(0, env="")], "svc", 5, None)) == [(0, 300)]


def test_a_scale_up_has_a_window_of_its_own() -> None:
    """It is another kind of event than the deploy of the same version."""
    found = cold_windows([event(0), event(60, kind="scale_up")], "svc", 5, None)
    assert [window.kind for window in found] == ["deploy", "scale_up"]
