"""Releases sealed anew whose numbers contradict each other: none is believed.

Each forgery keeps all that was made to agree, as somebody would who knows the format:
laws, bounds and statements that follow from the number that was changed.
"""

import copy
import math
import warnings
from contextlib import suppress

import msgspec
import numpy as np
import pytest

from spdp import (
    Ball,
    ExtrinsicGaussian,
    RiemannianLaplace,
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
from spdp.datasets import synthetic_spd
from spdp.error.bound import Bound
from spdp.error.laws import law_of, quantiles
from spdp.options import Adjacency
from spdp.privacy.account import laplace_scale_exact, lattice_scale
from spdp.release.certificate import Certificate, Facts
from spdp.release.declaration import derive
from spdp.release.verify import checks
from spdp.statistics import find

N = 3000
X = synthetic_spd(N, 3, random_state=0)
Y, AGE = np.arange(N) % 2, np.random.default_rng(1).uniform(20.0, 80.0, N)
OPTIONS = {"epsilon": 1.0, "delta": 1e-6, "domain": Ball(3.0), "random_state": 0}
SEARCHES = ("mean", "median", "classes", "dispersion", "pca", "regression")
LARGE = 6.0 * synthetic_spd(30, 7, random_state=0)
CLASSES = {"classes": [0, 1], **OPTIONS}

HONEST = {
    "mean": lambda: private_mean(X, method="adaptive", mechanism="gaussian", **OPTIONS),
    "pure": lambda: private_mean(X, method="adaptive", mechanism="laplace", **OPTIONS),
    "counted": lambda: private_mean(X, adjacency="add-remove", **OPTIONS),
    "oneshot": lambda: private_mean(X, method="oneshot", mechanism="gaussian", **OPTIONS),
    "weighted": lambda: private_mean(
        X, groups=np.arange(N), weights="records", max_records=10, **OPTIONS
    ),
    "persons": lambda: private_median(X, groups=np.arange(N) // 2, **OPTIONS),
    "shrunk": lambda: private_mean(LARGE, method="adaptive", **OPTIONS),
    "difference": lambda: private_difference(X, Y, **CLASSES),
    "anova": lambda: private_anova(X, Y, **CLASSES),
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
    assert honest["shrunk"].certificate["error_bound_parts"]["shrinkage"]["factor"] > 0


def less(law, factor):
    """A law with so much of the noise."""
    name = "weights" if "weights" in law else "scale"
    size = law[name]
    return law | {name: [factor * w for w in size] if name == "weights" else factor * size}


def bounded(c):
    """Bounds that follow from the stated parts."""
    for name in ("error_bound_within", "error_bound_population"):
        if c[name] is not None:
            c[name] |= Bound.read(c[name]["parts"]).stated()
    if c["error_bound_parts"] is not None:
        with suppress(msgspec.ValidationError):  # words among the parts: no number changes
            c["error_bound"] = Bound.read(c["error_bound_parts"]).stated()
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


def shrunk(**fields):
    """An edit of how the mean was shrunk."""

    def edit(c, _):
        parts = c["error_bound_parts"]["shrinkage"]
        parts |= {n: f(parts[n]) if callable(f) else f for n, f in fields.items()}

    return edit


def last(**fields):
    """An edit of the last step, and of what is said of it."""

    def edit(c, _):
        step = c["steps"][-1]
        step |= {n: f(step.get(n)) if callable(f) else f for n, f in fields.items()}
        if c["statistic"] in ("pca", "dispersion"):
            c["error_statement"] = find(c["statistic"]).statement(Certificate.read(c))

    return edit


def value(name, change):
    """An edit of what is released."""

    def edit(_, values):
        values[name] = np.asarray(change(values[name]), float)

    return edit


def less_noise(c, _):
    """As if the last answer had a ten thousandth of its noise."""
    c["sigma"] /= 1e4
    every(noise=lambda law: less(law, 1e-8))(c, _)


def averaged(c, _):
    """As if the answer were the mean of very many."""
    c["steps"][-1]["averaged"] = 1e8
    less_noise(c, _)


def law_of_a_summary(c, _):
    law = less(c["squared_error_law"], 1e-8)
    squares = quantiles(law_of(law))
    c |= {
        "squared_error_law": law,
        "squared_error_quantiles": squares,
        "expected_squared_error": law_of(law).mean(),
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
    test["p_value"] = float(stats.chi2.sf(test["statistic"] / test["scale"], test["df"]))
    values["p_value"] = np.array(test["p_value"])


SHRUNK = {"dimension": 28, "sigma": 1e-9, "length": 1e-9, "factor": 0.0, "unshrunk": 0}
DIGEST = "0" * 64
FORGED = {
    "pure": {
        "less noise": less_noise,
        "a step at no price": last(epsilon=1e-9),
        "more than was given": last(epsilon=lambda e: 2.0 * e),
        "two laws": last(mu=0.1),
        "no bias": only("error_bound_parts", clipping_bias=0.0, clipping_bias_sd=0.0),
        "a normal bias": only("error_bound_parts", bias_law="normal"),
        "noise along the axes": every(noise={"family": "chi2", "df": 6, "scale": 1e-9}),
        "all of the risk": every(risk_share=1.0),
        "near": every(max_distance=3.0),
        "delta": fields(delta=1e-6),
        "outside the domain": value("mean", lambda M: 1e9 * np.eye(3)),
    },
    "counted": {
        "another number": last(n_estimate=lambda n: 10.0 * n),
        "no number": last(n_estimate=None),
        "all of the risk": every(risk_share=0.9),
        "less noise": less_noise,
        "no shift": every(shift=0.0),
    },
    "mean": {
        "averaged": averaged,
        "less noise": less_noise,
        "shrinkage": every(shrinkage=SHRUNK),
        "no bias": only("error_bound_parts", clipping_bias=0.0, clipping_bias_sd=0.0),
        "sharp bias": only("error_bound_parts", clipping_bias_sd=lambda x: x / 10),
        "less noise along the axes": every(noise=lambda law: less(law, 0.5)),
        "no rounding": every(rounding=0.0),
        "all of the risk": every(risk_share=1.0),
        "near": every(max_distance=3.0),
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
            versions=dict.fromkeys(("numpy", "python", "sampler", "spdp"), "the very best")
        ),
        "another sampler": fields(versions=lambda v: v | {"sampler": "laplace-1"}),
        "words for a sampler": fields(versions=lambda v: v | {"sampler": "opendp-the best"}),
        "created": fields(created="never"),
        "outside": fields(outside={"share": 0.0, "sd": 0.0}),
    },
    "shrunk": {
        "sigma of the shrinkage": shrunk(sigma=lambda sigma: sigma / 100),
        "length of the shrinkage": shrunk(length=lambda length: length / 100),
        "factor of the shrinkage": shrunk(factor=0.5),
        "dimensions of the shrinkage": shrunk(dimension=20),
        "words in the shrinkage": shrunk(x="sure"),
    },
    "difference": {
        "less noise": every(noise=lambda law: less(law, 1e-8)),
        "no bias": only("error_bound_parts", clipping_bias=0.0, clipping_bias_sd=0.0),
        "sure counts": every(shift=0.0),
        "near": every(max_distance=lambda x: x / 2),
        "p-value": value("p_value", lambda p: 1e-12),
        "p-value and test": claimed(1e-12),
        "less chance than noise": certain_test,
        "more records than there are": value("counts", lambda n: 10 * n),
        "another difference": value("difference", lambda D: D + 1.0),
        "other means": value("means", lambda M: 1.5 * M),
        "means elsewhere": value("means", lambda M: 1e6 * M),
    },
    "anova": {
        "less noise": every(noise=lambda law: less(law, 1e-8)),
        "no bias": only("error_bound_parts", clipping_bias=0.0, clipping_bias_sd=0.0),
        "p-value and test": claimed(1e-12),
        "less chance than noise": certain_test,
        "other effects": value("effects", lambda E: 2.0 * E),
        "other means": value("means", lambda M: 1.5 * M),
        "other counts": value("counts", lambda n: n[::-1] + 5.0),
    },
    "classes": {
        "less noise": only("error_bound_within", noise=lambda law: less(law, 1e-8)),
        "smaller units": last(width=lambda w: [x / 100 for x in w]),
        "no rounding": only("error_bound_within", rounding=0.0),
        "other counts": value("counts", lambda n: n + 1.0),
    },
    "axes": {
        "less noise": only("error_bound_within", noise=lambda law: less(law, 1e-8)),
        "negative covariance": value("covariance", lambda C: -C),
    },
    "whole": {
        "all were seen": unseen,
        "near": every(max_distance=3.0),
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
        "no bias": every(clipping_bias=0.0),
        "no number": value("variance", lambda V: np.nan),
    },
    "private dispersion": {
        "a sure number": last(count_sd=lambda sd: sd / 100),
        "no bias": every(clipping_bias=0.0),
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
        "less noise": less_noise,
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


# --- forgeries of which everything that is derived was derived again


def agreeing(c):
    """All that follows from the facts of a certificate, by the program itself."""
    facts = {name: value for name, value in c.items() if name in Facts.__struct_fields__}
    return msgspec.to_builtins(derive(msgspec.convert(facts, Facts)))


def counted(c):
    """A noisy number where the public one divides: the noise seems to vanish."""
    c["steps"][-1]["n_estimate"] = 1e9
    return c


def counted_first(c):
    """A step that counts, paid for, before a search whose number is public."""
    last, query = c["steps"][-1], Certificate.read(c).queries["count"]
    mu, tiny = last["mu"], 1e-6 * last["mu"]
    size = query.sensitivity(Adjacency(c["adjacency"]))
    step = {"step": "count", "mu": tiny, "sensitivity": size, "n_estimate": 10**9}
    c["steps"].insert(0, step | {"scale": lattice_scale(size, tiny)})
    last["mu"] = math.sqrt(mu * mu - tiny * tiny) * (1 - 1e-15)
    last["scale"] = lattice_scale(last["sensitivity"], last["mu"])
    return searched_anew(c)


def searched_anew(c):
    """A searched mean whose bounds follow from its edited steps."""
    c = agreeing(c)
    facts, mean = Certificate.read(c), find("mean")
    c["error_bound_parts"] = msgspec.to_builtins(mean.expected_bound(facts))
    if c["error_bound_within"]:
        parts = msgspec.to_builtins(mean.searched(facts, facts.within, within=True))
        c["error_bound_within"]["parts"] = parts
    return agreeing(bounded(c))


def looks_of(c, name="clipping bias"):
    return [step for step in c["steps"] if step["step"] == name]


def ten_times_as_many(c):
    """The last count alone, which divides the noise."""
    c["steps"][-1]["n_estimate"] *= 10.0
    return searched_anew(c)


def far_below_zero(c):
    """A clipping bias that noise would have to hide a thousandfold."""
    for look in looks_of(c):
        look["bias"] = [-1000.0 * sd for sd in look["sd"]]
    return searched_anew(c)


def a_larger_public_number(c):
    """The measured bias keeps its noise: the number it was divided by was another."""
    return searched_anew(c | {"n": 10 * c["n"]})


def looked_less_far(c):
    """A bias of records no farther than the domain's radius, with less noise."""
    for look in looks_of(c):
        reach = Certificate.read(c).space.region.radius
        ratio = (reach - look["shortest"]) / (look["reach"][0] - look["shortest"])
        look["reach"][0], look["sd"][0] = reach, look["sd"][0] * ratio
    return searched_anew(c)


def a_ball_elsewhere(c):
    """A ball a thousand times smaller, in which the released mean does not lie."""
    for step in c["steps"]:
        for name in ("shortest", "radius"):
            if step["step"] in ("near bias", "clipping bias", "mean") and name in step:
                step[name] /= 1000.0
    for look in looks_of(c, "near bias"):
        look["reach"] = [2.0 * look["shortest"]]
        look["sd"] = [sd / 1000.0 for sd in look["sd"]]
    for look in looks_of(c):
        kept = look["reach"][0] - 1000.0 * look["shortest"]
        look["sd"] = [sd * (look["reach"][0] - look["shortest"]) / kept for sd in look["sd"]]
    return searched_anew(c)


def not_looked_for(*names):
    """Steps left out, their price given to the last one."""

    def edited(c):
        kept, last = [s for s in c["steps"] if s["step"] not in names], c["steps"][-1]
        spent = sum(s["epsilon"] for s in c["steps"] if s["step"] in names)
        last["epsilon"] = (last["epsilon"] + spent) * (1 - 1e-15)
        last["scale"] = float(laplace_scale_exact(last["sensitivity"], last["epsilon"]))
        c["steps"] = kept
        c["error_bound_within"] = None
        return searched_anew(c)

    return edited


def answered_twice(c):
    """Most of the budget went into an answer that is not the one released."""
    last = c["steps"][-1]
    other, mu = dict(last), last["mu"]
    other["mu"], last["mu"] = math.sqrt(0.9999) * mu * (1 - 1e-15), 0.01 * mu * (1 - 1e-12)
    for step in (other, last):
        step["scale"] = lattice_scale(step["sensitivity"], step["mu"])
    c["steps"].insert(0, other)
    return c


def uncounted(c):
    """Weighted persons without their noisy count: a bound ten times smaller."""
    del c["steps"][0]["n_estimate"]
    return c


def weighted(c):
    """Records that count for a person, in a statistic that has no such option."""
    return c | {"max_records": 2}


def counted_in_place_of_the_edge(c):
    """The same, to excuse a count that makes σ ten times smaller."""
    place = [step["step"] for step in c["steps"]].index("edge")
    mu, query = c["steps"][place]["mu"], Certificate.read(c).queries["count"]
    size = query.sensitivity(Adjacency(c["adjacency"]))
    step = {"step": "count", "mu": mu, "sensitivity": size, "n_estimate": 10 * c["n"]}
    c["steps"][place] = step | {"scale": lattice_scale(size, mu)}
    return weighted(c)


def elsewhere(c):
    """A centre so far away that a mean brought back may have come from anywhere."""
    for step in c["steps"]:
        if step["step"] in ("class histogram", "class moments"):
            step["center"][0] = 1e9
    for parts in parts_of(c):
        parts["shift"] = 0.0
    return bounded(c)


def capped(c):
    """A clipping bias that was looked for less far away, hence with less noise."""
    look = next(step for step in c["steps"] if step["step"] == "class clipping bias")
    look["cap"] /= 2.0
    c["error_bound_parts"]["clipping_bias_sd"] /= 2.0
    return bounded(c)


def alone(c):
    """One person, whose records have the weight of many."""
    return c | {"n": 1}


def twice(c):
    c["steps"][-1]["classes"] = [1, 1]
    return c


def unnamed(c):
    c["steps"][-1]["classes"][0] = ""
    return c


def wider(c):
    """A domain other than the one that the first round looked at."""
    c["domain"]["radius"] *= 1.5
    return c


def nowhere(c):
    """No error at all, within a largest distance of 0."""
    c["error_bound_within"]["parts"]["max_distance"] = 0.0
    return c


@pytest.mark.parametrize(
    ("name", "forge", "found"),
    [
        ("weighted", uncounted, "count"),
        ("persons", weighted, "records that count"),
        ("persons", counted_in_place_of_the_edge, "records that count"),
        ("tangent", weighted, "records that count"),
        ("classes", nowhere, "max distance"),
        ("oneshot", counted, "number of records"),
        ("mean", counted_first, "number of records"),
        ("counted", ten_times_as_many, "number of records"),
        ("pure", far_below_zero, "bias"),
        ("mean", far_below_zero, "bias"),
        ("pure", a_larger_public_number, "noise of the bias"),
        ("mean", a_larger_public_number, "noise of the bias"),
        ("mean", looked_less_far, "reach"),
        ("pure", a_ball_elsewhere, "mean in its ball"),
        ("pure", not_looked_for("near bias"), "steps"),
        ("tangent", answered_twice, "steps"),
        ("extrinsic", answered_twice, "steps"),
        ("oneshot", answered_twice, "steps"),
        ("difference", elsewhere, "center"),
        ("anova", elsewhere, "center"),
        ("difference", capped, "reach of the bias"),
        ("anova", capped, "reach of the bias"),
        ("weighted", alone, "sum of the weights"),
        ("classes", twice, "classes"),
        ("difference", twice, "classes"),
        ("classes", unnamed, "classes"),
        ("difference", unnamed, "classes"),
        *((name, wider, "radius of the first round") for name in SEARCHES),
    ],
)
def test_forgeries_that_agree_with_themselves_are_found(honest, name, forge, found):
    release = honest[name]
    c = agreeing(forge(copy.deepcopy(release.certificate)))
    wrong = failed(c, release.values)
    assert found in wrong
    if forge not in (elsewhere, capped, wider, twice, unnamed, counted_first, a_ball_elsewhere):
        assert wrong <= {found, "records that count", "count"}


def test_effects_of_the_other_sign_are_found_where_one_mean_lies_at_the_edge():
    """A tiny class has a noisy mean, which is brought back into the domain."""
    y = np.where(np.arange(N) < 5, 2, Y)
    found = 0
    for seed in range(5):
        options = CLASSES | {"classes": [0, 1, 2], "random_state": seed}
        release = private_anova(X, y, **options)
        assert failed(release.certificate, release.values) == set()
        values = release.values | {"effects": -release.values["effects"]}
        found += "effects" in failed(release.certificate, values)
    assert found == 5


@pytest.mark.parametrize("name", ["mean", "median", "classes", "dispersion", "pca", "regression"])
def test_steps_stand_in_the_order_in_which_they_were_asked(honest, name):
    """A renamed or exchanged step may change what the others mean."""
    release = honest[name]
    names = [step["step"] for step in release.certificate["steps"]]
    pairs = [(i, j) for j in range(len(names)) for i in range(j) if names[i] != names[j]]
    for i, j in pairs:
        c = release.certificate
        c["steps"][i], c["steps"][j] = c["steps"][j], c["steps"][i]
        assert failed(c, release.values), (names[i], names[j])
    for i in range(len(names)):
        c = release.certificate
        del c["steps"][i]
        with suppress(Exception):  # what cannot be derived from the rest cannot be forged
            c = agreeing(c)
        assert failed(c, release.values)


ODD_NOTES = [
    ("center", "center", []),
    ("center", "center", [0.0] * 7),
    ("distance", "distance", -1.0),
    ("tail", "edges", []),
    ("tail", "edges", lambda edges: edges[::-1]),
    ("tail", "beyond", lambda beyond: [1e9] * len(beyond)),
    ("edge", "share", 1e9),
    ("edge", "sd", -0.05),
    ("edge", "sd", 1e-9),
    ("deviation", "deviation", lambda numbers: numbers[1:]),
    ("clipping bias", "sd", lambda sd: sd[:1]),
]


@pytest.mark.parametrize(("step", "field", "odd"), ODD_NOTES)
def test_what_a_step_cannot_have_found_is_refused(honest, step, field, odd):
    tried = 0
    for name in SEARCHES:
        c = honest[name].certificate
        for one in c["steps"]:
            if one["step"] == step:
                one[field] = odd(one[field]) if callable(odd) else odd
                tried += 1
        if any(one["step"] == step for one in c["steps"]):
            outside = c["outside"]
            c["outside"] = outside and {n: outside[n] if n != field else odd for n in outside}
            assert failed(c, honest[name].values), name
    assert tried


def test_equal_units_cannot_take_the_place_of_those_that_were_found(honest):
    release = honest["pca"]
    c = release.certificate
    assert c["steps"][-1].pop("width")
    facts = Certificate.read(c)
    c["error_bound_parts"] = msgspec.to_builtins(facts.declaration.expected_bound(facts))
    assert "units" in failed(agreeing(c), release.values)


@pytest.mark.parametrize(
    ("name", "place", "field", "value"),
    [
        ("classes", -1, "classes", [None, 1]),
        ("classes", -1, "classes", [{"a": [1]}, 1]),
        ("classes", -1, "radius", -1.0),
        ("regression", -1, "radius", -1.0),
        ("weighted", 0, "n_estimate", -1.0),
        ("weighted", 0, "n_estimate", 0.5),
    ],
)
def test_what_no_step_can_state_is_refused(honest, name, place, field, value):
    release = honest[name]
    c = release.certificate
    c["steps"][place][field] = value
    assert "certificate" in failed(c, release.values)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("laplace", "delta", -1.5),
        ("laplace", "delta", 0.9),
        ("mean", "unit", None),
        ("median", "reference", "0" * 64),
        ("pca", "reference", "0" * 64),
    ],
)
def test_fields_that_nothing_is_computed_from_are_checked(honest, name, field, value):
    release = honest[name]
    assert field in failed(release.certificate | {field: value}, release.values)


def test_a_negative_length_of_what_was_shrunk_is_refused(honest):
    release = honest["shrunk"]
    c = release.certificate
    c["error_bound_parts"]["shrinkage"]["length"] *= -1.0
    assert "certificate" in failed(c, release.values)
