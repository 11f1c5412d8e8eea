"""All settings: one YAML file, overridden by the environment, checked as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError, ValidationInfo, field_validator, model_validator

from tailbudget.schemas.connections import ChatChannel, ClickHouseSettings, WebSettings
from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.kafka import KafkaSettings
from tailbudget.schemas.layers import Layers
from tailbudget.schemas.problems import config_error, describe
from tailbudget.schemas.services import ServiceSettings, check_merged
from tailbudget.schemas.settings_base import Group, refuse
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.targets import SloFields, slo_pairs
from tailbudget.schemas.yaml_file import Document, read_yaml


class StreamSettings(Group):
    """How records become panes, and what may be held in memory for it."""

    pane_s: int = Field(default=10, ge=1, le=60, description="length of a pane; divides 60")
    grace_s: float = Field(
        default=10.0,
        ge=0,
        le=3600,
        description="how long after its end a pane is open for late records",
    )
    max_future_s: float = Field(
        default=60.0,
        gt=0,
        le=86_400,
        description="how far ahead of its arrival a record may be dated",
    )
    tick_s: float = Field(
        default=0.25,
        gt=0,
        le=10,
        description="interval of summarising and publishing what was read",
    )
    flush_s: float = Field(default=2.0, gt=0, le=60, description="interval of writes to ClickHouse")
    max_cohorts: int = Field(
        default=2000, ge=1, description="cohorts kept apart per service; the rest goes to (other)"
    )
    max_record_bytes: int = Field(
        default=1_000_000, ge=1024, description="longest message that is decoded at all"
    )
    idle_s: float = Field(
        default=5.0,
        gt=0,
        description="silence after which a partition no longer holds event time back",
    )
    max_pending_mb: float = Field(
        default=256, gt=0, description="unwritten summaries held before consuming pauses"
    )
    dedup: int = Field(
        default=200_000, ge=0, description="request ids remembered per source partition; 0 is none"
    )
    retry_hold_s: float = Field(
        default=120.0,
        ge=0,
        le=3600,
        description="how long a failed attempt of an operation waits for the next; 0 joins none",
    )

    @field_validator("pane_s")
    @classmethod
    def _divides_minute(cls, value: int) -> int:
        if 60 % value:
            raise refuse("pane", "does not divide 60", "use 1, 2, 3, 4, 5, 6, 10, 12, 15, 20 or 30")
        return value


class Settings(Group):
    """Everything that can be set. `load` reads it."""

    kafka: KafkaSettings = Field(default=KafkaSettings(), description="the broker and the topics")
    clickhouse: ClickHouseSettings = Field(
        default=ClickHouseSettings(), description="where the audits are kept"
    )
    stream: StreamSettings = Field(default=StreamSettings(), description="how records become panes")
    defaults: ServiceSettings = Field(
        default=ServiceSettings(), description="settings of every service"
    )
    services: dict[Annotated[str, Field(min_length=1, max_length=200)], ServiceSettings] = Field(
        default={},
        description="settings of one service; a key given here replaces that of defaults",
    )
    environment: str | None = Field(
        default=None, description="environment whose deploys count; null takes production's, or all"
    )
    catalogue: Path | None = Field(
        default=None, description="file of fixes that are added to, or replace, those of our own"
    )
    chat: tuple[ChatChannel, ...] = Field(default=(), description="channels that alerts go to")
    web: WebSettings = Field(default=WebSettings(), description="the worker's own HTTP port")
    data_dir: Path = Field(
        default=Path("tailbudget-data"), description="directory of what we keep on disk"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="least severe messages to log"
    )

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, value: Any) -> Any:
        """Read an empty section as all defaults, and put the engine's files into data_dir."""
        if not isinstance(value, Mapping):
            return value
        filled = {key: part for key, part in value.items() if part is not None}
        clickhouse = filled.get("clickhouse", {})
        if isinstance(clickhouse, Mapping) and isinstance(filled.get("data_dir"), str | Path):
            path = Path(filled["data_dir"]) / "clickhouse"
            filled["clickhouse"] = {"path": path, **clickhouse}
        return filled

    @field_validator("services")
    @classmethod
    def _merged(
        cls, value: dict[str, ServiceSettings], info: ValidationInfo
    ) -> dict[str, ServiceSettings]:
        return dict(check_merged(value, info.data.get("defaults", ServiceSettings())))

    @field_validator("chat")
    @classmethod
    def _channel_names(cls, value: tuple[ChatChannel, ...]) -> tuple[ChatChannel, ...]:
        names = [channel.name for channel in value]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise refuse("twice", f"names two channels {twice[0]!r}", "rename one")
        return value

    def service(self, name: str) -> ServiceSettings:
        """Return the settings of a service: its own, and `defaults` for the rest."""
        own = self.services.get(name)
        return self.defaults if own is None else own.over(self.defaults)

    def in_directory(self, path: Path) -> Settings:
        """Return these settings with the embedded engine, and all else on disk, in a directory."""
        update = {"interface": "chdb", "path": path / "clickhouse"}
        clickhouse = self.clickhouse.model_copy(update=update)
        return self.model_copy(update={"clickhouse": clickhouse, "data_dir": path})


def load(path: Path | None, environ: Mapping[str, str]) -> Settings:
    """Return the settings of a YAML file, overridden by the environment.

    `TAILBUDGET_KAFKA__BOOTSTRAP` overrides `kafka.bootstrap`, and so on; `${NAME}` in a value
    stands for the variable NAME.

    Raises:
        ConfigError: the file is missing or no YAML, or any setting is wrong; all that is wrong
            is in the one message, each with its path, what was given, and the remedy.
    """
    layers = Layers(read_yaml(path) if path else Document(), Settings)
    layers.override(environ)
    layers.interpolate(environ)
    problems = list(layers.problems)
    try:
        settings = Settings.model_validate(layers.values)
    except ValidationError as error:
        known = {problem.path for problem in problems}
        found = describe(error, Settings, layers.values, layers.origins)
        problems += [problem for problem in found if problem.path not in known]
    if problems:
        raise config_error(str(path) if path else "the environment", problems)
    return settings


_SLO_FORM: Final = "write it as p50=100,p95=180,p99=200,budget=1: milliseconds, and per cent"


def parse_slo(text: str) -> SloTarget:
    """Return the target that a text such as ``p50=100,p95=180,p99=200,budget=1`` names.

    Raises:
        ConfigError: the text is of another form, or its numbers make no target.
    """
    values: dict[str, Any] = {}
    try:
        values = dict(slo_pairs(text))
        return SloTarget(**SloFields.model_validate(values).model_dump())
    except ValidationError as error:
        told = config_error(f"--slo {text!r}", describe(error, SloFields, values, {}))
        raise ConfigError(told.message, remedy=_SLO_FORM) from error
    except ValueError as error:
        raise ConfigError(f"--slo {text!r} {error}", remedy=_SLO_FORM) from error
