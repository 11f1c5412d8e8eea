"""How a target is read: from the settings file, or from text such as ``p50=100,p99=200``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Final

from pydantic import BaseModel, Field, GetCoreSchemaHandler, ValidationInfo, field_validator
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from tailbudget.schemas.settings_base import Group
from tailbudget.schemas.slo import SloTarget

SHORT_NAMES: Final = {
    "p50": "p50_ms",
    "p95": "p95_ms",
    "p99": "p99_ms",
    "budget": "error_budget_pct",
}
"""The names in the text form; the long ones are accepted too."""

Milliseconds = Annotated[float, Field(gt=0)]


class SloFields(Group):
    """The keys of a target."""

    p50_ms: Milliseconds | None = Field(
        default=None, description="half of the requests are no slower"
    )
    p95_ms: Milliseconds | None = Field(
        default=None, description="95 % of the requests are no slower"
    )
    p99_ms: Milliseconds | None = Field(
        default=None, description="99 % of the requests are no slower"
    )
    error_budget_pct: float = Field(
        default=1.0,
        gt=0,
        lt=100,
        description="share of requests that may fail or be slower than p99_ms, per cent",
    )

    @field_validator("p95_ms", "p99_ms")
    @classmethod
    def _ascending(cls, value: float | None, info: ValidationInfo) -> float | None:
        for name in ("p50_ms", "p95_ms"):
            lower = info.data.get(name)
            if value is not None and lower is not None and lower > value:
                raise PydanticCustomError(
                    "descending",
                    "is below {name} ({lower})",
                    {
                        "name": name,
                        "lower": lower,
                        "remedy": "a higher percentile is never faster: p50_ms <= p95_ms <= p99_ms",
                    },
                )
        return value


def slo_pairs(text: str) -> dict[str, str]:
    """Return the settings keys that a text such as ``p50=100,p95=180,budget=1`` names.

    Raises:
        ValueError: a part has no equals sign, or a name comes twice.
    """
    pairs: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        key = SHORT_NAMES.get(name, name)
        if not equals:
            raise ValueError(f"has the part {part!r}, which is not NAME=MILLISECONDS")
        if key in pairs:
            raise ValueError(f"gives {name} twice")
        pairs[key] = value
    if not pairs:
        raise ValueError("names no percentile")
    return pairs


@dataclass(frozen=True, slots=True)
class ReadAs:
    """Annotation: validate through the keys of `fields`, then build a `SloTarget`.

    Attributes:
        fields: the model that describes the keys.
    """

    fields: type[BaseModel] = SloFields

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Return the schema of `fields`, with the text form before and the target after."""
        through = core_schema.no_info_before_validator_function(
            _as_mapping, handler.generate_schema(self.fields)
        )
        return core_schema.no_info_after_validator_function(_as_target, through)


Slo = Annotated[SloTarget, ReadAs()]
"""A `SloTarget` in a settings model."""


def _as_mapping(value: object) -> Mapping[str, Any] | object:
    if isinstance(value, SloTarget):
        return asdict(value)
    if not isinstance(value, str):
        return value
    try:
        return slo_pairs(value)
    except ValueError as error:
        raise PydanticCustomError(
            "slo_text",
            "{reason}",
            {"reason": str(error), "remedy": "write it as p50=100,p95=180,p99=200,budget=1"},
        ) from error


def _as_target(fields: SloFields) -> SloTarget:
    return SloTarget(**fields.model_dump())
