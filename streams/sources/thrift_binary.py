"""Structs of Thrift's binary protocol, as numbered fields.

Own code, for input that anybody may have written: the readers of thriftpy2 0.7 allocate what a
length claims, and pass over a list of two thousand million elements of no size one by one.
"""

from __future__ import annotations

import struct
from typing import Any, Final

_STOP: Final = 0
_STRING: Final = 11
_STRUCT: Final = 12
_MAP: Final = 13
_LISTS: Final = (14, 15)
_NUMBERS: Final = {
    2: struct.Struct(">?"),
    3: struct.Struct(">b"),
    4: struct.Struct(">d"),
    6: struct.Struct(">h"),
    8: struct.Struct(">i"),
    10: struct.Struct(">q"),
}
_SIZE: Final = _NUMBERS[8]
_ID: Final = struct.Struct(">H")

DEPTH: Final = 16
"""Structs and lists within each other; a span of Zipkin has four."""

VALUES: Final = 2_000_000
"""Values of a message: 16 MB of spans have fewer, and so many take half a gigabyte."""

Fields = dict[int, Any]
"""Values by the number of their field: numbers, bytes, lists, and fields of structs."""


class Thrift:
    """Reads one text.

    Every method raises `ValueError` where the text ends early, or says what cannot be.
    """

    def __init__(self, text: bytes) -> None:
        self._text = text
        self._at = 0
        self._values = 0

    def fields(self, depth: int = DEPTH) -> Fields:
        """Return the fields of a struct."""
        found: Fields = {}
        while (kind := self._take(1)[0]) != _STOP:
            number = _ID.unpack(self._take(_ID.size))[0]
            found[number] = self._value(kind, depth)
        return found

    def listed(self, depth: int = DEPTH) -> list[Any]:
        """Return the elements of a list."""
        kind, size = self._take(1)[0], self._size()
        return [self._value(kind, depth) for _ in range(size)]

    def _value(self, kind: int, depth: int) -> Any:
        self._values += 1
        if self._values > VALUES or depth <= 0:
            raise ValueError("more values, or deeper ones, than are read")
        if kind in _NUMBERS:
            form = _NUMBERS[kind]
            return form.unpack(self._take(form.size))[0]
        if kind == _STRING:
            return self._take(self._size())
        if kind == _STRUCT:
            return self.fields(depth - 1)
        if kind in _LISTS:
            return self.listed(depth - 1)
        if kind == _MAP:
            return self._map(depth - 1)
        raise ValueError(f"there is no type {kind}")

    def _map(self, depth: int) -> None:
        """Pass over a map: no span of Zipkin has one."""
        key, value = self._take(2)
        for _ in range(self._size()):
            self._value(key, depth)
            self._value(value, depth)

    def _size(self) -> int:
        """Return a length; an element takes a byte at least."""
        size: int = _SIZE.unpack(self._take(_SIZE.size))[0]
        if not 0 <= size <= len(self._text) - self._at:
            raise ValueError(f"a length of {size}")
        return size

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._text):
            raise ValueError(f"it ends {end - len(self._text)} bytes early")
        found = self._text[self._at : end]
        self._at = end
        return found
