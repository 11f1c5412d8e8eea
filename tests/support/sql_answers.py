"""What tests compare answers of views by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from random_records import T0_NS

from tailbudget.models.merge import merge
from tailbudget.models.select import collapse
from tailbudget.schemas.summary import Summary

RANGE = "service = 'chat', from = '2026-03-02 10:00:00', to = '2026-03-02T10:02:00Z'"
"""Two minutes of `random_records`, for views that want a range."""


def one_group(parts: Sequence[Summary]) -> Summary:
    """All panes and cohorts as one group."""
    moved = [replace(p, pane_ns=np.full_like(p.pane_ns, T0_NS), ledger={}) for p in parts]
    return collapse(merge(moved))


def by(rows: list[dict[str, Any]], *keys: str) -> dict[Any, dict[str, Any]]:
    """Index rows by one or more columns."""
    found = {tuple(row[key] for key in keys): row for row in rows}
    assert len(found) == len(rows)
    return {key[0] if len(keys) == 1 else key: row for key, row in found.items()}
