"""Attempts of operations, as a decoder gives them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from requests_of import SECOND_NS, T0_NS

from tailbudget.schemas import ledger
from tailbudget.schemas.records import Columns, Decoded, Outcome

NAN = float("nan")


@dataclass(frozen=True)
class Try:
    """One attempt; operation 0 is a request that names none."""

    operation: int
    number: int
    start_s: float
    ms: float
    outcome: Outcome = Outcome.TIMEOUT
    model_ms: float = NAN
    route: str = "a"
    limit_ms: float = NAN

    @property
    def id(self) -> str:
        """Its request id."""
        return f"r{self.operation}-{self.number}-{self.start_s:g}"


def columns_of_tries(tries: Sequence[Try]) -> Columns:
    """Return attempts as columns, offsets in order."""
    routes = sorted({one.route for one in tries})
    model = np.array([[one.model_ms for one in tries]], np.float64).reshape(1, len(tries))
    hashes = [hash((one.operation, one.number, one.start_s)) % 2**63 for one in tries]
    named = any(one.operation for one in tries)
    return Columns(
        service="chat",
        cohorts=tuple((("route", route),) for route in routes),
        cohort=np.array([routes.index(one.route) for one in tries], np.int32),
        id_hash=np.array(hashes, np.uint64),
        ids=[one.id for one in tries],
        ts_ns=np.array([T0_NS + round(one.start_s * SECOND_NS) for one in tries], np.int64),
        outcome=np.array([one.outcome for one in tries], np.int8),
        total_ms=np.array([one.ms for one in tries], np.float64),
        limit_ms=np.array([one.limit_ms for one in tries], np.float64),
        weight=None,
        stages=("model",),
        stage_ms=model,
        covariates=("tokens",),
        covariate=np.array([[float(one.number * 10) for one in tries]]),
        offset=np.arange(len(tries), dtype=np.int64),
        operation=np.array([one.operation for one in tries], np.uint64) if named else None,
        attempt=np.array([one.number for one in tries], np.int64) if named else None,
    )


def decoded(tries: Sequence[Try]) -> Decoded:
    """Return a batch of one service, with the ledger that a decoder gives."""
    if not tries:
        return Decoded((), (), {}, frozenset())
    columns = columns_of_tries(tries)
    counts: dict[tuple[str, int, str], int] = {}
    for ts_ns, outcome in zip(columns.ts_ns.tolist(), columns.outcome.tolist(), strict=True):
        second = ts_ns // SECOND_NS * SECOND_NS
        for reason in (ledger.ACCEPTED, ledger.FAILED)[: 2 if outcome else 1]:
            counts["chat", second, reason] = counts.get(("chat", second, reason), 0) + 1
    return Decoded((columns,), (), counts, frozenset())
