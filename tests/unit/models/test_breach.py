"""A breach begins beyond doubt, ends beyond doubt, and silence changes nothing."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from tailbudget.models.breach import CLEAR_NS, BreachState, detail, step
from tailbudget.schemas.verdicts import Percentile, Verdict

SECOND_NS = 10**9
SLO_MS = 500.0


def row(n: int, over: int, measured_ms: float | None = None, percentile: str = "p99") -> Percentile:
    """Return a row as the snapshot makes it, of a service without failures."""
    breach = over > n * {"p50": 0.5, "p95": 0.05, "p99": 0.01}[percentile]
    status = Verdict.BREACH if breach else Verdict.OK
    measured = measured_ms or (600.0 if breach else 490.0)
    return Percentile(
        percentile, measured, SLO_MS, SLO_MS - measured, status, "all", "", n=n, over=over
    )


def blind(status: Verdict | None) -> Percentile:
    return Percentile("p99", None, SLO_MS, None, status, "all", "", n=5, over=5)


def run(
    rows: Iterable[Percentile], state: BreachState | None = None
) -> tuple[BreachState, list[tuple[int, bool]]]:
    """Step once a second; return the last state, and when it began or ceased to fire."""
    state = state or BreachState()
    changes = []
    for second, each in enumerate(rows):
        before, state = state, step(state, each, second * SECOND_NS)
        if state.firing != before.firing:
            changes.append((second * SECOND_NS, state.firing))
    return state, changes


FIRING = BreachState(firing=True, since_ns=-60 * SECOND_NS)


def test_breach_fires_at_the_first_step_beyond_doubt() -> None:
    """25 of 1,000 over a p99 fire at once, and the figures are told."""
    state, changes = run([row(1_000, 8), row(1_000, 25), row(1_000, 25)])
    assert state == BreachState(firing=True, since_ns=SECOND_NS)
    assert changes == [(SECOND_NS, True)]
    assert detail(row(1_000, 25)) == (
        "p99 600 ms against 500 ms: 25 of 1,000 requests beyond it, 1 % allowed"
    )


def test_breach_within_chance_does_not_fire() -> None:
    """11 of 1,000 miss a p99 but chance gives as many in half of all windows."""
    state, changes = run([row(1_000, 11)] * 50)
    assert state == BreachState()
    assert changes == []


@pytest.mark.parametrize(("over", "fires"), [(2, False), (10, True)])
def test_few_requests_fire_only_with_ten_bad_ones(over: int, fires: bool) -> None:  # noqa: FBT001
    """Among twenty requests two bad ones do not wake anybody; ten do."""
    assert run([row(20, over)])[0].firing is fires


def test_recovery_beyond_doubt_resolves_at_once() -> None:
    """No bad request among 600 ends a breach."""
    state, changes = run([row(600, 0)], FIRING)
    assert state == BreachState(firing=False, since_ns=0)
    assert changes == [(0, False)]


def test_comfortable_recovery_resolves_after_ten_seconds() -> None:
    """Five bad ones among 1,000 prove nothing, but a p99 at 90 % of its target for 10 s does."""
    _, changes = run([row(1_000, 5, 450.0)] * 20, FIRING)
    assert changes == [(CLEAR_NS, False)]


def test_recovery_starts_anew_after_a_relapse() -> None:
    """One step above 95 % of the target restarts the ten seconds."""
    good, near = row(1_000, 5, 450.0), row(1_000, 9, 490.0)
    _, changes = run([*[good] * 9, near, *[good] * 9], FIRING)
    assert changes == []
    _, changes = run([*[good] * 9, near, *[good] * 11], FIRING)
    assert changes == [(20 * SECOND_NS, False)]


def test_near_the_target_a_breach_stays() -> None:
    """Just within the target is not recovered: the next window may miss it again."""
    state, changes = run([row(1_000, 9, 490.0)] * 60, FIRING)
    assert state.firing
    assert changes == []


@pytest.mark.parametrize("status", [Verdict.NO_DATA, Verdict.INSUFFICIENT, None])
@pytest.mark.parametrize("before", [FIRING, BreachState()])
def test_silence_freezes(before: BreachState, status: Verdict | None) -> None:
    """An hour without enough requests neither fires nor resolves, and says that it is blind."""
    state, changes = run([blind(status)] * 3_600, before)
    assert changes == []
    assert state.frozen
    assert state.firing is before.firing
    assert state.since_ns == before.since_ns


def test_silence_is_not_time_within_the_target() -> None:
    """Good, then an hour of silence, then good: the ten seconds start with the latter."""
    good, silence = row(1_000, 5, 450.0), blind(Verdict.NO_DATA)
    state, changes = run([good, *[silence] * 3_600, *[good] * 9], FIRING)
    assert changes == []
    assert not state.frozen
    assert state.clear_since_ns == 3_601 * SECOND_NS


def test_requests_at_the_target_do_not_flap() -> None:
    """A service at exactly its target for a day changes state a few times, not every minute."""
    over = np.random.default_rng(11).binomial(3_000, 0.01, size=1_440)
    _, changes = run(row(3_000, int(k), 505.0 if k > 30 else 495.0) for k in over)
    naive = np.count_nonzero(np.diff((over > 30).astype(int)))
    assert naive > 500
    assert len(changes) < 40


def test_fault_fires_once_and_resolves_once() -> None:
    """A minute of trouble that slides through a window is one breach and one recovery."""
    rng = np.random.default_rng(2)
    shares = [0.004] * 120 + [0.10] * 60 + [0.004] * 120
    rows = []
    for share in shares:
        k = int(rng.binomial(3_000, share))
        rows.append(row(3_000, k, 800.0 if k > 30 else 400.0))
    _, changes = run(rows)
    assert [firing for _, firing in changes] == [True, False]
    assert changes[0][0] == 120 * SECOND_NS


def test_percentile_among_failures_is_told_by_its_note() -> None:
    """A breach whose request timed out has no milliseconds; its text says over what it is."""
    timed_out = Percentile(
        "p95", None, SLO_MS, None, Verdict.BREACH, "all", "over 30,000 ms (timeout)", 400, 80
    )
    assert run([timed_out])[0].firing
    assert detail(timed_out).startswith("p95 over 30,000 ms (timeout) against 500 ms: 80 of 400")


def test_step_leaves_its_input_alone() -> None:
    """The state before is unchanged, so that a step can be taken again."""
    before = BreachState()
    assert step(before, row(1_000, 25), 7) == step(before, row(1_000, 25), 7)
    assert before == BreachState()
