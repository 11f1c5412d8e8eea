"""Summaries of load testers, told by their content: they hold no request to attribute."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import MappingProxyType
from typing import Final

from tailbudget.schemas import refusals
from tailbudget.schemas.errors import Refused

TOOLS: Final = MappingProxyType(
    {
        "MLPerf LoadGen": ((b"MLPerf Results Summary",),),
        "k6": ((b"http_req_duration", b"p(95)"),),
        "Locust": ((b"Request Count", b"Median Response Time"), (b'"num_requests"', b'"response_')),
        "Artillery": ((b"http.response_time", b"aggregate"), (b"http.response_time", b"p95:")),
        "wrk": ((b"Thread Stats", b"Latency", b"Requests/sec"),),
        "hey": ((b"Slowest:", b"Fastest:", b"Requests/sec:"),),
        "GuideLLM": ((b'"guidellm_version"',), (b'"benchmarks"', b'"inter_token_latency_ms"')),
        "vLLM's benchmark": (
            (b"Serving Benchmark Result",),
            (b'"request_throughput"', b'"mean_ttft_ms"'),
        ),
        "LLMPerf (its summary)": ((b'"results_end_to_end_latency_s',),),
        "AIPerf (its summary)": (
            (b'"request_latency"', b'"avg"', b'"p99"'),
            (b"Metric,avg,min,max",),
        ),
        "Triton's Performance Analyzer": ((b"Inferences/Second", b"p99 latency"),),
        "ApacheBench": ((b"This is ApacheBench",),),
        "Vegeta": ((b"Latencies", b"Bytes In"), (b'"latencies"', b'"99th"')),
        "JMeter (its aggregate report)": ((b"# Samples", b"99% Line"),),
        "Prometheus": ((b"_bucket{", b'le="'),),
    }
)
"""By tool: texts that its summary holds all of; each tool writes in one of these ways.

After the summaries that the tools print or write: MLPerf inference results (mlcommons), k6
`--summary-export` and its end-of-test text, Locust `_stats.csv` and `--json`, Artillery reports,
wrk and hey on the terminal, GuideLLM and vLLM `--save-result`, LLMPerf `_summary.json`, AIPerf
and GenAI-Perf `profile_export_*.json`, perf_analyzer `-f`, ab, vegeta report, JMeter.
"""

_STATISTIC: Final = re.compile(
    r"(^|[^a-z0-9])(p|perc(entile)?)?_?\(?(50|75|90|95|99)(\.\d+)?\)?(th)?(%|[^a-z0-9]|$)"
    r"|(^|[^a-z])(mean|avg|average|median|std|stddev|stdev)([^a-z]|$)",
    re.IGNORECASE,
)
_STATISTICS: Final = 3
"""So many columns of statistics make a table of aggregates; a request's row has no use for one."""


def tool_of(head: bytes, columns: Iterable[str] = ()) -> str | None:
    """Return which tool's summary it is, or "a table of statistics"; None where it is none.

    Args:
        head: the first bytes of the text.
        columns: names of the columns, where it was read as a table.
    """
    for tool, ways in TOOLS.items():
        if any(all(text in head for text in way) for way in ways):
            return tool
    statistics = [name for name in columns if _STATISTIC.search(name)]
    return "a table of statistics" if len(statistics) >= _STATISTICS else None


def refusal(name: str, tool: str) -> Refused:
    """Return the refusal of a summary."""
    return Refused(
        refusals.AGGREGATES,
        f"{name}: aggregated ({tool}); needs one row per request",
        "have the tool write its single requests, or log them in the service; percentiles of"
        " percentiles are never computed",
    )
