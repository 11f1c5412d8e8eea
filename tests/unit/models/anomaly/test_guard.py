"""The watch over a service: what it finds, what it leaves alone, and what it does not learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from stage_traffic import KEYS, NAMES, SECOND_NS, Service, learnt, watch

from tailbudget.models.anomaly.guard import Guard
from tailbudget.models.shape import service as service_shapes
from tailbudget.schemas.anomalies import StageCohort, TickRows
from tailbudget.schemas.errors import ReleaseError, WireError


def test_a_slower_stage_is_found_with_its_size_and_onset() -> None:
    """A stage that is 30 % slower is named within seconds, and no other is."""
    service = Service()
    guard = learnt(service)
    service.slow = 1.3
    said = watch(guard, service, range(300, 330))
    assert {a.stage for a in said} == {"prefill"}
    first = said[0]
    assert first.phase == "started"
    assert first.at_ns - 300 * SECOND_NS < 5 * SECOND_NS
    assert abs(first.onset_ns - 300 * SECOND_NS) <= 3 * SECOND_NS
    (now,) = guard.active(330 * SECOND_NS)
    assert now.cohorts == ("chat", "search")
    assert now.effect is not None
    assert now.effect.low_pct < 30 < now.effect.high_pct
    assert now.effect.high_pct - now.effect.low_pct < 15
    assert now.effect.ms == pytest.approx(now.effect.measured_ms - now.effect.expected_ms, rel=0.1)


def test_an_alarm_ends_when_the_stage_is_itself_again() -> None:
    """The end is said once, with the cohorts that were concerned."""
    service = Service(slow=1.0)
    guard = learnt(service)
    service.slow = 1.4
    watch(guard, service, range(300, 340))
    service.slow = 1.0
    said = watch(guard, service, range(340, 370))
    assert [(a.phase, a.stage, a.cohorts) for a in said] == [
        ("ended", "prefill", ("chat", "search"))
    ]
    assert guard.active(370 * SECOND_NS) == []


def test_longer_inputs_are_no_anomaly() -> None:
    """Inputs that are five times longer slow the stage by as much, and nothing is said."""
    service = Service()
    guard = learnt(service)
    service.tokens = 2500
    assert watch(guard, service, range(300, 500)) == []


def test_shapes_that_were_never_seen_are_a_state_of_their_own() -> None:
    """They are counted and not judged, however slow, until they have been learnt."""
    service = Service()
    guard = learnt(service)
    service.tokens = 100_000
    assert watch(guard, service, range(300, 310)) == []
    assert guard.states()[KEYS[0]] == "unseen_shape"
    assert guard.counts["unseen shape"] > 100
    watch(guard, service, range(310, 400))
    assert guard.states()[KEYS[0]] == "ready"


def test_states_begin_with_learning() -> None:
    """A key is judged after enough rows, not before, and says which it is."""
    service = Service()
    guard = Guard()
    watch(guard, service, range(1, 5))
    assert set(guard.states().values()) == {"learning"}
    watch(guard, service, range(5, 200))
    assert set(guard.states().values()) == {"ready"}


def test_a_restart_in_mid_alarm_keeps_it() -> None:
    """A guard from saved state goes on with the alarm, neither repeating nor losing it."""
    service = Service()
    guard = learnt(service)
    service.slow = 1.4
    began = watch(guard, service, range(300, 320))
    restored = Guard.load(guard.dump())
    assert restored.active(320 * SECOND_NS) == guard.active(320 * SECOND_NS)
    assert watch(restored, service, range(320, 350)) == []
    service.slow = 1.0
    (ended,) = watch(restored, service, range(350, 380))
    assert (ended.phase, ended.started_ns) == ("ended", began[0].started_ns)


def test_state_survives_to_the_bit() -> None:
    """What is loaded dumps to the same bytes."""
    body = learnt(Service(), 120).dump()
    assert Guard.load(body).dump() == body
    assert Guard.load(Guard().dump()).dump() == Guard().dump()


def test_damaged_and_foreign_state_is_refused() -> None:
    """A cut state and the state of another model raise, each with its own error."""
    guard = learnt(Service(), 60)
    with pytest.raises(WireError):
        Guard.load(guard.dump()[:-10])
    with pytest.raises(ReleaseError):
        Guard.load(guard.shapes.dump())


def test_no_model_learns_from_a_long_fault() -> None:
    """After a fault of half an hour, the next one of the same size is found as fast."""
    service = Service()
    guard = learnt(service)
    delays = []
    for start, end in ((300, 2100), (2400, 2460)):
        service.slow = 1.3
        said = watch(guard, service, range(start, end))
        assert said[0].phase == "started"
        delays.append(said[0].at_ns / SECOND_NS - start)
        assert all(a.phase != "ended" for a in said)
        service.slow = 1.0
        assert watch(guard, service, range(end, end + 300))[-1].phase == "ended"
    assert delays[1] <= delays[0] + 1


def test_durations_that_are_none_are_counted() -> None:
    """Zero, negative, missing and infinite times are neither scored nor learnt."""
    service = Service()
    guard = learnt(service)

    def spoilt(rows: TickRows) -> TickRows:
        ms = rows.ms.copy()
        ms[:4] = 0.0, -3.0, np.nan, np.inf
        return replace(rows, ms=ms)

    assert watch(guard, service, range(300, 350), spoilt) == []
    assert guard.counts["no time"] == 4 * 50


def test_rows_that_lack_a_covariate_are_counted() -> None:
    """Missing and infinite covariates keep a row from being judged, and do no harm."""
    service = Service()
    guard = learnt(service)

    def spoilt(rows: TickRows) -> TickRows:
        covariate = rows.covariate.copy()
        covariate[0, 1], covariate[1, 0] = np.nan, np.inf
        return replace(rows, covariate=covariate)

    assert watch(guard, service, range(300, 350), spoilt) == []
    assert guard.counts["missing covariate"] == 2 * 50
    service.slow = 1.4
    assert watch(guard, service, range(350, 370), spoilt)[0].stage == "prefill"


def test_one_record_an_hour_is_never_an_anomaly() -> None:
    """So few rows are not enough to learn: that is said, and nothing else."""
    service = Service(rows=1)
    guard = Guard()
    said = []
    for hour in range(1, 100):
        service.slow = 3.0 if hour > 60 else 1.0
        said += guard.step(hour * 3600 * SECOND_NS, service.tick())
    assert said == []
    assert set(guard.states().values()) == {"learning"}


def test_a_covariate_that_vanishes_is_done_without() -> None:
    """The stage is learnt again from what is left, and faults are found again."""
    service = Service()
    guard = learnt(service)

    def without(rows: TickRows) -> TickRows:
        return replace(rows, covariates=NAMES[1:], covariate=rows.covariate[:, 1:])

    assert watch(guard, service, range(300, 500), without) == []
    assert set(guard.states().values()) == {"ready"}
    service.slow = 1.5
    assert watch(guard, service, range(500, 520), without)[0].stage == "prefill"


def test_a_covariate_that_appears_is_taken_up() -> None:
    """Once it has been there for long enough the regression uses it."""
    service = Service()

    def without(rows: TickRows) -> TickRows:
        return replace(rows, covariates=NAMES[:1], covariate=rows.covariate[:, :1])

    guard = Guard()
    watch(guard, service, range(1, 300), without)
    watch(guard, service, range(300, 500))
    choice = guard.shapes.choice[0]
    assert choice is not None
    assert set(NAMES) <= set(choice.names)
    assert guard.states()[KEYS[0]] == "ready"


def test_a_stage_that_appears_is_learnt() -> None:
    """A stage after a deploy begins as learning, and the others go on."""
    service = Service()
    guard = learnt(service)
    keys = (*KEYS, StageCohort("rerank", "chat"))

    def more(rows: TickRows) -> TickRows:
        key = np.where(rows.key == 2, len(KEYS), rows.key)
        return replace(rows, keys=keys, key=key)

    watch(guard, service, range(300, 310), more)
    assert guard.states()[keys[-1]] == "learning"
    assert guard.states()[KEYS[0]] == "ready"
    watch(guard, service, range(310, 400), more)
    assert guard.states()[keys[-1]] == "ready"


def test_cold_windows_are_neither_scored_nor_learnt() -> None:
    """What comes while replicas are cold changes nothing but a count."""
    service = Service()
    guard = learnt(service)
    rows = guard.shapes.bank.rows.copy()
    guard.cold(400 * SECOND_NS)
    service.slow = 4.0
    assert watch(guard, service, range(300, 400)) == []
    np.testing.assert_array_equal(guard.shapes.bank.rows, rows)
    assert guard.counts["cold"] == 100 * 40


def test_what_an_operator_accepts_is_learnt() -> None:
    """The alarm ends as accepted, the new latency becomes normal, and a further rise is found."""
    service = Service()
    guard = learnt(service)
    service.slow = 1.5
    watch(guard, service, range(300, 320))
    (accepted,) = guard.accept(320 * SECOND_NS, "prefill")
    assert (accepted.phase, accepted.stage) == ("accepted", "prefill")
    assert guard.states()[KEYS[0]] == "accepted"
    assert watch(guard, service, range(321, 500)) == []
    assert guard.states()[KEYS[0]] == "ready"
    service.slow = 2.1
    assert watch(guard, service, range(500, 520))[0].phase == "started"


def test_further_keys_are_counted_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded: rows of keys beyond the limit are counted, the others are judged."""
    monkeypatch.setattr(service_shapes, "MOST_KEYS", 3)
    service = Service()
    guard = learnt(service, 120)
    assert list(guard.states()) == list(KEYS[:3])
    assert guard.counts["too many keys"] > 500
    service.slow = 1.4
    assert watch(guard, service, range(120, 140))[0].stage == "prefill"


def test_a_stage_that_became_faster_is_learnt_in_the_end() -> None:
    """Nothing is said of a stage that is faster; after a while a rise to the old time is news."""
    service = Service()
    guard = learnt(service)
    service.slow = 0.7
    assert watch(guard, service, range(300, 3000)) == []
    service.slow = 1.0
    said = watch(guard, service, range(3000, 3030))
    assert [a.stage for a in said][:1] == ["prefill"]


def test_a_tick_without_rows_says_nothing() -> None:
    """A new guard takes an empty tick."""
    empty = TickRows((), np.zeros(0, np.int64), np.zeros(0), (), np.zeros((0, 0)))
    guard = Guard()
    assert guard.step(SECOND_NS, empty) == []
    assert guard.states() == {}
