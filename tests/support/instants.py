"""Exclusive times of spans, found the slow way: instant by instant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Timed:
    """A span by instants, [start, end) after that of the root."""

    id: str
    parent: str
    name: str
    start: int
    end: int


def exclusive(spans: Iterable[Timed], length: int) -> Mapping[str, int]:
    """Return by name at how many instants a span ran of which no child did; root left out."""
    every = list(spans)
    busy = {}
    for span in every:
        busy[span.id] = np.zeros(length, np.bool_)
        busy[span.id][max(span.start, 0) : max(span.end, 0)] = True
    own = {id_: running.copy() for id_, running in busy.items()}
    for span in every:
        if span.parent in own:
            own[span.parent] &= ~busy[span.id]
    found: dict[str, np.ndarray] = {}
    for span in every:
        if span.parent:
            found[span.name] = found.get(span.name, np.zeros(length, np.bool_)) | own[span.id]
    return {name: int(running.sum()) for name, running in found.items()}
