"""Segments of a small service with one stage, a second each, for tests of the watch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from requests_of import PANE_NS, SECOND_NS, T0_NS, columns_of

from tailbudget.models.summarise import summarise
from tailbudget.streams.assembly import Folded

RATE = 40
SOURCE = "requests:0:1"


def second(number: int, slow: float = 1.0, rate: int = RATE, seed: int = 1) -> Folded:
    """Return the segment of one second of a service with one stage and two covariates."""
    random = np.random.default_rng((seed, number))
    tokens = np.round(300 * np.exp(0.6 * random.normal(size=rate)))
    batch = 1.0 + random.poisson(3, rate)
    ms = (5 + 0.03 * tokens) * (1 + 0.05 * batch) * np.exp(0.1 * random.normal(size=rate)) * slow
    first = number * rate
    times = T0_NS + number * SECOND_NS + np.sort(random.integers(0, SECOND_NS, rate))
    columns = columns_of((ms + 1).tolist(), ids=range(first, first + rate), ts_ns=times.tolist())
    columns = replace(
        columns,
        stages=("prefill",),
        stage_ms=ms[None, :],
        covariates=("batch_size", "input_tokens"),
        covariate=np.stack([batch, tokens]),
    )
    summary = summarise(columns, pane_ns=PANE_NS, thresholds_ms=())
    return Folded("chat", {SOURCE: first + rate}, number, (summary,), 100)
