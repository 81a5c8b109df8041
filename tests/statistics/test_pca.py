"""Private principal components: near the best, and told how far to trust them."""

from typing import NamedTuple

import numpy as np
import pytest
from replay import Caught, audit, datasets

from spdp import Ball, EigenvalueBounds, Ledger, Release, private_pca
from spdp.charts import chart_of
from spdp.domain.base import Space
from spdp.engines.store import ArrayStore
from spdp.errors import ParameterError, TooNoisy
from spdp.geometry import expm, invvecd
from spdp.privacy.account import Account
from spdp.privacy.budget import Budget
from spdp.queries import Rows
from spdp.queries.moments import MomentSum
from spdp.statistics.base import Context, Settled
from spdp.statistics.pca import PCA, _trusted, check_enough

DOMAIN = Ball(20.0)
SPACE = Space.of(chart_of("logeuclid"), DOMAIN, 4)
OPTIONS = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN}
SD = np.array([1.0, 0.6, 0.3, 0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05])


def vectors(n, seed=0):
    """Records whose principal axes are turned, far from the domain's centre."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(np.random.default_rng(5).standard_normal((10, 10)))[0]
    return np.linspace(-2.0, 2.0, 10) + rng.standard_normal((n, 10)) * SD @ axes.T


def matrices(Y):
    return expm(invvecd(Y))


class Gathered(NamedTuple):
    """Vectors that are here already, in the place of records."""

    Y: np.ndarray

    def gather(self, key):
        return ArrayStore(Rows(self.Y))


class Found(NamedTuple):
    """What the answers of one run say, before it is published."""

    components: np.ndarray
    variances: np.ndarray
    covariance: np.ndarray
    trusted: float


def find(Y, epsilon, seed, p=3):
    budget = Budget.gaussian(epsilon, 1e-6)
    account = Account(budget, random_state=seed)
    outcome = PCA(p).run(Context(SPACE, account, Gathered(Y), Settled(budget)))
    names = ("components", "explained_variance", "covariance")
    return Found(*(outcome.numbers[name] for name in names), account.steps[-1].trusted)


def captured(Y, components):
    S = np.cov(Y.T)
    best = np.linalg.eigvalsh(S)[-len(components) :].sum()
    return np.trace(components @ S @ components.T) / best


@pytest.mark.parametrize(("epsilon", "least"), [(0.3, 0.9), (1.0, 0.98), (5.0, 0.998)])
def test_components_hold_what_the_best_hold(epsilon, least):
    Y = vectors(5000)
    found = [find(Y, epsilon, seed) for seed in range(5)]
    shares = [captured(Y, one.components) for one in found]
    assert np.mean(shares) >= least
    # what is certain is less than what is so, and not idle
    for one, share in zip(found, shares, strict=True):
        assert one.trusted <= share
    assert epsilon < 1 or found[0].trusted > 0.7


def test_noise_below_zero_is_trusted_with_nothing():
    """Both sides of the ratio are negative then: it would be above one."""
    raw, vectors, width = np.array([[-5.0]]), np.eye(1), np.ones(1)
    assert _trusted(raw, vectors, 1.0, width, 0.0) == 0.0
    assert 0.0 < _trusted(-raw, vectors, 1.0, width, 0.0) < 1.0


def test_components_are_orthonormal_and_variances_fall():
    found = find(vectors(4000), 2.0, 0)
    np.testing.assert_allclose(found.components @ found.components.T, np.eye(3), atol=1e-12)
    assert (np.diff(found.variances) <= 0).all()
    np.testing.assert_allclose(found.variances, SD[:3] ** 2, rtol=0.25)
    assert np.linalg.eigvalsh(found.covariance)[0] > 0


def test_noise_does_not_inflate_the_explained_variance():
    """On records of one point, a raw covariance has the noise's eigenvalues."""
    Y = vectors(3000)
    variances = np.mean([find(Y, 0.5, seed).variances for seed in range(8)], axis=0)
    assert (variances < 1.25 * SD[:3] ** 2).all()


def test_a_public_rule_refuses_and_warns(tmp_path):
    assert check_enough(10_000, 10, 0.2) is None
    assert "2·d^1.5" in check_enough(200, 10, 0.2)
    with pytest.raises(ParameterError, match="would be noise"):
        check_enough(20, 10, 0.2)
    with pytest.raises(ParameterError, match="would be noise"):
        private_pca(matrices(vectors(20)), n_components=2, anyway=True, **OPTIONS)
    with pytest.warns(TooNoisy, match="the components hold at least"):
        private_pca(matrices(vectors(100)), n_components=2, random_state=0, **OPTIONS)
    ledger = Ledger(tmp_path / "l", epsilon=5.0, delta=1e-5)
    with pytest.raises(TooNoisy) as caught:  # where warnings are errors, as in these tests
        private_pca(matrices(vectors(100)), n_components=2, ledger=ledger, **OPTIONS)
    assert caught.value.release.values["components"].shape == (2, 10)
    assert ledger.history()[0]["state"] == "done"
    for p in (0, 11):
        with pytest.raises(ParameterError, match="between 1 and 10"):
            private_pca(matrices(vectors(100)), n_components=p, **OPTIONS)


