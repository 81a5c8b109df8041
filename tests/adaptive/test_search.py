import json
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from spdp import Ball, EigenvalueBounds, Reference, private_mean
from spdp.adaptive import Search
from spdp.adaptive.shrinkage import shrink
from spdp.charts import LOGEUCLID
from spdp.datasets import load_images, synthetic_spd
from spdp.descriptors import covariance_descriptors, descriptor_bounds
from spdp.domain.base import Space
from spdp.engines import base as engine_base
from spdp.engines.store import ArrayStore
from spdp.error.bound import Bound
from spdp.error.laws import law_of
from spdp.errors import DataError, InvalidMatrixError, ParameterError
from spdp.geometry import distance_logeuclid, expm, invvecd, logm, mean_logeuclid, vecd
from spdp.kernels.base import RECORD_NORM
from spdp.options import Adjacency
from spdp.privacy import gaussian_epsilon, gaussian_mu, noise
from spdp.privacy.account import Account, noise_scale
from spdp.privacy.budget import Budget
from spdp.queries import Rows
from spdp.queries.sums import Frame, VectorSum
from spdp.statistics.method import plan_one_shot


def matrices(Y):
    return expm(invvecd(Y))


def tight_cluster(rng, n, k, spread=0.1, offset=3.0):
    d = k * (k + 1) // 2
    Y = spread * rng.standard_normal((n, d))
    Y[:, 0] += offset
    return matrices(Y)


def mean_error(X, domain, method, epsilon=0.5, delta=1e-6, repeats=6):
    truth = mean_logeuclid(domain.clip(X))
    releases = [
        private_mean(
            X,
            epsilon=epsilon,
            delta=delta,
            domain=domain,
            method=method,
            mechanism="gaussian",
            random_state=s,
            anyway=True,
        )
        for s in range(repeats)
    ]
    return np.mean([distance_logeuclid(r.value, truth, squared=True) for r in releases])


def test_far_more_accurate_where_the_domain_is_wide(rng):
    X = tight_cluster(rng, 4000, 4)
    domain = Ball(20.0)
    assert mean_error(X, domain, "adaptive") < mean_error(X, domain, "oneshot") / 200
    assert mean_error(X, domain, "auto") < mean_error(X, domain, "oneshot") / 200


@pytest.mark.parametrize("k", [3, 5, 10])
@pytest.mark.parametrize("epsilon", [0.1, 0.4, 0.9])
def test_never_much_worse_than_one_shot_where_the_domain_is_tight(k, epsilon):
    X = synthetic_spd(500, k, 0.25, random_state=k)
    domain = EigenvalueBounds(np.exp(-0.25), np.exp(0.25))
    auto = mean_error(X, domain, "auto", epsilon, repeats=12)
    one = np.mean(
        [
            plan_one_shot(
                k, epsilon=epsilon, delta=1e-6, domain=domain, mechanism="gaussian"
            ).expected_squared_error(500)
        ]
    )
    assert auto <= 1.15 * one


def test_digits_of_180_records():
    digits = load_images("digits")
    domain = descriptor_bounds(1)
    X = covariance_descriptors(digits.of_class(0))
    for epsilon in (0.1, 0.9):
        one = plan_one_shot(
            9, epsilon=epsilon, delta=1e-7, domain=domain, mechanism="gaussian"
        ).expected_squared_error(len(X))
        assert mean_error(X, domain, "auto", epsilon, 1e-7) <= 1.15 * one


