"""Summaries survive the wire, and damage on the wire never goes unnoticed."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tailbudget.models.select import take
from tailbudget.schemas.errors import WireError
from tailbudget.schemas.wire import decode, encode

SEEDS = st.integers(0, 2**32)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, n=st.integers(0, 300), weighted=st.booleans())
def test_round_trip_is_exact(trials: Any, seed: int, n: int, *, weighted: bool) -> None:
    """What is decoded equals what was encoded, to the last bit and the type of each array."""
    summary = trials.summary(trials.batch(seed, n, weighted=weighted))
    trials.same(decode(encode(summary)), summary, exact=True)


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 100))
def test_a_ledger_alone_survives(trials: Any, seed: int, n: int) -> None:
    """A summary without groups but with a ledger round-trips."""
    whole = trials.summary(trials.batch(seed, n))
    ledger = {**whole.ledger, (-7, "rejected.not_json"): 3}
    summary = take(whole, whole.pane_ns[:0], ledger)
    trials.same(decode(encode(summary)), summary, exact=True)


@settings(max_examples=300, deadline=None)
@given(data=st.data(), seed=st.integers(0, 20))
def test_damage_is_noticed(trials: Any, data: st.DataObject, seed: int) -> None:
    """Flipped, cut or appended bytes give a WireError, and nothing else."""
    message = bytearray(encode(trials.summary(trials.batch(seed, 30))))
    how = data.draw(st.sampled_from(["flip", "cut", "insert"]))
    at = data.draw(st.integers(0, len(message) - 1))
    if how == "flip":
        message[at] ^= data.draw(st.integers(1, 255))
    elif how == "cut":
        del message[at:]
    else:
        message[at:at] = data.draw(st.binary(min_size=1, max_size=9))
    try:
        survivor = decode(bytes(message))
    except WireError:
        return
    # Some bits of a zstd frame carry no meaning: then the content must be untouched.
    trials.same(survivor, trials.summary(trials.batch(seed, 30)), exact=True)


@settings(max_examples=200, deadline=None)
@given(message=st.binary(max_size=400))
def test_foreign_bytes_are_refused(message: bytes) -> None:
    """Bytes that were never a summary are refused, with our head in front or not."""
    for foreign in (message, b"TB\x01" + message):
        try:
            decode(foreign)
        except WireError:
            continue
        raise AssertionError(foreign)
