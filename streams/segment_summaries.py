"""Summarises what the segments of a tick hold of a service."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tailbudget.models.columns import concat
from tailbudget.models.merge import merge
from tailbudget.models.select import empty
from tailbudget.models.summarise import summarise
from tailbudget.models.token_times import with_goodput
from tailbudget.schemas.records import Columns
from tailbudget.schemas.settings import Settings
from tailbudget.schemas.summary import Summary
from tailbudget.streams.cohort_limit import CohortLimit
from tailbudget.streams.intake import Pending


class SegmentSummaries:
    """Turns pending records into summaries, with each service's targets and cohort limit."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._limits: dict[str, CohortLimit] = {}

    def of(self, pending: Sequence[Pending], service: str) -> Summary:
        """Return the service's summary of some segments as one, with their ledgers."""
        thresholds = self._settings.service(service).thresholds_ms()
        entries = Counter[tuple[int, str]]()
        for one in pending:
            entries.update(one.ledger.get(service, {}))
        noted = empty(service, thresholds_ms=thresholds, ledger=entries)
        parts = [columns for one in pending for columns in one.columns.get(service, ())]
        if not parts:
            return noted
        goodput = self._settings.service(service).goodput
        target = goodput.target() if goodput else None
        columns = with_goodput(self._limit(concat(parts)), target)
        pane_ns = int(self._settings.stream.pane_s * 1e9)
        summary = summarise(columns, pane_ns=pane_ns, thresholds_ms=thresholds)
        return merge([summary, noted]) if entries else summary

    def _limit(self, columns: Columns) -> Columns:
        limit = self._limits.get(columns.service)
        if limit is None:
            limit = self._limits[columns.service] = CohortLimit(self._settings.stream.max_cohorts)
        return limit.limited(columns)
