"""Profile exports of Triton's perf_analyzer (`--profile-export-file`), which GenAI-Perf reads too.

A request has a stamp of its start and one of each response, in nanoseconds; the last response ends
it. A request without responses failed. Stamps that are no epochs say nothing of when it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import orjson

from tailbudget.streams.sources.base import Rules
from tailbudget.streams.sources.first_token import mean_gap, parts
from tailbudget.streams.sources.timetext import FIRST_NS
from tailbudget.streams.sources.translated import (
    NotOfFormatError,
    Translated,
    objects,
    read_object,
)

_NS_PER_MS: Final = 1e6
_RESPONSES: Final = ("response_timestamps", "responses_timestamps")


class PerfAnalyzerDecoder(Translated):
    """Decodes exports of perf_analyzer; see the package docstring for what it promises."""

    name = "perf_analyzer"
    whole = True
    private = True
    tool = "Triton's Performance Analyzer"

    @classmethod
    def altered(cls, rules: Rules) -> Rules:
        """Return the rules for the native records, which have no ids and may have no times."""
        return replace(super().altered(rules), ids_from_rows=True, times_from_arrival=True)

    def translate(self, text: bytes) -> Iterable[bytes]:
        """Return the native records of an export."""
        experiments = read_object(text).get("experiments")
        if not isinstance(experiments, list):
            raise NotOfFormatError("no export of perf_analyzer: it has no experiments")
        return [
            orjson.dumps(_record(request, _load(experiment)))
            for experiment in objects(experiments)
            for request in objects(experiment.get("requests"))
        ]


def _load(experiment: Mapping[str, Any]) -> str | None:
    """Return the load of an experiment, such as "concurrency 4"."""
    told = experiment.get("experiment")
    if not isinstance(told, dict) or "mode" not in told:
        return None
    return f"{told['mode']} {told.get('value')}"[:40]


def _record(request: Mapping[str, Any], load: str | None) -> dict[str, Any]:
    start = request.get("timestamp")
    stamps = next((request[name] for name in _RESPONSES if name in request), None)
    record: dict[str, Any] = {"load": load, "status": "ok"}
    if not isinstance(stamps, list) or not stamps:
        return {**record, "status": "error", "timestamp": _epoch(start)}
    wrong = [value for value in (start, *stamps) if not _is_stamp(value)]
    if wrong:
        return {**record, "total_ms": str(wrong[0])[:40] or "empty"}
    total_ms = (stamps[-1] - start) / _NS_PER_MS
    first_ms = (stamps[0] - start) / _NS_PER_MS if len(stamps) > 1 else None
    gaps = [later - sooner for sooner, later in pairwise(stamps)]
    told = parts(total_ms, first_ms) | {"itl_ms": mean_gap(gaps, 1 / _NS_PER_MS)}
    return {**record, "timestamp": _epoch(start), "total_ms": total_ms, **told}


def _epoch(stamp: Any) -> int | None:
    return stamp if _is_stamp(stamp) and stamp >= FIRST_NS else None


def _is_stamp(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
