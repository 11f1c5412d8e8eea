"""Residuals become scores, and scores become evidence."""

from __future__ import annotations

import sys
import types
from statistics import NormalDist

import numpy as np
import pytest
from river import checks

from tailbudget.models.anomaly.calibration import STRATA, Calibration, stratum_of
from tailbudget.models.anomaly.detector import ShapeDetector
from tailbudget.models.anomaly.normal import cdf, quantile
from tailbudget.models.anomaly.pending import DELAY_S, MOST_ROWS, Batch, Pending, joined
from tailbudget.models.anomaly.sequential import bernoulli
from tailbudget.schemas.anomalies import TickRows


def test_the_normal_distribution_is_that_of_the_standard_library() -> None:
    """The table agrees to 1e-5, both ways."""
    z = np.linspace(-4, 4, 333)
    exact = np.array([NormalDist().cdf(value) for value in z.tolist()])
    np.testing.assert_allclose(cdf(z), exact, atol=1e-5)
    np.testing.assert_allclose(quantile(exact), z, atol=1e-3)


def test_scores_of_a_skewed_residual_are_normal() -> None:
    """Whatever the residuals' distribution, 5 % of scores exceed 1.645."""
    random = np.random.default_rng(5)
    calibration = Calibration()
    calibration.grow(1)
    key, none = np.zeros(50_000, np.int64), np.zeros(50_000, np.int64)
    calibration.learn(key, none, 0.3 * random.gamma(1.5, size=50_000))
    calibration.refresh(np.array([0]))
    score = calibration.score(key, none, 0.3 * random.gamma(1.5, size=50_000))
    assert (score > 1.645).mean() == pytest.approx(0.05, abs=0.01)
    assert score.mean() == pytest.approx(0.0, abs=0.03)
    assert score.std() == pytest.approx(1.0, abs=0.05)


def test_a_histogram_without_rows_says_nothing() -> None:
    """The score of every residual is 0 before anything was learnt."""
    calibration = Calibration()
    calibration.grow(1)
    calibration.refresh(np.array([0]))
    zero = np.zeros(3, np.int64)
    np.testing.assert_array_equal(calibration.score(zero, zero, np.array([-1.0, 0.0, 4.0])), 0.0)


def test_the_share_of_a_second_mode_is_measured() -> None:
    """A mode of 5 % far above counts as 5 % beyond, and how much longer it takes is known."""
    random = np.random.default_rng(6)
    slow = random.random(20_000) < 0.05
    log = np.where(slow, np.log(10.0), 0.0) + 0.2 * random.normal(size=20_000)
    calibration = Calibration()
    calibration.grow(1)
    zero = np.zeros(20_000, np.int64)
    calibration.learn(zero, zero, log)
    calibration.refresh(np.array([0]))
    assert calibration.share_beyond(np.array([[3.5]]))[0, 0] == pytest.approx(0.05, abs=0.005)
    assert calibration.excess_beyond(np.array([[3.5]]))[0, 0] == pytest.approx(9.2, rel=0.1)


def test_strata_follow_the_queue() -> None:
    """None, one, a few and many waiting are told apart."""
    assert stratum_of(np.array([0.0, 1.0, 5.0, 7.0, 1e9])).tolist() == [0, 1, 2, 3, STRATA - 1]


def test_the_usual_share_is_evidence_against() -> None:
    """The ratio is negative at the usual share and positive at the raised one."""
    rows = np.array([1000.0])
    assert bernoulli(np.array([50.0]), rows, np.array([0.05]), 0.05)[0] < 0
    assert bernoulli(np.array([100.0]), rows, np.array([0.05]), 0.05)[0] > 0


def batch(at_s: float, rows: int) -> Batch:
    """Return a batch of so many rows of one key."""
    key = np.zeros(rows, np.int64)
    empty = TickRows((), key, np.ones(rows), (), np.zeros((rows, 0)))
    return Batch(np.full(rows, at_s), key, empty)


def test_rows_wait_and_are_bounded() -> None:
    """Rows come out after the delay, as one batch, and memory does not grow without limit."""
    pending = Pending()
    for second in range(5):
        pending.add(batch(float(second), 10))
    assert list(pending.due(DELAY_S - 1)) == []
    (due,) = joined(pending.due(DELAY_S + 2))
    assert due.at_s.tolist() == [0.0] * 10 + [1.0] * 10 + [2.0] * 10
    pending.add(batch(6.0, MOST_ROWS))
    assert sum(len(b.key) for b in pending.due(1e9)) == 20


def test_the_detector_is_one_of_river(monkeypatch: pytest.MonkeyPatch) -> None:
    """It passes river's own checks of an estimator."""
    # River's checks import scikit-learn for data sets that they then do not ask for here.
    parent, child = types.ModuleType("sklearn"), types.ModuleType("sklearn.datasets")
    monkeypatch.setattr(parent, "datasets", child, raising=False)
    monkeypatch.setitem(sys.modules, "sklearn", parent)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", child)
    names = [check.__name__ for check in checks.yield_checks(ShapeDetector())]
    for check in checks.yield_checks(ShapeDetector()):
        check(ShapeDetector())
    assert "check_pickling_supports_roundtrip" in names


def test_the_detector_knows_what_it_does_not_know() -> None:
    """It says None before it has learnt, for a shape it has not seen, and for no latency."""
    random = np.random.default_rng(7)
    detector = ShapeDetector()
    assert detector.score_one({"tokens": 100}, 15.0) is None
    for _ in range(600):
        tokens = float(random.integers(100, 500))
        detector.learn_one(
            {"tokens": tokens}, (5 + 0.1 * tokens) * float(np.exp(random.normal() / 10))
        )
    slow, usual = detector.score_one({"tokens": 300}, 60.0), detector.score_one({"tokens": 300}, 35)
    assert slow is not None
    assert usual is not None
    assert slow > 0.99
    assert 0.2 < usual < 0.8
    assert detector.score_one({"tokens": 50_000}, 5_000.0) is None
    assert detector.score_one({}, 30.0) is None
    assert detector.score_one({"tokens": 300}, 0.0) is None
