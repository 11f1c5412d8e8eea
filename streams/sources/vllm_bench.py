"""Detailed results of the serving benchmarks of vLLM (`--save-detailed`) and SGLang.

A result holds a list an attribute, with one element a request: `ttfts` and `itls` in seconds, and
`errors`, empty where there was none. The latency is the time to the first token and the gaps after
it, which the clients measure from the same stamps. `start_times` are of a clock that begins
anywhere, so that a result has no times. What was answered (`generated_texts`) is not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from tailbudget.streams.sources.base import Rules
from tailbudget.streams.sources.first_token import mean_gap, parts
from tailbudget.streams.sources.translated import NotOfFormatError, Translated, read_object

_MS_PER_S: Final = 1e3
_TOKENS: Final = {"input_tokens": "input_lens", "output_tokens": "output_lens"}


class VllmBenchDecoder(Translated):
    """Decodes results of serving benchmarks; see the package docstring for what it promises."""

    name = "vllm_bench"
    whole = True
    private = True
    tool = "vLLM's benchmark"

    @classmethod
    def altered(cls, rules: Rules) -> Rules:
        """Return the rules for the native records, which have neither ids nor times."""
        return replace(super().altered(rules), ids_from_rows=True, times_from_arrival=True)

    def translate(self, text: bytes) -> Iterable[bytes]:
        """Return the native records of a result."""
        result = read_object(text)
        firsts, gaps = result.get("ttfts"), result.get("itls")
        if not isinstance(firsts, list) or not isinstance(gaps, list) or len(firsts) != len(gaps):
            raise NotOfFormatError("aggregates only: no ttfts and itls, as of --save-detailed")
        model = result.get("model_id")
        return [
            orjson.dumps(_record(result, index, model if isinstance(model, str) else None))
            for index in range(len(firsts))
        ]


def _record(result: Mapping[str, Any], index: int, model: str | None) -> dict[str, Any]:
    first, gaps = result["ttfts"][index], result["itls"][index]
    failed = bool(_of(result, "errors", index))
    total_ms = None
    if _is_number(first) and first > 0 and isinstance(gaps, list) and all(map(_is_number, gaps)):
        total_ms = (first + sum(gaps)) * _MS_PER_S
    return {
        "total_ms": total_ms,
        "status": "error" if failed else "ok",
        "model_variant": model,
        **{name: _of(result, source, index) for name, source in _TOKENS.items()},
        "itl_ms": mean_gap(gaps, _MS_PER_S),
        **parts(total_ms, first * _MS_PER_S if _is_number(first) else None),
    }


def _of(result: Mapping[str, Any], name: str, index: int) -> Any:
    values = result.get(name)
    return values[index] if isinstance(values, list) and index < len(values) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
