"""Settings of objectives: what counts as good, over which time, and when they alert."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Annotated, Final, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AwareDatetime, Field, field_validator, model_validator

from tailbudget.schemas.durations import duration_s, parse_duration
from tailbudget.schemas.objectives import (
    UNITS,
    AlertTiming,
    BurnRule,
    Correction,
    Objective,
    Period,
    Severity,
    share,
)
from tailbudget.schemas.settings_base import Group, refuse
from tailbudget.schemas.slo import SloTarget

SHORT_SHARE: Final = 12
"""The long window is so many times the short one: Beyer et al., The Site Reliability Workbook,
chapter 5, "Multiwindow, Multi-Burn-Rate Alerts"."""

DEFAULT_NAME: Final = "latency"
"""Name of the objective that a target stands for."""

Percent = Annotated[float, Field(gt=0, lt=100)]
Duration = Annotated[str, Field(min_length=2, max_length=8)]


class BurnSettings(Group):
    """One rule: how fast the budget may burn over a window."""

    window: Duration = Field(description="length of the long window, such as 1h")
    factor: float | None = Field(
        default=None, gt=0, description="burn rate at which it fires; give it or budget_pct"
    )
    budget_pct: float | None = Field(
        default=None,
        gt=0,
        le=100,
        description="share of the period's budget that the window may spend, per cent",
    )
    short: Duration | None = Field(
        default=None, description="length of the short window; null takes a twelfth of the long one"
    )
    severity: Literal["page", "ticket"] = Field(default="page", description="how urgent it is")

    @field_validator("window", "short")
    @classmethod
    def _is_duration(cls, value: str | None) -> str | None:
        if value is not None:
            _checked(value)
        return value

    @model_validator(mode="after")
    def _one_measure(self) -> Self:
        if (self.factor is None) == (self.budget_pct is None):
            raise refuse("measure", "needs factor or budget_pct, and not both", "give one of them")
        if self.short is not None and duration_s(self.short) > duration_s(self.window):
            raise refuse("short", "short is longer than window", "a twelfth of window is usual")
        return self

    def rule(self, period_s: int) -> BurnRule:
        """Return the rule for a budget of so many seconds: factor = share * period / window."""
        long_s = duration_s(self.window)
        short_s = duration_s(self.short) if self.short else max(long_s // SHORT_SHARE, 1)
        factor = self.factor or (self.budget_pct or 0.0) / 100 * period_s / long_s
        return BurnRule(Severity(self.severity), factor, long_s, short_s)


class ObjectiveSettings(Group):
    """One objective of a service."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$", description="unique within the service")
    target_pct: Percent = Field(description="share of events that must be good, per cent")
    threshold_ms: float | None = Field(
        default=None, gt=0, description="a good request is no slower; null counts failures only"
    )
    cohort: dict[str, str] = Field(
        default={}, description="dimensions and values that requests must have; empty takes all"
    )
    period: Duration = Field(
        default="30d", description="what the error budget is for, in m, h, d, w, M, Q or Y"
    )
    calendar_start: str | None = Field(
        default=None,
        description="local time at which some period begins; null lets the period roll",
    )
    time_zone: str = Field(default="UTC", description="IANA time zone of calendar_start")
    slice_s: int | None = Field(
        default=None,
        ge=10,
        le=3600,
        description="count slices of so many seconds, not requests; null counts requests",
    )
    slice_target_pct: float | None = Field(
        default=None,
        gt=0,
        le=100,
        description="share of a slice's requests that must be good, per cent; needed with slice_s",
    )
    burn: tuple[BurnSettings, ...] = Field(
        default=(), description="burn rates that alert; empty takes those of the period"
    )
    min_bad: int = Field(
        default=10, ge=1, description="bad events in the long window below which nothing fires"
    )
    pending_s: float = Field(default=0.0, ge=0, description="how long it must hold before it fires")
    keep_firing_s: float = Field(
        default=0.0, ge=0, description="how long it must be over before it is resolved"
    )
    no_data_s: float = Field(
        default=600.0, gt=0, description="silence after which there is nothing to judge by"
    )

    @field_validator("period")
    @classmethod
    def _is_period(cls, value: str) -> str:
        if _checked(value)[1] not in UNITS:
            raise refuse("period", "is no period", "use m, h, d, w, M, Q or Y, such as 30d")
        return value

    @field_validator("time_zone")
    @classmethod
    def _is_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise refuse(
                "zone", "is no IANA time zone", "write it as UTC or Europe/Berlin"
            ) from error
        return value

    @field_validator("calendar_start", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        """Return the text of what YAML takes for a date."""
        return value.isoformat() if isinstance(value, date) else value

    @field_validator("calendar_start")
    @classmethod
    def _is_local(cls, value: str | None) -> str | None:
        if value is None:
            return None
        try:
            at = datetime.fromisoformat(value)
        except ValueError as error:
            raise refuse("start", "is no time", "write it as 2026-01-01 00:00:00") from error
        if at.tzinfo is not None:
            raise refuse("start", "has an offset", "leave it out; time_zone says where it is")
        return at.isoformat()

    @model_validator(mode="after")
    def _slices(self) -> Self:
        if (self.slice_s is None) != (self.slice_target_pct is None):
            raise refuse(
                "slices", "slice_s and slice_target_pct go together", "give both or neither"
            )
        limit = float(1 / (1 - share(self.target_pct)))
        for rule in self._rules():
            if rule.factor >= limit:
                raise refuse(
                    "unreachable",
                    f"a burn rate of {rule.factor:g} is never reached: with every event bad"
                    f" it is {limit:g}",
                    "choose a lower factor or budget_pct, or a longer window",
                )
        return self

    def objective(self, service: str) -> Objective:
        """Return the objective of a service."""
        count, unit = parse_duration(self.period)
        return Objective(
            service=service,
            name=self.name,
            target=share(self.target_pct),
            threshold_ms=self.threshold_ms,
            cohort=tuple(sorted(self.cohort.items())),
            period=Period(count, unit, self.calendar_start or "", self.time_zone),
            slice_s=self.slice_s,
            slice_target=share(self.slice_target_pct or 100),
            rules=self._rules(),
            timing=AlertTiming(self.min_bad, self.pending_s, self.keep_firing_s, self.no_data_s),
        )

    def _rules(self) -> tuple[BurnRule, ...]:
        return tuple(one.rule(duration_s(self.period)) for one in self.burn)


class MaintenanceSettings(Group):
    """A span that does not count against the corrected figure."""

    start: AwareDatetime = Field(description="its start, with an offset")
    end: AwareDatetime = Field(description="its end, with an offset")
    why: str = Field(min_length=1, max_length=200, description="what was done")

    @model_validator(mode="after")
    def _forward(self) -> Self:
        if self.end <= self.start:
            raise refuse("order", "ends before it begins", "give end after start")
        return self

    def correction(self) -> Correction:
        """Return the span in event time."""
        return Correction(_ns(self.start), _ns(self.end), self.why)


def from_target(service: str, slo: SloTarget) -> Objective:
    """Return the objective that a target stands for: its error budget over 30 rolling days."""
    allowed = share(slo.error_budget_pct)
    return Objective(service, DEFAULT_NAME, 1 - allowed, threshold_ms=slo.p99_ms)


def distinct_names(value: tuple[ObjectiveSettings, ...] | None) -> tuple[str, str] | None:
    """Return what is wrong with the names of objectives, and the remedy; None when nothing is."""
    names = [one.name for one in value or ()]
    twice = sorted({name for name in names if names.count(name) > 1})
    return (f"names two objectives {twice[0]!r}", "rename one") if twice else None


def dimensions(value: tuple[ObjectiveSettings, ...] | None) -> Mapping[str, str]:
    """Return the dimensions that objectives ask for, each with the name of an objective."""
    return {dimension: one.name for one in value or () for dimension in one.cohort}


def _checked(value: str) -> tuple[int, str]:
    try:
        return parse_duration(value)
    except ValueError as error:
        raise refuse("duration", "is no duration", "write it as 5m, 6h or 30d") from error


def _ns(at: datetime) -> int:
    return int(at.astimezone(UTC).timestamp()) * 10**9
