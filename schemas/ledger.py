"""What became of every record: the reasons under which the ledger counts.

The strings are permanent: they stand in ClickHouse rows, in reports and in dead letters.
"Rejected" is no record at all and goes to the dead-letter topic. "Quarantined" is a record that
contradicts itself or its clock: counted, kept out of all figures. "Missing" is one cell of a
record that is kept.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

ACCEPTED: Final = "accepted"
FAILED: Final = "failed"

NOT_JSON: Final = "rejected.not_json"
NOT_OBJECT: Final = "rejected.not_object"
NOT_UTF8: Final = "rejected.not_utf8"
OVERSIZE: Final = "rejected.oversize"
NO_ID: Final = "rejected.no_id"
NO_TIMESTAMP: Final = "rejected.no_timestamp"
BAD_TIMESTAMP: Final = "rejected.bad_timestamp"
NO_TOTAL: Final = "rejected.no_total"
NOT_A_NUMBER: Final = "rejected.not_a_number"
NOT_OF_FORMAT: Final = "rejected.not_of_format"

FUTURE: Final = "quarantined.future"
OUT_OF_RANGE_TIME: Final = "quarantined.out_of_range_time"
NOT_FINITE: Final = "quarantined.not_finite"
NEGATIVE_TOTAL: Final = "quarantined.negative_total"
TOTAL_OUT_OF_RANGE: Final = "quarantined.total_out_of_range"
TOTAL_IN_SECONDS: Final = "quarantined.total_in_seconds"
STAGE_EXCEEDS_TOTAL: Final = "quarantined.stage_exceeds_total"

MISSING_TOTAL: Final = "missing.total"
NEGATIVE_STAGE: Final = "missing.negative_stage"
NOT_FINITE_STAGE: Final = "missing.not_finite_stage"
STAGE_OUT_OF_RANGE: Final = "missing.stage_out_of_range"
MISSING_COVARIATE: Final = "missing.covariate"
MISSING_LIMIT: Final = "missing.limit"
MISSING_WEIGHT: Final = "missing.weight"
MISSING_SCHEDULE: Final = "missing.schedule"

TOMBSTONE: Final = "tombstone"
UNKNOWN_COLUMN: Final = "unknown_column"
DUPLICATE: Final = "duplicate"
RETRY: Final = "retry"
UNHELD: Final = "unheld"
INCOMPLETE: Final = "incomplete"
ORPHAN: Final = "orphan"
ASYNCHRONOUS: Final = "asynchronous"
BEYOND: Final = "beyond"
UNUSABLE: Final = "unusable"
LATE: Final = "late"
CLAMPED: Final = "clamped"
OVERLAP: Final = "overlap"
HOLE: Final = "hole"

MEANING: Final = MappingProxyType(
    {
        ACCEPTED: "records in the figures, failures included",
        FAILED: "accepted records of requests that failed",
        NOT_JSON: "not JSON",
        NOT_OBJECT: "JSON, but no object",
        NOT_UTF8: "not UTF-8",
        OVERSIZE: "longer than the largest record that is read",
        NO_ID: "no request_id",
        NO_TIMESTAMP: "no timestamp",
        BAD_TIMESTAMP: "a timestamp that is neither RFC 3339 nor an epoch",
        NO_TOTAL: "no total_ms, though the request did not fail",
        NOT_A_NUMBER: "a total_ms that is no number",
        NOT_OF_FORMAT: "not of the format of its source",
        FUTURE: "stamped later than it arrived, beyond the allowance",
        OUT_OF_RANGE_TIME: "stamped before 2000 or after 2100",
        NOT_FINITE: "a total_ms of NaN or infinity",
        NEGATIVE_TOTAL: "a total_ms below zero",
        TOTAL_OUT_OF_RANGE: "a total_ms above 24 hours",
        TOTAL_IN_SECONDS: "a total_ms of about 1/1000 of the stages: looks like seconds",
        STAGE_EXCEEDS_TOTAL: "a stage of more than 100 times the total, by no known unit",
        MISSING_TOTAL: "failed requests whose total_ms was unusable; they count as failed",
        NEGATIVE_STAGE: "stages below zero",
        NOT_FINITE_STAGE: "stages that are no finite number",
        STAGE_OUT_OF_RANGE: "stages above 24 hours",
        MISSING_COVARIATE: "input-shape values that are no finite number",
        MISSING_LIMIT: "timeout_ms that is no positive number",
        MISSING_WEIGHT: "weights below 1, above 1e9 or no number; taken as 1",
        MISSING_SCHEDULE: "scheduled_ts that is no time within 24 hours before the timestamp",
        TOMBSTONE: "messages without a value",
        UNKNOWN_COLUMN: "values in columns that are no stage, covariate or dimension",
        DUPLICATE: "records seen before",
        RETRY: "attempts that became one request with a later attempt of their operation",
        UNHELD: "attempts that counted before their operation ended, and traces that were judged"
        " early: too many were held",
        INCOMPLETE: "traces without a root, or with one that did not end; they are no requests",
        ORPHAN: "spans that are below no span that came",
        ASYNCHRONOUS: "spans that their request did not wait for; they are no stages",
        BEYOND: "spans of a trace that has more than are kept",
        UNUSABLE: "spans without an id, a trace or a start",
        LATE: "records that amended a pane after its window had been judged",
        CLAMPED: "values beyond the range of the sketch",
        OVERLAP: "records whose stages together exceed their total",
        HOLE: "source offsets that were never delivered",
    }
)
"""Every reason with its meaning, for people; in the order in which reports show them."""


def is_rejected(reason: str) -> bool:
    """Return whether what is counted under `reason` goes to the dead-letter topic."""
    return reason.startswith("rejected.")


def is_quarantined(reason: str) -> bool:
    """Return whether what is counted under `reason` is kept out of all figures."""
    return reason.startswith("quarantined.")
