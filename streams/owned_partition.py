"""A partition of the panes topic that this worker's audit agent owns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import structlog
from faust.types import TP

from tailbudget.schemas.errors import ReleaseError, WireError
from tailbudget.streams import protocol
from tailbudget.streams.assembly import Assembly, Folded

log = structlog.get_logger()


class RevokedError(Exception):
    """The partition went to another worker while we waited: what we were at is theirs."""


@dataclass(slots=True)
class OwnedPartition:
    """What was read of a partition of the panes topic.

    Attributes:
        tp: the partition.
        assembly: held segments, and what proves them.
        next_offset: one past the last message taken; 0 before the first.
        unfolded: segments that count for good and are not in their panes yet.
        foreign: messages that are not ours.
    """

    tp: TP
    assembly: Assembly = field(default_factory=Assembly)
    next_offset: int = 0
    unfolded: list[Folded] = field(default_factory=list)
    foreign: int = 0

    def receive(self, raw: Any) -> protocol.Segment | protocol.Mark | None:
        """Return the message, and note what it proves; None when it is not ours.

        Raises:
            ReleaseError: another release wrote it; skipping it would lose records.
        """
        place = f"{self.tp.topic}, partition {self.tp.partition}, offset {raw.offset}"
        try:
            message = protocol.decode(raw.value)
            self.unfolded += self.assembly.receive(raw.offset, message)
        except ReleaseError as error:
            raise ReleaseError(f"{place}: {error.message}", remedy=error.remedy) from error
        except WireError as error:
            self.foreign += 1
            log.warning("foreign message", at=place, error=error.message, remedy=error.remedy)
            return None
        return message

    def by_service(self) -> dict[str, list[Folded]]:
        """Return the unfolded segments of each service, in order."""
        services: dict[str, list[Folded]] = {}
        for one in self.unfolded:
            services.setdefault(one.service, []).append(one)
        return services


def counted_of(partitions: Iterable[OwnedPartition]) -> Counter[str]:
    """Return how many messages of some partitions did not count, by the names of `/status`."""
    counted: Counter[str] = Counter()
    for one in partitions:
        counted["foreign"] += one.foreign
        counted["segments_dropped"] += one.assembly.dropped
        counted["segments_ignored"] += one.assembly.ignored
    return counted
