"""The parts of a request that vLLM and SGLang tell in the attributes of its span.

Both write `gen_ai.latency.*` in seconds (vLLM: `vllm/tracing.py`; SGLang took the names over).
Versions differ in what they write, and some wrote milliseconds under the same names: a value that
is longer than its span is out of range, and is never scaled to fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_PREFIX: Final = "gen_ai.latency."
_QUEUE: Final = "time_in_queue"
_FIRST: Final = "time_to_first_token"
_PREFILL: Final = "time_in_model_prefill"
_DECODE: Final = "time_in_model_decode"
_READ: Final = (_QUEUE, _FIRST, _PREFILL, _DECODE)
_TOLERANCE: Final = 1.01
_SLACK_S: Final = 0.005
"""A span is closed up to some milliseconds before or after the engine takes its own stamps."""

OUT_OF_RANGE_S: Final = 1e9
"""Stands for a length that cannot be: no stage is credibly so long, so that it is missing."""

Parts = tuple[tuple[str, float], ...]


def parts_s(attributes: Mapping[str, Any], length_s: float) -> Parts:
    """Return (stage, seconds) of the parts of a span, in their order; empty where it tells none.

    Args:
        attributes: of the span.
        length_s: of the span.
    """
    if not any(key.startswith(_PREFIX) for key in attributes):
        return ()
    told: dict[str, Any] = {name: attributes.get(_PREFIX + name) for name in _READ}
    known = {name: float(value) for name, value in told.items() if _is_number(value)}
    if not known:
        return ()
    most = length_s * _TOLERANCE + _SLACK_S
    good = {name: value for name, value in known.items() if 0 <= value <= most}
    if len(good) < len(known):
        return (("queue", OUT_OF_RANGE_S),)
    queue = good.get(_QUEUE, 0.0)
    prefill = good.get(_PREFILL)
    if prefill is None and _FIRST in good:
        prefill = max(good[_FIRST] - queue, 0.0)
    decode = good.get(_DECODE)
    if decode is None and _FIRST in good:
        decode = max(length_s - good[_FIRST], 0.0)
    parts = (("queue", good.get(_QUEUE)), ("prefill", prefill), ("decode", decode))
    return tuple((name, seconds) for name, seconds in parts if seconds is not None)


def first_token_s(attributes: Mapping[str, Any], length_s: float) -> float | None:
    """Return the time to the first token; None where the span tells none that can be."""
    value = attributes.get(_PREFIX + _FIRST, attributes.get("gen_ai.server.time_to_first_token"))
    if not _is_number(value):
        return None
    return float(value) if 0 <= value <= length_s * _TOLERANCE + _SLACK_S else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
