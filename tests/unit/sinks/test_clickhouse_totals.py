"""Totals read back fill a window as the panes themselves would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from folded import fold_cohorts
from random_records import AWKWARD, PANE_NS, SECOND_NS, T0_NS, random_columns, stored_panes
from same_values import assert_same

from tailbudget.models.cohort_split import CohortTotals
from tailbudget.models.reduce import bare
from tailbudget.models.select import collapse, empty
from tailbudget.models.window import Window
from tailbudget.schemas.errors import ClickHouseError
from tailbudget.schemas.records import Outcome
from tailbudget.schemas.rows import StoredPane
from tailbudget.schemas.summary import Summary
from tailbudget.sinks.clickhouse import ClickHouse, totals
from tailbudget.sinks.clickhouse.connection import Connection

MINUTE_NS = 60 * SECOND_NS
LENGTH_NS = 60 * MINUTE_NS
MINUTES = 5
FINE_NS = T0_NS + 3 * MINUTE_NS
STAGES = (("decode", "queue"), ("prefill", "queue", "it's \\ a,b"), (), ("decode", "failed_over"))
THRESHOLDS = ((100.0, 250.5), (100.0,), (50.0, 100.0, 250.5), (100.0, 250.5))


def minute(seed: int, number: int, *, failures: bool) -> list[StoredPane]:
    """The panes of a minute; stages, cohorts and thresholds differ from pane to pane."""
    kinds = [like(seed, number, kind, failures=failures) for kind in range(2)]
    panes = [kinds[at % 2][at] for at in range(6) if at in kinds[at % 2]]
    at_ns = T0_NS + number * MINUTE_NS
    return [varied(moved(pane, pane.pane_ns - T0_NS + at_ns), seed) for pane in panes]


def like(seed: int, number: int, kind: int, *, failures: bool) -> dict[int, StoredPane]:
    """The panes of one kind, by their place in the minute."""
    columns = random_columns(
        100 * seed + 10 * number + kind,
        int(np.random.default_rng([seed, number]).integers(1, 700)),
        stages=STAGES[(seed + number + kind) % 4],
        routes=AWKWARD[: 1 + (seed + number) % 5],
        weighted=seed % 2 == 1,
    )
    if not failures:
        columns = replace(columns, outcome=np.full_like(columns.outcome, Outcome.OK))
        columns.total_ms[np.isnan(columns.total_ms)] = 77.0
    thresholds_ms = THRESHOLDS[(seed * number) % 4]
    panes = stored_panes(columns, thresholds_ms=thresholds_ms)
    return {(pane.pane_ns - T0_NS) // PANE_NS: pane for pane in panes}


def moved(pane: StoredPane, pane_ns: int) -> StoredPane:
    """The same content at another time."""
    summary = replace(
        pane.summary,
        pane_ns=np.full_like(pane.summary.pane_ns, pane_ns),
        ledger={(pane_ns, reason): count for (_, reason), count in pane.summary.ledger.items()},
    )
    return replace(pane, pane_ns=pane_ns, summary=summary)


def varied(pane: StoredPane, seed: int) -> StoredPane:
    """Some panes have all cohorts together, other thresholds, no ledger, or nothing else."""
    kind = (pane.pane_ns // PANE_NS + 7 * seed) % 11
    if kind == 0:
        return replace(pane, summary=collapse(pane.summary))
    if kind == 1:
        summary = replace(pane.summary, thresholds_ms=(), over=pane.summary.over[:, :0])
        return replace(pane, summary=summary)
    if kind == 2:
        return replace(pane, summary=replace(pane.summary, ledger={}))
    if kind == 3:
        return replace(pane, summary=empty("chat", ledger={(pane.pane_ns, "rejected.no_id"): 3}))
    if kind == 4:
        return replace(pane, summary=empty("chat"))
    return pane


def window_of(parts: Sequence[Summary], step_ns: int) -> Window:
    """The window of an hour that holds them."""
    window = Window(LENGTH_NS, step_ns)
    for part in parts:
        window.add(bare(part))
    return window


def assert_same_windows(got: Window, want: Window) -> None:
    """Fail unless everything that is asked of windows is the same."""
    left, right = got.total(), want.total()
    for field in fields(Summary):
        if field.name not in {"moments", "sample"}:
            assert_same(getattr(left, field.name), getattr(right, field.name), field.name)
    assert by_cohort(got.cohorts()) == by_cohort(want.cohorts())


def by_cohort(found: CohortTotals) -> dict[object, object]:
    """What is known of each cohort, whatever their order."""
    return {
        cohort: (
            found.requests[at],
            found.failed[at],
            found.min_ms[at],
            found.max_ms[at],
            {found.first_bucket + b: found.counts[at, b] for b in found.counts[at].nonzero()[0]},
        )
        for at, cohort in enumerate(found.cohorts)
    }


def assert_same_while_panes_leave(
    got: Sequence[Summary], want: Sequence[Summary], step_ns: int
) -> None:
    """Fail unless windows of both say the same until all panes have left them."""
    left, right = window_of(got, step_ns), window_of(want, step_ns)
    for now_ns in range(T0_NS + LENGTH_NS, T0_NS + LENGTH_NS + MINUTES * MINUTE_NS, 3 * PANE_NS):
        assert_same_windows(left, right)
        left.advance(now_ns)
        right.advance(now_ns)
    assert left.total().requests.sum() < window_of(got, step_ns).total().requests.sum()


@pytest.mark.parametrize("failures", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_a_window_of_totals_is_the_window_of_the_panes(
    clickhouse: ClickHouse, seed: int, *, failures: bool
) -> None:
    """Counts, sums, sketches, extremes, profile and ledger are equal, whichever panes have left."""
    panes = [pane for m in range(MINUTES) for pane in minute(seed, m, failures=failures)]
    clickhouse.write_panes(panes)
    found = clickhouse.recent_totals("chat", T0_NS, FINE_NS)
    stored = [pane.summary for pane in panes]
    assert_same_while_panes_leave(found, stored, MINUTE_NS)
    got, want = ([part for part in parts if start_ns(part) >= FINE_NS] for parts in (found, stored))
    assert_same_while_panes_leave(got, want, PANE_NS)


def start_ns(part: Summary) -> int:
    """Start of what a summary of one pane holds; 0 where that is nothing."""
    return min([*part.pane_ns.tolist(), *(at for at, _ in part.ledger)], default=0)


def test_only_the_newest_version_counts(clickhouse: ClickHouse) -> None:
    """Cohorts that a newer version folded into "(other)" do not count, nor do repeated writes."""
    old = [pane for m in range(2) for pane in minute(8, m, failures=True)]
    new = [
        replace(pane, summary=fold_cohorts(pane.summary, pane.summary.cohorts[:1]), version=2)
        for pane in old
    ]
    for panes in (new, old, new):
        clickhouse.write_panes(panes)
    found = clickhouse.recent_totals("chat", T0_NS, T0_NS + MINUTE_NS)
    got = window_of(found, MINUTE_NS)
    assert_same_windows(got, window_of([pane.summary for pane in new], MINUTE_NS))


def test_minutes_come_before_panes_and_other_services_not_at_all(clickhouse: ClickHouse) -> None:
    """A summary a minute and then a summary a pane, oldest first, from a time on."""
    panes = stored_panes(random_columns(3, 4000, span_s=240))
    clickhouse.write_panes(panes)
    clickhouse.write_panes(stored_panes(random_columns(4, 50, service="search")))
    found = clickhouse.recent_totals("chat", T0_NS + MINUTE_NS + 1, T0_NS + 3 * MINUTE_NS + 1)
    starts = [start_ns(part) - T0_NS for part in found]
    assert starts == [MINUTE_NS, 2 * MINUTE_NS, *(3 * MINUTE_NS + n * PANE_NS for n in range(6))]
    assert {part.service for part in found} == {"chat"}
    assert sum(part.requests.sum() for part in found) == sum(
        pane.summary.requests.sum() for pane in panes if pane.pane_ns >= T0_NS + MINUTE_NS
    )
    assert clickhouse.recent_totals("nobody", T0_NS, T0_NS) == []


def test_many_cohorts_are_read_in_several_queries(
    clickhouse: ClickHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the answer is cut makes no difference."""
    panes = [pane for m in range(MINUTES) for pane in minute(9, m, failures=True)]
    clickhouse.write_panes(panes)
    whole = clickhouse.recent_totals("chat", T0_NS, FINE_NS)
    for most in (1, 20, 50):
        monkeypatch.setattr(totals, "_MOST_COHORTS", most)
        for left, right in zip(
            whole, clickhouse.recent_totals("chat", T0_NS, FINE_NS), strict=True
        ):
            assert_same(left, right)


def test_a_pane_written_meanwhile_is_read_again(
    clickhouse: ClickHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers that may describe different states are not put together: try again."""
    pane = stored_panes(random_columns(5, 100, span_s=10))[0]
    clickhouse.write_panes([pane])
    request = Connection.request

    def write_too(self: Connection, doing: str, call: Callable[[Any], Any]) -> Any:
        if doing.startswith("reading totals"):
            monkeypatch.setattr(Connection, "request", request)
            found = request(self, doing, call)
            clickhouse.write_panes([replace(pane, version=2)])
            return found
        return request(self, doing, call)

    monkeypatch.setattr(Connection, "request", write_too)
    with pytest.raises(ClickHouseError, match="written while"):
        clickhouse.recent_totals("chat", T0_NS, T0_NS)
    assert len(clickhouse.recent_totals("chat", T0_NS, T0_NS)) == 1
