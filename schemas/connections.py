"""Settings of what we connect to beside Kafka: ClickHouse, chat channels, our own HTTP port."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, SecretStr, field_validator

from tailbudget.schemas.settings_base import Group, Name, Port, refuse

Host = Annotated[str, Field(pattern=r"^[^\s/]+$")]


class ClickHouseSettings(Group):
    """Where the audits are kept: a server, or the embedded engine."""

    interface: Literal["http", "chdb"] = Field(
        default="http", description="http: a ClickHouse server; chdb: the embedded engine"
    )
    host: Host = Field(default="127.0.0.1", description="host of the server")
    port: Port = Field(default=8123, description="HTTP port of the server")
    secure: bool = Field(default=False, description="use HTTPS (its usual port is 8443)")
    username: str = Field(default="default", min_length=1, description="user name")
    password: SecretStr = Field(default=SecretStr(""), description="password")
    database: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")] = Field(
        default="tailbudget", description="database that our tables live in"
    )
    path: Path = Field(
        default=Path("tailbudget-data/clickhouse"),
        description="directory of the embedded engine; by default `clickhouse` in data_dir",
    )
    ttl_days: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="days after which ClickHouse drops panes; null keeps them"
    )


class ChatChannel(Group):
    """One channel that alerts go to."""

    name: Name = Field(description="how the channel is called in logs and answers")
    url: SecretStr = Field(description="an Apprise URL, such as slack://A/B/C or jsons://HOST/PATH")
    services: tuple[Annotated[str, Field(min_length=1)], ...] = Field(
        default=("*",), min_length=1, description="services it hears of; * stands for any text"
    )
    severities: tuple[Literal["page", "ticket"], ...] = Field(
        default=("page", "ticket"), min_length=1, description="urgencies it hears of"
    )
    cohorts: tuple[str, ...] = Field(
        default=("*",),
        min_length=1,
        description="cohorts it hears of, such as route=search*; an alert of all has the empty one",
    )
    per_minute: int = Field(
        default=20, ge=1, le=600, description="messages a minute that it gets at most"
    )
    picture: bool = Field(
        default=True, description="attach a picture of the last hour where the channel takes one"
    )

    @field_validator("url")
    @classmethod
    def _has_scheme(cls, value: SecretStr) -> SecretStr:
        scheme, separator, rest = value.get_secret_value().partition("://")
        if not separator or not scheme or not rest:
            raise refuse(
                "url",
                "is no Apprise URL",
                "write SCHEME://…, such as slack://A/B/C; ${NAME} reads it from the environment",
            )
        return value

    def wants(self, service: str, severity: str = "", cohort: str = "") -> bool:
        """Return whether the channel hears of this.

        Args:
            service: the service's name.
            severity: "page" or "ticket"; empty when it has none, which every channel hears of.
            cohort: canonical text of the cohort; empty for all requests.
        """
        return (
            any(fnmatchcase(service, pattern) for pattern in self.services)
            and (not severity or severity in self.severities)
            and any(fnmatchcase(cohort, pattern) for pattern in self.cohorts)
        )


class WebSettings(Group):
    """The worker's own HTTP port: dashboard, health, status, and SQL."""

    host: Host = Field(default="127.0.0.1", description="address to listen on")
    port: Port = Field(
        default=6066, description="port to listen on; each worker on a host needs its own"
    )
    enabled: bool = Field(default=True, description="serve HTTP at all")
