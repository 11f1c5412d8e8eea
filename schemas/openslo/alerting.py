"""Alert policies, their conditions, and who is told."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from tailbudget.schemas.openslo.common import (
    Description,
    DnsLabel,
    Document,
    DurationText,
    Metadata,
    Operator,
    Part,
    require_one_form,
)


class BurnCondition(Part):
    """A burn rate over a window."""

    kind: Literal["burnrate"]
    op: Operator
    threshold: float
    lookback_window: DurationText
    alert_after: DurationText | None = None


class ConditionSpec(Part):
    """When to alert, and how urgent that is."""

    description: Description = ""
    severity: str = Field(min_length=1)
    condition: BurnCondition


class AlertCondition(Document):
    """A condition that several policies name."""

    kind: Literal["AlertCondition"]
    spec: ConditionSpec


class TargetSpec(Part):
    """Who is told."""

    description: Description = ""
    target: str = Field(min_length=1)


class AlertNotificationTarget(Document):
    """A target that several policies name."""

    kind: Literal["AlertNotificationTarget"]
    spec: TargetSpec


class PolicyCondition(Part):
    """A condition of a policy: named, or written out."""

    condition_ref: DnsLabel | None = None
    kind: Literal["AlertCondition"] | None = None
    metadata: Metadata | None = None
    spec: ConditionSpec | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        written = (self.kind, self.metadata, self.spec)
        require_one_form(self.condition_ref, written, "condition")
        return self


class PolicyTarget(Part):
    """A target of a policy: named, or written out."""

    target_ref: DnsLabel | None = None
    kind: Literal["AlertNotificationTarget"] | None = None
    metadata: Metadata | None = None
    spec: TargetSpec | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        written = (self.kind, self.metadata, self.spec)
        require_one_form(self.target_ref, written, "target")
        return self


class PolicySpec(Part):
    """When to tell whom."""

    description: Description = ""
    alert_when_no_data: bool = False
    alert_when_breaching: bool = False
    alert_when_resolved: bool = False
    conditions: tuple[PolicyCondition, ...] = Field(min_length=1, max_length=1)
    notification_targets: tuple[PolicyTarget, ...] = Field(min_length=1)


class AlertPolicy(Document):
    """A policy that several SLOs name."""

    kind: Literal["AlertPolicy"]
    spec: PolicySpec
