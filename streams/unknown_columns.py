"""Columns that are no stage, covariate or dimension."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import structlog

log = structlog.get_logger()


class UnknownColumns:
    """Says once about each of them that it is in no figure; the ledger counts their values."""

    def __init__(self) -> None:
        self._named: set[str] = set()

    def name(self, names: AbstractSet[str]) -> None:
        """Log those that were not named before."""
        for name in sorted(names - self._named):
            log.warning(
                "unknown column",
                column=name[:80],
                remedy="list it under covariates or cohort_dims, or leave it out of the records",
            )
        self._named |= names
