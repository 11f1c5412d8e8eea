"""Sources: one decoder a format, all of which turn messages into the same columns.

The contract of the family, which every decoder keeps:

- `decode` never raises for what a message contains. What is no record is in `Decoded.rejected`,
  with the offset of its message; what contradicts itself is counted as quarantined; an unusable
  cell is NaN and counted as missing. Nothing is dropped uncounted.
- Rows and counts depend on the messages alone: any cut of a stream into batches gives the same.
  Only the sets of stages and covariates are those that occur in the batch.
- Rows keep the order of the messages, those of traces the order in which they are judged. Times
  are exact to the nanosecond.
- A decoder remembers the columns of its source, to be fast, and that of traces their spans; it is
  not to be shared by threads or by partitions. `finish` gives what is held at the end of a file;
  `first_offset` says where to read again for a decoder to hold the same.
- What people wrote, such as prompts, is never kept.

The formats of which each message stands for itself are translated to native records
(`translated`). Those of traces give spans (`span`; attributes by `trace_facts` and
`engine_latency`), which `traces` puts together (`trace_assembly`) and judges (`trace_requests`,
`trace_stages`), and so come to native records too.

A record goes `lines` (apart) -> `ndjson` (to a frame; `scan`, `repair`) -> `services` (one after
another, under our names: `renamed`) -> `columns` (judged by `verdicts`, counted by `tally`;
`numbers`, `stamps`, `outcomes`, `cohorts`, `schedule`). What is a frame from the start comes in
by `frames`. What columns mean is in `fields`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tailbudget.streams.sources.aiperf import AiperfDecoder
from tailbudget.streams.sources.aws_alb import AwsAlbDecoder
from tailbudget.streams.sources.base import (
    Decoder,
    Rules,
    ServiceRules,
    SourceBatch,
    SourceMessage,
)
from tailbudget.streams.sources.dynamo import DynamoDecoder
from tailbudget.streams.sources.envoy import EnvoyDecoder
from tailbudget.streams.sources.guidellm import GuidellmDecoder
from tailbudget.streams.sources.haproxy import HaproxyDecoder
from tailbudget.streams.sources.jaeger import JaegerDecoder
from tailbudget.streams.sources.llmperf import LlmperfDecoder
from tailbudget.streams.sources.mapped import MappedDecoder
from tailbudget.streams.sources.model_servers import (
    KserveDecoder,
    RayServeDecoder,
    TorchserveDecoder,
)
from tailbudget.streams.sources.native import NativeDecoder
from tailbudget.streams.sources.nginx import NginxDecoder
from tailbudget.streams.sources.otel_spans import OtelSpansDecoder
from tailbudget.streams.sources.otlp_json import OtlpJsonDecoder
from tailbudget.streams.sources.otlp_proto import OtlpProtoDecoder
from tailbudget.streams.sources.perf_analyzer import PerfAnalyzerDecoder
from tailbudget.streams.sources.sglang_log import SglangLogDecoder
from tailbudget.streams.sources.tgi import TgiDecoder
from tailbudget.streams.sources.traces import TraceDecoder
from tailbudget.streams.sources.traefik import TraefikDecoder
from tailbudget.streams.sources.translated import Translated
from tailbudget.streams.sources.triton import TritonDecoder
from tailbudget.streams.sources.vllm_bench import VllmBenchDecoder
from tailbudget.streams.sources.zipkin import ZipkinDecoder

_ALL: Final[tuple[type[NativeDecoder | Translated | TraceDecoder], ...]] = (
    NativeDecoder,
    AiperfDecoder,
    LlmperfDecoder,
    OtlpJsonDecoder,
    OtlpProtoDecoder,
    OtelSpansDecoder,
    JaegerDecoder,
    ZipkinDecoder,
    NginxDecoder,
    EnvoyDecoder,
    AwsAlbDecoder,
    HaproxyDecoder,
    TraefikDecoder,
    GuidellmDecoder,
    VllmBenchDecoder,
    PerfAnalyzerDecoder,
    TritonDecoder,
    DynamoDecoder,
    TgiDecoder,
    SglangLogDecoder,
    TorchserveDecoder,
    RayServeDecoder,
    KserveDecoder,
)
FORMATS: Final[Mapping[str, type[Decoder]]] = MappingProxyType({one.name: one for one in _ALL})
"""Decoders by the name of their format."""

ACCESS_LOGS: Final = (
    EnvoyDecoder,
    HaproxyDecoder,
    AwsAlbDecoder,
    TraefikDecoder,
    TorchserveDecoder,
    KserveDecoder,
    SglangLogDecoder,
    TgiDecoder,
    RayServeDecoder,
    NginxDecoder,
)
"""Decoders of access logs, in the order in which they are tried on a line of unknown format."""

DOCUMENTS: Final = frozenset(one.name for one in _ALL if issubclass(one, Translated) and one.whole)
"""Formats of which a file is one document."""

HOLDING: Final = frozenset(one.name for one in _ALL if issubclass(one, TraceDecoder))
"""Formats of which a decoder holds something from one message to the next."""


def decoder(name: str, rules: Rules) -> Decoder:
    """Return a decoder of the format `name`.

    Raises:
        KeyError: there is no such format; `FORMATS` names them.
    """
    if rules.mapping is not None and name == MappedDecoder.name:
        return MappedDecoder(rules)
    return FORMATS[name](rules)


__all__ = [
    "ACCESS_LOGS",
    "DOCUMENTS",
    "FORMATS",
    "HOLDING",
    "Decoder",
    "Rules",
    "ServiceRules",
    "SourceBatch",
    "SourceMessage",
    "decoder",
]
