"""Certificates whose numbers were made up, one of each statistic: none is believed."""

import copy

import numpy as np
import pytest

import spdp.statistics
from spdp import (
    EigenvalueBounds,
    Release,
    TangentGaussian,
    private_anova,
    private_class_means,
    private_difference,
    private_dispersion,
    private_mean,
    private_median,
    private_pca,
    private_regression,
)
from spdp.error.bound import Bound
from spdp.error.laws import law_of, quantiles
from spdp.errors import DataError
from spdp.release.files import seal_of
from spdp.release.verify import checks

RNG = np.random.default_rng(0)
A = RNG.standard_normal((3000, 2, 6))
X = A @ A.swapaxes(1, 2) / 6 + 0.2 * np.eye(2)
Y, AGE = np.arange(3000) % 2, RNG.uniform(0.0, 1.0, 3000)
OPTIONS = {"epsilon": 2.0, "delta": 1e-6, "domain": EigenvalueBounds(0.05, 20.0)}
FAR = X[:, None] * np.ones((1, 2, 1, 1))  # two matrices of a record

STATISTICS = {
    "mean": lambda **o: private_mean(X, method="oneshot", mechanism="gaussian", **o),
    "class-means": lambda **o: private_class_means(
        X, Y, classes=[0, 1, 7], method="oneshot", covariance="full", **o
    ),
    "dispersion": lambda **o: private_dispersion(X, **o),
    "pca": lambda **o: private_pca(X, n_components=2, **o),
    "median": lambda **o: private_median(X, **o),
    "regression": lambda **o: private_regression(X, AGE, ranges=(0, 1), **o),
    "difference": lambda **o: private_difference(X, Y, classes=(0, 1), **o),
    "anova": lambda **o: private_anova(X, Y, classes=(0, 1), **o),
}
SEARCHED = ("searched mean", "pure search", "counted search")
OTHERS = {
    "searched mean": lambda: private_mean(X, method="adaptive", mechanism="gaussian", **OPTIONS),
    "pure search": lambda: private_mean(X, method="adaptive", **OPTIONS),
    "counted classes": lambda: private_class_means(
        X, Y, classes=[0, 1], adjacency="add-remove", **OPTIONS
    ),
    "counted search": lambda: private_mean(
        X, mechanism="gaussian", adjacency="add-remove", **OPTIONS
    ),
    "no records": lambda: private_mean(X[:0], adjacency="add-remove", **OPTIONS),
    "searched classes": lambda: private_class_means(
        X, Y, classes=[0, 1], method="adaptive", covariance="diagonal", **OPTIONS
    ),
    "few classes": lambda: private_class_means(
        X[:40], Y[:40], classes=[0, 1], method="adaptive", anyway=True, **OPTIONS
    ),
    "pairs": lambda: private_dispersion(FAR, **OPTIONS),
    "few": lambda: private_dispersion(X[:20], anyway=True, **OPTIONS),
    "few compared": lambda: private_difference(
        X[:8], Y[:8], classes=(0, 1), anyway=True, **OPTIONS
    ),
    "summary": lambda: TangentGaussian(0.1, 0.5, 1e-6).release(np.eye(2)),
}


@pytest.fixture(scope="module")
def releases():
    made = {name: ask(**OPTIONS) for name, ask in STATISTICS.items()}
    return made | {name: ask() for name, ask in OTHERS.items()}


def failed(certificate, values=None):
    return [check for check in checks(certificate, values) if not check.ok]


def test_there_is_an_honest_release_of_every_statistic(releases):
    assert set(STATISTICS) == set(spdp.statistics.STATISTICS)
    for name, release in releases.items():
        assert failed(release.certificate, release.values) == [], name


@pytest.mark.parametrize("name", STATISTICS)
def test_honest_releases_verify_where_the_number_is_private(name):
    release = STATISTICS[name](adjacency="add-remove", **OPTIONS)
    assert failed(release.certificate, release.values) == []


def forged_law(c, factor):
    """A law with less noise in it, and everything that follows from it."""
    law = copy.deepcopy(c["squared_error_law"])
    law["scale"] *= factor
    squares = quantiles(law_of(law))
    return {
        "squared_error_law": law,
        "squared_error_quantiles": squares,
        "expected_squared_error": law_of(law).mean(),
        "error_bound": {level: squares[level] ** 0.5 for level in ("95%", "99%")},
    }


NOTHING = {
    "noise": {"family": "chi2", "df": 3, "scale": 1e-20},
    "clipping_bias": 0.0,
    "clipping_bias_sd": 0.0,
    "shift": 0.0,
    "rounding": 0.0,
    "max_distance": 1e-9,
    "risk_share": 1.0,
    "shrinkage": None,
}
BESIDE = {"95%": 1e-9, "99%": 1e-9, "parts": NOTHING, "estimand": "the truth"}


