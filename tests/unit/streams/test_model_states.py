"""States of models on their topic: the newest whole one counts, and no mixture."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailbudget.streams.model_states import PART_BYTES, Newest, messages, part_of


def states(sent: list[tuple[bytes, bytes]]) -> dict[str, bytes]:
    """Return what is read from messages in order."""
    newest = Newest()
    for key, value in sent:
        part = part_of(key, value)
        assert part is not None
        newest.add(part)
    return newest.states()


@given(st.text(max_size=20), st.binary(max_size=50), st.integers(0, 2**64 - 1))
def test_a_state_comes_back(service: str, state: bytes, version: int) -> None:
    """Whatever the service is called and the state holds."""
    assert states(messages(service, version, state)) == {service: state}


def test_a_long_state_travels_in_parts() -> None:
    """Each with a key of its own, so that compaction keeps all of them."""
    state = bytes(range(256)) * (PART_BYTES // 100)
    sent = messages("chat", 7, state)
    assert len(sent) == 3
    assert len({key for key, _ in sent}) == 3
    assert max(len(value) for _, value in sent) < 1_000_000
    assert states(sent) == {"chat": state}


def test_the_newest_counts_and_an_older_one_that_comes_late_does_not() -> None:
    """By the version: whoever lost the partition may still write."""
    old, new = messages("chat", 3, b"old"), messages("chat", 4, b"new")
    assert states(old + new) == {"chat": b"new"}
    assert states(new + old) == {"chat": b"new"}


def test_parts_of_two_states_are_none() -> None:
    """A writer that died after its first part leaves the state before it."""
    before = messages("chat", 3, b"a" * (PART_BYTES + 1))
    after = messages("chat", 3, b"b" * (PART_BYTES + 1))
    assert states([*before, after[0]])["chat"][:1] == b"a"
    # Compaction has taken the first part of the older one.
    assert states([before[1], after[0]]) == {}
    assert states([before[1], *after])["chat"][:1] == b"b"


def test_foreign_messages_are_told_from_ours() -> None:
    """Anything may be on a topic."""
    (key, value), = messages("chat", 1, b"state")  # fmt: skip
    assert part_of(None, value) is None
    assert part_of(key, None) is None
    assert part_of(key, b"TM") is None
    assert part_of(b"1:chat", value) is None
    assert part_of(key, b"XX" + value[2:]) is None
