"""What all OpenSLO documents have in common."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from tailbudget.schemas.settings_base import Group

API_VERSION: Final = "openslo/v1"

DnsLabel = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
"""Name of an object: a DNS label of RFC 1123."""

DurationText = Annotated[str, Field(pattern=r"^[1-9][0-9]*[mhdwMQY]$")]
"""A whole number and a unit; m is a minute, M a month."""

Description = Annotated[str, Field(max_length=1050)]

Operator = Literal["lt", "lte", "gt", "gte"]


class Part(Group):
    """A part of a document: camel case, no other keys."""

    model_config: ClassVar[ConfigDict] = ConfigDict(alias_generator=to_camel)


class Metadata(Part):
    """Who an object is."""

    name: DnsLabel
    display_name: str | None = None
    labels: dict[str, str | list[str]] = Field(default={})
    annotations: dict[str, str] = Field(default={})


class Document(Part):
    """One object."""

    api_version: Literal["openslo/v1"]
    kind: str
    metadata: Metadata
    spec: Any
