"""Settings of token timings: what a service means by them, and what a good request keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, ValidationError, model_validator

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.settings_base import Group, refuse
from tailbudget.schemas.token_timing import GoodputTarget, TokenTiming

_FORM: Final = "write it as ttft=200,tpot=50,e2e=2000, each in milliseconds"

_Most = Annotated[float, Field(gt=0)]


class TokenTimingSettings(Group):
    """What a service's own records mean by the times of tokens."""

    where: Literal["client", "engine"] = Field(
        description="who takes the time: a client, after the network, or the engine that made it"
    )
    first: Literal["token", "chunk"] = Field(
        description="what ends the time to the first token: a token, or a chunk of several or none"
    )
    reasoning: bool | None = Field(
        default=None, description="a token of reasoning counts for the first; null is not told"
    )
    per_output: Literal["all", "after_first", "gaps"] = Field(
        default="after_first",
        description="what tpot_ms is of: all of the latency, what follows the first token, or gaps",
    )

    def definition(self) -> TokenTiming:
        """Return the definition."""
        return TokenTiming(self.where, self.first, self.reasoning, self.per_output)


class GoodputSettings(Group):
    """What a good request keeps, all of it."""

    ttft_ms: _Most | None = Field(default=None, description="most to the first token; null: any")
    tpot_ms: _Most | None = Field(default=None, description="most for each output token; null: any")
    e2e_ms: _Most | None = Field(default=None, description="most for the whole request; null: any")

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        try:
            return goodput_pairs(value)
        except ValueError as error:
            raise refuse("goodput_text", str(error), _FORM) from error

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.target():
            raise refuse("nothing", "promises nothing", _FORM)
        return self

    def target(self) -> GoodputTarget:
        """Return the target."""
        return GoodputTarget(self.ttft_ms, self.tpot_ms, self.e2e_ms)


def goodput_pairs(text: str) -> Mapping[str, str]:
    """Return the settings keys that a text such as ``ttft=200,tpot=50,e2e=2000`` names.

    Raises:
        ValueError: a part has no equals sign, or a name comes twice.
    """
    pairs: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        key = name if name.endswith("_ms") else f"{name}_ms"
        if not equals:
            raise ValueError(f"has the part {part!r}, which is not NAME=MILLISECONDS")
        if key in pairs:
            raise ValueError(f"gives {name} twice")
        pairs[key] = value
    return pairs


def parse_goodput(text: str) -> GoodputTarget:
    """Return the target that a text names.

    Raises:
        ConfigError: the text is of another form, or its numbers make no target.
    """
    given: Any = text
    try:
        return GoodputSettings.model_validate(given).target()
    except ValidationError as error:
        why = error.errors(include_url=False)[0]
        place = ".".join(map(str, why["loc"]))
        raise ConfigError(
            f"--goodput {text!r}: {place + ' ' if place else ''}{why['msg']}", remedy=_FORM
        ) from None
