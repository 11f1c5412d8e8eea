"""The shape models of a service: what they learn, and what they make of odd rows."""

from __future__ import annotations

import sys
import types

import numpy as np
import pandas as pd
import pytest
from river import checks

from tailbudget.models.shape.bank import ShapeBank
from tailbudget.models.shape.regressor import ShapeRegressor
from tailbudget.models.shape.roles import choose, role_of
from tailbudget.models.shape.service import ROWS_TO_JOIN, SCHEMA, ServiceShapes
from tailbudget.models.shape.solve import solve
from tailbudget.models.shape.terms import BINS, TERMS, cover_bins, terms
from tailbudget.models.state_bytes import pack
from tailbudget.schemas.anomalies import StageCohort, TickRows
from tailbudget.schemas.errors import ReleaseError, WireError

KEYS = (StageCohort("prefill", "chat"), StageCohort("prefill", "rag"))
NAMES = ("batch_size", "tokens")


def rows_of(tokens: np.ndarray, batch: np.ndarray, ms: np.ndarray, key: int = 0) -> TickRows:
    """Return rows of one key."""
    index = np.full(len(ms), key)
    return TickRows(KEYS, index, ms, NAMES, np.column_stack([batch, tokens]))


def made(n: int, seed: int = 1, key: int = 0, noise: float = 0.1) -> TickRows:
    """Return rows whose time is work times load, with noise."""
    random = np.random.default_rng(seed)
    tokens = np.round(500 * np.exp(0.7 * random.normal(size=n)))
    batch = 1.0 + random.poisson(3, n)
    return rows_of(
        tokens, batch, true_ms(tokens, batch) * np.exp(noise * random.normal(size=n)), key
    )


def true_ms(tokens: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """Return the time without noise."""
    result: np.ndarray = (4 + 0.02 * tokens + 1e-5 * tokens**2) * (1 + 0.04 * batch)
    return result


def learn(shapes: ServiceShapes, rows: TickRows) -> None:
    """Learn rows and fit."""
    shapes.learn(shapes.resolve(KEYS)[rows.key], rows)
    shapes.refit(1.0)


def slots_of(shapes: ServiceShapes, rows: TickRows) -> np.ndarray:
    """Return the slots of rows."""
    return shapes.read(rows.key, rows).values  # noqa: PD011 - not of pandas


def expected(shapes: ServiceShapes, rows: TickRows) -> np.ndarray:
    """Return what is expected of rows."""
    read = shapes.read(rows.key, rows)
    return np.where(read.complete, shapes.bank.predict(rows.key, terms(read.values)), np.nan)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("input_tokens", "work"),
        ("pixels", "work"),
        ("batch_size", "load"),
        ("requests_in_flight", "load"),
        ("queue_depth", "wait"),
        ("waiting", "wait"),
        ("candidates", "work"),
    ],
)
def test_names_say_what_part_a_covariate_plays(name: str, role: str) -> None:
    """Words for queues and for concurrency are known; everything else is work."""
    assert role_of(name) == role


def test_the_strongest_covariates_get_the_slots() -> None:
    """Of five sizes the three that latency follows are taken, a constant one last."""
    random = np.random.default_rng(3)
    x = random.lognormal(size=(500, 5))
    x[:, 0] = 7.0
    ms = 3 * x[:, 4] + 2 * x[:, 2] + x[:, 1] + 0.01 * x[:, 3]
    choice = choose(("a", "b", "c", "d", "e"), x, ms)
    assert choice.names == ("e", "c", "b", None, None, None, None)
    assert choose(("a", "b"), x[:, :2], ms).names[:3] == ("b", "a", None)


def test_terms_are_products_of_work_and_load() -> None:
    """Each term is what its name says."""
    slots = np.array([[2.0, 3.0, 5.0, 7.0, 11.0, 13.0, 17.0]])
    named = dict(zip(TERMS, terms(slots)[0].tolist(), strict=True))
    assert named["1·1"] == 1
    assert named["w1²·l1"] == 4 * 7
    assert named["w2·w3·l1·l2"] == 3 * 5 * 7 * 11
    assert (named["q1"], named["q2"]) == (13, 17)


