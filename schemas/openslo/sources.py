"""Services, data sources and indicators."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from tailbudget.schemas.openslo.common import Description, DnsLabel, Document, Metadata, Part
from tailbudget.schemas.settings_base import refuse


class ServiceSpec(Part):
    """A service."""

    description: Description = ""


class Service(Document):
    """A service that promises something."""

    kind: Literal["Service"]
    spec: ServiceSpec = ServiceSpec()


class DataSourceSpec(Part):
    """Where measurements come from."""

    description: Description = ""
    type: str = Field(min_length=1)
    connection_details: dict[str, Any]


class DataSource(Document):
    """A source of measurements that several indicators name."""

    kind: Literal["DataSource"]
    spec: DataSourceSpec


class MetricSource(Part):
    """What to measure, and where."""

    metric_source_ref: DnsLabel | None = None
    type: str | None = None
    spec: dict[str, Any] = Field(min_length=1)


class Metric(Part):
    """One measurement."""

    metric_source: MetricSource


class RatioMetric(Part):
    """Good or bad events of all."""

    counter: bool
    good: Metric | None = None
    bad: Metric | None = None
    total: Metric | None = None
    raw_type: Literal["success", "failure"] | None = None
    raw: Metric | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.total is None) == (self.raw is None):
            raise refuse("ratio", "needs total or raw, and not both", "give one of them")
        if self.total is not None and (self.good is None) == (self.bad is None):
            raise refuse("ratio", "needs good or bad beside total", "give one of them")
        if self.raw is not None and (self.raw_type is None or self.good or self.bad):
            raise refuse("ratio", "raw needs rawType, and neither good nor bad", "add rawType")
        return self


class SliSpec(Part):
    """An indicator: a measured value, or a ratio of events."""

    description: Description = ""
    threshold_metric: Metric | None = None
    ratio_metric: RatioMetric | None = None

    @model_validator(mode="after")
    def _one_metric(self) -> Self:
        if (self.threshold_metric is None) == (self.ratio_metric is None):
            raise refuse(
                "metric", "needs thresholdMetric or ratioMetric, and not both", "give one of them"
            )
        return self


class Sli(Document):
    """An indicator that several SLOs name."""

    kind: Literal["SLI"]
    spec: SliSpec


class InlineSli(Part):
    """An indicator within an SLO."""

    metadata: Metadata
    spec: SliSpec
