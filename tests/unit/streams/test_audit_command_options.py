"""What `tailbudget audit` is asked, and how it answers: inputs, options, formats, statuses."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl
import pytest
from audited_logs import BOUND, CASES, T0_MS, Command, lines
from clickhouse_store import fresh_store
from logs import WRITERS, write

from tailbudget.schemas.errors import ConfigError, Refused
from tailbudget.streams.api import as_json
from tailbudget.streams.api import audit as audit_frame

Row = dict[str, Any]


def requests(n: int = 2_000, *, slow: float = 1.0, seed: int = 7) -> list[Row]:
    """Return requests of two stages and two routes; `slow` multiplies the time of run."""
    rng = np.random.default_rng(seed)
    queue, run = rng.lognormal(1, 0.3, n), slow * rng.lognormal(4, 0.4, n)
    tokens = rng.integers(10, 500, n)
    return [
        {
            "request_id": f"r{i}",
            "timestamp": T0_MS + 100 * i,
            "total_ms": float(queue[i] + run[i] + 0.1 * tokens[i]),
            "queue_ms": float(queue[i]),
            "run_ms": float(run[i] + 0.1 * tokens[i]),
            "input_tokens": int(tokens[i]),
            "route": "ab"[i % 2],
        }
        for i in range(n)
    ]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return lines(tmp_path / "log.jsonl", requests())


@pytest.mark.parametrize(
    ("slo", "status", "verdict"),
    [("p99=500", 0, "ok"), ("p99=100", 1, "breach"), ("p50=85", 0, "at_risk")],
)
def test_the_status_is_the_verdict(
    audit: Command, log: Path, slo: str, status: int, verdict: str
) -> None:
    """0 within the SLO, 1 beyond it."""
    found = audit(log, "--slo", slo)
    assert (found.status, found.report["verdict"]) == (status, verdict)


def test_the_status_without_a_target(audit: Command, log: Path, tmp_path: Path) -> None:
    """What is measured well is fine, few requests are too few, and no stages is a refusal."""
    assert audit(log).status == 0
    assert audit(log).report["headline"].startswith("NO TARGET: P99 is ")
    assert audit(lines(tmp_path / "few.jsonl", requests(50))).status == 4
    bare = [{"total_ms": row["total_ms"]} for row in requests()]
    whole = lines(tmp_path / "bare.jsonl", bare)
    found = audit(whole)
    assert (found.status, found.report["optimizations"]) == (3, [])
    assert found.report["refused"].startswith("no stage is timed")
    assert found.at("p99")["measured_ms"] is not None
    assert audit(whole, "--slo", "p99=100").status == 1  # what was judged goes first
    assert audit(lines(tmp_path / "empty.jsonl", [])).status == 3


def test_nothing_but_rejected_rows_is_no_data(audit: Command, tmp_path: Path) -> None:
    """Rows that are no records make no report of zeros."""
    rows = [{"timestamp": "yesterday", "total_ms": 5.0}] * 30
    found = audit(lines(tmp_path / "log.jsonl", rows), "--slo", "p99=10")
    assert (found.status, found.report["verdict"]) == (4, "no_data")
    assert (found.report["provenance"]["start"], found.report["end_to_end"]) == (None, [])
    assert found.warned("rejected.bad_timestamp 30")


@pytest.mark.parametrize("kind", [*WRITERS, "csv.gz", "parquet.zst"])
def test_every_kind_of_file_gives_the_same_report(
    audit: Command, log: Path, tmp_path: Path, kind: str
) -> None:
    """Only the name of the source and what was assumed of the format differ."""
    other = audit(write(tmp_path, requests(), kind, "other")).report
    same = audit(log).report
    for report in (other, same):
        del report["provenance"]
    assert other == same


def test_a_directory_and_standard_input(
    audit: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files of a directory are one log, and so is what is piped in."""
    folder = tmp_path / "logs"
    folder.mkdir()
    rows = requests()
    lines(folder / "a.jsonl", rows[:700])
    write(folder, rows[700:], "csv.gz", "b")
    together = audit(folder).report
    piped = io.TextIOWrapper(io.BytesIO(b"".join(orjson.dumps(row) + b"\n" for row in rows)))
    monkeypatch.setattr(sys, "stdin", piped)
    alone = audit("-").report
    assert alone["provenance"]["source"] == "standard input"
    assert together["provenance"]["n"] == alone["provenance"]["n"] == 2_000
    assert together["end_to_end"] == alone["end_to_end"]
    assert together["stages"] == alone["stages"]