def test_cover_bins_are_half_octaves() -> None:
    """Zero has a bin of its own, doubling moves two bins, and the ends are closed."""
    bins = cover_bins(np.array([[0.0, 1.0, 2.0, 4.0, 1e-9, 1e9, 1.5]]))[0].tolist()
    assert bins[0] == bins[4] == 0
    assert (bins[2] - bins[1], bins[3] - bins[2]) == (2, 2)
    assert bins[5] == BINS - 1


def test_the_solution_is_non_negative_least_squares() -> None:
    """At the solution no coefficient is negative and none could be changed to the better."""
    random = np.random.default_rng(4)
    a = random.normal(size=(200, 6))
    b = a @ np.array([1.0, 0.0, 2.0, -1.0, 0.5, 0.0]) + 0.1 * random.normal(size=200)
    gram, moment = a.T @ a, a.T @ b
    x = solve(gram[None], moment[None], np.zeros((1, 6)), 500)[0]
    slope = gram @ x - moment
    assert (x >= 0).all()
    assert x[3] == 0
    assert np.abs(slope[x > 0]).max() < 0.05
    assert (slope[x == 0] > -0.05).all()


def test_latency_is_learnt_as_work_times_load() -> None:
    """A few thousand noisy rows give the true mean within 5 % over all usual shapes."""
    shapes = ServiceShapes()
    for seed in range(20):
        learn(shapes, made(200, seed))
    tokens, batch = np.array([200.0, 500.0, 1500.0, 500.0]), np.array([3.0, 2.0, 4.0, 8.0])
    truth = true_ms(tokens, batch)
    np.testing.assert_allclose(expected(shapes, rows_of(tokens, batch, truth)), truth, rtol=0.05)


def test_outliers_hardly_move_the_model() -> None:
    """Five rows of a hundred that take fifty times as long change predictions by under 10 %."""
    shapes = ServiceShapes()
    for seed in range(20):
        rows = made(200, seed)
        rows.ms[::20] *= 50
        learn(shapes, rows)
    tokens, batch = np.array([300.0, 1000.0]), np.array([4.0, 4.0])
    truth = true_ms(tokens, batch)
    np.testing.assert_allclose(expected(shapes, rows_of(tokens, batch, truth)), truth, rtol=0.1)


def test_a_constant_and_a_collinear_covariate_do_no_harm() -> None:
    """A constant covariate and a copy of another leave predictions as they are."""
    random = np.random.default_rng(5)
    shapes, key = ServiceShapes(), (StageCohort("s", ""),)
    names = ("candidates", "copy", "tokens")
    for _ in range(10):
        tokens = random.uniform(100, 1000, 200)
        x = np.column_stack([np.full(200, 3.0), 2 * tokens, tokens])
        ms = (5 + 0.05 * tokens) * np.exp(0.05 * random.normal(size=200))
        shapes.learn(
            shapes.resolve(key)[np.zeros(200, int)], TickRows(key, np.zeros(200, int), ms, names, x)
        )
        shapes.refit(1.0)
    at = TickRows(key, np.zeros(1, int), np.ones(1), names, np.array([[3.0, 1200.0, 600.0]]))
    assert expected(shapes, at)[0] == pytest.approx(35.0, rel=0.05)
    relative = terms(slots_of(shapes, at)) / 35.0
    assert np.isfinite(shapes.bank.leverage(relative)).all()


def test_a_row_without_its_covariates_is_not_predicted() -> None:
    """Missing, infinite and negative values of a needed covariate make a row incomplete."""
    shapes = ServiceShapes()
    learn(shapes, made(400))
    tokens = np.array([np.nan, np.inf, -5.0, 500.0])
    found = expected(shapes, rows_of(tokens, np.full(4, 2.0), np.ones(4)))
    assert np.isnan(found[:3]).all()
    assert found[3] > 0


def test_a_thin_cohort_borrows_from_its_stage() -> None:
    """With 40 rows of short inputs, a cohort expects of long ones what the others have shown."""
    shapes = ServiceShapes()
    for seed in range(20):
        learn(shapes, made(200, seed))
    short = made(ROWS_TO_JOIN, 99, key=1)
    short = rows_of(np.clip(short.covariate[:, 1], 300, 400), short.covariate[:, 0], short.ms, 1)
    short.ms[:] = true_ms(short.covariate[:, 1], short.covariate[:, 0])
    learn(shapes, short)
    assert shapes.bank.ready.tolist() == [True, True]
    tokens, batch = np.array([2000.0]), np.array([4.0])
    truth = true_ms(tokens, batch)
    found = expected(shapes, rows_of(tokens, batch, truth, key=1))
    np.testing.assert_allclose(found, truth, rtol=0.2)


