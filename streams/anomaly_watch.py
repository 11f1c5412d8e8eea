"""The watch over the stages of one owned service: samples in, anomalies out.

Whatever segment counts for good brings its sampled requests; every tick they are scored by
`models.anomaly` in order of event time. A frontier remembers, for each source, up to where its
segments were taken: one that is read again, after a restart or a rebalance, is not scored twice.
What is not yet in the saved state holds the commits of the panes topic back, so it comes again.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import numpy as np
import orjson

from tailbudget.models.anomaly.guard import Guard
from tailbudget.models.anomaly.records import (
    Records,
    joined,
    records_of,
    rows_of,
    some,
    thinned,
)
from tailbudget.models.warm_up import WarmUps
from tailbudget.schemas.anomalies import Anomaly, Effect
from tailbudget.schemas.errors import ReleaseError, WireError
from tailbudget.schemas.sections import ColdWindow
from tailbudget.streams.assembly import Folded

SCHEMA: Final = "tailbudget.watch/1"
TICK_NS: Final = 250_000_000
MOST_TICKS: Final = 32
"""Ticks that one step cuts event time into: of a backlog, they are longer."""

MOST_ROWS: Final = 3_000
"""Rows scored a tick, of all stages together: what a tick costs was measured with so many."""

MOST_WAITING: Final = 20_000
"""Requests that wait for event time to reach them."""

LATE_NS: Final = 60 * 1_000_000_000
"""What is older than the newest tick by more is not scored: it would be taken for the present."""

_HEAD: Final = struct.Struct("<I")


class AnomalyWatch:
    """Samples of one service, and what they say.

    Attributes:
        service: the service's name.
        guard: shape models and tests.
        warm_ups: how long replicas took to be warm after each deploy.
        unwritten: anomalies that were found and are not yet told.
        counts: requests that were not scored, by reason.
        newest_offset: of the panes topic, that was taken.
    """

    def __init__(self, service: str) -> None:
        self.service = service
        self.guard = Guard()
        self.warm_ups = WarmUps()
        self.unwritten: list[Anomaly] = []
        self.counts: Counter[str] = Counter()
        self._windows: tuple[ColdWindow, ...] = ()
        self._taken: dict[str, int] = {}
        self._handed: dict[str, int] = {}
        self._open: dict[str, int] = {}
        self._waiting: list[Records] = []
        self._later: list[Records] = []
        self._now_ns = 0
        self.newest_offset = 0
        self._oldest_waiting: int | None = None
        self._oldest_handed: int | None = None
        self._saving: int | None = None

    @property
    def now_ns(self) -> int:
        """End of the newest tick, event time."""
        return self._now_ns

    @property
    def has_waiting(self) -> bool:
        """Return whether something waits to be scored."""
        return bool(self._waiting or self._later)

    @property
    def open(self) -> Mapping[str, int]:
        """Start of the anomaly of each stage that has one."""
        return self._open

    def take(self, folded: Folded) -> None:
        """Take the samples of a segment that counts for good, unless they were taken before."""
        if any(end <= self._taken.get(source, -1) for source, end in folded.ends.items()):
            return
        self._taken.update(folded.ends)
        self.newest_offset = max(self.newest_offset, folded.offset)
        self._oldest_waiting = _least(self._oldest_waiting, folded.offset)
        self._waiting += [records for s in folded.summaries if len(records := records_of(s))]
        waiting = sum(map(len, self._waiting))
        if waiting > MOST_WAITING:
            kept = thinned(joined(self._waiting), MOST_WAITING // 2)
            self.counts["too many waiting"] += waiting - len(kept)
            self._waiting = [kept]

    def cool(self, windows: Sequence[ColdWindow]) -> None:
        """Take note of the windows after deploys; within them nothing is scored or learnt."""
        self._windows = tuple(windows)

    def waiting(self) -> list[Records]:
        """Hand over what waits to be scored, to `step`."""
        waiting, self._waiting = [*self._later, *self._waiting], []
        self._later = []
        self._handed = dict(self._taken)
        self._oldest_handed = _least(self._oldest_handed, self._oldest_waiting)
        self._oldest_waiting = None
        return waiting

    def step(self, now_ns: int, waiting: Sequence[Records]) -> list[Anomaly]:
        """Score what event time has reached; return what began, spread or ended.

        It takes milliseconds, tens of them when new keys begin. It may run in a thread while `take`
        is called, and nothing else of this object.
        """
        if not waiting:
            return []
        now_ns = max(now_ns, self._now_ns)
        due, later = self._parted(joined(waiting), now_ns)
        self._later = [later] if len(later) else []
        found = [
            one for edge_ns, part in self._ticks(due, now_ns) for one in self._tick(edge_ns, part)
        ]
        self.unwritten += found
        return found

    def floor(self) -> int | None:
        """Return the oldest offset of the panes topic that the saved state lacks; None if none."""
        return _least(self._saving, _least(self._oldest_handed, self._oldest_waiting))

    def snapshot(self) -> Callable[[], bytes]:
        """Return what makes the bytes of the state as it is now; it may be called in a thread.

        Segments that wait to be scored are not in it, so they come again. Until `saved` is called,
        `floor` still covers what is new in it. Requests that are ahead of event time are lost by a
        kill: they go unscored.
        """
        self._saving = _least(self._saving, self._oldest_handed)
        self._oldest_handed = None
        head = orjson.dumps(
            {
                "schema": SCHEMA,
                "service": self.service,
                "frontier": self._handed,
                "open": self._open,
                "now_ns": self._now_ns,
                "newest_offset": self.newest_offset,
                "unwritten": [asdict(one) for one in self.unwritten],
                "warm_ups": self.warm_ups.to_dict(),
                "counts": self.counts,
            }
        )
        return lambda: _HEAD.pack(len(head)) + head + self.guard.dump()

    def saved(self) -> None:
        """Take note that the last snapshot is safe."""
        self._saving = None

    @classmethod
    def load(cls, body: bytes) -> AnomalyWatch:
        """Return what was dumped.

        Raises:
            WireError: it is damaged, or of another version.
        """
        try:
            (length,) = _HEAD.unpack_from(body)
            head = orjson.loads(body[_HEAD.size : _HEAD.size + length])
            if head["schema"] != SCHEMA:
                raise ReleaseError(f"state {head['schema']!r}, this release reads {SCHEMA!r}")
            watch = cls(head["service"])
            watch._restore(head)
        except (struct.error, orjson.JSONDecodeError, KeyError, TypeError, ValueError) as error:
            raise WireError(f"the state of a watch is damaged: {error}") from error
        watch.guard = Guard.load(body[_HEAD.size + length :])
        return watch

    def _restore(self, head: Mapping[str, Any]) -> None:
        self._taken = {str(source): int(end) for source, end in head["frontier"].items()}
        self._handed = dict(self._taken)
        self._open = {str(stage): int(at) for stage, at in head["open"].items()}
        self._now_ns = int(head["now_ns"])
        self.newest_offset = int(head["newest_offset"])
        self.unwritten = [_anomaly(one) for one in head["unwritten"]]
        self.warm_ups = WarmUps.from_dict(head["warm_ups"])
        self.counts = Counter(head["counts"])

    def _parted(self, records: Records, now_ns: int) -> tuple[Records, Records]:
        """Return what is due by a time, in order of time, and what is later."""
        late = records.ts_ns < self._now_ns - LATE_NS
        self.counts["late"] += int(late.sum())
        future = records.ts_ns > now_ns
        due = np.flatnonzero(~late & ~future)
        ordered = due[np.argsort(records.ts_ns[due], kind="stable")]
        return some(records, ordered), some(records, future & ~late)

    def _ticks(self, due: Records, now_ns: int) -> list[tuple[int, Records]]:
        """Cut what is due into ticks: of 250 ms, or longer ones where event time jumped."""
        if not len(due):
            return []
        first_ns = max(self._now_ns, int(due.ts_ns[0]) - 1)
        ticks = min(max(math.ceil((now_ns - first_ns) / TICK_NS), 1), MOST_TICKS)
        edges = [first_ns + (now_ns - first_ns) * (i + 1) // ticks for i in range(ticks)]
        places = np.searchsorted(due.ts_ns, edges, "right").tolist()
        starts = [0, *places[:-1]]
        return [
            (edge_ns, some(due, np.arange(low, high)))
            for edge_ns, low, high in zip(edges, starts, places, strict=True)
        ]

    def _tick(self, now_ns: int, records: Records) -> list[Anomaly]:
        most = MOST_ROWS // max(len(records.stages), 1)
        kept = thinned(records, most)
        self.counts["over the limit of a tick"] += len(records) - len(kept)
        rows = rows_of(kept)
        self._now_ns = now_ns
        self.warm_ups.follow([window.start_ns for window in self._windows], now_ns)
        if self.warm_ups.following:
            self.warm_ups.add(now_ns, *self.guard.residuals(rows))
        for window in self._windows:
            if window.start_ns <= now_ns < window.end_ns:
                self.guard.cold(window.end_ns)
        return [self._named(one) for one in self.guard.step(now_ns, rows)]

    def _named(self, found: Anomaly) -> Anomaly:
        """Give all changes of an anomaly the start that was said first."""
        started_ns = self._open.setdefault(found.stage, found.started_ns)
        if found.phase in ("ended", "accepted"):
            del self._open[found.stage]
        return replace(found, started_ns=started_ns)


def _least(one: int | None, other: int | None) -> int | None:
    """Return the lesser of two offsets; None is none."""
    return min((at for at in (one, other) if at is not None), default=None)


def _anomaly(said: Mapping[str, Any]) -> Anomaly:
    effect = said["effect"]
    return Anomaly(
        **{
            **said,
            "cohorts": tuple(said["cohorts"]),
            "effect": None if effect is None else Effect(**effect),
        }
    )
