"""Why an audit refuses its input: the reasons, permanent like those of the ledger."""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

AGGREGATES: Final = "aggregates"
BATCH: Final = "batch"
CONTRADICTORY_UNITS: Final = "contradictory_units"
DEFINITIONS: Final = "definitions"
MIXED: Final = "mixed"
NO_LATENCY: Final = "no_latency"
NO_ROWS: Final = "no_rows"
NO_STAGES: Final = "no_stages"

MEANING: Final = MappingProxyType(
    {
        AGGREGATES: "percentiles or means of many requests, where an audit needs a row a request",
        BATCH: "a batch or offline workload, which has no latency budget",
        CONTRADICTORY_UNITS: "totals and stages that cannot be of the same unit",
        DEFINITIONS: "two sources that do not mean the same by their token timings",
        MIXED: "histograms beside single requests, or beside other histograms",
        NO_LATENCY: "no column holds the end-to-end latency",
        NO_ROWS: "no row to read",
        NO_STAGES: "no stage is timed, so there is nothing to attribute latency to",
    }
)
"""Every reason with its meaning, for people."""
