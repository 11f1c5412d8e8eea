"""Making, listing and ending silences, also while a worker owns the embedded engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, fields, replace
from typing import Any, Final

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.settings import Settings
from tailbudget.schemas.silences import Silence
from tailbudget.streams.ask_worker import refusal_of, request
from tailbudget.streams.data_directory import running_worker
from tailbudget.streams.sql import ask

PATH: Final = "/silences"
"""Where a worker takes a silence; it must come as JSON, which no page of another site may send."""

_RUNNING: Final = """
SELECT
    id, service, alert, toUnixTimestamp64Milli(begins) * 1000000 AS begins_ns,
    toUnixTimestamp64Milli(ends) * 1000000 AS ends_ns, reason, version
FROM silences FINAL
WHERE ends > now64(3, 'UTC')
ORDER BY ends, id
"""


def keep(settings: Settings, silence: Silence) -> None:
    """Keep a silence, directly or through the worker that owns the engine.

    Raises:
        ClickHouseError: ClickHouse, or the worker that owns it, does not answer.
        ConfigError: there is no such database.
    """
    worker = running_worker(settings.data_dir) if settings.clickhouse.interface == "chdb" else None
    if worker is None:
        _keep_directly(settings, silence)
        return
    response = request(worker, "POST", PATH, json=asdict(silence))
    if not response.ok:
        raise refusal_of(response)


def running(settings: Settings) -> Sequence[Silence]:
    """Return the silences that are not over, the first to end first.

    Raises:
        ClickHouseError: ClickHouse, or the worker that owns it, does not answer.
        ConfigError: there is no such database.
    """
    return [Silence(*row) for row in ask(settings, _RUNNING).rows]


def end(settings: Settings, silence_id: str, now_ns: int) -> Silence:
    """End a silence now, and return it as it was.

    Raises:
        ClickHouseError: ClickHouse, or the worker that owns it, does not answer.
        ConfigError: no silence that is not over has that id.
    """
    known = running(settings)
    found = next((one for one in known if one.id == silence_id), None)
    if found is None:
        there_are = ", ".join(one.id for one in known)
        raise ConfigError(
            f"no silence {silence_id!r} is running",
            remedy=f"there are: {there_are}" if known else "there is none: nothing to end",
        )
    keep(settings, replace(found, ends_ns=now_ns, version=found.version + 1))
    return found


def read(sent: Any) -> Silence:
    """Return the silence in a JSON object.

    Raises:
        ConfigError: it is none.
    """
    kinds = {field.name: str if field.type == "str" else int for field in fields(Silence)}
    well = isinstance(sent, Mapping) and sent.keys() == kinds.keys()
    if not well or not all(type(sent[name]) is kind for name, kind in kinds.items()):
        raise ConfigError("no silence", remedy=f"a JSON object of {', '.join(kinds)}")
    return Silence(**sent)


def _keep_directly(settings: Settings, silence: Silence) -> None:
    # Here, so that the commands that need no database start without its libraries.
    from tailbudget.streams.database import open_existing  # noqa: PLC0415

    with closing(open_existing(settings.clickhouse)) as store:
        store.write_silence(silence)
