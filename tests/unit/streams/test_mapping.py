"""Mappings: any JSON, CSV or Parquet as records."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from logs import Read

from tailbudget.schemas.errors import ConfigError
from tailbudget.schemas.kafka import RequestTopic
from tailbudget.schemas.records import Columns
from tailbudget.schemas.services import ServiceSettings
from tailbudget.schemas.settings import Settings
from tailbudget.streams.audit_log import Wanted, open_log
from tailbudget.streams.mapping_file import load_mapping, mapped, with_mapping
from tailbudget.streams.rules import rules
from tailbudget.streams.sources import SourceMessage, decoder
from tailbudget.streams.sources.expression import Expression

NOW_NS = 1_800_000_000 * 10**9
MAPPING = """
columns:
  request_id: req.id
  timestamp: start
  total_ms: {from: took, unit: s}
  status: req.code
  queue_ms: {from: "times.0", unit: us}
  prefill_ms: {from: first, unit: text}
  decode_ms: {expr: total_ms - queue_ms - prefill_ms}
  route: req.path
constants: {service: chat, region: eu}
keep: [tokens]
covariates: [tokens]
cohort_dims: [route, region]
timezone: Europe/Berlin
"""
ROWS = [
    {
        "req": {"id": f"r{n}", "code": 200 if n % 5 else 503, "path": "/a" if n % 2 else "/b"},
        "start": f"2026-03-02T11:00:{n:02}.5",
        "took": 0.5 + n / 64,
        "times": [1_500 + n, 2],
        "first": f"{100 + n}.5ms",
        "tokens": n,
    }
    for n in range(40)
]


def write(tmp_path: Path, text: str = MAPPING) -> Path:
    path = tmp_path / "mapping.yaml"
    path.write_text(text)
    return path


def stages(columns: Columns, row: int) -> dict[str, float]:
    pairs = zip(columns.stages, columns.stage_ms[:, row].tolist(), strict=True)
    return {name: ms for name, ms in pairs if not math.isnan(ms)}


def check(columns: Columns) -> None:
    assert columns.service == "chat"
    assert list(columns.ids) == [f"r{n}" for n in range(40)]
    assert columns.total_ms.tolist() == [500 + n * 15.625 for n in range(40)]
    assert columns.ts_ns[3] == 1_772_445_603_500_000_000
    for n in (0, 7):
        queue, prefill = (1_500 + n) / 1e3, 100.5 + n
        wanted = {"queue": queue, "prefill": prefill, "decode": 500 + n * 15.625 - queue - prefill}
        assert stages(columns, n) == pytest.approx(wanted)
    assert columns.covariates == ("tokens",)
    assert columns.outcome.tolist() == [0 if n % 5 else 4 for n in range(40)]
    assert columns.cohorts[columns.cohort[1]] == (("route", "/a"), ("region", "eu"))


@pytest.mark.parametrize("kind", ["jsonl", "json", "parquet"])
def test_nested_files_by_a_mapping(kind: str, tmp_path: Path) -> None:
    """Paths, units, constants, expressions and a zone give the same from every kind of file."""
    path = tmp_path / f"log.{kind}"
    if kind == "jsonl":
        path.write_text("\n".join(json.dumps(row) for row in ROWS))
    elif kind == "json":
        path.write_text(json.dumps(ROWS))
    else:
        pl.DataFrame(ROWS).write_parquet(path)
    wanted = with_mapping(Wanted(), write(tmp_path))
    reading = open_log(path, wanted, now_ns=NOW_NS)
    check(Read(reading).only)


def test_a_table_by_a_mapping(tmp_path: Path) -> None:
    """Names of a CSV may hold dots themselves."""
    path = tmp_path / "log.csv"
    flat = [
        {
            "req.id": row["req"]["id"], "start": row["start"], "took": row["took"],  # type: ignore[index]
            "times.0": row["times"][0], "first": row["first"], "tokens": row["tokens"],  # type: ignore[index]
            "req.code": row["req"]["code"], "req.path": row["req"]["path"],  # type: ignore[index]
        }
        for row in ROWS
    ]  # fmt: skip
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(flat[0]))
        writer.writeheader()
        writer.writerows(flat)
    check(Read(open_log(path, with_mapping(Wanted(), write(tmp_path)), now_ns=NOW_NS)).only)


def test_a_topic_by_a_mapping(tmp_path: Path) -> None:
    """The settings name the file, and messages come out as a log's rows do."""
    entry = RequestTopic(topic="t", mapping=write(tmp_path))
    own = ServiceSettings(covariates=("tokens",), cohort_dims=("route", "region"))
    settings = Settings(defaults=own)
    one = decoder(entry.format, rules(settings, entry))
    messages = [SourceMessage(json.dumps(row).encode(), n, NOW_NS) for n, row in enumerate(ROWS)]
    halves = [one.decode(messages[:17]), one.decode([*messages[17:], SourceMessage(b"5", 99, 1)])]
    log = Read(halves)
    check(log.only)
    assert [r.reason for r in log.rejected] == ["rejected.not_object"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("columns: 5", "columns"),
        ("columns: {total_ms: {unit: s}}", "give from, or expr"),
        ("columns: {route: {from: a, unit: s}}", "only durations"),
        ("columns: {a_ms: {expr: b_ms + 1}}", "'b_ms' is no column"),
        ("columns: {a_ms: {expr: __import__('os')}}", "only columns, numbers"),
        ("columns: {a_ms: {expr: '1 +'}}", "no arithmetic"),
        ("columns: {a_ms: {from: b, unit: weeks}}", "unit"),
        ("colums: {}", "columns"),
        ("[", "no YAML"),
        ("5", "no mapping"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, said: str, tmp_path: Path) -> None:
    """The error names the file and what is wrong in it."""
    with pytest.raises(ConfigError, match=said) as caught:
        load_mapping(write(tmp_path, text))
    assert "mapping.yaml" in str(caught.value)
    with pytest.raises(ConfigError, match="cannot read"):
        load_mapping(tmp_path / "none.yaml")


def test_durations_that_are_none_are_judged() -> None:
    """What cannot be read stays as it was, so that its row is rejected for what it held."""
    made = mapped(load_mapping(Path(__file__).parents[2] / "data" / "mapping.yaml"))
    assert made.record({"took": "fast"})["total_ms"] == "fast"
    assert "total_ms" not in made.record({})
    assert made.record({"took": "1.5"})["total_ms"] == 1_500


numbers = st.floats(-1e6, 1e6)


@given(
    st.dictionaries(st.sampled_from(["a", "b", "c"]), numbers), st.randoms(use_true_random=False)
)
def test_expressions_are_arithmetic(values: dict[str, float], random: Any) -> None:
    """An expression gives what Python gives, and nothing where a column is missing."""
    parts = ["a", "b", "c", "2.5", "max(a, b)", "min(b, 3)", "-c"]
    text = " ".join(
        random.choice(parts) + f" {random.choice('+-*')}" for _ in range(random.randint(1, 4))
    ) + " " + random.choice(parts)  # fmt: skip
    expression = Expression.parse(text)
    found = expression.value(values)
    if expression.names <= values.keys():
        assert found == pytest.approx(eval(text, {}, dict(values)))  # noqa: S307
    else:
        assert found is None


def test_a_division_by_nothing_is_missing() -> None:
    """It is no number, and no error."""
    assert Expression.parse("a / b").value({"a": 1.0, "b": 0.0}) is None
