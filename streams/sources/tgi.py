"""Logs of text-generation-inference, as text or JSON: a line a request that was answered.

Its times are printed durations (`total_time="1.2s" validation_time="35.1ms"`), and the line is
stamped with the end. A mapping of the response headers that tell the same (`x-total-time`, in
milliseconds) is read too. Parameters and texts are not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import orjson

from tailbudget.streams.sources.access_log import AccessLog, before, number, told
from tailbudget.streams.sources.translated import NotOfFormatError
from tailbudget.streams.sources.written_durations import written_ms

_TIME: Final = re.compile(r'(?<![\w-])(total|validation|queue|inference)_time="?([^"\s}]{1,40})')
_STAMP: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z?)\s")
_STAGES: Final = ("validation", "queue", "inference")
_TOKENS: Final = {"input_tokens": "x-prompt-tokens", "output_tokens": "x-generated-tokens"}


class TgiDecoder(AccessLog):
    """Decodes logs of text-generation-inference; see the package docstring for its promises."""

    name = "tgi"
    private = True

    def parse(self, line: str) -> dict[str, Any]:
        """Return the native record of a line."""
        if not line.startswith("{"):
            stamp = _STAMP.match(line)
            times = {name: written_ms(text) for name, text in _TIME.findall(line)}
            return _record(times, stamp[1] if stamp else None, {})
        try:
            values = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise NotOfFormatError(f"no JSON: {error}") from None
        if not isinstance(values, dict):
            raise NotOfFormatError("JSON, but no object")
        span = values.get("span")
        if isinstance(span, dict):
            times = {n: written_ms(told(span.get(f"{n}_time"))) for n in ("total", *_STAGES)}
            return _record(times, told(values.get("timestamp")), {})
        headers = {name.lower(): value for name, value in values.items()}
        times = {n: number(headers.get(f"x-{n}-time")) for n in ("total", *_STAGES)}
        return _record(times, told(headers.get("date") or headers.get("timestamp")), headers)


def _record(
    times: Mapping[str, float | None], end: str | None, headers: Mapping[str, Any]
) -> dict[str, Any]:
    total_ms = times.get("total")
    if total_ms is None:
        raise NotOfFormatError("no line of an answered request: it has no total_time")
    return {
        "timestamp": before(end, total_ms),
        "total_ms": total_ms,
        "status": "ok",
        **{f"{name}_ms": times.get(name) for name in _STAGES},
        **{name: number(headers.get(header)) for name, header in _TOKENS.items()},
    }
