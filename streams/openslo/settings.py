"""Objectives of OpenSLO files among those of the settings."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.objective_settings import settings_of
from tailbudget.schemas.objectives import Objective
from tailbudget.schemas.services import ServiceSettings, check_merged
from tailbudget.schemas.settings import Settings
from tailbudget.streams.openslo.read import read


def with_openslo(settings: Settings) -> Settings:
    """Return the settings with the objectives of the files that they name.

    Raises:
        ConfigError: a file cannot be read, asks for what cannot be honoured, tells a channel that
            is not set, or has an objective that its service has already.
    """
    services = dict(settings.services)
    for path in settings.openslo:
        for objective in read(_text(path), str(path)):
            _check_channels(settings, objective, path)
            own = services.get(objective.service, ServiceSettings())
            services[objective.service] = _added(own, settings.defaults, objective, path)
    return settings.model_copy(update={"services": services})


def _added(
    own: ServiceSettings, defaults: ServiceSettings, objective: Objective, path: Path
) -> ServiceSettings:
    before = own.over(defaults).objectives or ()
    if objective.name in {one.name for one in before}:
        raise ConfigError(
            f"{path}: SLO/{objective.name}: {objective.service} has an objective of that name",
            remedy="rename one of the two",
        )
    try:
        after = own.model_copy(update={"objectives": (*before, settings_of(objective))})
        check_merged({objective.service: after}, defaults)
    except (ValidationError, ValueError) as error:
        raise ConfigError(
            f"{path}: SLO/{objective.name}: {error}", remedy="see docs/slos.md"
        ) from error
    return after


def _check_channels(settings: Settings, objective: Objective, path: Path) -> None:
    names = {channel.name for channel in settings.chat}
    if missing := [name for name in objective.telling.channels if name not in names]:
        raise ConfigError(
            f"{path}: SLO/{objective.name} tells {missing[0]!r}, which is no channel of ours",
            remedy=f"add it to chat; channels: {', '.join(sorted(names)) or 'none is set'}",
        )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", remedy="correct openslo") from error
