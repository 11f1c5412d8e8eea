"""Points for the charts of a report."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from gathered import T0_NS, gathered

from tailbudget.models.evidence import Evidence
from tailbudget.models.plots import MAX_BARS, MAX_POINTS, plots
from tailbudget.schemas.findings import Findings
from tailbudget.schemas.plots import Plots
from tailbudget.schemas.sections import ColdStart, ColdWindow, ShapeRow
from tailbudget.schemas.verdicts import Verdict

N = 3_000


def findings(*shape: ShapeRow) -> Findings:
    """Return findings of which only the fits matter."""
    cold = ColdStart((), 0, None, None, "not_computable", (), "")
    return Findings(
        Verdict.OK, (), (), None, shape, (), (), (), (), cold, None, slow_request_threshold="p95"
    )


def fit(stage: str, covariate: str, r2: float | None) -> ShapeRow:
    return ShapeRow(stage, covariate, N, r2, 1.0, 0.0)


def evidence_of(total_ms: np.ndarray, **columns: object) -> Evidence:
    """Return the evidence of requests, five a second."""
    return gathered(
        {"total_ms": total_ms, **columns},
        covariates=("tokens", "rows"),
        cold_windows=(ColdWindow(T0_NS, T0_NS + 60 * 10**9, "v2", "deploy"),),
        every_s=0.2,
    )


@pytest.fixture(scope="module")
def drawn() -> Plots:
    """Points of requests whose stage "model" follows tokens."""
    rng = np.random.default_rng(7)
    tokens = rng.integers(1, 500, N)
    total = rng.lognormal(4, 0.8, N)
    evidence = evidence_of(
        total,
        model_ms=0.1 * tokens,
        tokens=tokens,
        rows=rng.integers(1, 9, N),
        status=["error" if i % 100 == 0 else "ok" for i in range(N)],
    )
    return plots(
        evidence,
        findings(
            fit("model", "rows", 0.2), fit("model", "tokens", 0.9), fit("total", "rows", None)
        ),
    )


def test_histogram_holds_every_success(drawn: Plots) -> None:
    """The bars add up to the successes; their edges ascend evenly on a log scale."""
    edges = [edge for edge, _ in drawn.histogram]
    assert sum(n for _, n in drawn.histogram) == N - N // 100
    assert drawn.histogram[0][1] == 0
    assert 10 < len(drawn.histogram) <= MAX_BARS + 1
    steps = {round(math.log2(high / low), 9) for low, high in pairwise(edges)}
    assert len(steps) == 1


@pytest.mark.parametrize(("low", "high"), [(5.0, 5.0), (100.0, 101.0), (0.002, 900_000.0)])
def test_histogram_of_any_span_can_be_drawn(low: float, high: float) -> None:
    """One value, a narrow span, and the whole range of the sketch have a few bars."""
    evidence = evidence_of(np.geomspace(low, high, 200))
    bars = plots(evidence, findings()).histogram
    assert 2 <= len(bars) <= MAX_BARS + 1
    assert sum(n for _, n in bars) == 200
    assert bars[0][0] <= low * 1.01
    assert bars[-1][0] >= high * 0.99


def test_timeline_has_a_point_a_slot(drawn: Plots) -> None:
    """Slots ascend, and their requests and failures add up to all."""
    starts = [slot.start for slot in drawn.timeline]
    assert starts[0] == "2026-03-02T10:00:00.000Z"
    assert starts == sorted(starts)
    assert len(starts) == 60
    assert sum(slot.n for slot in drawn.timeline) == N
    assert sum(slot.failed for slot in drawn.timeline) == N // 100
    first = drawn.timeline[0]
    assert first.p50_ms is not None
    assert first.p99_ms is not None
    assert first.p50_ms < first.p99_ms


def test_slot_of_failures_has_no_percentile() -> None:
    """A slot in which nothing succeeded is unknown, not fast."""
    evidence = evidence_of(np.full(10, 80.0), status=["timeout"] * 10)
    (slot,) = plots(evidence, findings()).timeline
    assert (slot.n, slot.failed, slot.p50_ms, slot.p99_ms) == (10, 10, None, None)


def test_scatter_is_of_the_strongest_fit(drawn: Plots) -> None:
    """The points are sampled requests of the pair with the largest R²."""
    assert (drawn.scatter_stage, drawn.scatter_covariate) == ("model", "tokens")
    assert len(drawn.scatter) > 100
    assert all(y == pytest.approx(0.1 * x) for x, y, _ in drawn.scatter)
    assert len({request for _, _, request in drawn.scatter}) == len(drawn.scatter)


def test_scatter_is_bounded() -> None:
    """Of more sampled requests than can be told apart some are drawn, over all of the span."""
    columns = {"total_ms": np.arange(1.0, N + 1), "rows": np.arange(N)}
    evidence = gathered(columns, covariates=("rows",), every_s=2.0)
    points = plots(evidence, findings(fit("total", "rows", 0.5))).scatter
    assert len(points) == MAX_POINTS
    assert np.quantile([x for x, _, _ in points], [0.1, 0.9]) == pytest.approx(
        [0.1 * N, 0.9 * N], rel=0.3
    )


def test_windows_are_those_of_the_deploys(drawn: Plots) -> None:
    """The shaded spans are the cold windows."""
    assert [window.version for window in drawn.cold_windows] == ["v2"]


def test_nothing_measured_draws_nothing() -> None:
    """Without requests there is no point, and no fit without a covariate."""
    got = plots(gathered({"total_ms": []}), findings())
    assert (got.histogram, got.timeline, got.scatter) == ((), (), ())
    none = plots(evidence_of(np.full(20, 5.0)), findings(fit("gone", "gone", 0.9)))
    assert none.scatter == ()
