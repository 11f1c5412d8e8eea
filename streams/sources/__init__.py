"""Sources: one decoder a format, all of which turn messages into the same columns.

The contract of the family, which every decoder keeps:

- `decode` never raises for what a message contains. What is no record is in `Decoded.rejected`,
  with the offset of its message; what contradicts itself is counted as quarantined; an unusable
  cell is NaN and counted as missing. Nothing is dropped uncounted.
- Rows and counts depend on the messages alone: any cut of a stream into batches gives the same.
  Only the sets of stages and covariates are those that occur in the batch.
- Rows keep the order of the messages. Times are exact to the nanosecond.
- A decoder remembers the columns of its source, to be fast; it is not to be shared by threads.

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
from tailbudget.streams.sources.base import (
    Decoder,
    Rules,
    ServiceRules,
    SourceBatch,
    SourceMessage,
)
from tailbudget.streams.sources.llmperf import LlmperfDecoder
from tailbudget.streams.sources.native import NativeDecoder

FORMATS: Final[Mapping[str, type[NativeDecoder | AiperfDecoder | LlmperfDecoder]]] = (
    MappingProxyType({"native": NativeDecoder, "aiperf": AiperfDecoder, "llmperf": LlmperfDecoder})
)
"""Decoders by the name of their format."""


def decoder(name: str, rules: Rules) -> Decoder:
    """Return a decoder of the format `name`.

    Raises:
        KeyError: there is no such format; `FORMATS` names them.
    """
    return FORMATS[name](rules)


__all__ = ["FORMATS", "Decoder", "Rules", "ServiceRules", "SourceBatch", "SourceMessage", "decoder"]
