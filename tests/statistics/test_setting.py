"""What all statistics do alike: what their certificates say, and where they warn."""

import warnings
from linecache import getline

import numpy as np
import pytest

from spdp import (
    Ball,
    EigenvalueBounds,
    PrivateTangentLDA,
    private_class_means,
    private_difference,
    private_dispersion,
    private_mean,
    private_median,
    private_pca,
    private_regression,
)
from spdp.errors import Hopeless, OutsideDomain
from spdp.queries import RECORD_NORM
from spdp.words import facts, meaning

N = 3000
Y, COVARIATES = np.arange(N) % 2, np.linspace(0.0, 1.0, N)
STATISTICS = {
    "class-means": lambda X, **o: private_class_means(X, Y, classes=[0, 1], **o),
    "difference": lambda X, **o: private_difference(X, Y, classes=[0, 1], **o),
    "dispersion": lambda X, **o: private_dispersion(X, **o),
    "mean": lambda X, **o: private_mean(X, method="adaptive", **o),
    "median": lambda X, **o: private_median(X, **o),
    "pca": lambda X, **o: private_pca(X, n_components=1, **o),
    "regression": lambda X, **o: private_regression(X, COVARIATES, ranges=(0, 1), **o),
}


def release(name, X, high, **options):
    domain = EigenvalueBounds(0.1, high)
    shared = {"epsilon": 2.0, "delta": 1e-6, "domain": domain, "random_state": 0}
    return STATISTICS[name](X, **shared, **options)


@pytest.mark.parametrize("name", sorted(STATISTICS.keys() - {"mean"}))
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_certificates_speak_of_the_last_answer(random_spd, name, adjacency):
    c = release(name, random_spd(N, 3), 10.0, adjacency=adjacency).certificate
    public, last = adjacency == "replace-one", c["steps"][-1]
    assert (c["n"] == N) == public
    assert (c["n_estimate"] is None) == public
    n = N if public else c["n_estimate"]
    assert n == pytest.approx(N, rel=0.1)
    assert c["lattice_step"] == last["size" if name == "median" else "radius"] / RECORD_NORM
    assert c["sensitivity"] == pytest.approx(last["sensitivity"] * c["lattice_step"] / n)
    averaged = last["averaged"] if name == "median" else 1
    sigma = last["scale"] * c["lattice_step"] / n / np.sqrt(averaged)
    assert c["sigma"] == pytest.approx(sigma)


@pytest.mark.parametrize("name", STATISTICS)
def test_a_domain_that_does_not_fit_is_told_where_it_was_given(random_spd, name):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", OutsideDomain)
        c = release(name, 100.0 * random_spd(N, 3), 10.0).certificate
    (warning,) = [w for w in caught if w.category is OutsideDomain]
    assert f"private_{name.split('-')[0]}" in getline(warning.filename, warning.lineno)
    assert c["outside"]["share"] > 0.5


@pytest.mark.parametrize("n", [40, 3000])
def test_a_hopeless_release_warns_where_its_page_says_so(random_spd, n):
    """Under the page's own condition, and only then, at the line of the call."""
    X, y = random_spd(n, 3), np.arange(n) % 2
    options = {"epsilon": 0.5, "delta": 1e-6, "domain": Ball(3.0)}
    made = [
        lambda: private_mean(X, **options),
        lambda: private_dispersion(X, **options),
        lambda: private_class_means(X, y, classes=[0, 1], **options),
        lambda: PrivateTangentLDA(**options, classes=[0, 1]).fit(X, y).release_,
    ]
    for release in made:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", Hopeless)
            c = release().certificate
        told = [w for w in caught if w.category is Hopeless]
        assert len(told) == (n == 40) == ("worth" in facts(c)) == ("HOPELESS" in meaning(c))
        assert all(str(w.message) == facts(c)["worth"] for w in told)
        assert all("private_" in getline(w.filename, w.lineno) for w in told)