def test_leverage_grows_away_from_what_was_seen() -> None:
    """A prediction far outside is less certain, and coverage says that nothing was there."""
    shapes = ServiceShapes()
    for seed in range(5):
        learn(shapes, made(200, seed))
    leverage, seen = [], []
    for tokens in (500.0, 20_000.0):
        rows = rows_of(np.array([tokens]), np.array([4.0]), np.ones(1))
        slots = slots_of(shapes, rows)
        relative = np.zeros((shapes.bank.size, len(TERMS)))
        relative[0] = terms(slots)[0] / expected(shapes, rows)[0]
        leverage.append(shapes.bank.leverage(relative)[0])
        seen.append(shapes.bank.seen(rows.key, slots).min())
    assert leverage[1] > 3 * leverage[0]
    assert seen[0] > 50
    assert seen[1] == 0


def test_old_evidence_is_forgotten() -> None:
    """After several half-lives the model follows a new normal."""
    shapes = ServiceShapes()
    for seed in range(10):
        learn(shapes, made(200, seed))
    for seed in range(10, 40):
        shapes.refit(1800.0)
        rows = made(100, seed)
        rows.ms[:] *= 1.2
        learn(shapes, rows)
    tokens, batch = np.array([500.0]), np.array([4.0])
    truth = 1.2 * true_ms(tokens, batch)
    np.testing.assert_allclose(expected(shapes, rows_of(tokens, batch, truth)), truth, rtol=0.05)


def test_state_survives_to_the_bit() -> None:
    """What is loaded dumps to the same bytes and predicts the same."""
    shapes = ServiceShapes()
    learn(shapes, made(400))
    body = shapes.dump()
    again = ServiceShapes.load(body)
    assert again.dump() == body
    rows = made(50, 7)
    np.testing.assert_array_equal(expected(again, rows), expected(shapes, rows))
    learn(shapes, made(100, 8))
    learn(again, made(100, 8))
    assert again.dump() == shapes.dump()
    assert len(body) < 20_000


def test_foreign_and_damaged_state_is_refused() -> None:
    """Another version, a cut body and one that lacks arrays raise."""
    with pytest.raises(ReleaseError):
        ServiceShapes.load(pack("tailbudget.shapes/0", {}, {}))
    with pytest.raises(WireError):
        ServiceShapes.load(ServiceShapes().dump()[:-5])
    with pytest.raises(WireError):
        ServiceShapes.load(pack(SCHEMA, {"keys": [], "stages": [], "choice": []}, {}))
    with pytest.raises(WireError):
        ServiceShapes.load(pack(SCHEMA, {}, ShapeBank().arrays()))


def test_the_regressor_is_one_of_river(monkeypatch: pytest.MonkeyPatch) -> None:
    """It passes river's own checks of an estimator."""
    # River's checks import scikit-learn for data sets that they then do not ask for here.
    parent, child = types.ModuleType("sklearn"), types.ModuleType("sklearn.datasets")
    monkeypatch.setattr(parent, "datasets", child, raising=False)
    monkeypatch.setitem(sys.modules, "sklearn", parent)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", child)
    for check in checks.yield_checks(ShapeRegressor()):
        check(ShapeRegressor())


def test_the_regressor_learns_tables_and_rows_alike() -> None:
    """Both ways predict the truth within a few per cent, and None before there is enough."""
    rows = made(600, noise=0.02)
    table = pd.DataFrame(rows.covariate, columns=list(NAMES))
    many, one = ShapeRegressor(), ShapeRegressor()
    assert many.predict_one({"tokens": 300, "batch_size": 2}) is None
    many.learn_many(table, pd.Series(rows.ms))
    for x, ms in zip(table.to_dict("records"), rows.ms.tolist(), strict=True):
        one.learn_one(x, ms)
    truth = float(true_ms(np.array([600.0]), np.array([3.0]))[0])
    for model in (many, one):
        assert model.predict_one({"tokens": 600, "batch_size": 3}) == pytest.approx(truth, rel=0.05)
    assert many.predict_one({"tokens": 600}) is None
    predicted = many.predict_many(pd.DataFrame({"tokens": [600.0], "batch_size": [3.0]}))
    assert predicted.tolist() == [many.predict_one({"tokens": 600, "batch_size": 3})]
