"""Releases sealed anew whose numbers contradict each other: none is believed.

Each forgery keeps all that was made to agree, as somebody would who knows the format:
laws, bounds and statements that follow from the number that was changed.
"""

import copy
import warnings

import numpy as np
import pytest

from spdp import (
    Ball,
    ExtrinsicGaussian,
    RiemannianLaplace,
    TangentGaussian,
    private_class_means,
    private_difference,
    private_dispersion,
    private_mean,
    private_median,
    private_pca,
    private_regression,
)
from spdp.certificate import stated_bounds
from spdp.datasets import synthetic_spd
from spdp.privacy.bounds import Bound
from spdp.privacy.laws import mean_of, quantiles
from spdp.verification import checks, says

N = 3000
X = synthetic_spd(N, 3, random_state=0)
Y, AGE = np.arange(N) % 2, np.random.default_rng(1).uniform(20.0, 80.0, N)
OPTIONS = {"epsilon": 1.0, "delta": 1e-6, "domain": Ball(3.0), "random_state": 0}
LARGE = 6.0 * synthetic_spd(30, 7, random_state=0)
CLASSES = {"classes": [0, 1], **OPTIONS}

HONEST = {
    "mean": lambda: private_mean(X, method="adaptive", **OPTIONS),
    "oneshot": lambda: private_mean(X, method="oneshot", mechanism="gaussian", **OPTIONS),
    "pulled": lambda: private_mean(LARGE, method="adaptive", **OPTIONS),
    "difference": lambda: private_difference(X, Y, **CLASSES),
    "classes": lambda: private_class_means(X, Y, method="adaptive", **CLASSES),
    "axes": lambda: private_class_means(X, Y, method="adaptive", covariance="full", **CLASSES),
    "whole": lambda: private_class_means(
        X, Y, method="oneshot", covariance="full", **CLASSES | {"classes": [0, 1, 7]}
    ),
    "dispersion": lambda: private_dispersion(X, **OPTIONS),
    "private dispersion": lambda: private_dispersion(X, adjacency="add-remove", **OPTIONS),
    "pca": lambda: private_pca(X, n_components=2, **OPTIONS),
    "regression": lambda: private_regression(X, AGE, ranges=(0, 100), **OPTIONS),
    "median": lambda: private_median(X, **OPTIONS),
    "tangent": lambda: TangentGaussian(0.1, 1.0, 1e-6).release(np.eye(3), random_state=0),
    "laplace": lambda: RiemannianLaplace(0.1, 1.0).release(np.eye(3), random_state=0),
    "extrinsic": lambda: ExtrinsicGaussian(0.1, 1.0, 1e-6).release(np.eye(3), random_state=0),
}


@pytest.fixture(scope="module")
def honest():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: ask() for name, ask in HONEST.items()}


def failed(certificate, values):
    return {check.name for check in checks(certificate, values) if not check.ok}


def test_honest_ones_verify(honest):
    for name, release in honest.items():
        assert failed(release.certificate, release.values) == set(), name
    assert honest["pulled"].certificate["error_bound_parts"]["pull"]["factor"] > 0


def less(law, factor):
    """A law with so much of the noise."""
    name = "weights" if "weights" in law else "scale"
    size = law[name]
    return law | {name: [factor * w for w in size] if name == "weights" else factor * size}


def bounded(c):
    """Bounds that follow from the stated parts."""
    if c["error_bound_parts"] is not None:
        c["error_bound"] = stated_bounds(Bound(**c["error_bound_parts"]))
    for name in ("error_bound_within", "error_bound_population"):
        if c[name] is not None:
            c[name] |= stated_bounds(Bound(**c[name]["parts"]))
    return c


def parts_of(c):
    yield from (p for p in [c["error_bound_parts"]] if p is not None)
    for name in ("error_bound_within", "error_bound_population"):
        if c[name] is not None:
            yield c[name]["parts"]


def every(**fields):
    """An edit of the parts of every bound."""

    def edit(c, _):
        for parts in parts_of(c):
            parts |= {n: f(parts[n]) if callable(f) else f for n, f in fields.items()}

    return edit


def only(name, **fields):
    """An edit of the parts of one bound."""

    def edit(c, _):
        parts = c[name] if name == "error_bound_parts" else c[name]["parts"]
        parts |= {n: f(parts[n]) if callable(f) else f for n, f in fields.items()}

    return edit


