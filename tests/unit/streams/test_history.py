"""Evidence of any range from ClickHouse, with and without rollups, over both interfaces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from clickhouse_store import fresh_store
from past import NOW_NS, PastService
from random_records import SECOND_NS, T0_NS, random_columns
from same_evidence import assert_same_evidence

from tailbudget.models.evidence_wire import dump
from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.sections import ColdWindow
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.sinks.clickhouse.rollups import Rollup
from tailbudget.streams.history import Span
from tailbudget.streams.service_report import require_known

HOUR_S, DAY_S = 3_600, 86_400
DAYS = 2
ALL = Span(T0_NS, T0_NS + DAYS * DAY_S * SECOND_NS)
MIDNIGHT_S = T0_NS // SECOND_NS // DAY_S * DAY_S + DAY_S
"""The second day's; the data begin at ten o'clock of the first."""
LATER_NS = NOW_NS + 60 * SECOND_NS


def cold(*starts_s: float) -> list[ColdWindow]:
    """Return windows of five minutes that begin so many seconds after the data."""
    starts = [T0_NS + int(start * SECOND_NS) for start in starts_s]
    return [ColdWindow(at, at + 300 * SECOND_NS, "v2", "deploy") for at in starts]


@pytest.fixture(scope="module")
def store(any_clickhouse: Path | ClickHouseTarget) -> Iterator[ClickHouse]:
    """A database of this module."""
    with fresh_store(any_clickhouse) as opened:
        yield opened


@pytest.fixture
def past(store: ClickHouse) -> PastService:
    """A service with two days of requests, the first hours denser."""
    service = PastService(store, f"chat-{uuid4().hex[:8]}")
    service.write(random_columns(1, 300, span_s=DAYS * DAY_S))
    service.write(random_columns(2, 300, span_s=2 * HOUR_S))
    return service


def span(rng: np.random.Generator) -> Span:
    """Return a range that is aligned to nothing, within the data or beyond them."""
    at = rng.integers(-HOUR_S * 10**9, (DAYS * DAY_S + HOUR_S) * 10**9, 2)
    return Span(T0_NS + int(at.min()), T0_NS + int(at.max()))


def test_any_range_is_what_its_panes_merge_to(past: PastService) -> None:
    """For random ranges, read twice: the second reading is from rollups, and says the same."""
    rng = np.random.default_rng(3)
    windows = cold(1_700.5, 2 * HOUR_S - 100, 40_000, 100_000)
    for wanted in [ALL, *(span(rng) for _ in range(5))]:
        first = past.read(wanted, windows)
        assert_same_evidence(first, past.direct(wanted, windows))
        assert_same_evidence(past.read(wanted, windows, now_ns=LATER_NS), first)
    assert {length for length, _ in past.rollups()} == {300, HOUR_S, DAY_S}


def test_short_ranges_are_what_their_panes_merge_to(past: PastService) -> None:
    """Of minutes and of nothing, beside each other."""
    rng = np.random.default_rng(4)
    for _ in range(6):
        start_ns = T0_NS + int(rng.integers(0, 2 * HOUR_S * 10**9))
        wanted = Span(start_ns, start_ns + int(rng.integers(1, 1_500 * 10**9)))
        assert_same_evidence(past.read(wanted), past.direct(wanted))


def test_a_second_reading_makes_no_rollup(past: PastService) -> None:
    """What holds is not made again: all are as old as the first reading."""
    past.read(ALL)
    before = past.rollups()
    assert (DAY_S, MIDNIGHT_S) in before
    past.read(ALL, now_ns=LATER_NS)
    assert past.rollups() == before


def test_a_day_is_kept_without_what_it_was_made_of(past: PastService) -> None:
    """Rollups are of what a report reads: months do not leave one of every five minutes."""
    past.read(Span(MIDNIGHT_S * SECOND_NS, (MIDNIGHT_S + DAY_S) * SECOND_NS))
    past.read(ALL)
    day = range(MIDNIGHT_S, MIDNIGHT_S + DAY_S)
    assert [length for length, at in past.rollups() if at in day] == [DAY_S]


def test_a_pane_written_anew_makes_its_rollups_stale_and_no_others(past: PastService) -> None:
    """An amended pane is in the next report, and the rollups beside it stay."""
    windows = cold(1_000)
    past.read(ALL, windows)
    before = past.rollups()
    at_ns = sorted(past.panes)[200]
    late = replace(random_columns(9, 5), ts_ns=np.full(5, at_ns + 7))
    past.write(late)
    found = past.read(ALL, windows, now_ns=LATER_NS)
    assert_same_evidence(found, past.direct(ALL, windows))
    changed = {key for key, made in past.rollups().items() if before.get(key) != made}
    at_s = at_ns // SECOND_NS
    assert changed == {key for key in before if key[1] <= at_s < key[1] + key[0]}
    assert changed


def test_a_late_pane_where_none_was(past: PastService) -> None:
    """A pane that did not exist is as much a change as one that did."""
    past.read(ALL)
    gap_ns = next(at for at in range(T0_NS, ALL.end_ns, 10 * SECOND_NS) if at not in past.panes)
    past.write(replace(random_columns(9, 5), ts_ns=np.full(5, gap_ns)))
    assert_same_evidence(past.read(ALL, now_ns=LATER_NS), past.direct(ALL))


@pytest.mark.parametrize("known", [True, False])
def test_a_late_deploy_makes_the_rollups_that_it_touches_stale(
    past: PastService, *, known: bool
) -> None:
    """Also the first that was ever announced; all the others stay."""
    old = cold(1_000) if known else None
    past.read(ALL, old)
    before = past.rollups()
    both = cold(1_000, 50_000) if known else cold(50_000)
    found = past.read(ALL, both, now_ns=LATER_NS)
    assert found.deploys_known
    assert_same_evidence(found, past.direct(ALL, both))
    changed = {key for key, made in past.rollups().items() if before.get(key) != made}
    start_s = both[-1].start_ns // SECOND_NS
    touched = {key for key in before if key[1] <= start_s + 300 and start_s < key[1] + key[0]}
    assert changed
    assert changed <= touched


def test_deploys_that_nobody_tells_of_any_more(past: PastService) -> None:
    """Whether deploys are known is of the reader, not of who made the rollup."""
    past.read(ALL, [])
    assert not past.read(ALL, None).deploys_known
    assert past.read(ALL, []).deploys_known


@pytest.mark.parametrize("damage", ["bytes", "service", "span"])
def test_a_rollup_that_is_no_good_is_made_anew(past: PastService, damage: str) -> None:
    """Damaged bytes, or the evidence of another service or span, under the right fingerprint."""
    past.read(ALL)
    marks = past.store.query(
        "SELECT fingerprint FROM rollups FINAL WHERE service = {service:String}"
        f" AND span_s = {DAY_S} AND start = {MIDNIGHT_S}",
        {"service": past.name},
    )
    other = PastService(past.store, f"other-{uuid4().hex[:8]}")
    other.write(random_columns(5, 50, span_s=100))
    payloads = {
        "bytes": dump(past.direct(ALL))[:-1],
        "service": dump(other.direct(ALL)),
        "span": dump(past.direct(ALL)),
    }
    rollup = Rollup(
        service=past.name,
        span_s=DAY_S,
        start_ns=MIDNIGHT_S * SECOND_NS,
        fingerprint=int(marks.rows[0][0]),
        made_ns=LATER_NS,
        payload=payloads[damage],
    )
    past.store.write_rollups([rollup])
    again_ns = LATER_NS + SECOND_NS
    assert_same_evidence(past.read(ALL, now_ns=again_ns), past.direct(ALL))
    assert past.rollups()[DAY_S, MIDNIGHT_S] == again_ns // 1_000_000


def test_panes_of_several_lengths(store: ClickHouse) -> None:
    """After stream.pane_s was changed, no pane is missed, the shorter ones neither."""
    service = PastService(store, f"mixed-{uuid4().hex[:8]}")
    service.write(random_columns(6, 200, span_s=HOUR_S))
    later = random_columns(7, 200, span_s=HOUR_S)
    service.write(replace(later, ts_ns=later.ts_ns + HOUR_S * SECOND_NS), pane_s=15)
    last = random_columns(8, 50, span_s=HOUR_S)
    service.write(replace(last, ts_ns=last.ts_ns + 2 * HOUR_S * SECOND_NS), pane_s=7)
    rng = np.random.default_rng(5)
    windows = cold(HOUR_S - 150, 2 * HOUR_S + 1_000)
    first = Span(T0_NS, T0_NS + HOUR_S * SECOND_NS)
    for wanted in [first, ALL, first, *(span(rng) for _ in range(4))]:
        for _ in range(2):
            assert_same_evidence(service.read(wanted, windows), service.direct(wanted, windows))
    assert service.read(ALL).total.requests.sum() == 450


@pytest.mark.parametrize(
    "wanted",
    [
        Span(T0_NS - 9 * DAY_S * SECOND_NS, T0_NS - 8 * DAY_S * SECOND_NS),
        Span(-(10**22), -(10**21)),
        Span(T0_NS + 1, T0_NS + 2),
    ],
)
def test_a_range_without_data_is_empty(past: PastService, wanted: Span) -> None:
    """Before the service, before all time, and between two panes."""
    found = past.read(wanted, cold(0))
    assert (found.start_ns, found.end_ns) == (0, 0)
    assert not len(found.total.pane_ns)
    assert found.cold_windows == ()


def test_a_range_beyond_all_time_is_all(past: PastService) -> None:
    """As far as ClickHouse's own times go."""
    assert_same_evidence(past.read(Span(-(10**22), 10**22)), past.direct(ALL))


def test_an_unknown_service_says_which_there_are(past: PastService) -> None:
    """A misspelt name is told from a service that was silent."""
    require_known(past.store, past.name)
    with pytest.raises(ConfigError, match="nothing was recorded of a service 'chta'") as error:
        require_known(past.store, "chta")
    assert past.name in error.value.remedy