@pytest.mark.parametrize("n", [2, 3, 10, 1000, 50_000])
@pytest.mark.parametrize("kind", ["constant", "boundary", "bimodal", "heavy", "outliers"])
def test_awkward_data_behave(n, kind):
    """Finite, inside the domain, and no worse than a few times one shot, whatever the
    data.
    """
    rng = np.random.default_rng(n)
    k, d = 3, 6
    Y = np.zeros((n, d))
    if kind == "boundary":
        Y[:, 0] = 5.0
    elif kind == "bimodal":
        Y = 0.05 * rng.standard_normal((n, d))
        Y[: n // 2, 0] += 4.0
    elif kind == "heavy":
        Y = 0.1 * rng.standard_t(1.5, (n, d))
    elif kind == "outliers":
        Y = 0.05 * rng.standard_normal((n, d))
        Y[: n // 100, 1] = 5.0
    domain = Ball(5.0)
    X = matrices(np.clip(Y, -50, 50))
    release = private_mean(
        X, epsilon=1.0, delta=1e-6, domain=domain, method="adaptive", random_state=n, anyway=True
    )
    assert np.isfinite(release.value).all()
    assert domain.contains(release.value)
    one = plan_one_shot(
        k, epsilon=1.0, delta=1e-6, domain=domain, mechanism="gaussian"
    ).expected_squared_error(n)
    assert mean_error(X, domain, "adaptive", 1.0) <= 6 * one


def test_certificate_lists_the_steps_and_they_add_up(rng):
    options = {"epsilon": 0.7, "delta": 1e-6, "method": "adaptive", "mechanism": "gaussian"}
    release = private_mean(tight_cluster(rng, 3000, 3), domain=Ball(10.0), **options)
    c = release.certificate
    json.dumps(c, allow_nan=False)
    assert c["private"] is True
    assert c["float_safe"] is True
    assert c["method"] == "adaptive"
    names = [step["step"] for step in c["steps"]]
    assert names[:2] == ["edge", "center"]
    assert names[-1] == "mean"
    total = sum(step["mu"] ** 2 for step in c["steps"])
    assert total == pytest.approx(c["mu"] ** 2, rel=1e-12)
    assert c["mu"] == pytest.approx(gaussian_mu(0.7, 1e-6), rel=1e-12)
    assert "whole error" in c["error_statement"]
    assert c["squared_error_law"] is None
    with pytest.raises(AttributeError, match="error_bound"):
        _ = release.squared_error


def test_the_account_agrees_with_the_noise_that_was_drawn(rng, monkeypatch):
    """Recompute μ from every (sensitivity, scale) that reached the sampler.

    Dropping a step's cost would show here.
    """
    drawn, asked = [], []
    sample, ask = noise.gaussian, Account.ask

    def spy_sample(total, scale, rng):
        drawn.append(scale)
        return sample(total, scale, rng)

    def spy_ask(self, query, *args, **options):
        asked.append(query.sensitivity(self.adjacency))
        return ask(self, query, *args, **options)

    monkeypatch.setattr(noise, "gaussian", spy_sample)
    monkeypatch.setattr(Account, "ask", spy_ask)
    options = {"epsilon": 0.7, "delta": 1e-6, "method": "adaptive", "mechanism": "gaussian"}
    c = private_mean(tight_cluster(rng, 2000, 3), domain=Ball(10.0), **options).certificate
    assert len(drawn) == len(asked) == len(c["steps"])
    spent = [
        sensitivity / np.sqrt(scale**2 - 16)
        for sensitivity, scale in zip(asked, drawn, strict=True)
    ]
    total = float(np.sqrt(np.sum(np.square(spent))))
    assert gaussian_epsilon(1e-6, total) <= 0.7 * (1 + 1e-9)
    assert total == pytest.approx(c["mu"], rel=1e-9)
    cheaper = float(
        np.sqrt(np.sum(np.square(spent[1:])))
    )  # what an account that forgot the first step would claim
    assert gaussian_epsilon(1e-6, cheaper) < 0.7 * (1 - 1e-4)


def test_sources_that_are_read_again(rng, monkeypatch):
    X = tight_cluster(rng, 3000, 3)
    options = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "domain": Ball(10.0),
        "method": "adaptive",
        "random_state": 0,
    }
    expected = private_mean(X, **options).value
    np.testing.assert_array_equal(
        private_mean(iter([X[:1000], X[1000:]]), **options).value, expected
    )
    monkeypatch.setattr(engine_base, "KEEP_BYTES", 15_000)
    monkeypatch.setattr("spdp.data.source.BLOCK_BYTES", 20_000)
    # the search looks at a part of the blocks, the mean at all
    part = private_mean(X, **options)
    assert part.certificate["n"] == 3000
    assert (
        distance_logeuclid(part.value, mean_logeuclid(X))
        < 5 * distance_logeuclid(expected, mean_logeuclid(X)) + 0.01
    )
    with pytest.raises(DataError, match="read only once"):
        private_mean(iter([X[:1000], X[1000:]]), **options)
    X[7] = np.nan
    with pytest.raises(InvalidMatrixError, match="matrix 7"):
        private_mean(X, **options)
    assert np.isfinite(private_mean(X, on_invalid="center", **options).value).all()


def test_shrinkage_helps_when_noise_dominates(rng):
    truth = np.full(20, 0.1)
    plain, shrunk = [], []
    for _ in range(400):
        v = truth + rng.standard_normal(20)
        plain.append(((v - truth) ** 2).sum())
        shrunk.append(((shrink(v, 1.0)[0] - truth) ** 2).sum())
    assert np.mean(shrunk) < 0.3 * np.mean(plain)
    np.testing.assert_array_equal(shrink(np.ones(2), 1.0)[0], np.ones(2))


@pytest.mark.parametrize(
    ("budget", "adjacency", "expected"),
    [
        (Budget.gaussian(1.0, 1e-6), "replace-one", 100 * gaussian_mu(1.0, 1e-6) / sqrt(6)),
        (Budget.pure(1.0), "replace-one", 100 / sqrt(6 * 7)),
        (Budget.pure(1.0), "add-remove", 200 / sqrt(6 * 7)),
    ],
)
def test_resolution_is_the_diameter_over_the_noise(budget, adjacency, expected):
    space, adjacency = Space.of(LOGEUCLID, Ball(3.0), 3), Adjacency(adjacency)
    search = Search(ArrayStore(Rows(np.zeros((100, 6)))), Account(budget, adjacency), space)
    assert search.resolution == pytest.approx(expected, rel=1e-6)
    sensitivity = VectorSum("", Frame.plain(np.zeros(6)), 1.0).sensitivity(adjacency)
    noise = noise_scale(budget, sensitivity) / RECORD_NORM / 100
    rms = noise * sqrt(6 * 7 if budget.mu is None else 6)
    assert search.resolution == pytest.approx(2.0 / rms, rel=1e-6)


def kinds(rng, n, d):
    """Data that tempt a search into a wrong bound, in a domain of radius 5."""
    bulk = 0.3 * rng.standard_normal((n, d))
    few = bulk.copy()
    few[: max(1, n // 100), 0] = 4.5
    two = bulk.copy()
    two[: n // 5, 0] += 3.0
    narrow = bulk * np.geomspace(0.02, 2.0, d)
    return {
        "tight": 0.1 * bulk + 1.0 / np.sqrt(d),
        "outliers": few,
        "bimodal": two,
        "heavy tails": np.clip(0.2 * rng.standard_t(2, (n, d)), -3, 3),
        "anisotropic": narrow,
        "filling": rng.uniform(-2.0, 2.0, (n, d)),
    }


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 30.0])
@pytest.mark.parametrize("kind", kinds(np.random.default_rng(0), 10, 6))
def test_the_bound_covers_the_whole_error(kind, epsilon):
    """95 % and 80 % bounds over 60 runs each; a bound on the noise alone would fail."""
    X = matrices(kinds(np.random.default_rng(7), 600, 6)[kind])
    domain = Ball(5.0)
    truth = mean_logeuclid(domain.clip(X))
    missed = {0.95: 0, 0.8: 0}
    for seed in range(60):
        release = private_mean(
            X, epsilon=epsilon, delta=1e-6, domain=domain, method="adaptive", random_state=seed
        )
        error = distance_logeuclid(release.value, truth)
        for level in missed:
            missed[level] += bool(error > release.error_bound(level))
    for level, count in missed.items():
        assert stats.binomtest(count, 60, 1 - level, alternative="greater").pvalue > 1e-3


def test_a_bound_on_the_noise_alone_does_not_cover():
    """What version 0.1 stated: the test above can fail."""
    X = matrices(kinds(np.random.default_rng(7), 600, 6)["outliers"])
    truth, missed = mean_logeuclid(Ball(5.0).clip(X)), 0
    for seed in range(40):
        release = private_mean(
            X, epsilon=3.0, delta=1e-6, domain=Ball(5.0), method="adaptive", random_state=seed
        )
        parts = release.certificate["error_bound_parts"]
        noise = float(np.sqrt(law_of(parts["noise"]).quantile(0.95)))
        missed += bool(distance_logeuclid(release.value, truth) > noise)
    assert stats.binomtest(missed, 40, 0.05, alternative="greater").pvalue < 1e-3


def test_bounds_grow_with_confidence_and_stay_in_the_domain(rng):
    release = private_mean(
        tight_cluster(rng, 3000, 3),
        epsilon=1.0,
        delta=1e-6,
        domain=Ball(10.0),
        method="adaptive",
        random_state=0,
    )
    bounds = [release.error_bound(p) for p in (0.1, 0.5, 0.9, 0.95, 0.99, 0.999)]
    assert bounds == sorted(bounds)
    c = release.certificate
    assert c["error_bound"]["95%"] == pytest.approx(bounds[3])
    within = c["error_bound_within"]
    assert within is None or within["95%"] < c["error_bound"]["95%"]
    assert bounds[-1] <= 20.0
    for wrong in (0.0, 1.0, -1.0, float("nan")):
        with pytest.raises(ParameterError, match="confidence"):
            release.error_bound(wrong)


def test_a_reference_helps_where_records_are_few_and_never_decides_alone(rng):
    """A public neighbour of the data gains; a far one is found out privately."""
    away = np.eye(15)[0] * 4.0
    Y = 0.1 * rng.standard_normal((300, 15)) + away
    domain, truth = Ball(15.0), mean_logeuclid(matrices(Y))
    near = Reference.from_public(matrices(0.1 * rng.standard_normal((500, 15)) + away + 0.1))
    far = Reference.from_public(matrices(0.1 * rng.standard_normal((500, 15)) - 2 * away))
    errors = {}
    for name, reference in {"none": None, "near": near, "far": far}.items():
        releases = [
            private_mean(
                matrices(Y),
                epsilon=0.5,
                delta=1e-6,
                domain=domain,
                method="adaptive",
                random_state=seed,
                reference=reference,
            )
            for seed in range(12)
        ]
        values = np.stack([r.value for r in releases])
        errors[name] = float(np.mean(distance_logeuclid(values, truth, squared=True)))
        used = releases[0].certificate["reference"]
        assert used == (None if reference is None else reference.digest)
    assert errors["near"] < 0.3 * errors["none"]
    assert errors["far"] < 3.0 * errors["none"]


@pytest.mark.parametrize(("name", "gain"), [("mnist", 250), ("pathmnist", 60)])
def test_gain_on_real_data(data_dir, name, gain):
    """Squared error against the paper's mechanism with its own radius, one class at the
    paper's middle budget.
    """
    from spdp.descriptors import paper_radius

    images = load_images(name, data_dir, download=False)
    channels = 3 if images.images.ndim == 4 else 1
    X, domain = covariance_descriptors(images.of_class(3)), descriptor_bounds(channels)
    paper = plan_one_shot(
        8 + channels,
        epsilon=0.5,
        delta=1e-7,
        domain=Ball(paper_radius(channels)),
        mechanism="gaussian",
    )
    assert mean_error(X, domain, "auto", 0.5, 1e-7, 4) < paper.expected_squared_error(len(X)) / gain


@pytest.mark.audit
def test_end_to_end_audit_of_the_adaptive_method():
    """Worst-case neighbours.

    All records at one point, or one of them at the far end of the domain; 4,000
    releases each.
    """
    epsilon, delta = 3.0, 1e-3
    D = matrices(np.tile([1.0, 0.0, 0.0], (12, 1)))
    E = D.copy()
    E[0] = matrices(np.array([[-1.0, 0.0, 0.0]]))[0]
    sides = []
    for data in (D, E):
        draws = [
            private_mean(
                data,
                epsilon=epsilon,
                delta=delta,
                domain=Ball(1.0),
                method="adaptive",
                mechanism="gaussian",
            )
            for _ in range(4000)
        ]
        sides.append(np.array([vecd(logm(r.value))[0] for r in draws]))
    best = -np.inf
    for threshold in np.quantile(np.concatenate(sides), np.linspace(0.05, 0.95, 19)):
        hits, alarms = (int((side > threshold).sum()) for side in sides)
        low = stats.beta.ppf(1e-4, hits, 4000 - hits + 1) if hits else 0.0
        high = stats.beta.ppf(1 - 1e-4, alarms + 1, 4000 - alarms) if alarms < 4000 else 1.0
        best = max(best, stats.norm.ppf(low) - stats.norm.ppf(high))
    assert best <= gaussian_mu(epsilon, delta)
    assert best > 0.2 * gaussian_mu(
        epsilon, delta
    )  # the audit sees something: noise is not absurdly large


@pytest.mark.parametrize(("n", "epsilon"), [(200, 0.3), (400, 0.3)])
def test_a_mean_that_noise_hides_has_a_bound_below_its_noise(n, epsilon):
    """Over the whole domain and in a ball: its released length says how short it is."""
    X = tight_cluster(np.random.default_rng(0), n, 9)
    options = {"epsilon": epsilon, "delta": 1e-6, "domain": Ball(20.0), "random_state": 1}
    release = private_mean(X, method="adaptive", **options)
    parts = release.certificate["error_bound_parts"]
    assert 0 <= parts["shrinkage"]["factor"] <= 1
    without = Bound.read({**parts, "shrinkage": None})
    assert release.error_bound(0.95) < without.at(0.95)
    assert all(check.ok for check in release.verify())
