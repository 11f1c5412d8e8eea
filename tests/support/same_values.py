"""Equality to the last bit, through dataclasses and arrays."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np


def assert_same(left: Any, right: Any, path: str = "") -> None:
    """Fail, naming the place, unless both have the same types, shapes and bits."""
    if is_dataclass(left):
        for field in fields(left):
            assert_same(
                getattr(left, field.name), getattr(right, field.name), f"{path}.{field.name}"
            )
    elif isinstance(left, np.ndarray):
        assert left.dtype == right.dtype, path
        assert left.shape == right.shape, path
        assert left.tobytes() == right.tobytes(), path
    else:
        assert left == right, path
