"""Private dispersion: right on average, a lower estimate, and honest about it."""

from typing import NamedTuple

import numpy as np
import pytest
from replay import Caught, audit, datasets

from spdp import Ball, EigenvalueBounds, Ledger, Release, private_dispersion, private_mean
from spdp.adaptive.steps import ClippingBiasStep
from spdp.charts import chart_of
from spdp.domain.base import Space
from spdp.engines.store import ArrayStore
from spdp.error.bound import (
    POPULATION_FROM,
    along_one_axis,
    noise_quantiles,
    population_bound,
)
from spdp.error.laws import weighted_chi2, weighted_tails
from spdp.errors import ParameterError
from spdp.geometry import expm, invvecd
from spdp.options import Adjacency
from spdp.privacy.account import Account
from spdp.privacy.budget import Budget
from spdp.queries import Rows
from spdp.queries.moments import SquaredNormSum
from spdp.queries.sums import AbsoluteSum, ClippingBias, Histogram
from spdp.statistics.base import Context, Settled
from spdp.statistics.dispersion import LEVELS, STATISTIC

DOMAIN = Ball(20.0)
OPTIONS = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN}
SPACE = Space.of(chart_of("logeuclid"), DOMAIN, 4)
SD = np.linspace(0.05, 0.5, 10)


