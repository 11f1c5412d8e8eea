"""The JSON report and its published schema."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.resources import files
from typing import Any

import audits
import pytest
from golden import AUDITS, golden
from jsonschema import Draft202012Validator

from tailbudget.schemas.verdicts import Audit
from tailbudget.sinks.report.json_report import as_json

SCHEMA = json.loads(
    files("tailbudget.schemas").joinpath("audit.schema.json").read_text(encoding="utf-8")
)
VALIDATOR = Draft202012Validator(SCHEMA)

DESIGNED = {
    "": "schema verdict provenance end_to_end stages tail_driver shape cohorts cold_start causes "
    "optimizations recommendation ledger warnings",
    "provenance": "service start end n n_ok n_failed slo",
    "end_to_end": "percentile measured_ms slo_ms headroom_ms status basis",
    "stages": "stage n p50_ms p95_ms p99_ms mean_fast_ms mean_slow_ms delta_ms tail_share_pct",
    "shape": "stage covariate n r2 slope_ms_per_unit intercept_ms",
    "cohorts": "dimension value n p99_ms delta_ms slow_share_pct traffic_share_pct",
    "cold_start": "deploys excluded unfiltered_p99_ms filtered_p99_ms verdict suspected",
    "causes": "cause stage score evidence against",
    "optimizations": "fix cause p99_saved_ms interval_ms hours ms_per_hour quality_risk "
    "reversible verify",
}

Path = tuple[str | int, ...]


def test_schema_is_a_schema() -> None:
    """The published file is valid by its own draft and names itself."""
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == "urn:tailbudget:audit:1"


@pytest.mark.parametrize("name", AUDITS)
def test_report_is_as_it_was(name: str) -> None:
    """The report of an audit made by hand is the golden file, to the letter."""
    assert as_json(AUDITS[name]()) == json.loads(golden(name, "json"))


@pytest.mark.parametrize("build", [*AUDITS.values(), lambda: audits.hostile("a|b")])
def test_reports_fit_the_schema(build: Callable[[], Audit]) -> None:
    """Full, sparse and hostile reports are all valid, and strict JSON."""
    report = as_json(build())
    assert list(VALIDATOR.iter_errors(report)) == []
    assert json.loads(json.dumps(report, allow_nan=False)) == report


@pytest.mark.parametrize(("section", "keys"), DESIGNED.items())
def test_sections_have_the_designed_keys(section: str, keys: str) -> None:
    """No key of the design is missing."""
    report = as_json(audits.breach())
    part = report[section] if section else report
    assert set(part[0] if isinstance(part, list) else part) >= set(keys.split())


def objects(value: Any, path: Path = ()) -> Iterator[Path]:
    """Yield where each object of fixed keys lies."""
    if isinstance(value, dict):
        if path != ("ledger",):
            yield path
        for key, part in value.items():
            yield from objects(part, (*path, key))
    elif isinstance(value, list):
        for at, part in enumerate(value[:1]):
            yield from objects(part, (*path, at))


def at(report: Any, path: Path) -> Any:
    """Return the object at a path."""
    for key in path:
        report = report[key]
    return report


@pytest.mark.parametrize("path", tuple(objects(as_json(audits.breach()))), ids=str)
def test_schema_is_strict(path: Path) -> None:
    """Each object needs each of its keys, and has no other."""
    whole = as_json(audits.breach())
    for key in at(whole, path):
        broken = copy.deepcopy(whole)
        del at(broken, path)[key]
        assert not VALIDATOR.is_valid(broken), key
        wrong = copy.deepcopy(whole)
        at(wrong, path)[key] = {"un": "expected"}
        assert not VALIDATOR.is_valid(wrong) or (path, key) == ((), "ledger"), key
    more = copy.deepcopy(whole)
    at(more, path)["unheard_of"] = 1
    assert not VALIDATOR.is_valid(more)


def test_floats_do_not_tell_the_order_of_merging() -> None:
    """Values that differ beyond six digits are one value, and NaN is null."""
    whole = audits.breach()
    first, *rest = whole.stages
    nudged = replace(whole, stages=(replace(first, delta_ms=3.4 * (1 + 1e-9)), *rest))
    assert as_json(nudged) == as_json(whole)
    unknown = replace(whole, stages=(replace(first, delta_ms=float("nan")), *rest))
    assert as_json(unknown)["stages"][0]["delta_ms"] is None


def test_counts_are_not_rounded() -> None:
    """A count of nine digits keeps them all."""
    whole = audits.breach()
    many = replace(whole, provenance=replace(whole.provenance, n=123_456_789))
    assert as_json(many)["provenance"]["n"] == 123_456_789
