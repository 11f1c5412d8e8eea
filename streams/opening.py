"""Taking a service over: what it takes to open one, and which silent ones are to be opened."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.alert_log import publish
from tailbudget.streams.outbox import Outbox, partition_of
from tailbudget.streams.owned_service import OwnedService, open_service
from tailbudget.streams.silences import Silences


class Waiting(NamedTuple):
    """A service with an alert that time alone may move.

    Attributes:
        name: the service's name.
        partition: of the panes topic.
        newest_ns: start of its newest pane.
    """

    name: str
    partition: int
    newest_ns: int


class Opening:
    """Opens services for the audit agent.

    Args:
        settings: what services promise.
        store: where their past is.
        outbox: publishes anew what an earlier owner may not have published.
        silences: says which alerts are muted.
    """

    def __init__(
        self, settings: Settings, store: ClickHouse, outbox: Outbox, silences: Silences
    ) -> None:
        self._settings = settings
        self._store = store
        self._outbox = outbox
        self._silences = silences

    async def open(self, name: str, partition: int, event_ns: int) -> OwnedService:
        """Return a service that is new to this worker, with its alerts published again.

        Args:
            name: the service's name.
            partition: of the panes topic.
            event_ns: event time.
        """
        maintenance = self._settings.service(name).corrections()
        mute = await self._silences.mute(name, maintenance)
        service, again = await open_service(
            name, partition, self._settings, self._store, event_ns=event_ns, mute=mute
        )
        await publish(again, self._store, self._outbox)
        return service

    async def waiting(self) -> list[Waiting]:
        """Return the services whose alerts wait, whether they send anything or not.

        Raises:
            ClickHouseError: it does not answer.
        """
        names = await asyncio.to_thread(self._store.waiting)
        return [one for name in names if (one := await self._waiting(name)) is not None]

    async def _waiting(self, name: str) -> Waiting | None:
        newest_ns = await asyncio.to_thread(self._store.newest_pane, name)
        if newest_ns is None:
            return None
        return Waiting(name, partition_of(name, self._settings.kafka.partitions), newest_ns)
