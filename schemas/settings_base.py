"""What all groups of settings have in common."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

Port = Annotated[int, Field(ge=1, le=65535)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,200}$")]
"""What Kafka accepts as the name of a topic or a group, with room for our suffixes."""


class Group(BaseModel):
    """A frozen group of settings that refuses unknown keys and never shows its input."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,
        allow_inf_nan=False,
        use_attribute_docstrings=False,
    )

    @field_validator("*", mode="before")
    @classmethod
    def _true_is_no_number(cls, value: Any, info: ValidationInfo) -> Any:
        """Refuse `on` and `true` for numbers: they would silently read as 1."""
        field = cls.model_fields[info.field_name or ""]
        if isinstance(value, bool) and field.annotation in (int, float, int | None, float | None):
            raise refuse("boolean", "is a truth value", "give a number")
        return value


def refuse(kind: str, message: str, remedy: str) -> PydanticCustomError:
    """Return the error that says what is wrong with a value, and what to write instead."""
    return PydanticCustomError(kind, "{message}", {"message": message, "remedy": remedy})
