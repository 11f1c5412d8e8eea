"""The rows that ClickHouse keeps of an audit."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from jsonschema import Draft202012Validator
from requests_of import T0_NS, columns_of, summary_of

from tailbudget.models.audit import audit
from tailbudget.models.window import Window
from tailbudget.schemas.slo import SloTarget
from tailbudget.schemas.verdicts import Audit
from tailbudget.streams.audit_rows import audit_row

MINUTE_NS = 60 * 10**9


def audited(n: int) -> Audit:
    """Return the audit of a minute with n requests."""
    window = Window(MINUTE_NS, 10 * 10**9)
    if n:
        columns = columns_of([float(10 + i % 90) for i in range(n)])
        window.add(summary_of(columns, thresholds_ms=(80.0,)))
    slo = SloTarget(p99_ms=80)
    return audit(
        window.total(), window.cohorts(), slo=slo, start_ns=T0_NS, end_ns=T0_NS + MINUTE_NS
    )


@pytest.mark.parametrize("n", [0, 1, 2_000])
def test_payload_fits_the_published_schema(n: int) -> None:
    """What is kept of a rolling audit is a JSON report like any other."""
    text = files("tailbudget.schemas").joinpath("audit.schema.json").read_text(encoding="utf-8")
    row = audit_row(audited(n), window_s=60, end_ns=T0_NS + MINUTE_NS)
    report = json.loads(row.payload)
    assert list(Draft202012Validator(json.loads(text)).iter_errors(report)) == []
    assert report["provenance"]["n"] == n
    assert (report["cold_start"], report["recommendation"], report["causes"]) == (None, None, [])
    assert report["verdict"] == row.verdict
