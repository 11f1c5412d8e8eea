"""LLMPerf's individual results: one JSON object a request, in seconds.

Read from the files `*_individual_responses.json` of LLMPerf and its leaderboard. They are
translated to native records. A file carries no ids and no times: a record's offset is its id, and
it happened when it arrived. "prefill" is the time to the first token, and "decode" is derived as
the rest. What the tool calls the latency between tokens is the whole latency over the tokens: it
is kept as the time of an output token. A request with an error carries latencies all the same; it
failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from tailbudget.streams.sources.base import Rules
from tailbudget.streams.sources.translated import Translated

TOTAL_S: Final = "end_to_end_latency_s"
FIRST_S: Final = "ttft_s"
_EACH_S: Final = "inter_token_latency_s"
_TOKENS: Final = {"input_tokens": "number_input_tokens", "output_tokens": "number_output_tokens"}
_MS_PER_S: Final = 1e3


class LlmperfDecoder(Translated):
    """Decodes LLMPerf's individual results; see the package docstring for what it promises."""

    name = "llmperf"

    @classmethod
    def altered(cls, rules: Rules) -> Rules:
        """Return the rules for the native records, which have neither ids nor times."""
        return replace(super().altered(rules), ids_from_rows=True, times_from_arrival=True)

    def translate(self, text: bytes) -> Iterable[bytes]:
        """Return the native record; what is no object is returned as it is, to be refused."""
        try:
            record = orjson.loads(text)
        except orjson.JSONDecodeError:
            return (text,)
        if not isinstance(record, dict):
            return (text,)
        return (orjson.dumps(_native(record)),)


def _native(record: Mapping[str, Any]) -> dict[str, Any]:
    total_ms, first_ms = _ms(record.get(TOTAL_S)), _ms(record.get(FIRST_S))
    native = {
        "total_ms": total_ms,
        "status": _status(record.get("error_code")),
        "prefill_ms": first_ms,
        "ttft_ms": first_ms,
        "tpot_ms": _ms(record.get(_EACH_S)),
        **{name: record.get(source) for name, source in _TOKENS.items()},
    }
    if isinstance(total_ms, float) and isinstance(first_ms, float):
        native["decode_ms"] = total_ms - first_ms
    return native


def _status(code: object) -> str:
    if code is None:
        return "ok"
    return str(code) if isinstance(code, int) and 100 <= code < 600 else "error"


def _ms(seconds: object) -> object:
    if isinstance(seconds, int | float) and not isinstance(seconds, bool):
        return float(seconds * _MS_PER_S)
    return seconds
