"""What a page looks at, as its address says."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from multidict import MultiMapping

from tailbudget.schemas.errors import ConfigError

LASTS_S: Final[Mapping[str, int]] = {
    "5m": 300,
    "15m": 900,
    "1h": 3_600,
    "6h": 21_600,
    "24h": 86_400,
    "7d": 604_800,
    "30d": 2_592_000,
}
"""Ranges to choose from, up to the newest record."""

USUAL: Final = "15m"
POINTS: Final = 180
"""Points of a series at most: a few pixels each on a phone, and one query reads them all."""

_STEPS_S: Final = (
    *(1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200),
    *(10_800, 21_600, 43_200, 86_400, 604_800),
)
_LONGEST: Final = 20
_TIME: Final = re.compile(r"\d{1,10}")


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked for.

    Attributes:
        service: the service's name.
        last_s: length of the range that ends with the newest record; 0 for a fixed range.
        since_s: start of a fixed range, seconds since 1970.
        until_s: its end, exclusive.
        cohort: value of each dimension that is filtered by.
    """

    service: str
    last_s: int
    since_s: int = 0
    until_s: int = 0
    cohort: Mapping[str, str] = field(default_factory=dict)


def asked(query: MultiMapping[str]) -> Asked:
    """Return what the part of an address behind its question mark asks for.

    `service=…`, `last=15m` or `from=…&to=…` (seconds since 1970), and any number of
    `where=dimension=value`.

    Raises:
        ConfigError: it is of another form.
    """
    service = query.get("service", "")
    cohort = dict(map(_filter, query.getall("where", [])[:_LONGEST]))
    if "from" in query or "to" in query:
        since_s, until_s = _second(query.get("from", "")), _second(query.get("to", ""))
        if since_s >= until_s:
            raise ConfigError("the range ends before it begins", remedy="choose another range")
        return Asked(service, 0, since_s, until_s, cohort)
    last = query.get("last", USUAL)
    if last not in LASTS_S:
        raise ConfigError(f"no range is called {last[:40]!r}", remedy=f"use {', '.join(LASTS_S)}")
    return Asked(service, LASTS_S[last], cohort=cohort)


def step_s(span_s: int, pane_s: int) -> int:
    """Return the length of a point: a multiple of a pane, so that there are `POINTS` at most."""
    fitting = (s for s in _STEPS_S if s % pane_s == 0 and span_s <= POINTS * s)
    return next(fitting, -(-span_s // (POINTS * pane_s)) * pane_s)


def _filter(text: str) -> tuple[str, str]:
    dimension, found, value = text.partition("=")
    if not found:
        raise ConfigError(f"{text[:40]!r} names no cohort", remedy="write where=dimension=value")
    return dimension, value


def _second(text: str) -> int:
    if _TIME.fullmatch(text) is None or int(text) >= 2**32:
        raise ConfigError(
            f"{text[:40]!r} is no time", remedy="give from and to in seconds since 1970"
        )
    return int(text)
