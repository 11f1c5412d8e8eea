"""Equality through dataclasses and arrays, to the last bit but the sign of zero."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def assert_same(left: Any, right: Any, path: str = "") -> None:
    """Fail, naming the place, unless both have the same types, shapes and values."""
    if is_dataclass(left):
        for field in fields(left):
            name = field.name
            assert_same(getattr(left, name), getattr(right, name), f"{path}.{name}")
    elif isinstance(left, np.ndarray):
        assert left.dtype == right.dtype, path
        assert left.shape == right.shape, path
        missing = left.dtype.kind == "f"
        assert np.array_equal(left, right, equal_nan=missing), path
    else:
        assert left == right, path
