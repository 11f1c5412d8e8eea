"""The saved state of a model as bytes: a name with a version, small things, and arrays."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tailbudget.schemas.errors import ReleaseError, WireError
from tailbudget.schemas.packing import Reader, Writer

MOST_BYTES = 1 << 28
"""Most bytes of one state, unpacked: what a damaged one may make us allocate is bounded."""


def pack(schema: str, small: Any, arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """Return the bytes; equal states give equal bytes."""
    writer = Writer()
    writer.json(schema)
    kinds = [(name, array.dtype.kind, array.size) for name, array in sorted(arrays.items())]
    writer.json([small, kinds])
    for name, kind, _ in kinds:
        if kind == "f":
            writer.floats(arrays[name])
        else:
            writer.integers(arrays[name].astype(np.int64))
    return zlib.compress(writer.finish(), 1)


def unpack(schema: str, body: bytes) -> tuple[Any, dict[str, NDArray[Any]]]:
    """Return the small things and the arrays, each flat.

    Raises:
        ReleaseError: it was written under another name or version.
        WireError: it is damaged.
    """
    reader = Reader(_inflated(body))
    found = reader.json()
    if found != schema:
        raise ReleaseError(f"state {found!r}, this release reads {schema!r}")
    try:
        small, kinds = reader.json()
        arrays = {
            str(name): reader.floats(count) if kind == "f" else reader.integers(np.int64, count)
            for name, kind, count in kinds
        }
    except (TypeError, ValueError) as error:
        raise WireError(f"the list of arrays is damaged: {error}") from error
    reader.done()
    return small, arrays


def _inflated(body: bytes) -> bytes:
    inflater = zlib.decompressobj()
    try:
        whole = inflater.decompress(body, MOST_BYTES)
    except zlib.error as error:
        raise WireError(f"the state does not inflate: {error}") from error
    if not inflater.eof or inflater.unused_data:
        raise WireError("the state is cut short, too large, or followed by something else")
    return whole
