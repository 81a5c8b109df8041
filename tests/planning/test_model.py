"""Predictions from public numbers are near what such records turn out to give."""

from dataclasses import replace

import numpy as np
import pytest

from spdp import (
    Ball,
    plan,
    plan_statistic,
    private_class_means,
    private_difference,
    private_dispersion,
    private_median,
    private_pca,
    private_regression,
)
from spdp.charts import LOGEUCLID
from spdp.errors import ParameterError
from spdp.statistics import find
from spdp.statistics.median import weiszfeld

PUBLIC = {"epsilon": 1.0, "delta": 1e-6, "domain": Ball(10.0)}
N, K, D, SPREAD = 6000, 3, 6, 1.0
EFFECT = 0.045  # of two classes, that the test finds with power 80 %


def vectors(seed, offset=0.0):
    rng = np.random.default_rng(seed)
    return 1.0 + offset + rng.standard_normal((N, D)) * SPREAD / np.sqrt(D)


def predicted(name, **options):
    made = plan(name, n=N, k=K, spread=SPREAD, **{**PUBLIC, **options})
    (row,) = made.predictions
    assert (made.statistic, row.spread) == (name, SPREAD)
    return row


def rms(errors):
    return float(np.sqrt(np.mean(np.square(errors))))


def test_class_means():
    Y, y = vectors(0), np.arange(N) % 2
    X, means = LOGEUCLID.matrices(Y), np.array([Y[y == c].mean(axis=0) for c in range(2)])
    for adjacency in ("replace-one", "add-remove"):
        options = {**PUBLIC, "adjacency": adjacency}
        released = [
            private_class_means(X, y, classes=[0, 1], random_state=seed, **options)
            for seed in range(8)
        ]
        errors = [LOGEUCLID.vector(release.value) - means for release in released]
        found = rms(np.linalg.norm(errors, axis=2))
        told = predicted("class-means", adjacency=adjacency)
        assert told.measure == "rms error of a class mean"
        assert 0.6 < found / told.rms < 1.7


def test_dispersion():
    Y = vectors(0)
    X, truth = LOGEUCLID.matrices(Y), Y.var(axis=0).sum()
    found = [
        float(private_dispersion(X, random_state=s, **PUBLIC).values["variance"]) / truth - 1.0
        for s in range(12)
    ]
    told = predicted("dispersion")
    assert told.measure == "relative error of the variance"
    assert 0.5 < rms(found) / told.rms < 1.8


def test_components():
    Y = vectors(0)
    X, C = LOGEUCLID.matrices(Y), np.cov(Y.T, bias=True)
    released = [private_pca(X, n_components=1, random_state=s, **PUBLIC) for s in range(8)]
    found = [np.linalg.norm(r.values["covariance"] - C) / np.linalg.norm(C) for r in released]
    told = predicted("pca")
    assert told.measure == "relative error of the covariance"
    assert 0.5 < rms(found) / told.rms < 2.0


def test_median():
    Y = vectors(0)
    released = [private_median(LOGEUCLID.matrices(Y), random_state=s, **PUBLIC) for s in range(10)]
    found = rms([np.linalg.norm(LOGEUCLID.vector(r.value) - weiszfeld(Y)) for r in released])
    assert 0.5 < found / predicted("median").rms < 2.0


def test_regression():
    x = np.random.default_rng(1).standard_normal(N)
    Y = vectors(0)
    exact = np.linalg.lstsq(np.stack([np.ones(N), x], 1), Y, rcond=None)[0]
    fits, slopes = [], []
    for seed in range(16):
        release = private_regression(
            LOGEUCLID.matrices(Y), x, ranges=(-5, 5), random_state=seed, **PUBLIC
        )
        trend = exact[0] + release.values["at"] * exact[1]
        fits.append(np.linalg.norm(LOGEUCLID.vector(release.value) - trend))
        slopes.append(np.linalg.norm(release.values["slopes"] - exact[1:]) * x.std())
    told = predicted("regression")
    assert told.measure == "rms error of the fit"
    assert 0.6 < rms(fits) / told.rms < 1.7
    slope = told.numbers["rms error of a slope, for one standard deviation"]
    assert 0.6 < rms(slopes) / slope < 1.7


def test_power_of_the_difference():
    y = np.arange(N) % 2
    for share, low, high in ((1.0, 0.5, 1.0), (0.3, 0.0, 0.5)):
        effect = share * EFFECT
        p = [
            float(
                private_difference(
                    LOGEUCLID.matrices(vectors(seed, effect / np.sqrt(D) * y[:, None])),
                    y,
                    classes=(1, 0),
                    random_state=seed,
                    **PUBLIC,
                ).values["p_value"]
            )
            for seed in range(20)
        ]
        found, told = np.mean(np.array(p) < 0.05), predicted("difference", effect=effect)
        assert low <= found <= high
        assert told.numbers["power"] == pytest.approx(found, abs=0.3)


