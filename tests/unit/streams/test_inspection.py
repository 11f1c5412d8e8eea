"""What a log seems to hold, and the mapping that is proposed for it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from logs import Read

from tailbudget.schemas.errors import ConfigError
from tailbudget.streams.audit_log import Wanted, open_log
from tailbudget.streams.inspection import inspect
from tailbudget.streams.mapping_file import with_mapping

DATA = Path(__file__).parents[2] / "data"
NOW_NS = 1_800_000_000 * 10**9
ROWS: list[dict[str, Any]] = [
    {
        "req": {"id": f"r{min(n, 298)}", "code": 200, "path": "/a" if n % 2 else "/b"},
        "start": f"2026-03-02T10:{n // 60 + (20 if n > 250 else 0):02}:{n % 60:02}",
        "latency": 0.5 + n / 1000,
        "queue_us": 1500 + n,
        "first_token": "12.5ms",
        "prompt_tokens": n,
        "note": f"some words of no use {n}",
    }
    for n in range(300)
]


def lines(tmp_path: Path) -> Path:
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in ROWS))
    return path


def test_a_proposal_says_what_it_was_made_of(tmp_path: Path) -> None:
    """Units by name, by value and by guess; duplicates, zone, order and gaps."""
    found = inspect(lines(tmp_path))
    said = "\n".join(found.saw)
    assert found.mapping is not None
    assert found.mapping["columns"] == {
        "request_id": "req.id",
        "timestamp": "start",
        "total_ms": {"from": "latency", "unit": "s"},
        "status": "req.code",
        "queue_ms": {"from": "queue_us", "unit": "us"},
        "first_token_ms": {"from": "first_token", "unit": "text"},
        "prompt_tokens": "prompt_tokens",
        "route": "req.path",
    }
    assert found.mapping["covariates"] == ["prompt_tokens"]
    assert found.mapping["cohort_dims"] == ["route"]
    assert "req.id: 1 values come more than once" in said
    assert "300 times name no zone" in said
    assert "the longest gap is 1,201.0 s, the median one 1.000 s" in said
    assert "a guess, for the median is 0.6495: check it" in said
    assert "left out: note" in said


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_a_proposal_reads_the_log(kind: str, tmp_path: Path) -> None:
    """What is proposed is a mapping file, by which the log is audited."""
    path = lines(tmp_path)
    if kind == "parquet":
        path = tmp_path / "log.parquet"
        pl.DataFrame(ROWS).write_parquet(path)
    if kind == "csv":
        path = tmp_path / "log.csv"
        flat = [{**{f"req.{k}": v for k, v in r["req"].items()}, **r} for r in ROWS]
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, [n for n in flat[0] if n != "req"], extrasaction="ignore")
            writer.writeheader()
            writer.writerows(flat)
    mapping = tmp_path / "mapping.yaml"
    mapping.write_text(inspect(path).text())
    columns = Read(open_log(path, with_mapping(Wanted(), mapping), now_ns=NOW_NS)).only
    assert columns.total_ms.tolist() == pytest.approx([500 + n for n in range(300)])
    assert columns.stages == ("first_token", "queue")
    assert columns.stage_ms[:, 0].tolist() == [12.5, 1.5]
    assert len(columns.cohorts) == 2


def test_known_formats_need_no_mapping() -> None:
    """They are named, and their times looked at."""
    found = inspect(DATA / "nginx_ingress_access.log")
    assert found.mapping is None
    assert "the format nginx is read as it is: no mapping is needed" in found.saw
    assert any("older than the row before" in line for line in found.saw)


def test_a_scrape_gives_bounds(tmp_path: Path) -> None:
    """Case 16: percentiles of a histogram lie in a bucket, and are no points."""
    counts = (("5", 191_340), ("10", 191_360), ("25", 191_367), ("+Inf", 191_367))
    text = [f'request_ms_bucket{{le="{le}"}} {count}' for le, count in counts]
    path = tmp_path / "metrics.txt"
    path.write_text("\n".join([*text, "request_ms_sum 42600", "request_ms_count 191367", ""]))
    found = inspect(path)
    assert found.mapping is None
    assert found.saw[1] == (
        "request_ms{}: n = 191,367, p50 in (0, 5] ms, p95 in (0, 5] ms, p99 in (0, 5] ms,"
        " mean 0.2226 ms"
    )


def test_nothing_to_look_at(tmp_path: Path) -> None:
    """A log that is not there is an error, and one without records says so."""
    with pytest.raises(ConfigError, match="there is no log"):
        inspect(tmp_path / "none.jsonl")
    (tmp_path / "empty.jsonl").touch()
    assert "no row of it is a record" in inspect(tmp_path / "empty.jsonl").saw