def edits(c):
    """Fields of any certificate that can be made up, and what with."""
    yield "other words", {"error_statement": "the exact mean"}
    yield "no steps", {"steps": []}
    if c["error_bound"] is not None:
        yield "another level", {"error_bound": {"99.9%": 1e-9}}
        yield "one more level", {"error_bound": c["error_bound"] | {"99.9%": 1e-9}}
    else:
        yield "a bound", {"error_bound": {"95%": 1e-9, "99%": 1e-9}}
    if c["error_bound_parts"] is None:
        yield "made-up parts", {"error_bound_parts": NOTHING}
    else:
        near = c["error_bound_parts"] | {"max_distance": 1e-9}
        yield "near", {"error_bound_parts": near, "error_bound": dict.fromkeys(STATED, 1e-9)}
    if c["squared_error_law"] is None:
        law = {"family": "chi2", "df": 3, "scale": 1e-20}
        squares = quantiles(law_of(law))
        yield "made-up law", {"squared_error_law": law, "squared_error_quantiles": squares}
    for name in ("error_bound_population", "error_bound_within"):
        yield name, {name: BESIDE}
        if c[name] is not None:
            yield f"{name}, one more", {name: c[name] | {"99.9%": 1e-9}}
            yield f"{name}, other words", {name: c[name] | {"estimand": "the truth"}}
    yield "an array more", {"arrays": c["arrays"] | {"raw": [3, 2, 2]}}
    first = next(iter(c["arrays"]))
    yield "another shape", {"arrays": c["arrays"] | {first: [9, 9]}}
    if len(c["arrays"]) > 1:
        yield "another order", {"arrays": dict(reversed(c["arrays"].items()))}
    for name in list(c["arrays"])[1:]:
        yield f"no {name}", {"arrays": {k: v for k, v in c["arrays"].items() if k != name}}


STATED = ("95%", "99%")


def test_made_up_fields_are_found(releases):
    for name, release in releases.items():
        c = release.certificate
        for what, fields in edits(c):
            assert failed(copy.deepcopy(c) | fields), (name, what)


def test_a_law_beside_parts_is_not_even_loaded(releases, tmp_path):
    release = releases["mean"]
    path = release.save(tmp_path / "r")
    content = release.certificate | {"error_bound_parts": NOTHING}
    Release(release.values, content).save(path, force=True)
    with pytest.raises(DataError, match="two errors"):
        Release.load(path)


@pytest.mark.parametrize("factor", [1e-6, 0.5, 2.0])
def test_the_law_of_a_mean_follows_from_its_noise(releases, factor):
    c = releases["mean"].certificate
    assert failed(c | forged_law(c, factor))
    assert not failed(c | forged_law(c, 1.0))


@pytest.mark.parametrize("factor", [1e-6, 0.5, 2.0])
def test_the_bound_on_class_means_follows_from_noise_counts_and_radius(factor):
    """Seeded: by chance, the class that has no records may be seen."""
    c = STATISTICS["class-means"](random_state=0, **OPTIONS).certificate
    assert c["error_bound_parts"]["shift"] > 0
    noise = copy.deepcopy(c["error_bound_parts"]["noise"])
    noise["weights"] = [factor * weight for weight in noise["weights"]]
    parts = c["error_bound_parts"] | {"noise": noise}
    bounds = {f"{level}%": Bound.read(parts).at(level / 100) for level in (95, 99)}
    names = {
        check.name for check in failed(c | {"error_bound_parts": parts, "error_bound": bounds})
    }
    assert names == {"error bound"}
    unseen = c["error_bound_parts"] | {"shift": 0.0}
    bounds = {f"{level}%": Bound.read(unseen).at(level / 100) for level in (95, 99)}
    assert failed(c | {"error_bound_parts": unseen, "error_bound": bounds})


def test_the_counts_are_those_that_were_released(releases):
    release = releases["class-means"]
    values = release.values
    values["counts"] = values["counts"] + 1.0
    assert [check.name for check in failed(release.certificate, values)] == ["counts"]


def test_the_population_s_bound_follows_from_reach_and_number():
    """Seeded: one release in fifty measures a bias that is surely none."""
    for name in ("dispersion", "pca"):
        c = STATISTICS[name](random_state=0, **OPTIONS).certificate
        stated = copy.deepcopy(c["error_bound_population"])
        own = c["error_bound_parts"]["clipping_bias_sd"]
        assert stated["parts"]["clipping_bias_sd"] > own
        stated["parts"]["clipping_bias_sd"] = own
        stated |= {f"{level}%": Bound.read(stated["parts"]).at(level / 100) for level in (95, 99)}
        names = [check.name for check in failed(c | {"error_bound_population": stated})]
        assert names == ["sampling of the bias"]


def test_arrays_beside_the_certificate_are_found(releases, tmp_path):
    """Records among the values: the seal alone would not mind."""
    release = releases["dispersion"]
    values = release.values | {"raw": X[:3]}
    c = release.certificate
    c["arrays"] = c["arrays"] | {"raw": [3, 2, 2]}
    assert seal_of(values, c)
    loaded = Release.load(Release(values, c).save(tmp_path / "r"))
    assert "arrays" in {check.name for check in loaded.verify() if not check.ok}
    swapped = Release(release.values | {"mean": np.eye(3)}, release.certificate)
    assert "values" in {check.name for check in swapped.verify() if not check.ok}


ODD = (None, -1.5, "x", [3], {"x": None})


def test_nonsense_raises_nothing(releases):
    """And is refused wherever it changes what is said.

    The sharper bound of a searched mean may be left out.
    """
    for name, release in releases.items():
        c = release.certificate
        for field in c:
            for odd in ODD:
                edited = c | {field: odd}
                ok = all(check.ok for check in checks(edited, release.values))
                left_out = name in SEARCHED and (field, odd) == ("error_bound_within", None)
                assert ok == (edited == c or left_out), (name, field, odd)
