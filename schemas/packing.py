"""Pack arrays of numbers into few bytes, and read them back with every length checked.

Whole numbers are stored as the difference from the smallest, divided by their common divisor, in
as few bytes as the largest needs, one plane a byte of significance: planes of high bytes are
nearly constant and compress to nothing. Floats that are decimals of at most six digits after the
point are stored as such whole numbers; others as their bits.
"""

from __future__ import annotations

import struct
from typing import Any, Final

import numpy as np
import orjson
from numpy.typing import NDArray

from tailbudget.schemas.errors import WireError

MOST_VALUES: Final = 1 << 24
"""Most numbers in one array: what a damaged length may make us allocate is bounded."""

_INTEGERS = struct.Struct("<BQqQ")  # width, divisor, base, count
_FLOATS = struct.Struct("<BQ")  # decimal digits or _BITS, count
_LENGTH = struct.Struct("<I")
_BITS = 255
_SPECIAL = 3  # NaN, +inf and -inf come before the smallest number
_DIGITS = (0, 3, 6)
_EXACT = 2.0**53
_PROBE = 64  # so many numbers are tried before all


class Writer:
    """Collects packed values, in the order in which `Reader` has to ask for them."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def finish(self) -> bytes:
        """Return all that was written."""
        return b"".join(self._parts)

    def json(self, value: Any) -> None:
        """Write names and other small things."""
        text = orjson.dumps(value)
        self._parts += [_LENGTH.pack(len(text)), text]

    def integers(self, values: NDArray[np.integer[Any]]) -> None:
        """Write whole numbers of at most 64 bits."""
        flat = values.ravel()
        base = int(flat.min()) if len(flat) else 0
        if base >= 1 << 63:
            base = 0  # the field is signed
        # Differences wrap around 64 bits, and wrap back when they are read.
        offsets: NDArray[np.uint64] = flat.astype(np.int64).view(np.uint64)
        offsets = offsets - np.array(base, np.int64).view(np.uint64)
        divisor = _divisor(offsets)
        if divisor > 1:
            offsets = offsets // np.uint64(divisor)
        width = (int(offsets.max()).bit_length() + 7) // 8 if len(flat) else 0
        self._parts.append(_INTEGERS.pack(width, divisor, base, len(flat)))
        self._planes(offsets, width)

    def floats(self, values: NDArray[np.float64]) -> None:
        """Write floats, to the bit."""
        flat = np.ascontiguousarray(values).ravel()
        for digits in _DIGITS:
            whole = _decimal(flat, digits)
            if whole is not None:
                self._parts.append(_FLOATS.pack(digits, len(flat)))
                self.integers(whole)
                return
        self._parts.append(_FLOATS.pack(_BITS, len(flat)))
        self._planes(flat.view(np.uint64), 8)

    def planes(self, values: NDArray[np.float64]) -> None:
        """Write floats [k, n], of which many rows are the same, to the bit."""
        number: dict[bytes, int] = {}
        of = [number.setdefault(row.tobytes(), len(number)) for row in values]
        self.integers(np.array(of, np.int64))
        distinct = np.frombuffer(b"".join(number), np.float64)
        self._parts.append(_LENGTH.pack(len(number)))
        self._planes(distinct.view(np.uint64), 8)

    def _planes(self, values: NDArray[np.uint64], width: int) -> None:
        octets = values.astype("<u8", copy=False).view(np.uint8).reshape(-1, 8)
        self._parts += [octets[:, i].tobytes() for i in range(width)]


class Reader:
    """Reads what `Writer` wrote.

    Every method raises WireError when the bytes are not what was asked for.
    """

    def __init__(self, body: bytes | bytearray) -> None:
        self._body = memoryview(body)
        self._at = 0

    def done(self) -> None:
        """Check that nothing is left."""
        if self._at != len(self._body):
            raise WireError(f"{len(self._body) - self._at} bytes too many")

    def json(self) -> Any:
        """Read names and other small things."""
        (length,) = self._struct(_LENGTH)
        try:
            return orjson.loads(self._take(length))
        except orjson.JSONDecodeError as error:
            raise WireError(f"names are damaged: {error}") from error

    def integers(
        self, dtype: type[np.generic], count: int, *, below: int = 1 << 64
    ) -> NDArray[Any]:
        """Read `count` whole numbers in [0, below), or any when `below` is not given."""
        width, divisor, base, stored = self._struct(_INTEGERS)
        _expect(count, stored)
        if width > 8:
            raise WireError(f"whole numbers of {width} bytes")
        values = self._planes(count, width)
        values *= np.uint64(divisor)
        values += np.array(base, np.int64).view(np.uint64)
        if below < 1 << 64 and count and int(values.max()) >= below:
            raise WireError(f"an index of {int(values.max())}, expected less than {below}")
        if values.dtype == dtype:
            return values
        return values.view(np.int64).astype(dtype, copy=False)

    def floats(self, count: int) -> NDArray[np.float64]:
        """Read `count` floats."""
        digits, stored = self._struct(_FLOATS)
        _expect(count, stored)
        if digits == _BITS:
            return self._planes(count, 8).view(np.float64)
        if digits not in _DIGITS:
            raise WireError(f"floats of {digits} digits")
        whole = self.integers(np.int64, count)
        special = np.array([np.nan, np.inf, -np.inf])
        values = whole / 10.0**digits
        at = np.flatnonzero((whole >= _LEAST) & (whole < _LEAST + _SPECIAL))
        values[at] = special[whole[at] - _LEAST]
        return values

    def planes(self, rows: int, length: int) -> NDArray[np.float64]:
        """Read floats [rows, length], of which many rows are the same."""
        of = self.integers(np.int64, rows)
        (distinct,) = self._struct(_LENGTH)
        bounded(rows * length)
        if rows and (distinct > rows or int(of.max()) >= distinct or int(of.min()) < 0):
            raise WireError("rows refer to rows that are not there")
        values = self._planes(distinct * length, 8).view(np.float64)
        return values.reshape(distinct, length)[of] if rows else values.reshape(0, length)

    def _planes(self, count: int, width: int) -> NDArray[np.uint64]:
        bounded(count)
        planes = self._take(count * width)
        octets = np.zeros((count, 8), np.uint8)
        octets[:, :width] = np.frombuffer(planes, np.uint8).reshape(width, count).T
        return octets.view("<u8").reshape(count).astype(np.uint64, copy=False)

    def _struct(self, layout: struct.Struct) -> tuple[int, ...]:
        return layout.unpack(self._take(layout.size))

    def _take(self, length: int) -> memoryview:
        if length > len(self._body) - self._at:
            raise WireError(f"cut short: {length} bytes expected at {self._at}")
        self._at += length
        return self._body[self._at - length : self._at]


_LEAST = -(1 << 54)


def _decimal(values: NDArray[np.float64], digits: int) -> NDArray[np.int64] | None:
    """Return values * 10^digits when that is exact, NaN and infinities as the numbers below."""
    scale = 10.0**digits
    finite = np.isfinite(values)
    numbers = values if finite.all() else np.where(finite, values, 0.0)
    if _whole(numbers[:_PROBE], scale) is None:
        return None
    whole = _whole(numbers, scale)
    if whole is not None and numbers is not values:
        whole[np.isnan(values)] = _LEAST
        whole[values == np.inf] = _LEAST + 1
        whole[values == -np.inf] = _LEAST + 2
    return whole


def _whole(numbers: NDArray[np.float64], scale: float) -> NDArray[np.int64] | None:
    if len(numbers) and np.abs(numbers).max() >= _EXACT / scale:
        return None
    whole = np.rint(numbers * scale).astype(np.int64)
    # Bits are compared, for -0.0 equals 0.
    exact = np.array_equal((whole / scale).view(np.int64), numbers.view(np.int64))
    return whole if exact else None


def _divisor(offsets: NDArray[np.uint64]) -> int:
    """Return the largest power of a thousand up to 10^9 that divides all offsets."""
    most = int(offsets.max()) if len(offsets) else 0
    for divisor in (10**9, 10**6, 10**3):
        by = np.uint64(divisor)
        if divisor <= most and not (offsets[:_PROBE] % by).any() and not (offsets % by).any():
            return divisor
    return 1


def _expect(count: int, stored: int) -> None:
    if count != stored:
        raise WireError(f"{stored} numbers where {count} are expected")


def bounded(count: int) -> None:
    """Raise WireError for more numbers than one array may have."""
    if count > MOST_VALUES:
        raise WireError(f"{count} numbers in one array, at most {MOST_VALUES} are allowed")
