"""What a tool means by the time to the first token, and by the time of each output token.

Two of them are the same figure only where all of it agrees; a comparison of others is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from tailbudget.schemas import refusals
from tailbudget.schemas.errors import Refused


@dataclass(frozen=True, slots=True)
class TokenTiming:
    """A definition.

    Attributes:
        where: "client" hears a token, after the network; "engine" has made it.
        first: what ends the time to the first token: a "token", or the first "chunk" of the
            answer, which may hold several tokens, or none.
        reasoning: a token of reasoning counts for the first; None where the tool does not say.
        per_output: what the time of each output token is of: "all", the whole latency over all
            tokens; "after_first", the rest of it over the others; "gaps", each gap by itself.
    """

    where: Literal["client", "engine"]
    first: Literal["token", "chunk"]
    reasoning: bool | None
    per_output: Literal["all", "after_first", "gaps"]

    def __str__(self) -> str:
        """Return the definition in words."""
        counts = {True: "reasoning counts", False: "reasoning does not count"}
        each = {
            "all": "the whole latency over all tokens",
            "after_first": "what follows the first token over the others",
            "gaps": "each gap by itself",
        }
        told = "reasoning is not told apart" if self.reasoning is None else counts[self.reasoning]
        return (
            f"to the first {self.first} at the {self.where}, {told};"
            f" time of an output token: {each[self.per_output]}"
        )


DEFINITIONS: Final[Mapping[str, TokenTiming]] = MappingProxyType(
    {
        "aiperf": TokenTiming("client", "token", reasoning=True, per_output="after_first"),
        "llmperf": TokenTiming("client", "token", reasoning=None, per_output="all"),
        "guidellm": TokenTiming("client", "token", reasoning=True, per_output="after_first"),
        "vllm_bench": TokenTiming("client", "chunk", reasoning=None, per_output="gaps"),
        "dynamo": TokenTiming("engine", "token", reasoning=None, per_output="after_first"),
        "otlp_proto": TokenTiming("engine", "token", reasoning=None, per_output="after_first"),
        "otlp_json": TokenTiming("engine", "token", reasoning=None, per_output="after_first"),
        "otel_spans": TokenTiming("engine", "token", reasoning=None, per_output="after_first"),
        "perf_analyzer": TokenTiming("client", "chunk", reasoning=None, per_output="gaps"),
    }
)
"""By format, after the tools' documentation and code. Spans tell an engine's times."""


@dataclass(frozen=True, slots=True)
class GoodputTarget:
    """What a good request keeps, all of it: DistServe's definition (Zhong et al., OSDI 2024).

    Attributes:
        ttft_ms: most to the first token; None promises nothing, as for the others.
        tpot_ms: most for each output token.
        e2e_ms: most for the whole request.
    """

    ttft_ms: float | None = None
    tpot_ms: float | None = None
    e2e_ms: float | None = None

    def __bool__(self) -> bool:
        """Return whether anything is promised."""
        return any(ms is not None for ms in (self.ttft_ms, self.tpot_ms, self.e2e_ms))


@dataclass(frozen=True, slots=True)
class TokenRow:
    """Percentiles of one time, of which each successful request has one value.

    Attributes:
        figure: "ttft", "itl" (the mean of a request's own gaps) or "tpot".
        n: requests that tell it.
        p50_ms: nearest-rank percentile over those; None where they are too few.
        p95_ms: likewise.
        p99_ms: likewise.
    """

    figure: str
    n: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


@dataclass(frozen=True, slots=True)
class Goodput:
    """Requests that met every target.

    Attributes:
        ttft_ms: the target of the time to the first token, as in `GoodputTarget`.
        tpot_ms: likewise.
        e2e_ms: likewise.
        n: requests, failures included.
        good: those that met all of them; a failed one met none.
        share_pct: good ones by all; None without any.
        per_s: good ones a second of the span; None where requests have no times.
        untold: successful requests that do not tell what is promised, and so are not good.
    """

    ttft_ms: float | None
    tpot_ms: float | None
    e2e_ms: float | None
    n: int
    good: int
    share_pct: float | None
    per_s: float | None
    untold: int


@dataclass(frozen=True, slots=True)
class TokenTimings:
    """What is known of the tokens of a service.

    Attributes:
        definition: what the source means by them; None where nobody says.
        rows: a row for each time that any request tells.
        goodput: None where no target of it is set.
    """

    definition: TokenTiming | None
    rows: tuple[TokenRow, ...]
    goodput: Goodput | None


@dataclass(frozen=True, slots=True)
class Source:
    """A source that tells times of tokens.

    Attributes:
        format: as `Found.format` names it.
        definition: what it means by them; None where nobody says.
    """

    format: str
    definition: TokenTiming | None


def require_same(one: Source, other: Source) -> None:
    """Refuse to compare sources of which the token timings mean different things.

    Raises:
        Refused: both have a definition, and not the same.
    """
    mine, theirs = one.definition, other.definition
    if mine is None or theirs is None or mine == theirs:
        return
    raise Refused(
        refusals.DEFINITIONS,
        f"{one.format} and {other.format} do not mean the same by the time to the first token:"
        f" {mine} - {theirs}",
        "compare results of one tool, or logs of the service itself",
    )
