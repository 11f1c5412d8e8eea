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
        "perf_analyzer": TokenTiming("client", "chunk", reasoning=None, per_output="gaps"),
    }
)
"""By format, after the tools' documentation and code. Spans tell an engine's times."""


def require_same(one: str, other: str) -> None:
    """Refuse to compare sources of which the token timings mean different things.

    Args:
        one: format of a log, as `Found.format` names it.
        other: format of what it is compared with.

    Raises:
        Refused: both have a definition, and not the same.
    """
    mine, theirs = DEFINITIONS.get(one), DEFINITIONS.get(other)
    if mine is None or theirs is None or mine == theirs:
        return
    raise Refused(
        refusals.DEFINITIONS,
        f"{one} and {other} do not mean the same by the time to the first token: {mine} - {theirs}",
        "compare results of one tool, or logs of the service itself",
    )
