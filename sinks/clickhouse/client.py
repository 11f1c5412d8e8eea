"""All that the pipeline asks of ClickHouse, on a server or embedded alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from tailbudget.schemas.alert_rows import ChangeRow, NoticeRow
from tailbudget.schemas.anomaly_rows import AnomalyRow, ColdWindowRow, ShapeModelRow, SignalRow
from tailbudget.schemas.audit_rows import AuditRow
from tailbudget.schemas.budgets import BudgetRow
from tailbudget.schemas.clickhouse_target import ClickHouseTarget
from tailbudget.schemas.objectives import Objective
from tailbudget.schemas.rows import AlertRow, DeployRow, StoredPane
from tailbudget.schemas.silences import Silence
from tailbudget.schemas.summary import Summary
from tailbudget.schemas.tally import Tally
from tailbudget.sinks.clickhouse import (
    alert_log,
    anomalies,
    budgets,
    migrate,
    panes,
    query,
    records,
    rollups,
    silences,
    slo_counts,
    totals,
)
from tailbudget.sinks.clickhouse.connect import connect, require_nearest_rank
from tailbudget.sinks.clickhouse.connection import Connection


class ClickHouse:
    """A connection for writing, and another that can only read.

    Every method blocks until ClickHouse has answered; call it from a thread. Writes are idempotent
    and may be repeated. All raise `ClickHouseError` where trying again may help, `ConfigError`
    where the settings are at fault, and `StorageError` where the request is refused for good.
    """

    def __init__(self, target: ClickHouseTarget, writer: Connection, reader: Connection) -> None:
        self.target = target
        self._writer = writer
        self._reader = reader

    @classmethod
    def open(cls, target: ClickHouseTarget, *, create: bool = True) -> Self:
        """Connect, without touching the tables.

        Args:
            target: where to.
            create: create the database when it does not exist.
        """
        writer = connect(target, create=create)
        try:
            require_nearest_rank(writer)
            reader = connect(target, query.READING)
        except BaseException:
            writer.close()
            raise
        return cls(target, writer, reader)

    def close(self) -> None:
        """Close both connections; the embedded engine lets go of its directory."""
        self._reader.close()
        self._writer.close()

    @property
    def version(self) -> str:
        """Version of ClickHouse."""
        return self._writer.version

    def migrate(self, ttl_days: int | None = None) -> list[str]:
        """Bring the tables up to date, and return the names of what was applied.

        Args:
            ttl_days: days after which ClickHouse drops panes; None keeps them.
        """
        applied = migrate.migrate(self._writer)
        migrate.set_ttl(self._writer, ttl_days)
        return [f"{migration.number:04}_{migration.name}" for migration in applied]

    def require_current(self) -> None:
        """Refuse a database that `migrate` has not brought up to date (`ConfigError`)."""
        migrate.require_current(self._writer)

    def write_panes(self, stored: Sequence[StoredPane]) -> None:
        """Write panes, each whole or not at all; a newer version replaces an older one whole."""
        panes.write_panes(self._writer, stored)

    def read_panes(self, service: str, panes_ns: Sequence[int]) -> dict[int, StoredPane]:
        """Return those of the panes that exist, as they were written."""
        return panes.read_panes(self._writer, service, panes_ns)

    def each_pane(self, service: str, panes_ns: Sequence[int]) -> Iterator[StoredPane]:
        """Yield those of the panes that exist, in order, with a bounded number in memory."""
        return panes.each_pane(self._writer, service, panes_ns)

    def recent_totals(self, service: str, since_ns: int, fine_ns: int) -> list[Summary]:
        """Return what windows need of the panes from a time on, oldest first.

        Panes that start before `fine_ns` come added up to minutes.
        """
        return totals.recent_totals(self._writer, service, since_ns, fine_ns)

    def newest_pane(self, service: str) -> int | None:
        """Return the start of the newest pane; None when the service has none."""
        return panes.newest_pane(self._writer, service)

    def services(self) -> list[str]:
        """Return the names of the services that have panes."""
        return panes.services(self._writer)

    def incarnation(self, topic: str, topic_id: str) -> int:
        """Return the number of this life of a topic, recording a new one."""
        return records.incarnation(self._writer, topic, topic_id)

    def write_audits(self, audits: Sequence[AuditRow]) -> None:
        """Write rolling audits with their stages and cohorts."""
        records.write_audits(self._writer, audits)

    def newest_reports(self, service: str) -> dict[int, int]:
        """Return where the newest full report of each length of window ends, nanoseconds."""
        return records.newest_reports(self._writer, service)

    def write_alerts(self, alerts: Sequence[AlertRow]) -> None:
        """Write changes of alerts."""
        records.write_alerts(self._writer, alerts)

    def write_deploys(self, deploys: Sequence[DeployRow]) -> None:
        """Write deploys."""
        records.write_deploys(self._writer, deploys)

    def write_changes(self, changes: Sequence[ChangeRow]) -> None:
        """Write changes of alerts from one state to another."""
        alert_log.write_changes(self._writer, changes)

    def last_changes(self, service: str) -> list[ChangeRow]:
        """Return the newest change of each alert of a service."""
        return alert_log.last_changes(self._writer, service)

    def waiting(self) -> list[str]:
        """Return the services with an alert that time alone may move: it fires, say."""
        return alert_log.waiting(self._writer)

    def write_notices(self, notices: Sequence[NoticeRow]) -> None:
        """Write what became of notices."""
        alert_log.write_notices(self._writer, notices)

    def last_notices(self, service: str) -> list[NoticeRow]:
        """Return the newest notice of each alert of a service on each channel."""
        return alert_log.last_notices(self._writer, service)

    def write_budgets(self, rows: Sequence[BudgetRow]) -> None:
        """Write what is left of error budgets."""
        budgets.write_budgets(self._writer, rows)

    def write_silence(self, silence: Silence) -> None:
        """Write a silence; a newer version replaces an older one."""
        silences.write_silence(self._writer, silence)

    def silences(self, after_ns: int) -> list[Silence]:
        """Return the silences that end after a time, the first to end first."""
        return silences.silences(self._writer, after_ns)

    def read_tallies(
        self, objectives: Sequence[Objective], since_ns: int, until_ns: int, slice_s: int
    ) -> list[Tally]:
        """Return good and bad requests of objectives of one service in the panes of a range."""
        return slo_counts.read_tallies(self._writer, objectives, since_ns, until_ns, slice_s)

    def recent_deploys(self, service: str, since_ns: int) -> list[DeployRow]:
        """Return the deploys of a service that were last announced at or after a time."""
        return self.deploys_of([service], since_ns).get(service, [])

    def deploys_of(self, services: Sequence[str], since_ns: int) -> dict[str, list[DeployRow]]:
        """Return the deploys of some services that were last announced at or after a time."""
        return records.recent_deploys(self._writer, services, since_ns)

    def write_anomalies(self, rows: Sequence[AnomalyRow]) -> None:
        """Write changes of anomalies."""
        anomalies.write_anomalies(self._writer, rows)

    def anomalies_between(self, service: str, since_ns: int, until_ns: int) -> list[AnomalyRow]:
        """Return all changes of the anomalies that went on at some moment of a range."""
        return anomalies.anomalies_between(self._writer, service, since_ns, until_ns)

    def write_shape_models(self, rows: Sequence[ShapeModelRow]) -> None:
        """Write shape models as they are."""
        anomalies.write_shape_models(self._writer, rows)

    def write_cold_windows(self, rows: Sequence[ColdWindowRow]) -> None:
        """Write cold windows."""
        anomalies.write_cold_windows(self._writer, rows)

    def newest_causes(self, service: str, since_ms: int) -> dict[str, str]:
        """Return the cause that the newest report since a time names for each stage."""
        return anomalies.newest_causes(self._writer, service, since_ms)

    def newest_fits(self, service: str, since_ms: int) -> dict[str, float]:
        """Return R² of the best covariate of each stage in the newest report since a time."""
        return anomalies.newest_fits(self._writer, service, since_ms)

    def write_signals(self, rows: Sequence[SignalRow]) -> None:
        """Write signals."""
        anomalies.write_signals(self._writer, rows)

    def signals_between(self, service: str, since_ms: int, until_ms: int) -> list[SignalRow]:
        """Return the signals of a service in a range, by name, instance and time."""
        return anomalies.signals_between(self._writer, service, since_ms, until_ms)

    def panes_by_span(self, spans: rollups.Spans) -> dict[int, rollups.PanesOf]:
        """Return what panes there are, by the start of their span."""
        return rollups.panes_by_span(self._writer, spans)

    def pane_starts(self, service: str, since_ns: int, until_ns: int) -> list[int]:
        """Return when the panes that start in a range start, ascending."""
        return rollups.pane_starts(self._writer, service, since_ns, until_ns)

    def rollups_made(self, spans: rollups.Spans) -> dict[int, int]:
        """Return the fingerprints of the rollups that there are, by their start."""
        return rollups.rollups_made(self._writer, spans)

    def read_rollups(self, service: str, span_s: int, starts_ns: Sequence[int]) -> dict[int, bytes]:
        """Return the rollups of those of the spans that have one, by their start."""
        return rollups.read_rollups(self._writer, service, span_s, starts_ns)

    def write_rollups(self, made: Sequence[rollups.Rollup]) -> None:
        """Write rollups."""
        rollups.write_rollups(self._writer, made)

    def query(
        self, sql: str, parameters: Mapping[str, Any] | None = None, *, max_rows: int = 10_000
    ) -> query.Answer:
        """Run one statement that only reads; anything else is a `ConfigError`."""
        return query.run(self._reader, sql, parameters, max_rows=max_rows)