@pytest.mark.parametrize("flag", ["--rejected", "--output"])
def test_files_are_written_where_asked(
    tailbudget: Command, log: Path, tmp_path: Path, flag: str
) -> None:
    """The report leaves standard output to others; an empty file says that nothing was rejected."""
    out = tmp_path / "out"
    found = tailbudget("audit", log, flag, out, "--format", "markdown")
    text = out.read_text(encoding="utf-8")
    assert (text == "") == (flag == "--rejected")
    assert (found.out == "") == (flag == "--output")
    assert found.err == ""


@pytest.mark.parametrize("name", ["text", "markdown", "html", "json"])
def test_all_formats_say_the_same(tailbudget: Command, log: Path, name: str) -> None:
    """Verdict, tail driver and P99 stand in each of them, and the status is the same."""
    report = tailbudget("audit", log, "--slo", "p99=100", "--format", "json").report
    found = tailbudget("audit", log, "--slo", "p99=100", "--format", name)
    p99 = next(row for row in report["end_to_end"] if row["percentile"] == "p99")
    words = " ".join(found.out.split())
    assert found.status == 1
    assert f"{p99['measured_ms']:.4g}" in words
    assert report["tail_driver"]["stage"] in words
    assert "BREACH" in words
    assert found.err == ""


def test_slow_can_begin_elsewhere(audit: Command, log: Path) -> None:
    """The band of the slow requests is the one that was asked for, and the report says so."""
    for asked, said in (("p99", "p99"), ("150", 150), ("150ms", 150)):
        report = audit(log, "--slow-request-threshold", asked).report
        assert report["provenance"]["slow_request_threshold"] == said


def test_named_columns_are_not_guessed(audit: Command, tmp_path: Path) -> None:
    """Other names, other units and a zone of one's own are read as told."""
    rows = [
        {
            "id": row["request_id"],
            "at": f"2026-03-02 11:{i // 600:02}:{i // 10 % 60:02}.{i % 10}",
            "took": row["total_ms"] / 1_000,
            "run_ms": row["run_ms"],
            "size": row["input_tokens"],
            "kind": row["route"],
        }
        for i, row in enumerate(requests())
    ]
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    mapping = "request_id=id,timestamp=at,total_ms=took:s"
    dims = ("--input-shape-dims", "size", "--cohort-dims", "kind", "--stages", "run")
    found = audit(path, "--columns", mapping, "--timezone", "Europe/Berlin", *dims)
    median = float(np.quantile([r["took"] * 1e3 for r in rows], 0.5, method="inverted_cdf"))
    assert found.report["provenance"]["start"] == "2026-03-02T10:00:00.000Z"
    assert found.at("p50")["measured_ms"] == pytest.approx(median, rel=BOUND)
    assert {row["covariate"] for row in found.report["shape"]} == {"size"}
    assert {row["dimension"] for row in found.report["cohorts"]} == {"kind"}


def test_a_baseline_tells_what_changed(audit: Command, log: Path, tmp_path: Path) -> None:
    """A stage that became slower at the same workload is a regression, and the parts add up."""
    now = lines(tmp_path / "now.jsonl", requests(slow=1.5, seed=8))
    found = audit(now, "--baseline", log).report["baseline"]
    parts = {part["part"]: part["delta_ms"] for part in found["parts"]}
    changed = {(row["of"], row["percentile"]) for row in found["changes"] if row["changed"]}
    assert ("total", "p99") in changed
    assert sum(parts.values()) == pytest.approx(found["p99_change_ms"], rel=1e-4)
    assert max(parts, key=lambda name: parts[name]) == found["verdict"] == "regression"
    slower = {row["name"] for row in found["changes"] if row["of"] == "stage" and row["changed"]}
    assert "run" in slower
    assert "queue" not in slower


