"""Traces of the Triton inference server (`--trace-config triton,file=…`).

A file is one array. The entries of one `id` belong together, in any number: model, and stamps in
nanoseconds of a clock that begins anywhere. A request runs from its receipt to its last byte, or,
without those, from REQUEST_START to REQUEST_END. The models of an ensemble name it as `parent_id`:
they are its stages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import orjson

from tailbudget.streams.sources.base import Rules
from tailbudget.streams.sources.timetext import FIRST_NS
from tailbudget.streams.sources.translated import NotOfFormatError, Translated, objects, read_json

_NS_PER_MS: Final = 1e6
_BEGINS: Final = ("HTTP_RECV_START", "GRPC_WAITREAD_START", "REQUEST_START")
_ENDS: Final = ("HTTP_SEND_END", "GRPC_SEND_END", "REQUEST_END")
_ALIASES: Final = {"REQUEST_HANDLER_START": "REQUEST_START", "REQUEST_HANDLER_END": "REQUEST_END"}
_STAGES: Final = {
    "queue": ("QUEUE_START", "COMPUTE_START"),
    "compute_input": ("COMPUTE_START", "COMPUTE_INPUT_END"),
    "compute_infer": ("COMPUTE_INPUT_END", "COMPUTE_OUTPUT_START"),
    "compute_output": ("COMPUTE_OUTPUT_START", "COMPUTE_END"),
}


@dataclass(slots=True)
class _Trace:
    """One inference, as far as its entries tell."""

    model: str | None = None
    version: str | None = None
    parent: Any = None
    request: str | None = None
    ns: dict[str, int] = field(default_factory=dict)

    def take(self, entry: Mapping[str, Any]) -> None:
        model, version = entry.get("model_name"), entry.get("model_version")
        self.model = model if isinstance(model, str) else self.model
        self.version = str(version) if isinstance(version, int | str) else self.version
        self.parent = entry.get("parent_id") or self.parent
        told = entry.get("request_id")
        self.request = told if isinstance(told, str) and told else self.request
        for stamp in objects(entry.get("timestamps")):
            if isinstance(stamp.get("ns"), int):
                name = str(stamp.get("name")).upper().replace(" ", "_")
                self.ns[_ALIASES.get(name, name)] = stamp["ns"]

    def between(self, start: Iterable[str], end: Iterable[str]) -> float | None:
        first = next((self.ns[name] for name in start if name in self.ns), None)
        last = next((self.ns[name] for name in end if name in self.ns), None)
        return None if first is None or last is None else (last - first) / _NS_PER_MS

    def stages(self, prefix: str = "") -> dict[str, float | None]:
        return {
            f"{prefix}{name}_ms": self.between((start,), (end,))
            for name, (start, end) in _STAGES.items()
        }


class TritonDecoder(Translated):
    """Decodes Triton's traces; see the package docstring for what it promises."""

    name = "triton"
    whole = True
    private = True

    @classmethod
    def altered(cls, rules: Rules) -> Rules:
        """Return the rules for the native records, of which few have ids, and none a time."""
        return replace(super().altered(rules), ids_from_rows=True, times_from_arrival=True)

    def translate(self, text: bytes) -> Iterable[bytes]:
        """Return the native records of a file."""
        entries = read_json(text)
        entries = entries if isinstance(entries, list) else [entries]
        if not all(isinstance(one, dict) and "id" in one for one in entries):
            raise NotOfFormatError("no trace of Triton: an entry has no id")
        traces: defaultdict[Any, _Trace] = defaultdict(_Trace)
        for entry in entries:
            traces[str(entry["id"])].take(entry)
        below: defaultdict[str, list[_Trace]] = defaultdict(list)
        for trace in traces.values():
            if str(trace.parent) in traces:
                below[str(trace.parent)].append(trace)
        roots = [(id_, t) for id_, t in traces.items() if str(t.parent) not in traces and t.ns]
        return [orjson.dumps(_record(trace, below[id_])) for id_, trace in roots]


def _record(trace: _Trace, below: Iterable[_Trace]) -> dict[str, Any]:
    start = next((trace.ns[name] for name in _BEGINS if name in trace.ns), 0)
    record = {
        "request_id": trace.request,
        "timestamp": start if start >= FIRST_NS else None,
        "total_ms": trace.between(_BEGINS, _ENDS),
        "route": trace.model,
        "version": trace.version,
    }
    stages = trace.stages()
    for one in below:
        for name, ms in one.stages(f"{one.model} ").items():
            if ms is not None:
                stages[name] = (stages.get(name) or 0.0) + ms
    return {**record, **stages}
