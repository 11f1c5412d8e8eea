"""What a log seems to hold, and the mapping that would read it: a proposal, for a person to check.

Nothing is taken for granted: each guess says what it was made of.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from tailbudget.streams.audit_log import names
from tailbudget.streams.audit_log.blocks import LineBlock
from tailbudget.streams.audit_log.files import parts_of
from tailbudget.streams.audit_log.prometheus import bounds_of
from tailbudget.streams.log_time import NATIVE
from tailbudget.streams.sources import FORMATS, Rules, repair
from tailbudget.streams.sources.mapping import flat, plain
from tailbudget.streams.sources.timetext import FIRST_NS, LAST_NS, NAIVE, epoch_ns
from tailbudget.streams.sources.written_durations import written_ms

ROWS: Final = 10_000
_TYPICAL: Final = (("s", -math.inf), ("ms", 30.0), ("us", 60_000.0), ("ns", 60_000_000.0))
"""Median from which a unit is likely: requests of models take from milliseconds to a minute."""

_STATUSES: Final = ("status", "status_code", "code", "outcome", "result", "response_code")
_ROUTES: Final = ("path", "endpoint", "url", "uri", "route")
_NEARLY: Final = 0.9
_NESTED: Final = "(nested)"
_NS_PER_S: Final = 1e9


@dataclass(slots=True)
class Inspection:
    """What was found.

    Attributes:
        saw: sentences.
        mapping: what a mapping file would say; None where none is needed or possible.
    """

    saw: list[str] = field(default_factory=list)
    mapping: dict[str, Any] | None = None

    def text(self) -> str:
        """Return it as a mapping file, the sentences as comments."""
        said = "".join(f"# {line}\n" for line in self.saw)
        if self.mapping is None:
            return said
        return said + yaml.safe_dump(self.mapping, sort_keys=False, allow_unicode=True)


def inspect(path: Path, log_format: str | None = None) -> Inspection:
    """Look at the first rows of a log.

    Args:
        path: of the log.
        log_format: its format; None finds it out.

    Raises:
        ConfigError: there is no such log.
        DecodeError: it is damaged, or no log.
    """
    found = Inspection()
    scraped = bounds_of(path)
    if scraped:
        found.saw += scraped
        return found
    parts, _ = parts_of(path, log_format)
    rows: list[Mapping[str, Any]] = []
    kinds: set[str] = set()
    for block in parts[0].blocks():
        kinds.add(block.format)
        rows += _rows(block)
        if len(rows) >= ROWS:
            break
    rows = rows[:ROWS]
    kind = "+".join(sorted(kinds)) or "nothing"
    found.saw.append(f"{path}: {kind}, {len(rows):,} of the first rows were looked at")
    if not rows:
        found.saw.append("no row of it is a record")
    elif kinds & (FORMATS.keys() - {NATIVE}):
        found.saw.append(f"the format {kind} is read as it is: no mapping is needed")
        _Proposal(rows, found).times("timestamp")
    else:
        found.mapping = _Proposal(rows, found).made()
    return found


def _rows(block: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(block, LineBlock):
        for row in block.frame.head(ROWS).iter_rows(named=True):
            yield dict(flat(row))
        return
    values = block.values
    if block.format != NATIVE:
        values = FORMATS[block.format].natives(values, Rules())
    for value in values:
        try:
            record = orjson.loads(value)
        except orjson.JSONDecodeError:
            continue
        if isinstance(record, dict):
            yield dict(flat(record))


class _Proposal:
    """Guesses what the columns of some rows are, and says why."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], found: Inspection) -> None:
        self._rows = rows
        self._saw = found.saw
        self._cells: dict[str, list[Any]] = {}
        for row in rows:
            for name, value in row.items():
                if value is not None and value != "":
                    nested = isinstance(value, list | Mapping)  # its text may be without end
                    cell = _NESTED if nested else plain(value)
                    self._cells.setdefault(name, []).append(cell)
        self._used: set[str] = set()

    def made(self) -> dict[str, Any]:
        """Return the mapping."""
        columns: dict[str, Any] = {}
        for ours, theirs in (("request_id", self._id()), ("timestamp", self._time())):
            self._saw.append(f"{ours}: {theirs or 'no field looks like one'}")
            if theirs:
                columns[ours] = self._take(theirs)
        if "timestamp" in columns:
            self.times(columns["timestamp"])
        total = self._total()
        if total is None:
            self._saw.append("total_ms: no field is named like an end-to-end latency")
        else:
            columns["total_ms"] = self._duration(self._take(total), "total_ms")
        status = next((n for n in self._cells if n.rpartition(".")[2] in _STATUSES), None)
        if status:
            columns["status"] = self._take(status)
        for name in [*self._cells]:
            stage = self._stage(name)
            if stage is not None:
                columns[f"{stage}_ms"] = self._duration(self._take(name), f"{stage}_ms")
        sizes, labels = self._sizes(), self._labels()
        named = {self._short(name): name for name in (*sizes, *labels)}
        columns |= {ours: theirs for ours, theirs in named.items() if ours not in columns}
        rest = sorted(self._cells.keys() - self._used)
        if rest:
            self._saw.append(f"left out: {', '.join(rest[:20])}{' …' if len(rest) > 20 else ''}")
        return {
            "columns": columns,
            "covariates": [self._short(name) for name in sizes],
            "cohort_dims": [self._short(name) for name in labels],
        }

    def times(self, name: str) -> None:
        """Say what the times are like: zone, range, order and gaps; and ids that come twice."""
        stamps = [*map(str, self._cells.get(name, ()))]
        ns = [one for one in map(epoch_ns, stamps) if FIRST_NS <= one <= LAST_NS]
        if not ns:
            return
        naive = sum(NAIVE.fullmatch(text) is not None for text in stamps)
        if naive:
            self._saw.append(f"{name}: {naive:,} times name no zone; UTC, unless timezone says")
        back = sum(b < a for a, b in pairwise(ns))
        order = "in order" if not back else f"{back:,} are older than the row before"
        span_s = (max(ns) - min(ns)) / _NS_PER_S
        self._saw.append(f"{name}: over {span_s:,.0f} s, {order}")
        steps = sorted(b - a for a, b in pairwise(sorted(ns)))
        if len(steps) >= 10 and steps[-1] > 20 * max(statistics.median(steps), 1):
            self._saw.append(
                f"{name}: the longest gap is {steps[-1] / _NS_PER_S:,.1f} s, the median one"
                f" {statistics.median(steps) / _NS_PER_S:,.3f} s"
            )

    def _take(self, name: str) -> str:
        self._used.add(name)
        return name

    def _id(self) -> str | None:
        likely = [n for n in self._cells if {"id", "uuid", "guid", "trace"} & set(names.words(n))]
        full = [n for n in likely if len(self._cells[n]) >= _NEARLY * len(self._rows)]
        full.sort(key=lambda name: (len({*map(str, self._cells[name])}), "request" in name))
        best = full[-1] if full else None
        if best is None:
            return None
        twice = len(self._cells[best]) - len({*map(str, self._cells[best])})
        if twice > (1 - _NEARLY) * len(self._cells[best]):
            return None
        if twice:
            self._saw.append(f"{best}: {twice:,} values come more than once; those are duplicates")
        return best

    def _time(self) -> str | None:
        likely = [n for n in self._cells if names.is_time(n)] or [*self._cells]
        for name in likely:
            cells = self._cells[name]
            good = sum(FIRST_NS <= epoch_ns(str(cell)) <= LAST_NS for cell in cells[:200])
            if good >= _NEARLY * len(cells[:200]) and not isinstance(cells[0], bool):
                return name
        return None

    def _total(self) -> str | None:
        found = [n for n in self._cells if n not in self._used and names.is_latency(n)]
        found = [n for n in found if self._is_duration(n)]
        found.sort(key=lambda name: ("total" not in name and "e2e" not in name, len(name)))
        return found[0] if found else None

    def _is_duration(self, name: str) -> bool:
        cells = self._cells[name][:200]
        good = sum(_is_number(cell) or _printed(cell) is not None for cell in cells)
        return good >= _NEARLY * len(cells)

    def _stage(self, name: str) -> str | None:
        """Return the stage that a duration is; its unit is that of its name or of its values."""
        if name in self._used or not self._is_duration(name):
            return None
        words = names.words(name)
        if names.unit_of(name) is not None:
            return "_".join(words[:-1])
        return "_".join(words) if _printed(self._cells[name][0]) is not None else None

    def _duration(self, name: str, ours: str) -> Any:
        """Return where a duration comes from, in the unit that its name or its size tells."""
        cells = self._cells[name]
        unit = names.unit_of(name)
        if unit is not None:
            why = "its name says so"
        elif any(_printed(cell) is not None for cell in cells[:200]):
            unit, why = "text", "its values bear their units"
        else:
            median = statistics.median(n for n in map(_as_number, cells) if n is not None)
            unit = [unit for unit, least in _TYPICAL if median >= least][-1]
            why = f"a guess, for the median is {median:g}: check it"
        self._saw.append(f"{ours}: {name} in {unit} ({why})")
        return name if unit == "ms" else {"from": name, "unit": unit}

    def _sizes(self) -> list[str]:
        free = [n for n in self._cells if n not in self._used and names.is_size(n)]
        return [self._take(n) for n in free if all(map(_is_number, self._cells[n][:200]))]

    def _labels(self) -> list[str]:
        found = []
        for name, cells in self._cells.items():
            values = {str(cell) for cell in cells}
            few = 2 <= len(values) <= 50 and len(cells) >= 20 * len(values)
            if name not in self._used and few and names.is_label(name):
                found.append(self._take(name))
        return found

    @staticmethod
    def _short(name: str) -> str:
        last = name.rpartition(".")[2]
        return "route" if last in _ROUTES else name.replace(".", "_")


def _is_number(cell: Any) -> bool:
    return _as_number(cell) is not None


def _as_number(cell: Any) -> float | None:
    """Return a number, or the one that a text is, as in a table."""
    if isinstance(cell, bool) or not isinstance(cell, int | float | str):
        return None
    found = repair.as_number(cell)
    return None if found is None or abs(found) >= repair.HUGE else float(found)


def _printed(cell: Any) -> float | None:
    return written_ms(cell) if isinstance(cell, str) else None
