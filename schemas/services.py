"""Settings of one service: its targets, and which columns of its records mean what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import Field, field_validator, model_validator

from tailbudget.schemas.objective_settings import (
    MaintenanceSettings,
    ObjectiveSettings,
    dimensions,
    distinct_names,
    from_target,
)
from tailbudget.schemas.objectives import Correction, Objective
from tailbudget.schemas.records import RESERVED_STAGES
from tailbudget.schemas.settings_base import Group, refuse
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.targets import Slo
from tailbudget.schemas.token_settings import GoodputSettings, TokenTimingSettings

DEFAULT_COVARIATES: Final = (
    "sequence_length",
    "prompt_tokens",
    "input_tokens",
    "output_tokens",
    "batch_size",
    "image_pixels",
    "payload_bytes",
    "candidates",
    "fanout",
)
"""Input-shape columns that instrumentation commonly writes; absent ones cost nothing."""

DEFAULT_COHORT_DIMS: Final = ("route", "model_variant", "region", "customer_tier")

_MEANINGS: Final = "numbers that latency depends on are covariates; labels are dimensions"

Column = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_.]{0,99}$")]


class ServiceSettings(Group):
    """What one service promises and what its records carry."""

    slo: Slo | None = Field(
        default=None, description="latency that the service promises; null promises none"
    )
    objectives: tuple[ObjectiveSettings, ...] | None = Field(
        default=None, description="error budgets; null takes that of slo over 30 days, [] none"
    )
    maintenance: tuple[MaintenanceSettings, ...] = Field(
        default=(), description="spans that the corrected figure of a budget leaves out"
    )
    covariates: tuple[Column, ...] = Field(
        default=DEFAULT_COVARIATES, description="columns that describe the shape of the input"
    )
    cohort_dims: tuple[Column, ...] = Field(
        default=DEFAULT_COHORT_DIMS,
        description="columns whose values make up a request's cohort, in order",
    )
    stages: tuple[Column, ...] | None = Field(
        default=None, description="stages to keep, without _ms; null keeps every <stage>_ms column"
    )
    cold_start_window_min: float = Field(
        default=5.0, ge=0, le=1440, description="minutes after a deploy that count as cold"
    )
    goodput: GoodputSettings | None = Field(
        default=None, description="what a good request keeps, all of it; null counts none"
    )
    token_timing: TokenTimingSettings | None = Field(
        default=None,
        description="what the records mean by times of tokens; null takes that of their format",
    )
    workload: Literal["online", "batch"] = Field(
        default="online", description="batch: nobody waits for an answer, and no report is drawn"
    )

    @field_validator("objectives")
    @classmethod
    def _objective_names(
        cls, value: tuple[ObjectiveSettings, ...] | None
    ) -> tuple[ObjectiveSettings, ...] | None:
        if problem := distinct_names(value):
            raise refuse("twice", *problem)
        return value

    @field_validator("covariates", "cohort_dims", "stages")
    @classmethod
    def _distinct(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        twice = sorted({name for name in value or () if (value or ()).count(name) > 1})
        if twice:
            raise refuse("twice", f"names {twice[0]!r} twice", "list each column once")
        return value

    @field_validator("stages")
    @classmethod
    def _stage_names(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for name in value or ():
            if name.endswith("_ms"):
                raise refuse("suffix", f"{name!r} ends in _ms", f"write {name[:-3]!r}")
            if name in RESERVED_STAGES:
                raise refuse("reserved", f"{name!r} is kept for ourselves", "leave it out")
        return value

    @model_validator(mode="after")
    def _one_meaning(self) -> Self:
        if both := self.ambiguous():
            raise refuse(
                "both", f"{both[0]!r} is both a covariate and a cohort dimension", _MEANINGS
            )
        return self

    def ambiguous(self) -> list[str]:
        """Return the columns that are listed as a covariate and as a dimension."""
        return sorted(set(self.covariates) & set(self.cohort_dims))

    def target(self) -> SloTarget:
        """Return the target, which promises nothing when none is set."""
        return self.slo or SloTarget()

    def unknown_dimension(self) -> tuple[str, str] | None:
        """Return a dimension that an objective asks for and records lack, and the objective."""
        asked = dimensions(self.objectives)
        return next((pair for pair in asked.items() if pair[0] not in self.cohort_dims), None)

    def slos(self, service: str) -> tuple[Objective, ...]:
        """Return the objectives of a service of that name."""
        if self.objectives is not None:
            return tuple(one.objective(service) for one in self.objectives)
        return (from_target(service, self.slo),) if self.slo else ()

    def corrections(self) -> tuple[Correction, ...]:
        """Return the spans that corrected figures leave out."""
        return tuple(one.correction() for one in self.maintenance)

    def thresholds_ms(self) -> tuple[float, ...]:
        """Return the latencies beyond which requests are to be counted exactly, ascending."""
        counted = {one.threshold_ms for one in self.objectives or () if one.threshold_ms}
        return tuple(sorted({*self.target().thresholds_ms(), *counted}))

    def over(self, defaults: ServiceSettings) -> ServiceSettings:
        """Return these settings, with those of `defaults` for keys that are not set here."""
        own = {key: getattr(self, key) for key in self.model_fields_set}
        return defaults.model_copy(update=own)


def check_merged(
    services: Mapping[str, ServiceSettings], defaults: ServiceSettings
) -> Mapping[str, ServiceSettings]:
    """Return the services; refuse one that contradicts itself once `defaults` fill it up."""
    for name, own in services.items():
        if both := own.over(defaults).ambiguous():
            raise refuse(
                "both",
                f"{name}: {both[0]!r} is both a covariate and a cohort dimension (one of them "
                "through defaults)",
                _MEANINGS,
            )
        if unknown := own.over(defaults).unknown_dimension():
            raise refuse(
                "dimension",
                f"{name}: objective {unknown[1]!r} asks for {unknown[0]!r}, which is no dimension",
                "add it to cohort_dims, or take it out of the objective's cohort",
            )
    return services
