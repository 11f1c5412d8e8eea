"""Is there a latency at all, and in one unit? If not, say what would make it so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tailbudget.schemas import ledger, refusals
from tailbudget.schemas.errors import Refused
from tailbudget.schemas.records import Decoded, Outcome
from tailbudget.streams.audit_log import names
from tailbudget.streams.audit_log.aggregates import refusal, tool_of
from tailbudget.streams.audit_log.encodings import encoding_of, not_utf8
from tailbudget.streams.audit_log.sample import Column, Sample
from tailbudget.streams.sources import fields
from tailbudget.streams.sources.outcomes import outcome_of

NEARLY_ALL: Final = 0.9
"""Share of rows that must contradict themselves the same way before it is the log's unit.

A single wrong writer among ten is a fault of some rows; those are quarantined one by one.
"""

_SHOWN: Final = 12
_SPANS: Final = frozenset({"traceId", "traceID", "trace_id", "spanId", "spanID", "span_id"})


class Units:
    """Counts the rows whose total is about a thousandth of their stages."""

    def __init__(self) -> None:
        self.wrong = 0
        self.right = 0

    def add(self, decoded: Decoded) -> None:
        """Count the rows of a block."""
        for (_, _, reason), count in decoded.ledger.items():
            self.wrong += count if reason == ledger.TOTAL_IN_SECONDS else 0
        self.right += sum(int((c.outcome == Outcome.OK).sum()) for c in decoded.services)

    def check(self, name: str) -> None:
        """Refuse a log of which nearly all rows contradict themselves (`Refused`)."""
        rows = self.wrong + self.right
        if not self.wrong or self.wrong < NEARLY_ALL * rows:
            return
        raise Refused(
            refusals.CONTRADICTORY_UNITS,
            f"{name}: total is about 1/1000 of the stage sum in {self.wrong}/{rows} rows;"
            " looks like seconds",
            "if the totals are seconds, say so: --columns total_ms=total_ms:s; nothing is"
            " converted without being told",
        )


def require_latency(sample: Sample, name: str, heads: Sequence[bytes]) -> None:
    """Refuse a log in which no row says how long a request took.

    Args:
        sample: its first rows.
        name: of the log, for messages.
        heads: how its files begin, as text.

    Raises:
        Refused: it has no rows, is a summary, or has no latency.
        DecodeError: it has no records, and is in another encoding.
    """
    if _has_latency(sample):
        return
    for head in heads or [b""]:
        tool = tool_of(head, sample.columns)
        if tool is not None:
            raise refusal(name, tool)
    if not sample.rows:
        raise Refused(refusals.NO_ROWS, f"{name} has no rows", "check the path, or the query")
    for head in heads:
        encoding = encoding_of(head)
        if encoding is not None and not sample.records:
            raise not_utf8(name, encoding)
    if not sample.records:
        raise Refused(
            refusals.NO_ROWS,
            f"{name}: none of the first {sample.rows:,} rows is a record",
            "give Parquet, CSV with names in the first line, JSON lines or a JSON array",
        )
    shown = ", ".join(sorted(sample.columns)[:_SHOWN])
    more = ", …" if len(sample.columns) > _SHOWN else ""
    raise Refused(
        refusals.NO_LATENCY,
        f"{name}: no column {fields.TOTAL} holds the end-to-end latency; there are {shown}{more}",
        _remedy(sample),
    )


def _has_latency(sample: Sample) -> bool:
    """Return whether there are totals; failures need none."""
    if fields.TOTAL in sample.columns:
        return True
    status = sample.columns.get(fields.STATUS)
    texts = status.values if status is not None else None
    return any(outcome_of(text) != Outcome.OK for text in texts or ())


def _remedy(sample: Sample) -> str:
    if _SPANS & sample.columns.keys():
        return "spans are read as OTLP, Jaeger or Zipkin write them: give them as they came"
    found = [column for column in sample.columns.values() if _may_be_total(column)]
    if not found:
        return (
            "log how long each request took, from end to end; a trace of what was asked is"
            " a workload, not a measurement"
        )
    ways = " or ".join(f"--columns {_mapping(c.name)}" for c in found)
    note = "" if all(names.unit_of(c.name) for c in found) else " (:s, :us or :ns if not in ms)"
    return f"if that is the end-to-end latency, give {ways}{note}; nothing is converted untold"


def _may_be_total(column: Column) -> bool:
    return column.numbers > 0 and names.is_latency(column.name)


def _mapping(name: str) -> str:
    unit = names.unit_of(name)
    return f"{fields.TOTAL}={name}" + (f":{unit}" if unit not in (None, "ms") else "")
