"""AIPerf profile exports: one JSON object a request, each metric a value with a unit.

Read from the exports of AIPerf 0.1 and 0.5 (`profile_export.jsonl`). They are translated to native
records. The time to first token and the request's latency give two stages: "prefill" is the
first, and "decode", which the tool does not measure, is derived as the latency less the first.
The mean of the gaps between chunks and the tool's time of an output token are kept beside.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from tailbudget.streams.sources.first_token import mean_gap
from tailbudget.streams.sources.translated import Translated

_MS_PER: Final = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "sec": 1e3}
_STARTS: Final = ("timestamp_ns", "request_start_ns")  # 0.1, 0.5
_FIRST_TOKEN: Final = ("ttft", "time_to_first_token")
_TOKENS: Final = {
    "input_tokens": ("input_sequence_length", "input_token_count"),
    "output_tokens": ("output_sequence_length", "output_token_count"),
}
_CANCELLED: Final = "cancelled"


class AiperfDecoder(Translated):
    """Decodes AIPerf's export; see the package docstring for what it promises."""

    name = "aiperf"

    def translate(self, text: bytes) -> Iterable[bytes]:
        """Return the native record; what is no object is returned as it is, to be refused."""
        try:
            record = orjson.loads(text)
        except orjson.JSONDecodeError:
            return (text,)
        if not isinstance(record, dict):
            return (text,)
        metadata, metrics = _mapping(record.get("metadata")), _mapping(record.get("metrics"))
        return (orjson.dumps(_native(metadata, metrics, record.get("error"))),)


def _native(metadata: Mapping[str, Any], metrics: Mapping[str, Any], error: Any) -> dict[str, Any]:
    total_ms = _milliseconds(metrics.get("request_latency"))
    first_ms = _milliseconds(
        next((metrics[name] for name in _FIRST_TOKEN if name in metrics), None)
    )
    record = {
        "request_id": metadata.get("x_request_id"),
        "timestamp": next((metadata[name] for name in _STARTS if name in metadata), None),
        "total_ms": total_ms,
        "status": _status(metadata, error),
        "prefill_ms": first_ms,
        "ttft_ms": first_ms,
        "itl_ms": _mean_gap_ms(metrics.get("inter_chunk_latency")),
        "tpot_ms": _milliseconds(metrics.get("inter_token_latency")),
    }
    if isinstance(total_ms, float) and isinstance(first_ms, float):
        record["decode_ms"] = total_ms - first_ms
    for name, sources in _TOKENS.items():
        counts = (_mapping(metrics.get(source)).get("value") for source in sources)
        record[name] = next((count for count in counts if count is not None), None)
    return record


def _status(metadata: Mapping[str, Any], error: Any) -> Any:
    if metadata.get("was_cancelled"):
        return _CANCELLED
    if not error:
        return "ok"
    return _mapping(error).get("code") or "error"


def _mean_gap_ms(metric: Any) -> float | None:
    unit = _mapping(metric).get("unit")
    scale = _MS_PER.get(unit) if isinstance(unit, str) else None
    return None if scale is None else mean_gap(metric["value"], scale)


def _milliseconds(metric: Any) -> Any:
    """Return the value in milliseconds, or as it stands where it is no number with a unit."""
    value, unit = _mapping(metric).get("value"), _mapping(metric).get("unit")
    scale = _MS_PER.get(unit) if isinstance(unit, str) else None
    if scale is not None and isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value * scale)
    return value


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
