"""The state machine of an alert: every way from one state to another, and its reason."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from tailbudget.models.alert_state import AlertState, step
from tailbudget.schemas.alerts import AlertStatus, Change, ChangeReason, Condition, Reading
from tailbudget.schemas.objectives import AlertTiming, Severity

SECOND_NS = 10**9
BAD = Reading(Condition.BAD, Severity.TICKET, "bad")
WORSE = Reading(Condition.BAD, Severity.PAGE, "worse")
GOOD = Reading(Condition.GOOD, detail="good")
HOLD = Reading(Condition.HOLD)
SILENT = Reading(Condition.NO_DATA, detail="no event for 600 s")
BLIND = Reading(Condition.UNMEASURABLE, detail="unknown")
SLOW = AlertTiming(pending_s=2, keep_firing_s=3)


def run(
    reads: Sequence[Reading | tuple[Reading, str]],
    timing: AlertTiming = AlertTiming(),  # noqa: B008
) -> list[Change]:
    """Return the changes of measurements a second apart; a pair has the reason of a mute."""
    state, changes = AlertState(), []
    for second, read in enumerate(reads):
        measured, mute = read if isinstance(read, tuple) else (read, "")
        state, change = step(state, measured, second * SECOND_NS, timing, mute)
        if change is not None:
            changes.append(change)
    return changes


def ways(changes: Sequence[Change]) -> list[tuple[str, str, str]]:
    """Return state before, state after and reason of each change."""
    return [(one.before.value, one.after.value, one.reason.value) for one in changes]


def test_it_fires_at_once_and_clears_at_once() -> None:
    """Without waits, the first bad measurement fires and the first good one resolves."""
    changes = run([GOOD, BAD, BAD, GOOD, GOOD])
    assert ways(changes) == [
        ("resolved", "firing", "condition_met"),
        ("firing", "resolved", "condition_cleared"),
    ]
    assert [one.began_ns for one in changes] == [SECOND_NS, SECOND_NS]


def test_it_waits_before_it_fires() -> None:
    """A condition that passes while it is pending fires nothing."""
    assert ways(run([BAD, GOOD, BAD, BAD, BAD], SLOW)) == [
        ("resolved", "pending", "condition_began"),
        ("pending", "resolved", "condition_passed_while_pending"),
        ("resolved", "pending", "condition_began"),
        ("pending", "firing", "condition_held"),
    ]


def test_it_keeps_firing_until_it_is_surely_over() -> None:
    """A relapse within the wait starts the wait anew; the change says since when it is over."""
    changes = run([BAD, BAD, BAD, GOOD, HOLD, GOOD, GOOD, GOOD, GOOD], SLOW)
    assert changes[-1].reason is ChangeReason.CLEARED
    assert (changes[-1].at_ns, changes[-1].cleared_ns) == (8 * SECOND_NS, 5 * SECOND_NS)


def test_silence_freezes_and_data_thaw() -> None:
    """A firing alert neither resolves nor fires for ever; it goes on where it was, or ends."""
    assert ways(run([BAD, SILENT, SILENT, BAD, SILENT, GOOD])) == [
        ("resolved", "firing", "condition_met"),
        ("firing", "no_data", "no_data"),
        ("no_data", "firing", "data_came_back"),
        ("firing", "no_data", "no_data"),
        ("no_data", "resolved", "condition_cleared"),
    ]


def test_a_quiet_service_is_no_incident() -> None:
    """An alert that was not firing comes back from silence without an incident of its own."""
    changes = run([GOOD, SILENT, GOOD, BLIND, BAD])
    assert ways(changes) == [
        ("resolved", "no_data", "no_data"),
        ("no_data", "resolved", "data_came_back"),
        ("resolved", "no_data", "cannot_be_measured"),
        ("no_data", "firing", "condition_met"),
    ]
    assert [one.began_ns for one in changes] == [None, None, None, 4 * SECOND_NS]


def test_what_was_pending_has_to_hold_anew() -> None:
    """Nobody knows what happened in a silence, so that it does not count as holding."""
    changes = run([BAD, SILENT, SILENT, SILENT, BAD, BAD, BAD], SLOW)
    assert ways(changes)[2:] == [
        ("no_data", "pending", "condition_began"),
        ("pending", "firing", "condition_held"),
    ]
    assert changes[-1].at_ns == 6 * SECOND_NS


def test_the_severity_only_rises() -> None:
    """A ticket that becomes a page is told; a page that would be a ticket stays one."""
    changes = run([BAD, WORSE, BAD, GOOD])
    assert [one.reason.value for one in changes] == [
        "condition_met",
        "severity_rose",
        "condition_cleared",
    ]
    assert [one.severity for one in changes] == [Severity.TICKET, Severity.PAGE, Severity.PAGE]


def test_a_mute_says_nothing_until_it_ends() -> None:
    """What is true by then is said: an incident that began and lasts, or one that ended."""
    lasting = run([GOOD, (GOOD, "deploy"), (BAD, "deploy"), (BAD, "deploy"), BAD])
    assert ways(lasting) == [
        ("resolved", "muted", "muted"),
        ("muted", "firing", "no_longer_muted"),
    ]
    assert lasting[0].detail == "deploy"
    assert lasting[1].began_ns == 2 * SECOND_NS
    ended = run([BAD, (BAD, "deploy"), (GOOD, "deploy"), GOOD])
    assert ways(ended)[1:] == [
        ("firing", "muted", "muted"),
        ("muted", "resolved", "no_longer_muted"),
    ]
    assert ended[-1].began_ns == 0


reads = st.lists(
    st.tuples(st.sampled_from([BAD, WORSE, GOOD, HOLD, SILENT, BLIND]), st.sampled_from(["", "m"])),
    max_size=40,
)
timings = st.builds(
    AlertTiming, pending_s=st.sampled_from([0, 1, 3]), keep_firing_s=st.sampled_from([0, 1, 3])
)


@given(reads, timings)
def test_a_dumped_state_goes_on_as_if_nothing_were(
    measured: list[tuple[Reading, str]], timing: AlertTiming
) -> None:
    """Dumped as JSON and loaded at every step, it makes the same numbered changes."""
    state, kept = AlertState(), AlertState()
    for second, (read, mute) in enumerate(measured):
        kept = AlertState.from_dict(json.loads(json.dumps(kept.to_dict())))
        state, change = step(state, read, second * SECOND_NS, timing, mute)
        kept, again = step(kept, read, second * SECOND_NS, timing, mute)
        assert (state, change) == (kept, again)


@given(reads, timings)
def test_changes_are_a_chain(measured: list[tuple[Reading, str]], timing: AlertTiming) -> None:
    """Numbers have no holes, each change leaves the state that the one before it reached."""
    changes = run(measured, timing)
    assert [one.sequence for one in changes] == list(range(1, len(changes) + 1))
    states = [AlertStatus.RESOLVED, *(one.after for one in changes)]
    assert [one.before for one in changes] == states[:-1]
    for one in changes:
        assert one.after != one.before or one.reason is ChangeReason.ESCALATED
        if one.after is AlertStatus.FIRING:
            assert one.began_ns is not None
            assert one.began_ns <= one.at_ns
