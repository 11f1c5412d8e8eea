"""Service-level objectives."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, field_validator, model_validator

from tailbudget.schemas.openslo.alerting import PolicySpec
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
from tailbudget.schemas.openslo.sources import InlineSli
from tailbudget.schemas.settings_base import refuse

Share = Annotated[float, Field(ge=0, lt=1)]
Percent = Annotated[float, Field(ge=0, lt=100)]
SliceShare = Annotated[float, Field(gt=0, le=1)]


class Calendar(Part):
    """Where calendar periods begin."""

    start_time: str
    time_zone: str

    @field_validator("start_time")
    @classmethod
    def _is_time(cls, value: str) -> str:
        try:
            datetime.strptime(value, "%Y-%m-%d %H:%M:%S")  # noqa: DTZ007 - local to time_zone
        except ValueError as error:
            raise refuse("time", "is no time", "write it as 2026-01-01 00:00:00") from error
        return value

    @field_validator("time_zone")
    @classmethod
    def _is_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise refuse("zone", "is no IANA time zone", "such as Europe/Berlin") from error
        return value


class TimeWindow(Part):
    """What an error budget is for."""

    duration: DurationText
    is_rolling: bool = False
    calendar: Calendar | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.is_rolling == (self.calendar is not None):
            what = "calendar goes with isRolling: false, and only with it"
            raise refuse("calendar", what, "set isRolling, or give calendar")
        return self


class SloObjective(Part):
    """One threshold with its target."""

    display_name: str | None = None
    op: Operator | None = None
    value: float | None = None
    target: Share | None = None
    target_percent: Percent | None = None
    time_slice_target: SliceShare | None = None
    time_slice_window: DurationText | None = None
    indicator: InlineSli | None = None
    indicator_ref: DnsLabel | None = None
    composite_weight: float | None = None

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if (self.target is None) == (self.target_percent is None):
            raise refuse("target", "needs target or targetPercent, and not both", "give one")
        return self


class SloPolicy(Part):
    """An alert policy of an SLO: named, or written out."""

    alert_policy_ref: DnsLabel | None = None
    kind: Literal["AlertPolicy"] | None = None
    metadata: Metadata | None = None
    spec: PolicySpec | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        written = (self.kind, self.metadata, self.spec)
        require_one_form(self.alert_policy_ref, written, "alert policy")
        return self


class SloSpec(Part):
    """What is promised, over which time."""

    description: Description = ""
    service: str = Field(min_length=1)
    indicator: InlineSli | None = None
    indicator_ref: DnsLabel | None = None
    budgeting_method: Literal["Occurrences", "Timeslices", "RatioTimeslices"]
    time_window: tuple[TimeWindow, ...] = Field(default=(), max_length=1)
    objectives: tuple[SloObjective, ...] = Field(min_length=1)
    alert_policies: tuple[SloPolicy, ...] = ()


class Slo(Document):
    """A service-level objective."""

    kind: Literal["SLO"]
    spec: SloSpec
