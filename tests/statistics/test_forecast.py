"""Forecasts from public numbers are near what such records turn out to give."""

import numpy as np
import pytest

from spdp import (
    Ball,
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

PUBLIC = {"epsilon": 1.0, "delta": 1e-6, "domain": Ball(10.0)}
N, K, D, SPREAD = 6000, 3, 6, 1.0


def vectors(seed, offset=0.0):
    rng = np.random.default_rng(seed)
    return 1.0 + offset + rng.standard_normal((N, D)) * SPREAD / np.sqrt(D)


def forecast(name, **options):
    made = plan_statistic(name, n=N, k=K, spread=SPREAD, **{**PUBLIC, **options})
    (row,) = made.predictions
    assert row["spread"] == SPREAD
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
        told = forecast("class-means", adjacency=adjacency)["rms noise of a class mean"]
        assert 0.6 < found / told < 1.7


def test_dispersion():
    X = LOGEUCLID.matrices(vectors(0))
    found = [
        float(private_dispersion(X, random_state=s, **PUBLIC).values["variance"]) for s in range(12)
    ]
    assert 0.5 < np.std(found) / forecast("dispersion")["relative noise of the variance"] < 1.8


def test_median():
    Y = vectors(0)
    released = [private_median(LOGEUCLID.matrices(Y), random_state=s, **PUBLIC) for s in range(10)]
    found = rms([np.linalg.norm(LOGEUCLID.vector(r.value) - Y.mean(axis=0)) for r in released])
    assert 0.5 < found / forecast("median")["rms noise of the median"] < 2.0


def test_regression():
    x = np.random.default_rng(1).standard_normal(N)
    released = [
        private_regression(
            LOGEUCLID.matrices(vectors(0)), x, ranges=(-5, 5), random_state=s, **PUBLIC
        )
        for s in range(8)
    ]
    told = forecast("regression")
    noise = np.mean([np.sqrt(D * np.diagonal(r.values["noise"])) for r in released], axis=0)
    assert 0.6 < noise[0] / told["rms noise of a prediction at the covariates' mean"] < 1.7
    assert 0.6 < noise[1] / told["rms noise of a slope, for one standard deviation"] < 1.7


def test_power_of_the_difference():
    told = forecast("difference")
    y = np.arange(N) % 2
    for share, low, high in ((1.0, 0.5, 1.0), (0.3, 0.0, 0.5)):
        effect = share * told["effect of power 80%"] / np.sqrt(D)
        p = [
            float(
                private_difference(
                    LOGEUCLID.matrices(vectors(seed, effect * y[:, None])),
                    y,
                    classes=(1, 0),
                    random_state=seed,
                    **PUBLIC,
                ).values["p_value"]
            )
            for seed in range(20)
        ]
        assert low <= np.mean(np.array(p) < 0.05) <= high
    assert forecast("difference", effect=told["effect of power 80%"])["power"] == pytest.approx(0.8)


@pytest.mark.parametrize("effect", [None, 0.3])
def test_records_that_a_difference_needs_are_told(effect):
    options = {"k": K, "spread": SPREAD, "effect": effect, **PUBLIC}
    ((what, least),) = plan_statistic("difference", n=N, **options).needed.items()
    assert "with power 80%" in what
    for n, enough in ((least, True), (least - 1, False)):
        told = plan_statistic("difference", n=n, **options | {"effect": effect or 0.5 * SPREAD})
        assert (told.predictions[0]["power"] >= 0.8) is enough
        assert (told.verdict == "enough records") is enough
    # whatever the spread: for the widest of those assumed
    wide = plan_statistic("difference", n=N, **options | {"spread": None, "effect": 0.3})
    assert list(wide.needed.values()) > [least]


def test_where_more_records_than_can_be_added_are_needed_that_is_said():
    made = plan_statistic("difference", n=N, k=K, spread=SPREAD, effect=1e-6, **PUBLIC)
    ((what, least),) = made.needed.items()
    assert least is None
    assert f"{what}: more than 2**32 records" in made.lines()
    assert made.verdict == f"too few records {what}: more than 2**32 are needed"
    few = plan_statistic("pca", n=N, k=K, **PUBLIC | {"epsilon": 1e-9, "delta": 1e-15})
    assert set(few.needed.values()) == {None}


def test_the_rules_are_those_of_the_statistics():
    """What a forecast says is refused is refused, and what is not is not."""
    made = plan_statistic("pca", n=10, k=K, **PUBLIC)
    assert made.verdict.startswith("too few records to release components")
    least = made.needed["to release components"]
    X = LOGEUCLID.matrices(vectors(0))
    with pytest.raises(ParameterError, match="would be noise"):
        private_pca(X[: least - 1], n_components=1, **PUBLIC)
    least = made.needed["to release them without a warning"]
    private_pca(X[:least], n_components=1, **PUBLIC)
    x = np.linspace(0, 1, N)
    least = plan_statistic("regression", n=20, k=K, **PUBLIC).needed["to release a regression"]
    private_regression(X[:least], x[:least], ranges=(0, 1), **PUBLIC)
    with pytest.raises(ParameterError, match="too few"):
        private_regression(X[: least - 1], x[: least - 1], ranges=(0, 1), **PUBLIC)


def test_a_class_of_the_told_size_is_seen():
    made = plan_statistic("class-means", n=N, k=K, classes=10, **PUBLIC)
    least, X = made.needed["to see every class"] // 10, LOGEUCLID.matrices(vectors(0))
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
    with pytest.raises(ParameterError, match="one of 'class-means'"):
        plan_statistic("mode", n=N, k=K, **PUBLIC)
    with pytest.raises(ParameterError, match="effect must be a positive"):
        plan_statistic("difference", n=N, k=K, effect=-1.0, **PUBLIC)
    few = plan_statistic("median", n=5, k=K, **PUBLIC)
    assert few.verdict.startswith("hopeless: among fewer than 42 records no search finds")
    assert "prediction" in repr(few)
