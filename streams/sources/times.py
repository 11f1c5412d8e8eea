"""Timestamps of a whole batch to nanoseconds, in integers throughout.

Texts of one length are one byte matrix, so that a digit's place is a column and all rows are
read at once. Rows that do not look like the first of their length go to `timetext.epoch_ns`, which
defines what a timestamp is; this module only agrees with it faster.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tailbudget.streams.sources import timetext
from tailbudget.streams.sources.timetext import NS, UNREADABLE

_ISO: Final = 19  # "2026-03-02T10:00:00"
_ZONE: Final = 5  # letters of an offset without a colon
_ISO_DIGITS: Final = [0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18]
_LONGEST: Final = 40
_SIGN: Final = {"minus": ord("-"), "plus": ord("+")}
_DAYS_IN_MONTH: Final = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])

Matrix = NDArray[np.uint8]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]


def epoch_ns(texts: pl.Series) -> Ints:
    """Return [n] nanoseconds since the epoch; `UNREADABLE` where the text is no timestamp.

    Args:
        texts: [n] strings without nulls.
    """
    arrow = texts.to_arrow()
    _, ends, data = arrow.buffers()
    start = np.frombuffer(ends, np.int64)[arrow.offset : arrow.offset + len(texts) + 1]
    size = np.diff(start)
    letters = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    result, good = _read_even(letters, start) if _is_even(size) else _read_uneven(letters, start)
    for row in np.flatnonzero(~good):
        result[row] = timetext.epoch_ns(texts[int(row)])
    return result


def _is_even(size: Ints) -> bool:
    return len(size) > 0 and bool((size == size[0]).all())


def _read_even(letters: Matrix, start: Ints) -> tuple[Ints, Mask]:
    """Read texts that all have the same length and follow each other."""
    rows = len(start) - 1
    return _read(letters[start[0] : start[-1]].reshape(rows, -1))


def _read_uneven(letters: Matrix, start: Ints) -> tuple[Ints, Mask]:
    """Read texts of several lengths, one length after another."""
    size = np.diff(start)
    result, good = np.full(len(size), UNREADABLE), np.zeros(len(size), np.bool_)
    for length in np.unique(size):
        if length <= _LONGEST:
            rows = np.flatnonzero(size == length)
            result[rows], good[rows] = _read(letters[start[rows][:, None] + np.arange(length)])
    return result, good


def _read(matrix: Matrix) -> tuple[Ints, Mask]:
    """Return (value, whether it could be read here) of each row."""
    if not 0 < matrix.shape[1] <= _LONGEST:
        return np.full(len(matrix), UNREADABLE), np.zeros(len(matrix), np.bool_)
    return _iso(matrix) if _looks_iso(matrix) else _number(matrix)


def _looks_iso(matrix: Matrix) -> bool:
    return matrix.shape[1] >= _ISO and int(matrix[0, 4]) == _SIGN["minus"]


def _iso(matrix: Matrix) -> tuple[Ints, Mask]:
    """Read rows of one length as RFC 3339; the layout is that of the first row."""
    length = matrix.shape[1]
    fraction, zone = _layout(matrix[0])
    digits = _ISO_DIGITS + list(range(_ISO + 1, _ISO + 1 + fraction))
    hours = length - zone + 1  # where the hours of the zone begin
    if zone >= _ZONE:
        digits += [hours, hours + 1, length - 2, length - 1]
    columns = np.ascontiguousarray(matrix.T)
    good = (columns[digits] - np.uint8(48) <= 9).all(axis=0) & _punctuated(columns, fraction, zone)
    shared = _shared(columns)
    value = {
        place: columns[place, : 1 if place < shared else None].astype(np.int64) - 48
        for place in digits
    }

    def two(place: int) -> Ints:
        pair: Ints = value[place] * 10 + value[place + 1]
        return pair

    year, month, day = two(0) * 100 + two(2), two(5), two(8)
    hour, minute, second = two(11), two(14), two(17)
    good &= (month >= 1) & (month <= 12) & (day >= 1) & (hour <= 23) & (minute <= 59)
    good &= (second <= 59) & (day <= _days_in_month(year, np.clip(month, 1, 12)))
    seconds = _days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second
    if zone >= _ZONE:
        good &= (two(hours) <= 23) & (two(length - 2) <= 59)
        shift = two(hours) * 3_600 + two(length - 2) * 60
        seconds -= np.where(columns[length - zone] == _SIGN["minus"], -shift, shift)
    good &= (year >= 1900) & (year <= 2199)  # others might not fit into 64 bits
    below = np.zeros(len(matrix), np.int64)
    for place in range(_ISO + 1, _ISO + 1 + min(fraction, 9)):
        below = below * 10 + value[place]
    return seconds * NS + below * 10 ** (9 - min(fraction, 9)), good


def _shared(columns: Matrix) -> int:
    """Return how many leading letters all rows share, up to the minute, hour or day, or 0."""
    for size in (17, 14, 11):
        if bool((columns[:size] == columns[:size, :1]).all()):
            return size
    return 0


def _layout(row: Matrix) -> tuple[int, int]:
    """Return the number of fraction digits and the length of the zone: 0, 1 ("Z"), 5 or 6."""
    length = len(row)
    zone = 1 if int(row[-1]) in b"Zz" else 0
    if length >= _ISO + 6 and int(row[-6]) in b"+-" and int(row[-3]) == ord(":"):
        zone = 6
    elif length >= _ISO + _ZONE and int(row[-_ZONE]) in b"+-":
        zone = _ZONE
    return max(length - zone - _ISO - 1, 0), zone


def _punctuated(columns: Matrix, fraction: int, zone: int) -> Mask:
    good: Mask = (columns[4] == ord("-")) & (columns[7] == ord("-"))
    good &= (columns[13] == ord(":")) & (columns[16] == ord(":"))
    good &= (columns[10] == ord("T")) | (columns[10] == ord("t")) | (columns[10] == ord(" "))
    length = len(columns)
    if fraction:
        good &= columns[_ISO] == ord(".")
    elif length != _ISO + zone:
        good &= False
    if zone == 1:
        good &= (columns[-1] == ord("Z")) | (columns[-1] == ord("z"))
    if zone >= _ZONE:
        good &= (columns[-zone] == _SIGN["plus"]) | (columns[-zone] == _SIGN["minus"])
    if zone > _ZONE:
        good &= columns[-3] == ord(":")
    return good


def _days_in_month(year: Ints, month: Ints) -> Ints:
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    days: Ints = _DAYS_IN_MONTH[month] - ((month == 2) & ~leap)
    return days


def _days(year: Ints, month: Ints, day: Ints) -> Ints:
    """Return days since 1970-01-01 in the Gregorian calendar, counting years from March."""
    early = month <= 2
    year = year - early
    of_year = (153 * (month + np.where(early, 9, -3)) + 2) // 5 + day - 1
    days: Ints = year * 365 + year // 4 - year // 100 + year // 400 + of_year - 719_468
    return days


def _number(matrix: Matrix) -> tuple[Ints, Mask]:
    """Read rows of one length as epochs; the decimal point stands where the first row has it."""
    dots = np.flatnonzero(matrix[0] == ord("."))
    whole = int(dots[0]) if len(dots) else matrix.shape[1]
    columns = np.ascontiguousarray(matrix.T)
    good = np.ones(len(matrix), np.bool_)
    if not 1 <= whole <= 18 and not (whole == 19 and int(matrix[0, 0]) < ord("9")):
        return np.zeros(len(matrix), np.int64), ~good
    value = np.zeros(len(matrix), np.int64)
    for column in columns[:whole]:
        good &= column - np.uint8(48) <= 9
        value = value * 10 + (column.astype(np.int64) - 48)
    below = np.zeros(len(matrix), np.int64)
    if len(dots):
        good &= columns[whole] == ord(".")
        good &= len(columns) > whole + 1
        places = columns[whole + 1 :]
        good &= (places - np.uint8(48) <= 9).all(axis=0)
        for column in places[:9]:
            below = below * 10 + (column.astype(np.int64) - 48)
        below *= 10 ** max(9 - len(places), 0)
    good &= value >= 0
    scale = timetext.unit_ns(value)
    whole_ns = np.minimum(value, timetext.LIMIT // scale) * scale
    return np.minimum(whole_ns + below // (NS // scale), timetext.LIMIT), good