def vectors(n, seed=0, heavy=False):
    """Records of known deviations about a point far from the domain's centre."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 10)) * SD
    if heavy:
        Z /= np.sqrt(rng.chisquare(4, n) / 4)[:, None]
    return Z + np.linspace(-2.0, 2.0, 10)


def matrices(Y):
    return expm(invvecd(Y))


class Gathered(NamedTuple):
    """Vectors that are here already, in the place of records."""

    Y: np.ndarray

    def gather(self, key):
        return ArrayStore(Rows(self.Y))


class Found:
    """What the answers of one run say, before it is published."""

    def __init__(self, outcome, steps):
        self.y, self.bound, self.sampling = outcome.vectors["mean"], outcome.bound, outcome.sampling
        self.variance = float(outcome.numbers["variance"])
        self.deviations, self.distances = (outcome.numbers[n] for n in ("deviations", "distances"))
        self.variance_sd, self.count = steps[-1].variance_sd, outcome.sampling[2]
        looks = [step for step in steps if isinstance(step, ClippingBiasStep)]
        self.look = looks[0] if looks else None


def find(Y, epsilon, seed, adjacency=Adjacency.REPLACE_ONE):
    budget = Budget.gaussian(epsilon, 1e-6)
    account = Account(budget, adjacency, random_state=seed)
    outcome = STATISTIC.run(Context(SPACE, account, Gathered(Y), Settled(budget)))
    return Found(outcome, account.steps)


def test_the_variance_is_accurate():
    Y = vectors(5000)
    true = Y.var(axis=0).sum()
    for epsilon, most in ((0.3, 0.15), (1.0, 0.03)):
        found = [find(Y, epsilon, seed) for seed in range(12)]
        errors = np.array([one.variance for one in found]) / true - 1
        assert np.sqrt((errors**2).mean()) < most
        # the stated noise is that of the variance: neither half nor twice of it
        sd = np.std([one.variance for one in found]) / np.mean([s.variance_sd for s in found])
        assert 0.5 < sd < 1.7


def test_the_variance_is_accurate_where_the_number_is_private():
    Y = vectors(5000)
    found = [find(Y, 1.0, seed, Adjacency.ADD_REMOVE) for seed in range(12)]
    errors = np.array([one.variance for one in found]) / Y.var(axis=0).sum() - 1
    assert np.sqrt((errors**2).mean()) < 0.04
    sd = np.std([one.variance for one in found]) / np.mean([s.variance_sd for s in found])
    assert 0.5 < sd < 1.7
    counted = np.array([(one.count.value - 5000) / one.count.sd for one in found])
    assert 0.4 < np.sqrt((counted**2).mean()) < 1.7


def test_the_bound_on_the_mean_covers_where_the_number_is_private():
    """Also where the number is off by much: it moves a mean far from the centre."""
    Y = vectors(150, heavy=True)
    found = [find(Y, 3.0, seed, Adjacency.ADD_REMOVE) for seed in range(150)]
    errors = [np.linalg.norm(one.y - Y.mean(axis=0)) for one in found]
    covered = [e <= one.bound.at() for e, one in zip(errors, found, strict=True)]
    assert np.mean(covered) >= 0.95
    assert any(one.count.seen for one in found)


def test_deviations_and_distances_are_near():
    Y = vectors(5000)
    found = find(Y, 2.0, 0)
    assert np.median(np.abs(found.deviations / Y.std(axis=0) - 1)) < 0.1
    assert (found.deviations**2).sum() == pytest.approx(found.variance)
    true = np.quantile(np.linalg.norm(Y - Y.mean(axis=0), axis=1), LEVELS)
    np.testing.assert_allclose(found.distances, true, rtol=0.15)
    assert (np.diff(found.distances) >= 0).all()


def test_heavy_tails_make_it_lower_and_what_was_taken_off_is_told():
    Y = vectors(20_000, heavy=True)
    found = [find(Y, 3.0, seed) for seed in range(8)]
    true = Y.var(axis=0).sum()
    assert np.mean([s.variance for s in found]) < true
    taken = np.mean([s.look.bias[1] for s in found])
    sd = found[0].look.sd[1] / np.sqrt(len(found))
    missing = true - np.mean([s.variance for s in found])
    assert taken == pytest.approx(missing, abs=0.5 * missing + 4 * sd)


def test_clipping_to_a_ball_never_raises_a_variance(rng):
    """What makes it a lower estimate."""
    for _ in range(50):
        Y = rng.standard_normal((100, 3)) ** 3
        center, radius = rng.standard_normal(3), rng.random() * 3
        Z = Y - center
        Z *= np.minimum(1.0, radius / np.linalg.norm(Z, axis=1))[:, None]
        assert Z.var(axis=0).sum() <= Y.var(axis=0).sum() * (1 + 1e-12)


def test_a_release_says_it_all_and_verifies(tmp_path):
    release = private_dispersion(matrices(vectors(3000)), **OPTIONS)
    assert list(release.values) == ["mean", "variance", "deviations", "distances"]
    assert release.value.shape == (4, 4)
    c = release.certificate
    assert c["statistic"] == "dispersion"
    assert c["private"] is True
    assert "lower estimates" in c["error_statement"]
    assert "lowered it by an estimated" in c["error_statement"]
    assert all(check.ok for check in release.verify()), release.verify()
    release.save(tmp_path / "out")
    again = Release.load(tmp_path / "out")
    assert float(again.values["variance"]) == float(release.values["variance"])
    assert again.population_bound() == release.population_bound()


def test_a_wrong_bound_for_the_population_does_not_verify():
    release = private_dispersion(matrices(vectors(1000)), random_state=0, **OPTIONS)
    for name, change in (("95%", 0.9), ("parts", None)):
        c = release.certificate
        if change is None:
            c["error_bound_population"]["parts"]["clipping_bias"] = 0.0
        else:
            c["error_bound_population"][name] *= change
        assert not all(check.ok for check in Release(release.values, c).verify())


@pytest.mark.parametrize("n", [2, 20, 200])
def test_few_records_are_no_error(n):
    release = private_dispersion(matrices(vectors(n)), anyway=True, random_state=0, **OPTIONS)
    assert all(np.isfinite(array).all() for array in release.values.values())
    assert float(release.values["variance"]) >= 0
    assert all(check.ok for check in release.verify())


def test_persons_are_the_unit_and_a_ledger_pays_once(tmp_path):
    X, ids = matrices(vectors(3000)), np.arange(3000) // 3
    ledger = Ledger(tmp_path / "a.ledger", epsilon=1.0, delta=1e-6)
    release = private_dispersion(X, groups=ids, ledger=ledger, **OPTIONS)
    assert (release.certificate["unit"], release.certificate["n"]) == ("person", 1000)
    assert len(ledger.history()) == 1
    means = vectors(3000).reshape(1000, 3, 10).mean(axis=1)
    assert float(release.values["variance"]) == pytest.approx(means.var(axis=0).sum(), rel=0.5)


# --- the population


def covered(n, epsilon, draws, kind):
    """How often the bound for the population's mean holds, or the one without
    sampling."""
    center, hits = np.linspace(-2.0, 2.0, 10), 0
    for seed in range(draws):
        found = find(vectors(n, seed=[n, seed], heavy=True), epsilon, seed)
        reach = found.bound.at()
        if kind == "population":
            reach = population_bound(found.bound, *found.sampling).at()
        hits += np.linalg.norm(found.y - center) <= reach
    return hits / draws


def test_the_bound_for_the_population_covers():
    assert covered(500, 30.0, 100, "population") >= 0.94


@pytest.mark.parametrize("d", [2, 3, 5, 20, 100])
def test_sampling_along_one_axis_is_the_worst_case(d, rng):
    """Beyond the point that the proof is for, which lies below the 95 % point."""
    for ratio in np.geomspace(1e-3, 1e3, 13):
        start = 2.83 * (2.0 + ratio) if d == 2 else d + 4.0 + 3.0 * ratio
        worst = along_one_axis(d, 1.0, ratio)
        squares = start * np.array([1.0, 1.5, 2.0])
        most = weighted_tails(worst, squares)
        assert most[0] > 0.05
        for _ in range(4):
            part = rng.dirichlet(np.full(d, rng.choice([0.1, 1.0, 10.0])))
            assert (weighted_tails(1.0 + ratio * part, squares) <= most + 1e-5).all()


def beyond(d, ratio, level):
    """Most that laws of several axes have beyond the point of one axis at a level."""
    worst = along_one_axis(d, 1.0, ratio)
    (reach,) = noise_quantiles(weighted_chi2(worst), np.array([1.0 - level]))
    squares = reach**2 * np.array([1.0, 1.1])
    laws = [
        1.0 + ratio * np.append(np.full(m, 1.0 / m), np.zeros(d - m)) for m in {2, min(4, d), d}
    ]
    return max(weighted_tails(law, squares)[0] for law in laws)


@pytest.mark.parametrize("d", [2, 3, 5, 20, 100])
def test_it_is_the_worst_case_at_every_confidence_that_is_allowed(d):
    for ratio in np.geomspace(1e-3, 1e3, 13):
        for level in (POPULATION_FROM, 0.92, 0.95):
            assert beyond(d, ratio, level) <= 1.0 - level + 1e-5


def test_it_is_not_the_worst_case_at_confidences_that_are_refused():
    assert beyond(20, 1e3, 0.65) > 0.4
    release = private_dispersion(matrices(vectors(500)), random_state=0, **OPTIONS)
    assert release.population_bound(POPULATION_FROM) <= release.population_bound(0.95)
    for level in (0.89, 0.65, 0.5):
        with pytest.raises(ParameterError, match=r"at least 0\.9 .*population"):
            release.population_bound(level)


def test_without_the_part_of_sampling_it_would_not_cover():
    assert covered(500, 200.0, 60, "records") < 0.8
    assert covered(500, 200.0, 60, "population") >= 0.94


def test_a_mean_alone_says_nothing_of_the_population():
    release = private_mean(matrices(vectors(500)), random_state=0, **OPTIONS)
    with pytest.raises(AttributeError, match="private_dispersion"):
        release.population_bound()


# --- the audit


def statistic(domain, epsilon, ids=None, adjacency="replace-one"):
    def run(X):
        whose = None if ids is None else ids[len(ids) - len(X) :]
        options = {"on_invalid": "center", "groups": whose, "adjacency": adjacency, "anyway": True}
        return private_dispersion(X, epsilon=epsilon, delta=1e-6, domain=domain, **options)

    return run


def transcripts(count, seed, persons=False, removed=False):
    rng = np.random.default_rng(seed)
    shares = []
    for i in range(count):
        k, radius = int(rng.integers(1, 4)), float(rng.choice([0.5, 5.0]))
        domain = (Ball(radius), EigenvalueBounds(np.exp(-radius), np.exp(radius)))[i % 2]
        X, other = datasets(rng, k, radius)
        ids = None
        if persons:
            ids = np.maximum(np.arange(len(X)) - 2, 0) // 2
            other[ids == 0] = other[0]
        epsilon, adjacency = float(rng.choice([1.0, 10.0, 60.0])), "replace-one"
        if removed:  # the first record, or the first person's
            other, adjacency = X[1 if ids is None else (ids == 0).sum() :], "add-remove"
        shares.append(audit(statistic(domain, epsilon, ids, adjacency), X, other, seed=i))
    return np.array(shares)


def test_replayed_neighbours_cost_no_more_than_the_budget():
    shares = transcripts(150, 1)
    assert 0.9 < shares.max() <= 1


def test_replayed_persons_cost_no_more_than_the_budget():
    assert transcripts(60, 2, persons=True).max() <= 1


@pytest.mark.parametrize("query", [SquaredNormSum, AbsoluteSum, Histogram, ClippingBias])
def test_a_halved_sensitivity_is_caught(monkeypatch, query):
    honest = query.sensitivity
    monkeypatch.setattr(query, "sensitivity", lambda self, adjacency: honest(self, adjacency) // 2)
    with pytest.raises(Caught, match="more than its stated sensitivity"):
        transcripts(150, 3)


@pytest.mark.parametrize("persons", [False, True])
def test_a_record_or_person_added_or_removed_passes(persons):
    shares = transcripts(100, 4, persons, removed=True)
    assert 0.5 < shares.max() <= 1


def test_a_halved_sensitivity_is_caught_where_the_number_is_private(monkeypatch):
    honest = SquaredNormSum.sensitivity
    monkeypatch.setattr(SquaredNormSum, "sensitivity", lambda self, kind: honest(self, kind) // 2)
    with pytest.raises(Caught, match="more than its stated sensitivity"):
        transcripts(150, 5, removed=True)


@pytest.mark.parametrize("n", [0, 1, 2, 3000])
def test_none_is_no_error_where_the_number_is_private(n):
    """None and one must not be told apart by an exception."""
    X = matrices(vectors(n))
    release = private_dispersion(X, adjacency="add-remove", random_state=0, **OPTIONS)
    assert all(check.ok for check in release.verify()), release.verify()
    assert release.certificate["n"] is None
    c = release.certificate
    c["n_estimate"] *= 2
    assert not all(check.ok for check in Release(release.values, c).verify())
