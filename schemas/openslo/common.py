"""What all OpenSLO documents have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from tailbudget.schemas.settings_base import Group, refuse

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


def require_one_form(reference: str | None, written: Sequence[object], what: str) -> None:
    """Refuse a part that is neither a reference alone nor written out whole.

    Args:
        reference: the name that it refers to.
        written: kind, metadata and spec.
        what: what it is: "alert policy" has the key alertPolicyRef, and is called a policy.
    """
    if (reference is None) == (None in written) or (reference is not None and any(written)):
        remedy = f"give {to_camel(what.replace(' ', '_'))}Ref, or kind, metadata and spec"
        raise refuse(
            "form", f"is neither a reference nor a whole {what.rsplit(maxsplit=1)[-1]}", remedy
        )


class Document(Part):
    """One object."""

    api_version: Literal["openslo/v1"]
    kind: str
    metadata: Metadata
    spec: Any
