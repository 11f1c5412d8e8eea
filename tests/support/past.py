"""A service whose panes are in ClickHouse and, to compare with, in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from random_records import SECOND_NS, T0_NS

from tailbudget.models.evidence import Evidence, Gathering
from tailbudget.models.merge import merge
from tailbudget.models.select import split_panes
from tailbudget.models.summarise import summarise
from tailbudget.schemas.records import Columns
from tailbudget.schemas.rows import StoredPane
from tailbudget.schemas.sections import ColdWindow
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.history import History, Span

NOW_NS = T0_NS + 30 * 86_400 * SECOND_NS


@dataclass(frozen=True)
class PastService:
    """One service.

    Attributes:
        store: where its panes are.
        name: the service's name.
        panes: by their start.
    """

    store: ClickHouse
    name: str
    panes: dict[int, StoredPane] = field(default_factory=dict)

    def write(self, columns: Columns, *, pane_s: int = 10) -> None:
        """Add requests; a pane that is there already is written anew."""
        own = replace(columns, service=self.name)
        summary = summarise(own, pane_ns=pane_s * SECOND_NS, thresholds_ms=(100.0,))
        fresh = []
        for at, part in split_panes(summary).items():
            old = self.panes.get(at)
            whole = part if old is None else merge([old.summary, part])
            version = 1 if old is None else old.version + 1
            fresh.append(StoredPane(at, pane_s, whole, {"requests:0:1": version}, version))
        self.panes.update({pane.pane_ns: pane for pane in fresh})
        self.store.write_panes(fresh)

    def read(
        self, span: Span, cold: Sequence[ColdWindow] | None = None, *, now_ns: int = NOW_NS
    ) -> Evidence:
        """Return what ClickHouse gives, keeping rollups."""
        return History(self.store, self.name, cold_windows=cold, now_ns=now_ns).evidence(span)

    def direct(self, span: Span, cold: Sequence[ColdWindow] | None = None) -> Evidence:
        """Return the panes of a range, merged one after the other."""
        inside = [pane for at, pane in self.panes.items() if span.start_ns <= at < span.end_ns]
        pane_ns = max((pane.pane_s for pane in inside), default=1) * SECOND_NS
        gathering = Gathering(self.name, pane_ns=pane_ns, cold_windows=cold)
        for pane in inside:
            gathering.add(pane.summary)
        return gathering.evidence()

    def rollups(self) -> dict[tuple[int, int], int]:
        """Return when each rollup was made, milliseconds, by its length and start in seconds."""
        sql = (
            "SELECT span_s, toUnixTimestamp(start), toUnixTimestamp64Milli(made)"
            " FROM rollups FINAL WHERE service = {service:String}"
        )
        rows = self.store.query(sql, {"service": self.name}).rows
        return {(int(span_s), int(start)): int(made) for span_s, start, made in rows}
