"""What the audit agent has judged and ClickHouse does not have yet."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from tailbudget.schemas.audit_rows import AuditRow
from tailbudget.schemas.budgets import BudgetRow
from tailbudget.schemas.rows import StoredPane
from tailbudget.sinks.clickhouse import ClickHouse
from tailbudget.streams.retrying import retrying


class Unwritten:
    """Rows that wait for a flush.

    Attributes:
        audits: rolling audits.
        budgets: what was left of error budgets.
        size: bytes that wait, summaries that were folded into panes included.
    """

    def __init__(self, store: ClickHouse) -> None:
        self.audits: list[AuditRow] = []
        self.budgets: list[BudgetRow] = []
        self.size = 0
        self._store = store

    def clear(self) -> None:
        """Forget all: whoever owns the services now makes it again."""
        self.audits, self.budgets, self.size = [], [], 0

    def audit(self, row: AuditRow) -> None:
        """Take a rolling audit."""
        self.audits.append(row)
        self.size += len(row.payload)

    async def write(self, panes: Sequence[StoredPane]) -> bool:
        """Write panes and all that waits; return whether there was any pane or audit.

        What could not be written waits again.
        """
        size = self.size
        audits, self.audits = self.audits, []
        budgets, self.budgets = self.budgets, []
        try:
            await self._insert(self._store.write_panes, panes)
            await self._insert(self._store.write_audits, audits)
            await self._insert(self._store.write_budgets, budgets)
        except BaseException:
            self.audits, self.budgets = audits + self.audits, budgets + self.budgets
            raise
        self.size = max(0, self.size - size)
        return bool(panes or audits)

    async def _insert(self, insert: Callable[[Any], None], rows: Sequence[Any]) -> None:
        if rows:
            await retrying(lambda: asyncio.to_thread(insert, rows))
