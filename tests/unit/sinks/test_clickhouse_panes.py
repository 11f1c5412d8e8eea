"""Panes in ClickHouse: exact, whole, and counted once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from folded import fold_cohorts
from random_records import PANE_NS, SECOND_NS, T0_NS, random_columns, stored_panes
from same_values import assert_same

from tailbudget.models.select import empty
from tailbudget.schemas.cohorts import OTHER
from tailbudget.schemas.rows import StoredPane
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.clickhouse.panes import MAX_MONTHS, MAX_ROWS, batches

SHAPES: dict[str, dict[str, object]] = {
    "everything": {},
    "weighted": {"weighted": True},
    "no covariates": {"covariates": ()},
    "no stages": {"stages": ()},
    "bare": {"stages": (), "covariates": ()},
    "a stage called ledger": {"stages": ("ledger", "failed_over")},
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [1, 40, 3000])
def test_a_pane_comes_back_to_the_last_bit(clickhouse: ClickHouse, shape: str, n: int) -> None:
    """What is read is what was written: every array, type, infinity and missing value."""
    panes = stored_panes(random_columns(n, n, **SHAPES[shape]))  # type: ignore[arg-type]
    clickhouse.write_panes(panes)
    found = clickhouse.read_panes("chat", [pane.pane_ns for pane in panes])
    assert sorted(found) == [pane.pane_ns for pane in panes]
    for pane in panes:
        assert_same(pane, found[pane.pane_ns])


def test_extreme_numbers_survive(clickhouse: ClickHouse) -> None:
    """Hashes and counts beyond 2^53, and offsets near 2^63, keep every bit."""
    pane = stored_panes(random_columns(3, 50, span_s=10))[0]
    summary = replace(
        pane.summary,
        sum_ns=np.where(pane.summary.n > 0, 2**62 + 1, 0),
        count=pane.summary.count + 2**53 + 1,
        sample=replace(pane.summary.sample, tau=np.full_like(pane.summary.sample.tau, 2**64 - 1)),
    )
    wanted = replace(pane, summary=summary, frontier={"t:0:1": 2**63 - 1}, version=2**63)
    clickhouse.write_panes([wanted])
    assert_same(wanted, clickhouse.read_panes("chat", [pane.pane_ns])[pane.pane_ns])


def test_a_pane_with_only_a_ledger_is_kept(clickhouse: ClickHouse) -> None:
    """A pane all of whose records were refused has no group, but what became of them is known."""
    pane = StoredPane(T0_NS, 10, empty("chat", ledger={(T0_NS, "rejected.no_id"): 7}), {}, 1)
    clickhouse.write_panes([pane])
    assert_same(pane, clickhouse.read_panes("chat", [T0_NS])[T0_NS])
    answer = clickhouse.query("SELECT reason, records FROM ledger(window = 10)")
    assert answer.rows == (("rejected.no_id", 7),)


def test_the_same_pane_written_twice_counts_once(clickhouse: ClickHouse) -> None:
    """Two blocks with the same rows, before any merge: table and views count them once."""
    panes = stored_panes(random_columns(4, 500, span_s=10))
    clickhouse.write_panes(panes)
    once = clickhouse.query("SELECT * FROM latency(window = 60) ORDER BY stage").rows
    clickhouse.write_panes(panes)
    parts = clickhouse.query(
        "SELECT count() FROM system.parts"
        " WHERE active AND table = 'panes' AND database = currentDatabase()"
    )
    assert parts.rows == ((2,),)
    assert clickhouse.query("SELECT * FROM latency(window = 60) ORDER BY stage").rows == once
    requests = clickhouse.query("SELECT sum(requests) FROM panes FINAL")
    assert requests.rows == ((500,),)
    assert clickhouse.query("SELECT sum(requests) FROM latency(window = 60)").rows == ((500,),)


def test_a_newer_version_replaces_the_older_whole(clickhouse: ClickHouse) -> None:
    """A cohort that the newer version folded into "(other)" no longer counts by itself."""
    old = stored_panes(random_columns(5, 300, span_s=10))[0]
    keep = set(old.summary.cohorts[:2])
    new = replace(old, summary=fold_cohorts(old.summary, keep), version=2)
    assert OTHER in new.summary.cohorts
    clickhouse.write_panes([old])
    clickhouse.write_panes([new])
    assert_same(new, clickhouse.read_panes("chat", [old.pane_ns])[old.pane_ns])
    assert clickhouse.query("SELECT sum(requests) FROM latency(window = 60)").rows == ((300,),)
    cohorts = clickhouse.query("SELECT uniq(cohort) FROM latency_by_cohort(window = 60)")
    assert cohorts.rows == ((len(new.summary.cohorts),),)


def test_an_older_version_that_comes_late_changes_nothing(clickhouse: ClickHouse) -> None:
    """A worker that lost its partition cannot undo or add to what its successor wrote."""
    older = stored_panes(random_columns(6, 400, span_s=10), version=3)[0]
    newer = stored_panes(random_columns(7, 200, span_s=10, routes=("chat",)), version=4)[0]
    clickhouse.write_panes([newer])
    clickhouse.write_panes([older])
    assert_same(newer, clickhouse.read_panes("chat", [T0_NS])[T0_NS])
    assert clickhouse.query("SELECT sum(requests) FROM latency(window = 60)").rows == ((200,),)


def test_services_do_not_mix(clickhouse: ClickHouse) -> None:
    """Each service reads its own panes, and knows its own newest."""
    chat = stored_panes(random_columns(8, 100, span_s=10))
    search = stored_panes(random_columns(9, 100, span_s=30, service="search"))
    clickhouse.write_panes([*chat, *search])
    assert clickhouse.newest_pane("chat") == T0_NS
    assert clickhouse.newest_pane("search") == T0_NS + 2 * PANE_NS
    assert clickhouse.newest_pane("nobody") is None
    assert_same(chat[0], clickhouse.read_panes("chat", [T0_NS, T0_NS + PANE_NS])[T0_NS])


def test_panes_over_many_months_make_few_inserts_of_few_parts(clickhouse: ClickHouse) -> None:
    """2,000 panes over 120 days are one insert a bounded number of rows and months."""
    template = stored_panes(random_columns(11, 1, span_s=10))[0]
    step_ns = 120 * 86_400 * SECOND_NS // 2000 // PANE_NS * PANE_NS
    panes = [moved(template, T0_NS + place * step_ns) for place in range(2000)]
    assert len(list(batches(panes))) == 1
    clickhouse.write_panes(panes)
    parts = clickhouse.query(
        "SELECT count(), uniq(partition) FROM system.parts"
        " WHERE active AND table = 'panes' AND database = currentDatabase()"
    )
    assert parts.rows[0][0] == parts.rows[0][1] <= 5
    total = clickhouse.query(
        "SELECT sum(requests), count() FROM latency(window = 10) WHERE stage = 'total'"
    )
    assert total.rows == ((2000, 2000),)


def test_batches_are_bounded_and_never_split_a_pane() -> None:
    """Rows and months an insert are bounded; a pane larger than the bound goes alone."""
    template = stored_panes(random_columns(12, 400, span_s=10))[0]
    years = [moved(template, T0_NS + place * 30 * 86_400 * SECOND_NS) for place in range(40)]
    sizes = [len({rows["pane"][0] for rows in batch}) for batch in batches(years)]  # type: ignore[index]
    assert sum(sizes) == 40
    assert max(sizes) <= MAX_MONTHS + 1
    rows = len(next(batches([template]))[0]["stage"])  # type: ignore[arg-type]
    many = [moved(template, T0_NS + place * PANE_NS) for place in range(2 * MAX_ROWS // rows)]
    counts = [sum(len(part["stage"]) for part in batch) for batch in batches(many)]  # type: ignore[arg-type,misc]
    assert len(counts) in {2, 3}
    assert max(counts) <= MAX_ROWS


def test_a_pane_of_very_many_cohorts_is_one_part(clickhouse: ClickHouse) -> None:
    """More rows than an insert's bound still become one block, so that it is whole or absent."""
    routes = [f"route-{number}" for number in range(9000)]
    pane = stored_panes(random_columns(13, 60_000, span_s=10, routes=routes))[0]
    clickhouse.write_panes([pane])
    parts = clickhouse.query(
        "SELECT count(), sum(rows) FROM system.parts"
        " WHERE active AND table = 'panes' AND database = currentDatabase()"
    )
    assert parts.rows[0][0] == 1
    assert parts.rows[0][1] > MAX_ROWS
    assert_same(pane, clickhouse.read_panes("chat", [T0_NS])[T0_NS])


@pytest.mark.parametrize("pane_ns", [T0_NS + PANE_NS, T0_NS + 1])
def test_a_pane_that_contradicts_itself_is_refused(clickhouse: ClickHouse, pane_ns: int) -> None:
    """The groups are of that pane, and it starts on a whole second."""
    pane = stored_panes(random_columns(14, 20, span_s=10))[0]
    with pytest.raises(ValueError, match="pane"):
        clickhouse.write_panes([replace(pane, pane_ns=pane_ns)])


def moved(pane: StoredPane, pane_ns: int) -> StoredPane:
    """The same content at another time."""
    summary = replace(
        pane.summary,
        pane_ns=np.full_like(pane.summary.pane_ns, pane_ns),
        ledger={(pane_ns, reason): count for (_, reason), count in pane.summary.ledger.items()},
    )
    return replace(pane, pane_ns=pane_ns, summary=summary)
