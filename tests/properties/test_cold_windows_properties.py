"""Announcements of deploys in any order, any number of times."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tailbudget.models.cold_windows import cold_windows
from tailbudget.schemas.rows import DeployRow

MINUTE_NS = 60_000_000_000

events = st.lists(
    st.builds(
        lambda version, kind, at, more: DeployRow("svc", "prod", version, at, at + more, kind),
        st.sampled_from(["v1", "v2"]),
        st.sampled_from(["deploy", "scale_up"]),
        st.integers(0, 60 * MINUTE_NS),
        st.integers(0, MINUTE_NS),
    ),
    max_size=12,
)


@given(events=events, order=st.randoms())
def test_order_and_repetition_change_nothing(events: list[DeployRow], order: Random) -> None:
    """The windows are those of the set of announcements."""
    again = [*events, *events[:3]]
    order.shuffle(again)
    assert cold_windows(again, "svc", 5, "prod") == cold_windows(events, "svc", 5, "prod")


@given(events=events)
def test_every_announcement_lies_in_a_window_of_its_version(events: list[DeployRow]) -> None:
    """From the announcement on, for five minutes; and windows of one version do not touch."""
    windows = cold_windows(events, "svc", 5, None)
    for event in events:
        assert any(
            w.start_ns <= event.at_ns and event.last_ns + 5 * MINUTE_NS <= w.end_ns
            for w in windows
            if (w.version, w.kind) == (event.version, event.kind)
        )
    for a in windows:
        same = [w for w in windows if (w.version, w.kind) == (a.version, a.kind) and w != a]
        assert all(a.end_ns < w.start_ns or w.end_ns < a.start_ns for w in same)
