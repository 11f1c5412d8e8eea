"""How latency follows input shape: fits, bands, latency a unit."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from gathered import gathered

from tailbudget.models.select import empty
from tailbudget.models.shape_table import ShapeTable, shape_table
from tailbudget.models.shape_units import length_unit, unit_of
from tailbudget.schemas.sections import ShapeRow
from tailbudget.schemas.summary import Summary

N = 3_000


def requests(covariates: dict[str, Any], **stages: Any) -> Summary:
    columns = {f"{name}_ms": values for name, values in stages.items()} | covariates
    return gathered(columns, covariates=tuple(covariates)).total


def rows_of(table: ShapeTable) -> dict[tuple[str, str], ShapeRow]:
    return {(row.stage, row.covariate): row for row in table.rows}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(12)


def test_each_stage_is_fitted_on_each_covariate(rng: np.random.Generator) -> None:
    """Slopes, intercepts, powers and units are those that the requests were made with."""
    tokens = rng.integers(10, 2_000, N)
    prefill = 0.05 * tokens + 3 + rng.normal(0, 1, N)
    attention = 1e-5 * tokens.astype(float) ** 2
    table = shape_table(
        requests(
            {"input_tokens": tokens, "fanout": rng.integers(1, 9, N)},
            prefill=prefill,
            attention=attention,
            total=prefill + attention + 5,
        ),
        "p95",
    )
    rows = rows_of(table)
    assert {stage for stage, _ in rows} == {"total", "prefill", "attention", "unattributed"}
    line = rows["prefill", "input_tokens"]
    assert (line.n, line.unit) == (N, "token")
    assert line.slope_ms_per_unit == pytest.approx(0.05, rel=0.01)
    assert line.intercept_ms == pytest.approx(3, rel=0.1)
    assert line.r2 == pytest.approx(1, abs=0.01)
    square = rows["attention", "input_tokens"]
    assert square.exponent == pytest.approx(2, rel=1e-3)
    assert square.loglog_r2 == pytest.approx(1, abs=1e-4)
    assert square.quadratic_r2 == pytest.approx(1, abs=1e-4)
    assert square.r2 is not None
    assert square.r2 < 0.96
    assert rows["prefill", "fanout"].r2 == pytest.approx(0, abs=0.01)
    assert rows["prefill", "fanout"].unit == "fanout"


def test_slope_interval_is_that_of_the_textbook() -> None:
    """Five points by hand: slope 2, standard error sqrt(0.4 / 3 / 10), t 3.182."""
    x, y = np.arange(1.0, 6.0), np.array([12.2, 13.8, 16.0, 17.8, 20.2])
    row = rows_of(shape_table(requests({"batch_size": x}, total=y), "p95"))["total", "batch_size"]
    slope = float((x - 3) @ (y - 16)) / 10
    left = y - 16 - slope * (x - 3)
    reach = 3.182446 * math.sqrt(left @ left / 3 / 10)
    assert row.slope_interval_ms == pytest.approx((slope - reach, slope + reach), rel=1e-6)
    assert row.unit == "item"


def test_interval_counts_records_not_what_they_stand_for() -> None:
    """Telemetry that keeps one record in 100 knows no more than its records: same interval."""
    x, y = [1.0, 2, 3, 4, 5], [12.2, 13.8, 16.0, 17.8, 20.2]
    plain = gathered({"total_ms": y, "batch_size": x}, covariates=["batch_size"]).total
    weighted = gathered(
        {"total_ms": y, "batch_size": x, "weight": [100] * 5}, covariates=["batch_size"]
    ).total
    rows = [shape_table(total, "p95").rows[0] for total in (plain, weighted)]
    assert [row.n for row in rows] == [5, 500]
    assert rows[0].slope_interval_ms == pytest.approx(rows[1].slope_interval_ms)


def test_intervals_cover_nineteen_times_in_twenty() -> None:
    """Over 200 logs of 40 requests the interval covers the slope about 95 %."""
    random = np.random.default_rng(4)
    covered = 0
    for _ in range(200):
        x = random.integers(1, 100, 40)
        row = shape_table(
            requests({"batch_size": x}, total=50 + 2 * x + random.normal(0, 20, 40)), "p95"
        ).rows[0]
        low, high = row.slope_interval_ms or (0.0, 0.0)
        covered += low <= 2 <= high
    assert 0.90 <= covered / 200 <= 0.99


def test_covariates_that_move_together_are_named(rng: np.random.Generator) -> None:
    """Tokens and bytes of one text are collinear; tokens and fan-out are not."""
    tokens = rng.integers(10, 2_000, N)
    table = shape_table(
        requests(
            {
                "input_tokens": tokens,
                "payload_bytes": 4 * tokens + rng.integers(0, 50, N),
                "fanout": rng.integers(1, 9, N),
            },
            total=100 + 0.1 * tokens,
        ),
        "p95",
    )
    assert [(pair.first, pair.second) for pair in table.collinear] == [
        ("input_tokens", "payload_bytes")
    ]
    assert table.collinear[0].r == pytest.approx(1, abs=0.01)
    assert any("neither stands alone" in note for note in table.notes)


def test_bands_show_what_slow_requests_carry(rng: np.random.Generator) -> None:
    """One long input in ten makes the slow band: its median is long, that of the fast is not."""
    tokens = np.where(rng.random(2_000) < 0.1, 50_000, 1_000) + rng.integers(0, 100, 2_000)
    total = requests({"sequence_length": tokens}, total=100 + 0.05 * tokens)
    bands = {band.band: band for band in shape_table(total, "p95").bands}
    assert bands["slow"].p50 == pytest.approx(50_050, abs=60)
    assert bands["slow"].n >= 80
    assert bands["fast"].max is not None
    assert bands["fast"].max < 1_200
    nothing = shape_table(total, 1e6).bands
    assert {(band.band, band.n, band.p50) for band in nothing if band.band == "slow"} == {
        ("slow", 0, None)
    }


def test_latency_a_unit_is_told_for_lengths(rng: np.random.Generator) -> None:
    """At 2 ms a token all percentiles are 2; requests without a token are left out."""
    tokens = np.where(rng.random(N) < 0.2, 0, rng.integers(1, 500, N))
    total = requests(
        {"output_tokens": tokens, "fanout": rng.integers(1, 9, N)},
        decode=2.0 * tokens,
        total=2.0 * tokens + 10,
    )
    found = {(row.stage, row.covariate): row for row in shape_table(total, "p95").per_unit}
    assert {covariate for _, covariate in found} == {"output_tokens"}
    decode = found["decode", "output_tokens"]
    assert 1_500 < decode.n < 1_750
    assert (decode.p50_ms, decode.p95_ms, decode.p99_ms) == pytest.approx((2, 2, 2))
    assert (found["total", "output_tokens"].p50_ms or 0) > 2


def test_few_requests_have_no_p99_a_unit() -> None:
    """A hundred requests tell a median a token, and not its p99."""
    tokens = list(range(1, 101))
    total = requests({"output_tokens": tokens}, total=[3.0 * k for k in tokens])
    row = shape_table(total, "p95").per_unit[0]
    assert (row.n, row.p95_ms, row.p99_ms) == (100, None, None)
    assert row.p50_ms == pytest.approx(3)


def test_odd_covariates_are_none_where_they_tell_nothing() -> None:
    """Constant, partly missing, negative and absent covariates are no error."""
    n = 200
    partly = [None if k % 2 else float(k) for k in range(n)]
    total = requests(
        {
            "batch_size": [8] * n,
            "candidates": partly,
            "payload_bytes": (-np.arange(1.0, n + 1)).tolist(),
            "fanout": [None] * n,
        },
        total=np.arange(n) + 10.0,
    )
    table = shape_table(total, "p95")
    rows = {row.covariate: row for row in table.rows if row.stage == "total"}
    assert (rows["batch_size"].r2, rows["batch_size"].slope_interval_ms) == (None, None)
    assert rows["batch_size"].exponent is None
    assert rows["candidates"].n == n // 2
    assert rows["candidates"].slope_ms_per_unit == pytest.approx(1)
    assert rows["payload_bytes"].slope_ms_per_unit == pytest.approx(-1)
    assert (rows["payload_bytes"].loglog_r2, rows["payload_bytes"].exponent) == (None, None)
    assert "no fit on batch_size: too few of the requests carry it, or it never varies" in (
        table.notes
    )
    assert all(row.r2 is None for row in table.rows if row.covariate == "fanout")


def test_nothing_has_no_shape() -> None:
    """No requests, and requests without covariates, have no rows and no notes."""
    for total in (empty("svc"), requests({}, total=[1.0, 2.0])):
        assert shape_table(total, "p95") == ShapeTable((), (), (), (), ())


def test_units_go_by_the_last_word() -> None:
    """Tokens of any kind are tokens; what counts nothing has no length."""
    assert length_unit("prompt_tokens") == "token"
    assert length_unit("image_pixels") == "pixel"
    assert length_unit("fanout") is None
    assert unit_of("fanout") == "fanout"
