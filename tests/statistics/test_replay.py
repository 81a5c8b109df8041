"""Every statistic is put to the replay audit, and the audit to planted errors."""

from fractions import Fraction

import numpy as np
import pytest
from replay import Caught, audit, datasets

from spdp import (
    Ball,
    EigenvalueBounds,
    RiemannianLaplace,
    TangentGaussian,
    TraceBounds,
    private_mean,
)
from spdp.data import source
from spdp.engines import base as engine_base
from spdp.frame import Frame
from spdp.privacy.account import Account
from spdp.queries import (
    AbsoluteSum,
    CorrelationSum,
    DistanceSum,
    ExcessSum,
    Histogram,
    VectorSum,
)
from spdp.statistics.search import Search, state


def means(domain, epsilon, **options):
    def statistic(X):
        return private_mean(
            X, epsilon=epsilon, delta=1e-6, domain=domain, on_invalid="center", **options
        )

    return statistic


STATISTICS = {
    "one shot": {"method": "oneshot", "mechanism": "gaussian"},
    "pure": {"method": "oneshot", "mechanism": "laplace"},
    "adaptive": {"method": "adaptive"},
    "auto": {},
}


def transcripts(count, seed, options, budgets=(0.1, 1.0, 10.0, 60.0)):
    """Costs of ``count`` replayed pairs, as shares of their budgets."""
    rng = np.random.default_rng(seed)
    shares = []
    for i in range(count):
        k, radius = int(rng.integers(1, 4)), float(rng.choice([0.5, 5.0]))
        low, high = np.exp(-radius), np.exp(radius)
        domain = (Ball(radius), EigenvalueBounds(low, high), TraceBounds(low, k * high))[i % 3]
        X, other = datasets(rng, k, radius)
        shares.append(audit(means(domain, rng.choice(budgets), **options), X, other, seed=i))
    return np.array(shares)


@pytest.mark.parametrize("name", STATISTICS)
def test_means_pass(name):
    shares = transcripts(400 if name == "adaptive" else 200, 7, STATISTICS[name])
    assert shares.max() <= 1
    # the neighbours are near the worst case: the audit can see
    assert shares.max() > 0.9


@pytest.mark.audit
@pytest.mark.parametrize("name", STATISTICS)
def test_means_pass_thousands_of_times(name):
    shares = transcripts(2000, 11, STATISTICS[name])
    print(f"{name}: {len(shares)} transcripts, largest cost {shares.max():.9f} of the budget")
    assert shares.max() <= 1


def test_a_search_that_looks_at_a_part_of_the_records_passes(monkeypatch):
    """Every so many-th record, by public numbers; blocks small and not all kept."""
    monkeypatch.setattr(state, "SHARP_ENOUGH", 4.0)
    monkeypatch.setattr(source, "BLOCK_BYTES", 300)
    options = {"method": "adaptive"}
    assert transcripts(150, 23, options, budgets=(10.0, 60.0)).max() <= 1
    monkeypatch.setattr(engine_base, "KEEP_BYTES", 500)
    assert transcripts(150, 29, options, budgets=(10.0, 60.0)).max() <= 1


def test_add_remove_passes():
    rng = np.random.default_rng(3)
    for i in range(200):
        k = int(rng.integers(1, 4))
        X, _ = datasets(rng, k, 2.0)
        for mechanism in ("gaussian", "laplace"):
            statistic = means(Ball(2.0), 1.0, adjacency="add-remove", mechanism=mechanism)
            audit(statistic, X, X[1:], seed=i)


@pytest.mark.parametrize(
    "mechanism", [TangentGaussian(0.3, 1.0, 1e-6), RiemannianLaplace(0.3, 1.0)]
)
def test_stated_summaries_pass_at_their_sensitivity_and_not_beyond(mechanism):
    def release(summary):
        return mechanism.release(summary)

    a, b = np.eye(2), np.diag([np.exp(0.3), 1.0])
    assert 0.999 < audit(release, a, b) <= 1
    with pytest.raises(Caught, match="more than its stated sensitivity"):
        audit(release, a, np.diag([np.exp(0.301), 1.0]))


# --- planted errors
# --------------------------------------------------------------------


def search_with(monkeypatch, seed=5, count=60):
    """Replays of the adaptive mean, whatever was planted."""
    return transcripts(count, seed, {"method": "adaptive"}, budgets=(10.0, 60.0))


QUERIES = [VectorSum, AbsoluteSum, Histogram, DistanceSum, ExcessSum, CorrelationSum]


@pytest.mark.parametrize("query", QUERIES)
def test_a_halved_sensitivity_is_caught(monkeypatch, query):
    honest = query.sensitivity
    monkeypatch.setattr(query, "sensitivity", lambda self, adjacency: honest(self, adjacency) // 2)
    with pytest.raises(Caught, match="more than its stated sensitivity"):
        search_with(monkeypatch, count=200)


def test_an_unnoised_number_that_steers_is_caught(monkeypatch):
    honest = Search.find_radius

    def peeking(self):
        exact = self.held.total(VectorSum("", self.frame, self.radius))
        radius, loss = honest(self)
        return radius * (1.0 + 1e-12 * float(exact[0] % 1000)), loss

    monkeypatch.setattr(Search, "find_radius", peeking)
    with pytest.raises(Caught, match="steered"):
        search_with(monkeypatch)


def test_an_unnoised_number_that_is_published_is_caught(monkeypatch):
    honest = Search.run

    def telling(self):
        found = honest(self)
        norms = self.held.total(VectorSum("", Frame.plain(self.home), self.far))
        self.account.note(checksum=int(norms.sum()))
        return found

    monkeypatch.setattr(Search, "run", telling)
    with pytest.raises(Caught, match="published"):
        search_with(monkeypatch)


def test_a_step_that_is_not_charged_is_caught(monkeypatch):
    honest = Account.measure

    def forgetful(self, query, exact, *args, **released):
        spent = self._spent
        answer = honest(self, query, exact, *args, **released)
        if query.name == "distance":
            self._spent = spent
        return answer

    monkeypatch.setattr(Account, "measure", forgetful)
    with pytest.raises(Caught, match="stated sensitivities cost more"):
        search_with(monkeypatch)


def test_half_the_noise_is_caught(monkeypatch):
    from spdp.privacy import account

    honest = account.lattice_scale
    monkeypatch.setattr(account, "lattice_scale", lambda s, mu: honest(s, mu) / 2)
    monkeypatch.setattr(account, "price", lambda s, scale: 1e-3)
    with pytest.raises(Caught, match="cost"):
        search_with(monkeypatch)


def test_the_budget_of_a_transcript_is_used_up():
    """The adaptive mean spends what it was given, to the last bit but a few."""
    X, _ = datasets(np.random.default_rng(1), 2, 2.0)
    release = means(Ball(2.0), 5.0, method="adaptive")(X)
    c = release.certificate
    spent = sum(Fraction(step["mu"]) ** 2 for step in c["steps"])
    assert 1 - 1e-12 < float(spent / Fraction(c["mu"]) ** 2) <= 1
