"""The evidence of some cohorts is that of their requests alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from gathered import gathered

from tailbudget.models.evidence import Evidence
from tailbudget.models.narrow import narrowed
from tailbudget.models.report import Options, report
from tailbudget.schemas.catalogue import load_catalogue
from tailbudget.schemas.sections import ColdWindow

N = 6_000


def columns(seed: int = 3) -> dict[str, np.ndarray]:
    """Return requests of two routes in two regions; some name no region."""
    rng = np.random.default_rng(seed)
    queue, model = rng.exponential(40, N), rng.lognormal(3, 0.4, N)
    return {
        "request_id": np.array([f"r{at}" for at in range(N)]),
        "route": rng.choice(["chat", "bulk, \\ =x"], N, p=[0.9, 0.1]),
        "region": np.array(["eu", "us", None])[rng.integers(0, 3, N)],
        "tokens": rng.integers(1, 500, N),
        "queue_ms": queue,
        "model_ms": model,
        "total_ms": queue + model,
    }


def taken(source: dict[str, np.ndarray], keep: np.ndarray) -> dict[str, np.ndarray]:
    """Return the rows that are kept."""
    return {name: values[keep] for name, values in source.items()}


def evidence(rows: dict[str, np.ndarray], cold: Sequence[ColdWindow] | None = None) -> Evidence:
    """Gather rows with their cohorts and their shape."""
    return gathered(
        {name: values.tolist() for name, values in rows.items()},
        cohort_dims=("route", "region"),
        covariates=("tokens",),
        cold_windows=cold,
    )


def test_sums_are_those_of_the_requests_alone() -> None:
    """Counts, percentiles and co-moments equal those of a log with nothing else in it."""
    rows = columns()
    whole = evidence(rows)
    for wanted in (
        {"route": "bulk, \\ =x"},
        {"route": "chat", "region": "eu"},
        {"region": "(none)"},
    ):
        keep = np.ones(N, bool)
        for name, value in wanted.items():
            keep &= rows[name] == (None if value == "(none)" else value)
        some, alone = narrowed(whole, wanted).total, evidence(taken(rows, keep)).total
        assert some.requests.tolist() == alone.requests.tolist() == [keep.sum()]
        assert some.bucket.tolist() == alone.bucket.tolist()
        assert some.count.tolist() == alone.count.tolist()
        assert some.sum_ns.tolist() == alone.sum_ns.tolist()
        np.testing.assert_allclose(some.moments.mean, alone.moments.mean, rtol=1e-9)


def test_sample_is_of_the_wanted_requests_and_large() -> None:
    """Every sampled request is one of those wanted, and a large cohort has hundreds."""
    rows = columns()
    some = narrowed(evidence(rows), {"route": "chat"}).total
    routes = dict(zip(rows["request_id"].tolist(), rows["route"].tolist(), strict=True))
    assert {routes[key] for key in some.sample.ids} == {"chat"}
    assert len(set(some.sample.ids)) == len(some.sample.ids) > 300


def test_nothing_wanted_is_everything() -> None:
    """Without a filter the evidence is the same."""
    whole = evidence(columns())
    assert narrowed(whole, {}) is whole


def test_warm_requests_are_narrowed_too() -> None:
    """With cold windows, the requests outside of them are counted of the wanted cohorts alone."""
    rows = columns()
    begins = 1_772_445_600_000_000_000
    window = ColdWindow(begins, begins + 300 * 10**9, "v2", "deploy")
    whole = evidence(rows, [window])
    some = narrowed(whole, {"route": "chat"})
    assert some.warm is not None
    warm = (rows["route"] == "chat") & (np.arange(N) >= 300)
    assert some.warm.requests.tolist() == [warm.sum()]


def test_a_cohort_that_nobody_has_is_no_data() -> None:
    """Its report is empty rather than an error."""
    nobody = narrowed(evidence(columns()), {"route": "nobody"})
    assert report(nobody, Options(catalogue=load_catalogue(None))).verdict == "no_data"


def test_reports_are_drawn_of_a_cohort_and_of_a_log_without_times() -> None:
    """A stage that waits asks for the load over time, which a log without times does not have."""
    whole = evidence(columns())
    known = Options(catalogue=load_catalogue(None))
    assert report(narrowed(whole, {"region": "eu"}), known).stages
    timeless = report(whole, Options(catalogue=load_catalogue(None), times_known=False))
    said = [line for cause in timeless.causes for line in (*cause.evidence, *cause.against)]
    assert not any("rate of arrivals" in line for line in said)