def test_an_slo_is_proposed_from_what_was_measured(audit: Command, log: Path) -> None:
    """Each target is above what was measured, and the stages divide it."""
    found = audit(log, "--propose-slo").report["slo_proposal"]
    assert [row["percentile"] for row in found["supported"]] == ["p50", "p95", "p99"]
    for row in found["supported"]:
        target = found["slo"][f"{row['percentile']}_ms"]
        assert target >= row["supported_ms"] >= row["measured_ms"]
    budgets = sum(part["p99_ms"] for part in found["budgets"])
    assert budgets == pytest.approx(found["slo"]["p99_ms"], rel=1e-4)
    assert audit(log).report["slo_proposal"] is None


def test_a_brief_knows_the_context(audit: Command, log: Path, tmp_path: Path) -> None:
    """What the file says is in the brief, what is missing is asked for, in under 700 words."""
    context = tmp_path / "context.yaml"
    context.write_text("hardware: 2 x A10G\nserving_runtime: vLLM\n", encoding="utf-8")
    brief = audit(log, "--advice", "--context", context).report["brief"]
    assert "2 x A10G" in json.dumps(brief)
    assert len(json.dumps(brief).split()) < 800  # keys and punctuation included
    assert audit(log).report["brief"] is None


def test_deploys_are_read_from_a_file(audit: Command, log: Path, tmp_path: Path) -> None:
    """Lines or an array, the window as long as asked; without a service they are nobody's."""
    event = {"service": "chat", "version": "v2", "ts": "2026-03-02T10:01:00Z"}
    for text in (orjson.dumps(event), orjson.dumps([event])):
        path = tmp_path / "deploys.json"
        path.write_bytes(text)
        asked = ("--deploys", path, "--cold-start-window-min", "1")
        cold = audit(log, *asked, "--service", "chat").report["cold_start"]
        assert cold["deploys"][0]["end"] == "2026-03-02T10:02:00Z"
        assert cold["excluded"] == 600
        assert audit(log, *asked).status == 2


