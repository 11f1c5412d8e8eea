"""Arrays with one row a key, which grow together and are saved together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.errors import WireError

Arrays = dict[str, NDArray[Any]]
Field = tuple[tuple[int, ...], float | int | bool]
"""Shape of one row, and the value of a new one; its type is that of the array."""


class PerKey:
    """State of many keys as arrays; a subclass names them in `FIELDS` and annotates them.

    Attributes:
        size: how many keys there are.
    """

    FIELDS: ClassVar[Mapping[str, Field]]

    def __init__(self) -> None:
        self.size = 0
        for name, (shape, fill) in self.FIELDS.items():
            setattr(self, name, np.full((0, *shape), fill))

    def grow(self, size: int) -> None:
        """Add new keys until there are `size`; never shrinks."""
        more = size - self.size
        if more <= 0:
            return
        for name, (shape, fill) in self.FIELDS.items():
            setattr(
                self, name, np.concatenate([getattr(self, name), np.full((more, *shape), fill)])
            )
        self.size = size

    def reset(self, keys: NDArray[Any]) -> None:
        """Make some keys new again; takes indices or a mask."""
        for name, (_, fill) in self.FIELDS.items():
            getattr(self, name)[keys] = fill

    def arrays(self) -> Arrays:
        """Return what is to be saved, by name."""
        return {name: getattr(self, name) for name in self.FIELDS}

    def restore(self, arrays: Mapping[str, NDArray[Any]], size: int) -> None:
        """Take back what `arrays` returned.

        Raises:
            WireError: an array is missing or has another shape.
        """
        for name, (shape, fill) in self.FIELDS.items():
            array = arrays.get(name)
            if array is None or array.size != size * int(np.prod(shape)):
                raise WireError(f"the state of {size} keys has no such {name!r}")
            kind = np.array(fill).dtype
            setattr(self, name, array.reshape(size, *shape).astype(kind))
        self.size = size