def last(**fields):
    """An edit of the last step, and of what is said of it."""

    def edit(c, _):
        step = c["steps"][-1]
        step |= {n: f(step.get(n)) if callable(f) else f for n, f in fields.items()}
        if c["statistic"] in ("pca", "dispersion"):
            c["error_statement"] = getattr(says, f"of_{STATEMENTS[c['statistic']]}")(c)

    return edit


STATEMENTS = {"pca": "pca", "dispersion": "spread"}


def value(name, change):
    """An edit of what is released."""

    def edit(_, values):
        values[name] = np.asarray(change(values[name]), float)

    return edit


def averaged(c, _):
    """As if the answer were the mean of very many."""
    c["steps"][-1]["averaged"] = 1e8
    c["sigma"] /= 1e4
    every(noise=lambda law: less(law, 1e-8))(c, _)


def law_of_a_summary(c, _):
    law = less(c["squared_error_law"], 1e-8)
    squares = quantiles(law)
    c |= {
        "squared_error_law": law,
        "squared_error_quantiles": squares,
        "expected_squared_error": mean_of(law),
        "error_bound": {level: squares[level] ** 0.5 for level in ("95%", "99%")},
    }


def fields(**new):
    return lambda c, _: c.update(new)


def unseen(c, _):
    """A class that was not seen is said to be."""
    c["steps"][-1]["unseen"] = []
    only("error_bound_parts", shift=0.0)(c, _)


def no_sampling(c, _):
    c["error_bound_population"]["parts"]["noise"] = less(c["error_bound_parts"]["noise"], 1 + 1e-7)


def claimed(p_value):
    def edit(c, values):
        c["steps"][-1]["test"]["p_value"] = p_value
        values["p_value"] = np.array(p_value)

    return edit


def certain_test(c, values):
    """A test whose own numbers agree, of chance as small as one likes."""
    from scipy import stats

    test = c["steps"][-1]["test"]
    test["scale"] *= 1e-3
    test["p_value"] = float(stats.chi2.sf(test["statistic"] / test["scale"], test["freedom"]))
    values["p_value"] = np.array(test["p_value"])


