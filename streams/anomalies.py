"""Anomalies of the services that this worker owns: scored every tick, kept, and told once.

A change is first saved with the models, then told as an alert, then written to ClickHouse. So
whoever takes the service over after a crash either does not know of it and finds it again in the
panes that it reads once more, or knows it and tells what ClickHouse does not have.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any, Final

import structlog

from tailbudget.models.cold_windows import cold_windows
from tailbudget.schemas.errors import UnavailableError, WireError
from tailbudget.schemas.settings import Settings
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.anomaly_rows import (
    DEPLOY_WITHIN_NS,
    cold_rows,
    marks,
    shape_rows,
)
from tailbudget.streams.anomaly_telling import CAUSE_WITHIN_MS, Telling
from tailbudget.streams.anomaly_watch import AnomalyWatch
from tailbudget.streams.assembly import Folded
from tailbudget.streams.model_states import States, messages
from tailbudget.streams.outbox import Outbox
from tailbudget.streams.retrying import retrying
from tailbudget.streams.watched import Owner, Watched

log = structlog.get_logger()

SHARE: Final = 0.5
"""Part of a tick that scoring may take; services that remain come first in the next."""

DEPLOYS_S: Final = 1.0
"""How often deploys are looked for: what a cold replica does until then is scored."""

DESCRIBE_NS: Final = 60_000_000_000
_MS: Final = 1_000_000


class Anomalies:
    """The watches over the services of this worker.

    Args:
        settings: of the worker.
        store: ClickHouse.
        states: what was saved by whoever had a service before.
        outbox: publishes states and alerts.
        owner: has the services.
        incarnation: number of the panes topic's life: its offsets begin anew with each.
        turn: held while a service is scored: two threads of numpy take each other's time, and what
            ingest does under the same lock is on the way of an alert.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        store: ClickHouse,
        states: States,
        outbox: Outbox,
        owner: Owner,
        incarnation: int,
        turn: asyncio.Lock,
    ) -> None:
        self._settings = settings
        self._incarnation = incarnation
        self._store = store
        self._states = states
        self._outbox = outbox
        self._owner = owner
        self._turn = turn
        self._known: dict[int, dict[str, bytes]] = {}
        self._watched: dict[str, Watched] = {}
        self._epoch = 0
        self._looked_s = 0.0
        self._working = asyncio.Lock()
        self._telling = Telling(store, outbox, owner)

    def revoke(self) -> None:
        """Forget everything: new owners read it from the topics."""
        self._epoch += 1
        self._known.clear()
        self._watched.clear()

    async def open(self, service: str, partition: int) -> None:
        """Start to watch a service where its last owner stopped."""
        epoch = self._epoch
        if partition not in self._known:
            found = await retrying(lambda: self._states.read(partition))
            if epoch != self._epoch:
                return
            self._known[partition] = dict(found)
        body = self._known[partition].pop(service, None)
        watch = AnomalyWatch(service) if body is None else _restored(service, body)
        if watch.unwritten:
            await self._telling.leave_out_told(watch)
        if epoch == self._epoch:
            now_s = time.monotonic()
            size = len(body or b"")
            self._watched[service] = Watched(partition, watch, saved_s=now_s, size=size)

    def take(self, folded: Folded) -> None:
        """Take the samples of a segment that counts for good."""
        if (found := self._watched.get(folded.service)) is not None:
            found.watch.take(folded)

    def floor(self, partition: int) -> int | None:
        """Return the oldest offset of a panes partition that no saved state has; None if none."""
        floors = [one.watch.floor() for one in self._watched.values() if one.partition == partition]
        return min((floor for floor in floors if floor is not None), default=None)

    def forget(self, service: str) -> bool:
        """Drop a service unless something of it is unsaved; return whether it is gone."""
        found = self._watched.get(service)
        if found is not None and found.watch.floor() is not None:
            return False
        if found is not None:
            del self._watched[service]
            self._known.pop(found.partition, None)  # it is older than what was saved since
        return True

    async def tick(self) -> None:
        """Score what came, of as many services as the share of the tick allows."""
        async with self._working:
            began = time.perf_counter()
            share_s = self._settings.stream.tick_s * SHARE
            await self._look_for_deploys()
            for name in list(self._watched):
                if time.perf_counter() - began > share_s:
                    break
                if (found := self._watched.pop(name, None)) is not None:
                    self._watched[name] = found  # to the end of the queue
                    await self._step(name, found)

    async def finish(self) -> None:
        """Score what is left and save all states: an orderly end."""
        async with self._working:
            for name, found in list(self._watched.items()):
                await self._step(name, found)
                if self._owns(name, found) and found.watch.floor() is not None:
                    await self._save(name, found)

    def status(self) -> dict[str, Any]:
        """Return what an operator wants to know, for `/status`."""
        counts: Counter[str] = Counter()
        for one in self._watched.values():
            counts.update(dict(one.watch.counts))  # a copy: a thread may be counting
            counts.update(dict(one.watch.guard.counts))
        return {
            "anomalies": {
                name: sorted(one.watch.open) for name, one in sorted(self._watched.items())
            },
            "scored_ns": {name: one.watch.now_ns for name, one in sorted(self._watched.items())},
            "unscored": {reason: n for reason, n in sorted(counts.items()) if n},
        }

    def _owns(self, name: str, found: Watched) -> bool:
        return self._watched.get(name) is found

    async def _step(self, name: str, found: Watched) -> None:
        watch, now_ns = found.watch, self._owner.event_ns(name)
        if now_ns is None:
            return
        waiting = watch.waiting()
        if waiting:
            async with self._turn:
                changes = await asyncio.to_thread(watch.step, now_ns, waiting)
            if not self._owns(name, found):
                return
            if changes:
                await self._save(name, found)
        if watch.unwritten and time.monotonic() >= found.retry_s and self._owns(name, found):
            await self._telling.tell(name, found)
        if not found.cleared and self._owns(name, found):
            await self._telling.clear(name, found, now_ns)
        if self._owns(name, found) and self._is_old(found):
            await self._save(name, found)
        if watch.now_ns - found.described_ns >= DESCRIBE_NS and self._owns(name, found):
            await self._describe(name, found)

    def _is_old(self, found: Watched) -> bool:
        unsaved = found.watch.floor() is not None
        return unsaved and time.monotonic() - found.saved_s >= found.save_after_s

    async def _save(self, name: str, found: Watched) -> None:
        """Publish the state; returns when the broker has it."""
        watch = found.watch
        version, make = self._incarnation << 40 | watch.newest_offset, watch.snapshot()
        body = await asyncio.to_thread(make)
        for key, value in messages(name, version, body):
            await self._outbox.model(key, value, found.partition)
        await self._outbox.drain()
        watch.saved()
        found.saved_s, found.size = time.monotonic(), len(body)

    async def _describe(self, name: str, found: Watched) -> None:
        """Write models and cold windows that changed, once a minute of event time."""
        watch = found.watch
        guard, at_ns = watch.guard, watch.now_ns
        learnt_min = watch.warm_ups.known_min
        cold = tuple(cold_rows(name, found.windows, learnt_min))
        try:
            since_ms = at_ns // _MS - CAUSE_WITHIN_MS
            fits = await asyncio.to_thread(self._store.newest_fits, name, since_ms)
            now = marks(guard)
            rows = shape_rows(name, guard, at_ns, (found.described, now), fits)
            await asyncio.to_thread(self._store.write_shape_models, rows)
            fresh = [row for row in cold if row not in found.cold]
            await asyncio.to_thread(self._store.write_cold_windows, fresh)
            found.described, found.cold = now, cold
        except UnavailableError as error:
            log.warning("models are not described", service=name, error=error.message)
        found.described_ns = at_ns

    async def _look_for_deploys(self) -> None:
        """Read the deploys of all services that have something to score."""
        now_s = time.monotonic()
        names = [name for name, one in self._watched.items() if one.watch.has_waiting]
        if not names or now_s - self._looked_s < DEPLOYS_S:
            return
        self._looked_s = now_s
        now = [at for name in names if (at := self._owner.event_ns(name)) is not None]
        since_ns = min(now, default=0) - DEPLOY_WITHIN_NS
        try:
            found = await asyncio.to_thread(self._store.deploys_of, names, since_ns)
        except UnavailableError as error:
            log.warning("deploys are not known", error=error.message)
            return
        for name in names:
            if (one := self._watched.get(name)) is not None:
                chosen = self._settings.service(name)
                minutes = one.watch.warm_ups.known_min or chosen.cold_start_window_min
                deploys = found.get(name, [])
                one.windows = cold_windows(deploys, name, minutes, self._settings.environment)
                one.watch.cool(one.windows)


def _restored(service: str, body: bytes) -> AnomalyWatch:
    """Return the watch that was saved; a new one where this release can't read it."""
    try:
        return AnomalyWatch.load(body)
    except WireError as error:
        log.warning("models are learnt anew", service=service, error=error.message)
        return AnomalyWatch(service)
