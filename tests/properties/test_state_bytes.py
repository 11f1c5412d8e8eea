"""Saved state of models: whatever goes in comes out, and damage is noticed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from tailbudget.models.state_bytes import pack, unpack
from tailbudget.schemas.errors import WireError

FLOATS = arrays(np.float64, array_shapes(max_dims=2), elements=st.floats(allow_nan=False))
INTEGERS = arrays(np.int64, array_shapes(max_dims=2), elements=st.integers(-(2**62), 2**62))
BOOLS = arrays(np.bool_, array_shapes(max_dims=2))
STATES = st.dictionaries(st.text(max_size=5), FLOATS | INTEGERS | BOOLS, max_size=4)


@given(STATES)
def test_state_comes_out_as_it_went_in(state: dict[str, np.ndarray]) -> None:
    """Every array is equal to the bit, flat, and equal states give equal bytes."""
    body = pack("a/1", {"n": 3}, state)
    small, found = unpack("a/1", body)
    assert small == {"n": 3}
    assert found.keys() == state.keys()
    for name, array in state.items():
        assert found[name].astype(array.dtype).tobytes() == array.tobytes()
    assert pack("a/1", {"n": 3}, state) == body


@given(STATES, st.integers(1, 20))
def test_state_that_is_cut_is_refused(state: dict[str, np.ndarray], cut: int) -> None:
    """A body that lost its end raises."""
    body = pack("a/1", {}, state)
    with pytest.raises(WireError):
        unpack("a/1", body[: -min(cut, len(body) - 1)])
