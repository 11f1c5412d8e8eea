"""What the caller says of a log, and what was assumed about the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from tailbudget.schemas.errors import ConfigError
from tailbudget.streams.sources import FORMATS
from tailbudget.streams.sources.base import Origin, Rules
from tailbudget.streams.sources.mapping import Mapped
from tailbudget.streams.sources.numbers import UNITS

CSV: Final = "csv"
PARQUET: Final = "parquet"
CHOICES: Final = (*FORMATS, CSV, PARQUET)
"""Formats that a caller may name: of the records of JSON, or of the file."""

_FORM: Final = "write OURS=THEIRS, such as total_ms=latency or total_ms=latency_s:s"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the caller named; None is to be found out.

    Attributes:
        service: the service of records that name none.
        stages: names of the stages, without "_ms".
        covariates: columns of the input shape.
        cohort_dims: columns whose values make a cohort.
        timezone: IANA zone of times that name none.
        columns: where our columns have other names or units, by our name.
        format: one of `CHOICES`.
        mapping: how records are made of fields at any depth; it stands before `columns`.
        pattern: of the lines of an access log, as its proxy is configured with.
        rules: how the settings read services; where given nothing is found out, and what is
            named above goes before them.
    """

    service: str | None = None
    stages: tuple[str, ...] | None = None
    covariates: tuple[str, ...] | None = None
    cohort_dims: tuple[str, ...] | None = None
    timezone: str | None = None
    columns: Mapping[str, Origin] = field(default_factory=dict)
    format: str | None = None
    rules: Rules | None = None
    pattern: str | None = None
    mapping: Mapped | None = None

    def check(self) -> None:
        """Refuse what cannot be meant (`ConfigError`)."""
        if self.format is not None and self.format not in CHOICES:
            raise ConfigError(
                f"there is no format {self.format!r}", remedy=f"use one of {', '.join(CHOICES)}"
            )
        if self.timezone is not None and not _is_zone(self.timezone):
            raise ConfigError(
                f"there is no time zone {self.timezone!r}",
                remedy="use a name of the IANA database, such as Europe/Berlin or UTC",
            )
        both = sorted(set(self.covariates or ()) & set(self.cohort_dims or ()))
        if both:
            raise ConfigError(
                f"{both[0]!r} is named as a covariate and as a cohort dimension",
                remedy="numbers that latency depends on are covariates; labels are dimensions",
            )


@dataclass(frozen=True, slots=True)
class Found:
    """What a log turned out to be; reports show it.

    Attributes:
        format: of the first rows: "native", "aiperf", "llmperf", "csv", "parquet", "frame" or
            "sql"; several are joined by "+".
        rules: how all rows are read.
        assumptions: one sentence for each thing that nobody named.
        times_known: False where no row says when it happened; then all bear the time of reading.
        replica: the cohort dimension that tells replicas apart; None when there is none.
    """

    format: str
    rules: Rules
    assumptions: tuple[str, ...]
    times_known: bool = True
    replica: str | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a reading is.

    Attributes:
        name: the file that is being read.
        rows: rows read so far, of any kind.
        share: of everything that is to be read; None where that is unknown.
    """

    name: str
    rows: int
    share: float | None


def parse_format(text: str) -> tuple[str, str | None]:
    """Return the format that a caller names, and the pattern of its lines if that was given.

    A pattern is told by its variables: "$" is nginx's, "%" is Envoy's.
    """
    for mark, name in (("$", "nginx"), ("%", "envoy")):
        if mark in text:
            return name, text
    return text, None


def parse_columns(text: str) -> dict[str, Origin]:
    """Return the mapping that "total_ms=latency:s,timestamp=start_time" means.

    Raises:
        ConfigError: it has not that form, or a unit where there is no duration.
    """
    found: dict[str, Origin] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        ours, equals, theirs = (piece.strip() for piece in part.partition("="))
        column, unit = _with_unit(theirs)
        if not (ours and equals and column):
            raise ConfigError(f"{part!r} maps no column", remedy=_FORM)
        if ours in found:
            raise ConfigError(f"{ours!r} is mapped twice", remedy="map each column once")
        if unit is not None and not ours.endswith("_ms"):
            raise ConfigError(
                f"{part!r}: only durations, in columns that end in _ms, have a unit",
                remedy="leave out the unit; that of an epoch is told by its size",
            )
        found[ours] = Origin(column, unit or "ms")
    return found


def _with_unit(theirs: str) -> tuple[str, str | None]:
    """Take the unit off; a name may hold a colon itself."""
    column, colon, unit = theirs.rpartition(":")
    return (column, unit) if colon and unit in UNITS else (theirs, None)


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
