"""Options that several commands share, and the settings they lead to."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.settings import Settings, load

if TYPE_CHECKING:
    from tailbudget.streams.simulate import Played

DEFAULT_FILE: Final = Path("tailbudget.yaml")
FILE_VARIABLE: Final = "TAILBUDGET_CONFIG"

Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="PATH",
        envvar=FILE_VARIABLE,
        help="Settings file; ./tailbudget.yaml when it is there.",
        show_default=False,
    ),
]

Data = Annotated[
    Path | None,
    typer.Option("--data", metavar="DIR", help="The directory of an embedded `up`."),
]

ScenarioName = Annotated[
    str | None,
    typer.Option(
        "--scenario",
        metavar="NAME",
        help="Traffic with a known fault or shift, such as 'thermal x1.5, big_batches'.",
        show_default=False,
    ),
]

SIMULATED: Final = "chat"
"""Name of the service that `up` simulates, and `simulate` where nobody says otherwise."""

RUN_S: Final = 600.0
"""Length of a run of a scenario that nobody ends earlier: its faults come after 6 and 8 minutes."""

_DURATION: Final = re.compile(r"^(\d+(?:\.\d+)?)(ms|s|m|h)?$")
_AGO: Final = re.compile(r"^(\d+(?:\.\d+)?)(s|m|h|d|w)$")
_AGO_S: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_UNIT_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}


def settings(config: Path | None, data: Path | None = None) -> Settings:
    """Return the settings of a file, or of ./tailbudget.yaml, or of the environment alone.

    Args:
        config: the file; None looks for ./tailbudget.yaml.
        data: the directory of an embedded `up`, in place of what they say of ClickHouse.

    Raises:
        ConfigError: something in them is wrong.
    """
    loaded = _loaded(config or (DEFAULT_FILE if DEFAULT_FILE.exists() else None))
    return loaded if data is None else loaded.in_directory(data)


def _loaded(path: Path | None) -> Settings:
    loaded = load(path, os.environ)
    if not loaded.openslo:
        return loaded
    from tailbudget.streams.openslo.settings import with_openslo  # noqa: PLC0415

    return with_openslo(loaded)


def duration_s(text: str | None) -> float | None:
    """Return the seconds of a text such as 90, 120s, 1.5m or 2h.

    Raises:
        ConfigError: it is no duration, or not above 0.
    """
    if text is None:
        return None
    match = _DURATION.match(text.strip())
    seconds = float(match[1]) * _UNIT_S[match[2]] if match else 0.0
    if seconds <= 0:
        raise ConfigError(f"{text!r} is no duration", remedy="write it as 120s, 1.5m or 2h")
    return seconds


def instant_ns(text: str, now_ns: int) -> int:
    """Return the time of a text such as 24h (ago) or 2026-03-02T10:00Z, nanoseconds since 1970.

    Raises:
        ConfigError: it is neither.
    """
    text = text.strip()
    if match := _AGO.match(text):
        return now_ns - round(float(match[1]) * _AGO_S[match[2]] * 1e9)
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(
            f"{text!r} is no time",
            remedy="write it as 30m, 24h or 7d (ago), or as 2026-03-02T10:00Z",
        ) from error
    return round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1e9)


def played(scenario: str | None, *, service: str, rate: float, seed: int) -> Played | None:
    """Return the service of a scenario's name; None without one.

    Raises:
        ConfigError: there is no such scenario.
    """
    if scenario is None:
        return None
    from dataclasses import replace  # noqa: PLC0415

    from tailbudget.streams.faulty.scenarios import FAULTS, SHIFTS, scenario_of  # noqa: PLC0415
    from tailbudget.streams.faulty.service import FaultyService  # noqa: PLC0415

    try:
        named = scenario_of(scenario)
    except ValueError as error:
        known = ", ".join(dict.fromkeys((*FAULTS, *SHIFTS)))
        raise ConfigError(
            f"--scenario {scenario!r}: {error}", remedy=f"there are {known}; x1.5"
        ) from error
    return FaultyService(service, replace(named, rate=rate, seed=seed, duration_s=RUN_S))
