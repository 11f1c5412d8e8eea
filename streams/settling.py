"""Up to when is a service complete in ClickHouse?"""

from __future__ import annotations

from collections.abc import Iterator

from tailbudget.schemas.summary import Summary
from tailbudget.streams.owned_partition import OwnedPartition
from tailbudget.streams.owned_service import OwnedService


def settles_ns(service: OwnedService, partition: OwnedPartition, closed_ns: int) -> int:
    """Return up to when everything is in ClickHouse once what is folded now is written.

    Records behind what was settled before do not hold it back: they amend it, as late ones do.

    Args:
        service: the service.
        partition: the partition of the panes topic that it is on.
        closed_ns: event time less the grace.
    """
    panes = (int(at) for one in _waiting(service, partition) for at in one.pane_ns.tolist())
    fresh = [at for at in panes if at >= service.settled_ns]
    return min([closed_ns, *fresh])


def _waiting(service: OwnedService, partition: OwnedPartition) -> Iterator[Summary]:
    """Yield what is not proven, or not in its panes yet."""
    name = service.panes.service
    yield from partition.assembly.held(name)
    for one in partition.unfolded:
        if one.service == name:
            yield from one.summaries