def test_a_release_says_it_all_and_verifies(tmp_path):
    Y = vectors(4000)
    release = private_pca(matrices(Y), n_components=3, **OPTIONS)
    assert list(release.values) == ["mean", "components", "explained_variance", "covariance"]
    assert captured(Y, release.values["components"]) > 0.97
    assert all(check.ok for check in release.verify()), release.verify()
    assert release.population_bound() > release.error_bound()
    release.save(tmp_path / "out")
    np.testing.assert_array_equal(
        Release.load(tmp_path / "out").values["covariance"], release.values["covariance"]
    )


def transcripts(count, seed, persons=False, removed=False):
    rng = np.random.default_rng(seed)
    shares = []
    for i in range(count):
        X, other = datasets(rng, int(rng.integers(1, 4)), 5.0)
        ids = None
        if persons:
            ids = np.maximum(np.arange(len(X)) - 2, 0) // 2
            other[ids == 0] = other[0]
        if removed:  # the first record, or the first person's
            other = X[1 if ids is None else (ids == 0).sum() :]

        def statistic(X, ids=ids):
            return private_pca(
                X,
                n_components=1,
                epsilon=60.0,
                delta=1e-6,
                domain=Ball(5.0),
                on_invalid="center",
                groups=None if ids is None else ids[len(ids) - len(X) :],
                adjacency="add-remove" if removed else "replace-one",
            )

        shares.append(audit(statistic, X, other, seed=i))
    return np.array(shares)


def test_replayed_neighbours_cost_no_more_than_the_budget():
    shares = transcripts(100, 1)
    assert 0.9 < shares.max() <= 1
    assert transcripts(40, 2, persons=True).max() <= 1


@pytest.mark.parametrize("persons", [False, True])
def test_a_record_or_person_added_or_removed_passes(persons):
    shares = transcripts(60, 4, persons, removed=True)
    assert 0.5 < shares.max() <= 1


@pytest.mark.parametrize("removed", [False, True])
def test_a_halved_sensitivity_is_caught(monkeypatch, removed):
    honest = MomentSum.sensitivity
    monkeypatch.setattr(MomentSum, "sensitivity", lambda self, a: honest(self, a) // 2)
    with pytest.raises(Caught, match="more than its stated sensitivity"):
        transcripts(150, 3, removed=removed)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_none_is_no_error_where_the_number_is_private(n):
    """None and one must not be told apart by an exception, nor by a refusal."""
    X = matrices(vectors(n))
    options = {**OPTIONS, "n_components": 2, "adjacency": "add-remove", "random_state": 0}
    with pytest.warns(TooNoisy):
        release = private_pca(X, **options)
    assert all(check.ok for check in release.verify()), release.verify()


def test_components_hold_what_is_certain_where_the_number_is_private():
    Y = vectors(5000)
    options = {**OPTIONS, "n_components": 3, "adjacency": "add-remove"}
    for seed in range(4):
        release = private_pca(matrices(Y), random_state=seed, **options)
        share = captured(Y, release.values["components"])
        assert 0.6 < release.certificate["steps"][-1]["trusted"] <= share
        assert share > 0.97
        assert all(check.ok for check in release.verify()), release.verify()
        assert np.linalg.norm(
            chart_of("logeuclid").vector(release.value) - Y.mean(axis=0)
        ) <= release.error_bound(0.99)


def far_minority(n, share, rng):
    """Records of which a share lies far from the others: n vectors, and their mean."""
    far = rng.random(n) < share
    Y = 0.02 * rng.standard_normal((n, 1))
    Y[:, 0] += np.where(far, -3.7, 0.2)
    return Y, 0.2 - 3.9 * share


@pytest.mark.parametrize("share", [0.05, 0.1])
def test_the_bound_for_the_population_covers_where_a_minority_lies_far(share):
    """Clipped to the ellipsoid it shows no variance, but its number varies."""
    rng, domain, hits = np.random.default_rng(1), EigenvalueBounds(0.02, 50.0), 0
    for seed in range(80):
        Y, mean = far_minority(5000, share, rng)
        release = private_pca(
            np.exp(Y)[:, :, None],
            n_components=1,
            epsilon=16.0,
            delta=1e-6,
            domain=domain,
            random_state=seed,
        )
        error = abs(float(np.log(release.value[0, 0])) - mean)
        hits += error <= release.population_bound(0.95)
    assert hits >= 0.9 * 80
