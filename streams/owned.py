"""What a worker's audit agent owns: partitions of the panes topic, and the services on them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from faust.types import TP

from tailbudget.schemas.settings import StreamSettings
from tailbudget.streams.owned_partition import OwnedPartition, RevokedError, counted_of
from tailbudget.streams.owned_service import OwnedService
from tailbudget.streams.settling import settles_ns
from tailbudget.streams.stalls import Standing


class Owned:
    """Partitions and services of this worker, and what time it is in them.

    Attributes:
        partitions: by their numbers.
        services: by name.
        arrived: when each source last sent anything, marks included, seconds of a growing clock.
        heard: when each source last had records, likewise.
    """

    def __init__(self, stream: StreamSettings) -> None:
        self.partitions: dict[int, OwnedPartition] = {}
        self.services: dict[str, OwnedService] = {}
        self.arrived: dict[str, float] = {}
        self.heard: dict[str, float] = {}
        self._stream = stream
        self._left: Counter[str] = Counter()

    def assign(self, partitions: Iterable[TP]) -> None:
        """Own these partitions instead of those before."""
        self.leave()
        self.partitions = {tp.partition: OwnedPartition(tp) for tp in partitions}

    def leave(self) -> None:
        """Drop the partitions, and keep what was counted of them."""
        self._left += counted_of(self.partitions.values())
        self.partitions.clear()

    def require(self, partition: OwnedPartition) -> None:
        """Go on only while a partition is ours.

        Raises:
            RevokedError: it is no longer.
        """
        if self.partitions.get(partition.tp.partition) is not partition:
            raise RevokedError

    def owned(self, name: str) -> OwnedService | None:
        """Return a service; None when it is not ours."""
        return self.services.get(name)

    def counted(self) -> Counter[str]:
        """Return how many messages did not count, those of partitions that we left included."""
        return self._left + counted_of(self.partitions.values())

    def now_ns(self, service: OwnedService) -> int:
        """Return event time of a service."""
        watermarks = self.partitions[service.partition].assembly.watermarks()
        return service.now_ns(watermarks, self.heard, time.monotonic() - self._stream.idle_s)

    def event_ns(self, name: str) -> int | None:
        """Return event time of a service; None when it is not ours."""
        service = self.services.get(name)
        return None if service is None else self.now_ns(service)

    def settles_ns(self, service: OwnedService) -> int:
        """Return event time up to which all has come once what is folded now is written."""
        closed_ns = self.now_ns(service) - int(self._stream.grace_s * 1e9)
        return settles_ns(service, self.partitions[service.partition], closed_ns)

    def settled(self) -> dict[str, int]:
        """Return event time up to which everything of a service is in ClickHouse."""
        return {name: one.settled_ns for name, one in self.services.items() if one.settled_ns}

    def floor(self, partition: OwnedPartition, gone: set[str]) -> int:
        """Return the first offset of a partition that is still needed.

        Args:
            partition: one of ours.
            gone: sources that no longer hold commits back.
        """
        floors = [
            service.panes.floor()
            for service in self.services.values()
            if service.partition == partition.tp.partition
        ]
        floors += [segment.offset for segment in partition.unfolded]
        floors += [partition.assembly.floor(gone), partition.next_offset]
        return min(offset for offset in floors if offset is not None)

    def held_bytes(self) -> int:
        """Return the bytes of summaries that are not in their panes yet."""
        return sum(
            partition.assembly.held_bytes + sum(one.size for one in partition.unfolded)
            for partition in self.partitions.values()
        )

    def standings(self, ends: Mapping[int, int]) -> list[Standing]:
        """Return where each partition is read that was read from, given the last offsets known."""
        return [
            Standing(partition.tp, partition.next_offset, ends.get(number, -1) + 1)
            for number, partition in self.partitions.items()
            if partition.next_offset
        ]

    def has(self, offsets: Mapping[int, int]) -> bool:
        """Return whether what is ours of the panes topic is taken up to these offsets."""
        return all(
            partition.next_offset > offsets.get(number, -1)
            for number, partition in self.partitions.items()
        )

    def quiet(self, *, keep_s: float, idle: float) -> list[str]:
        """Forget panes that are closed and durable; return the services that could be, too.

        Args:
            keep_s: how long a closed pane is kept for late records.
            idle: a service that sent something since then is not quiet.
        """
        margin_ns = int((self._stream.grace_s + keep_s) * 1e9)
        for service in self.services.values():
            service.panes.evict(self.now_ns(service) - margin_ns)
        return [
            name
            for name, one in self.services.items()
            if one.seen < idle and one.panes.floor() is None
        ]

    def status(self, behind: Callable[[TP, int], int | None]) -> dict[str, Any]:
        """Return what an operator wants to know.

        Args:
            behind: how many messages are beyond an offset of a partition.
        """
        owned, counted = sorted(self.partitions.items()), self.counted()
        return {
            "services": sorted(self.services),
            "alerts": self._alerts(),
            "taken": {str(n): p.next_offset for n, p in owned},
            "lag": {str(n): behind(p.tp, p.next_offset) for n, p in owned},
            "settled_ns": self.settled(),
            **{name: counted[name] for name in ("foreign", "segments_dropped", "segments_ignored")},
        }

    def _alerts(self) -> dict[str, dict[str, str]]:
        """Return the states of the alerts that are not resolved, by service and name."""
        standing = {name: one.book.standing() for name, one in sorted(self.services.items())}
        return {name: states for name, states in standing.items() if states}