@pytest.mark.parametrize("effect", [None, pytest.param(0.3, marks=pytest.mark.audit)])
def test_records_that_a_difference_needs_are_told(effect):
    options = {"k": K, "spread": SPREAD, "effect": effect, **PUBLIC}
    made = plan("difference", power=0.8, **options)
    assert made.wanted_power == 0.8
    assert made.predictions[0].numbers["power"] >= 0.8
    half = plan("difference", n=made.n // 2, **options | {"effect": effect or 0.5 * SPREAD})
    assert half.predictions[0].numbers["power"] < 0.8
    (answer,) = plan("difference", n=made.n, power=0.8, **options).needed
    assert answer.n == pytest.approx(made.n, rel=0.1)
    assert answer.epsilon == pytest.approx(PUBLIC["epsilon"], rel=0.3)
    if effect is not None:  # whatever the spread: for the widest of those assumed
        assert plan("difference", power=0.8, **options | {"spread": None}).n > made.n


def test_where_more_records_than_can_be_added_are_needed_that_is_said():
    made = plan("difference", n=N, k=K, spread=SPREAD, effect=1e-6, power=0.8, **PUBLIC)
    (answer,) = made.needed
    assert answer.n is None
    assert "power 0.8 with spread 1 needs about more than 2**32 records" in repr(made)


def test_a_threshold_beyond_all_records_is_said():
    few = find("pca").thresholds(D, 1e-12)
    assert set(few.values()) == {None}
    made = replace(plan("pca", n=N, k=K, runs=1, **PUBLIC), thresholds=few)
    assert made.verdict == "too few records to release components: more than 2**32 are needed"
    assert made.verdict in repr(made)


def test_the_rules_are_those_of_the_statistics():
    """What a plan says is refused is refused, and what is not is not."""
    rules = plan("pca", n=N, k=K, runs=1, **PUBLIC).thresholds
    least = rules["to release components"]
    X = LOGEUCLID.matrices(vectors(0))
    with pytest.raises(ParameterError, match="would be noise"):
        private_pca(X[: least - 1], n_components=1, anyway=True, **PUBLIC)
    least = rules["to release components without a warning"]
    private_pca(X[:least], n_components=1, **PUBLIC)
    few = plan("pca", n=least - 1, k=K, runs=1, **PUBLIC).verdict
    assert few == f"too few records to release components without a warning: {least} are needed"
    assert plan("pca", n=least, k=K, runs=1, **PUBLIC).verdict == "enough records"
    x = np.linspace(0, 1, N)
    rules = plan("regression", n=N, k=K, runs=1, **PUBLIC).thresholds
    least = rules["to release a regression"]
    private_regression(X[:least], x[:least], ranges=(0, 1), **PUBLIC)
    with pytest.raises(ParameterError, match="too few"):
        private_regression(X[: least - 1], x[: least - 1], ranges=(0, 1), **PUBLIC)


@pytest.mark.parametrize(
    ("statistic", "what"),
    [("pca", "to release components"), ("regression", "to release a regression")],
)
def test_a_plan_of_what_would_be_refused_says_how_many_are_needed(statistic, what):
    made = plan(statistic, n=10, k=K, **PUBLIC)
    assert made.verdict == f"too few records {what}: {made.thresholds[what]} are needed"


def test_a_class_of_the_told_size_is_seen():
    made = plan("class-means", n=N, k=K, classes=10, runs=1, **PUBLIC)
    least, X = made.thresholds["to see every class"] // 10, LOGEUCLID.matrices(vectors(0))
    for size, seen in ((least, True), (least // 8, False)):
        y = (np.arange(N) >= size).astype(int)
        unseen = [
            private_class_means(X, y, classes=[0, 1], random_state=seed, **PUBLIC).certificate[
                "steps"
            ][-1]["unseen"]
            for seed in range(6)
        ]
        assert (sum(0 in names for names in unseen) <= 1) is seen


def test_what_cannot_be_planned():
    with pytest.raises(ParameterError, match="one of 'mean', 'class-means'"):
        plan("mode", n=N, k=K, **PUBLIC)
    with pytest.raises(ParameterError, match="effect must be a positive"):
        plan("difference", n=N, k=K, effect=-1.0, **PUBLIC)
    few = plan("median", n=5, k=K, **PUBLIC)
    assert few.verdict == "too few records to locate the data: 42 are needed"
    assert few.verdict in repr(few)
    assert few.uninformative
    assert "simulated on synthetic records" in few._repr_html_()


def test_what_it_was_called_in_version_0_2_still_works():
    options = {"n": 50, "k": K, "spread": SPREAD, **PUBLIC}
    made = plan_statistic("median", **options)
    assert made == plan("median", **options)
    assert made.hopeless == made.uninformative