PULL = {"p": 28, "sigma": 1e-9, "length": 1e-9, "factor": 0.0, "alone": 0}
DIGEST = "0" * 64
FORGED = {
    "mean": {
        "averaged": averaged,
        "pull": every(pull=PULL),
        "no excess": only("error_bound_parts", excess=0.0, excess_sd=0.0),
        "sharp excess": only("error_bound_parts", excess_sd=lambda x: x / 10),
        "less noise along the axes": every(noise=lambda law: less(law, 0.5)),
        "no slack": every(slack=0.0),
        "all of the risk": every(part=1.0),
        "near": every(farthest=3.0),
        "not positive definite": value("mean", lambda M: -np.eye(3)),
        "outside the domain": value("mean", lambda M: 1e9 * np.eye(3)),
        "just outside": value("mean", lambda M: np.exp(1.74) * np.eye(3)),
        "not symmetric": value("mean", lambda M: M + np.triu(np.full((3, 3), 1e-9), 1)),
        "words": last(guarantee="checked by the regulator"),
        "words for a number": last(radius=lambda r: str(r)),
        "a digest of words": fields(reference="approved"),
    },
    "oneshot": {
        "words": last(guarantee="(0, 0)-DP, checked by the regulator"),
        "a digest of words": fields(reference="approved"),
        "a reference that no search could use": fields(reference=DIGEST, adjacency="add-remove"),
        "versions": fields(versions={"spdp": "99"}),
        "words for a version": fields(
            versions=dict.fromkeys(("numpy", "opendp", "python", "spdp"), "the very best")
        ),
        "created": fields(created="never"),
        "outside": fields(outside={"share": 0.0, "sd": 0.0}),
    },
    "pulled": {
        "sigma of the pull": only(
            "error_bound_parts", pull=lambda pull: pull | {"sigma": pull["sigma"] / 100}
        ),
        "length of the pull": only(
            "error_bound_parts", pull=lambda pull: pull | {"length": pull["length"] / 100}
        ),
        "factor of the pull": only("error_bound_parts", pull=lambda pull: pull | {"factor": 0.5}),
        "dimensions of the pull": only("error_bound_parts", pull=lambda pull: pull | {"p": 20}),
        "words in the pull": only("error_bound_parts", pull=lambda pull: pull | {"x": "sure"}),
    },
    "difference": {
        "less noise": every(noise=lambda law: less(law, 1e-8)),
        "no excess": only("error_bound_parts", excess=0.0, excess_sd=0.0),
        "sure counts": every(shift=0.0),
        "near": every(farthest=lambda x: x / 2),
        "p-value": value("p_value", lambda p: 1e-12),
        "p-value and test": claimed(1e-12),
        "less chance than noise": certain_test,
        "more records than there are": value("counts", lambda n: 10 * n),
        "another difference": value("difference", lambda D: D + 1.0),
        "other means": value("means", lambda M: 1.5 * M),
        "means elsewhere": value("means", lambda M: 1e6 * M),
    },
    "classes": {
        "less noise": only("error_bound_within", noise=lambda law: less(law, 1e-8)),
        "smaller units": last(width=lambda w: [x / 100 for x in w]),
        "no slack": only("error_bound_within", slack=0.0),
        "other counts": value("counts", lambda n: n + 1.0),
    },
    "axes": {
        "less noise": only("error_bound_within", noise=lambda law: less(law, 1e-8)),
        "negative covariance": value("covariance", lambda C: -C),
    },
    "whole": {
        "all were seen": unseen,
        "near": every(farthest=3.0),
        "no shift": every(shift=3.0),
        "negative covariance": value("covariance", lambda C: -C),
    },
    "dispersion": {
        "sure variance": last(variance_sd=lambda sd: sd * 1e-6),
        "variance 0": value("variance", lambda V: 0.0),
        "variance below 0": value("variance", lambda V: -5.0),
        "deviations": value("deviations", lambda v: 2.0 * v),
        "distances": value("distances", lambda v: v[::-1]),
        "no sampling": no_sampling,
        "no excess": every(excess=0.0),
        "no number": value("variance", lambda V: np.nan),
    },
    "private dispersion": {
        "a sure number": last(count_sd=lambda sd: sd / 100),
        "no excess": every(excess=0.0),
        "no sampling": no_sampling,
    },
    "pca": {
        "trusted": last(trusted=1.0),
        "components": value("components", lambda P: 9.0 * np.ones_like(P)),
        "another covariance": value("covariance", lambda C: 100.0 * C),
        "a negative one": value("covariance", lambda C: C - np.eye(6)),
        "explained": value("explained_variance", lambda v: 2.0 * v),
        "sure squares": last(second_sd=lambda sd: sd / 100),
        "no sampling": no_sampling,
    },
    "regression": {
        "less noise": value("noise", lambda M: 1e-12 * M),
        "another place": value("at", lambda x: x + 1.0),
        "elsewhere": value("fitted", lambda M: 1e6 * M),
        "other ranges": last(ranges=[[0.0, 1.0]]),
    },
    "median": {
        "averaged": last(averaged=10**8),
        "elsewhere": value("median", lambda M: 1e6 * M),
    },
    "tangent": {
        "less noise": law_of_a_summary,
        "sigma": fields(sigma=1e-9),
        "sensitivity": fields(sensitivity=1e-9),
        "lattice": fields(lattice_step=123.0),
        "mechanism": fields(mechanism="exact"),
        "distance": fields(distance="very short"),
    },
    "laplace": {"less noise": law_of_a_summary, "sigma": fields(sigma=1e-9)},
    "extrinsic": {"less noise": law_of_a_summary, "sigma": fields(sigma=1e-9)},
}


@pytest.mark.parametrize(
    ("name", "forgery"), [(name, forgery) for name, all_ in FORGED.items() for forgery in all_]
)
def test_contradictions_are_found(honest, name, forgery):
    release = honest[name]
    c, values = copy.deepcopy(release.certificate), dict(release.values)
    FORGED[name][forgery](c, values)
    assert failed(bounded(c), values)


def test_a_difference_beyond_all_chance_verifies():
    """Its p-value underflows, and is stated as the least normal number."""
    near = np.exp(0.01 * np.log(X[:, :1, :1])) * np.eye(3)
    apart = near * np.where(Y == 1, 1.5, 1.0)[:, None, None]
    release = private_difference(apart, Y, **{**CLASSES, "epsilon": 8.0})
    assert float(release.values["p_value"]) == np.finfo(float).tiny
    assert all(check.ok for check in release.verify())
