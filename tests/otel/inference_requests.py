"""Requests that a simulated inference service is to serve."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

VERSIONS = ("v1", "v2")
ROUTES = ("/v1/chat", "/v1/summaries")
MODELS = ("small", "large")
FAILURES = (504, 500, 429)
MS = 1_000_000
"""Nanoseconds."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a request is to do; lengths in nanoseconds.

    Attributes:
        at: start, after that of the service.
        version: of the service.
        route: that it came on.
        model: that it is for.
        tokens: of input and of output.
        code: of HTTP, that it ends with.
        work: lengths of queue, preprocess, tokenize, retrieve, model_forward, decode and the rest.
    """

    at: int
    version: str
    route: str
    model: str
    tokens: tuple[int, int]
    code: int
    work: tuple[int, ...]


def requests(n: int, seed: int, every_ns: int, scale: float) -> Iterator[Request]:
    """Yield requests; the second version takes over in the middle."""
    draw = random.Random(seed)  # noqa: S311
    for number in range(n):
        model = MODELS[draw.random() < 0.3]
        tokens = round(draw.lognormvariate(5, 0.6)) + 1, round(draw.lognormvariate(3, 0.5)) + 1
        forward = tokens[0] * (0.06 if model == "large" else 0.02)
        lengths = (
            draw.expovariate(1 / 2) + 0.3,
            1.0 + draw.random(),
            0.5 + tokens[0] * draw.uniform(0.003, 0.005),
            draw.lognormvariate(1, 0.7),
            forward * draw.uniform(0.9, 1.1) + 1.0,
            tokens[1] * draw.uniform(0.18, 0.22) + 0.5,
            0.3 + draw.random() * 0.5,
        )
        yield Request(
            at=number * every_ns,
            version=VERSIONS[number >= n // 2],
            route=ROUTES[draw.random() < 0.25],
            model=model,
            tokens=tokens,
            code=draw.choice(FAILURES) if draw.random() < 0.03 else 200,
            work=tuple(round(ms * scale * MS) for ms in lengths),
        )