def test_rows_of_clickhouse(
    audit: Command, tmp_path: Path, clickhouse_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query of the embedded engine is a log like any other."""
    log = lines(tmp_path / "log.jsonl", requests(1_000))
    same = audit(log).report
    monkeypatch.setenv("TAILBUDGET_CLICKHOUSE__PATH", "nowhere")
    monkeypatch.setenv("TAILBUDGET_CLICKHOUSE__INTERFACE", "chdb")
    absent = audit("--sql", "SELECT 1 AS total_ms")
    assert (absent.status, Path("nowhere").exists()) == (2, False)
    assert absent.err.startswith("error: there is no embedded ClickHouse in nowhere\n")
    with fresh_store(clickhouse_path) as store:
        monkeypatch.setenv("TAILBUDGET_CLICKHOUSE__DATABASE", store.target.database)
        monkeypatch.setenv("TAILBUDGET_CLICKHOUSE__PATH", str(clickhouse_path))
        found = audit("--sql", ROWS_OF_TEXT.replace("{text}", log.read_text().strip())).report
    assert found["provenance"]["source"] == "a query of ClickHouse"
    assert found["end_to_end"] == same["end_to_end"]


ROWS_OF_TEXT = """
SELECT JSONExtractString(line, 'request_id') AS request_id,
       JSONExtractInt(line, 'timestamp') AS timestamp,
       JSONExtractFloat(line, 'total_ms') AS total_ms,
       JSONExtractFloat(line, 'queue_ms') AS queue_ms,
       JSONExtractFloat(line, 'run_ms') AS run_ms,
       JSONExtractInt(line, 'input_tokens') AS input_tokens,
       JSONExtractString(line, 'route') AS route
FROM (SELECT arrayJoin(splitByChar('\\n', '{text}')) AS line)
"""

BAD = {
    "--slo p99=abc": "--slo 'p99=abc': p99_ms: 'abc' is no number",
    "--slo p42=3": "--slo 'p42=3': p42: no such key",
    "--slow-request-threshold fast": "--slow-request-threshold 'fast' is no threshold",
    "--timezone Mars/Olympus": "there is no time zone 'Mars/Olympus'",
    "--columns latency": "'latency' maps no column",
    "--columns total_ms=latency": "no row of the first 2,000 has a column 'latency'",
    "--stages decode": "no row of the first 2,000 has a column 'decode_ms'",
    "--cohort-dims tenant": "no row of the first 2,000 has a column 'tenant'",
    "--input-shape-dims pixels": "no row of the first 2,000 has a column 'pixels'",
    "--log-format nope": "there is no format 'nope'",
    "--workload nope": "there is no workload 'nope'",
    "--cold-start-window-min -5": "a cold start window of -5 minutes is none",
    "--deploys none.jsonl": "none.jsonl cannot be read: No such file or directory",
    "--deploys log.jsonl": "log.jsonl, event 1: no deploy event: lacks service, version",
    "--baseline none.jsonl": "there is no log none.jsonl",
    "--context none.yaml": "--context is for the brief",
    "--advice --context none.yaml": "context file none.yaml does not exist",
    "--output no/where.md": "no/where.md cannot be written: No such file or directory",
    "--rejected no/where.jsonl": "no/where.jsonl cannot be written: No such file or directory",
    "--sql SELECT": "a LOG and --sql exclude each other",
}


@pytest.mark.parametrize("options", BAD)
def test_wrong_usage_is_one_line_and_a_remedy(tailbudget: Command, log: Path, options: str) -> None:
    """The error names what was given, and a second line what to give."""
    found = tailbudget("audit", log.name, *options.split())
    assert (found.status, found.out) == (2, "")
    first, second = found.err.splitlines()
    assert first.startswith(f"error: {BAD[options]}")
    assert second.startswith("remedy: ")


def test_a_log_that_is_not_there(tailbudget: Command) -> None:
    """No log, and one that does not exist."""
    found = tailbudget("audit", "none.jsonl")
    assert (found.status, found.err.splitlines()[0]) == (2, "error: there is no log none.jsonl")
    assert tailbudget("audit").err.startswith("error: give a LOG, or --sql\nremedy: ")


FRAMES: dict[str, Callable[[pl.DataFrame], object]] = {
    "polars": lambda frame: frame,
    "lazy": lambda frame: frame.lazy(),
    "arrow": lambda frame: frame.to_arrow(),
}
if find_spec("pandas"):
    FRAMES["pandas"] = lambda frame: frame.to_pandas()


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_give_the_report_of_their_file(audit: Command, log: Path, kind: str) -> None:
    """polars, pandas and Arrow say the same as the file, option by option."""
    frame = FRAMES[kind](pl.DataFrame(requests()))
    told = audit_frame(frame, slo_target="p99=100", slow_request_threshold="p99", service="chat")
    found = as_json(told)
    asked = ("--slo", "p99=100", "--slow-request-threshold", "p99", "--service", "chat")
    same = audit(log, *asked).report
    for report in (found, same):
        del report["provenance"]
    assert json.loads(orjson.dumps(found)) == same


def test_python_raises_what_the_command_tells() -> None:
    """Refusals and wrong usage are exceptions, with the same words."""
    with pytest.raises(Refused, match="looks like seconds"):
        audit_frame(CASES / "18_total_in_seconds.jsonl")
    with pytest.raises(ConfigError, match="there is no workload 'nope'"):
        audit_frame(pl.DataFrame(requests(20)), workload="nope")
    deploys = [{"service": "scorer", "version": "v1", "ts": "2026-03-02T10:10:00Z"}]
    found = audit_frame(
        CASES / "11_deploy_requests.jsonl", deploys=deploys, service="scorer", slo_target="p99=500"
    )
    assert found.cold_start is not None
    assert found.cold_start.excluded == 50
