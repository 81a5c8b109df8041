"""Every statistic is put to the replay audit, and the audit to planted errors."""

from fractions import Fraction

import numpy as np
import pytest
from replay import Caught, audit, datasets

from spdp import (
    Ball,
    CorrelationBounds,
    EigenvalueBounds,
    RiemannianLaplace,
    TangentGaussian,
    TraceBounds,
    private_mean,
)
from spdp.charts import CHARTS, chart_of
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
from spdp.statistics.search import Search
from spdp.statistics.search import run as steps


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


def transcripts(count, seed, options, budgets=(0.1, 1.0, 10.0, 60.0), metric=None):
    """Costs of ``count`` replayed pairs, as shares of their budgets."""
    rng = np.random.default_rng(seed)
    shares = []
    for i in range(count):
        smallest = 2 if metric == "offlog" else 1
        k, radius = int(rng.integers(smallest, 4)), float(rng.choice([0.5, 5.0]))
        seen = {"metric": metric or "logeuclid"}
        if metric == "whitened":
            seen = {"reference_point": np.diag(np.exp(rng.uniform(-1, 1, k)))}
        X, other = datasets(rng, k, radius, chart_of(**{"metric": "logeuclid", **seen}))
        domain = DOMAINS[i % (2 if metric == "logchol" else 3)](radius, k)
        if metric == "offlog" and i % 3 == 2:
            domain = CorrelationBounds(float(np.exp(-radius)))
        epsilon = rng.choice(budgets)
        shares.append(audit(means(domain, epsilon, **options, **seen), X, other, seed=i))
    return np.array(shares)


DOMAINS = (
    lambda radius, k: Ball(radius),
    lambda radius, k: EigenvalueBounds(np.exp(-radius), np.exp(radius)),
    lambda radius, k: TraceBounds(np.exp(-radius), k * np.exp(radius)),
)


@pytest.mark.parametrize("name", STATISTICS)
def test_means_pass(name):
    shares = transcripts(400 if name == "adaptive" else 200, 7, STATISTICS[name])
    assert shares.max() <= 1
    # the neighbours are near the worst case: the audit can see
    assert shares.max() > 0.9


@pytest.mark.parametrize("metric", [*sorted(set(CHARTS) - {"logeuclid"}), "whitened"])
@pytest.mark.parametrize("name", STATISTICS)
def test_means_in_every_metric_pass(name, metric):
    shares = transcripts(60, 31, STATISTICS[name], metric=metric)
    assert 0.8 < shares.max() <= 1


@pytest.mark.audit
@pytest.mark.parametrize("name", STATISTICS)
def test_means_pass_thousands_of_times(name):
    shares = transcripts(2000, 11, STATISTICS[name])
    print(f"{name}: {len(shares)} transcripts, largest cost {shares.max():.9f} of the budget")
    assert shares.max() <= 1


def test_a_search_that_looks_at_a_part_of_the_records_passes(monkeypatch):
    """Every so many-th record, by public numbers; blocks small and not all kept."""
    monkeypatch.setattr(steps, "CLEAR_ENOUGH", 4.0)
    monkeypatch.setattr(source, "BLOCK_BYTES", 300)
    options = {"method": "adaptive"}
    assert transcripts(150, 23, options, budgets=(10.0, 60.0)).max() <= 1
    monkeypatch.setattr(engine_base, "KEEP_BYTES", 125)
    assert transcripts(150, 29, options, budgets=(10.0, 60.0)).max() <= 1


def test_add_remove_passes():
    rng = np.random.default_rng(3)
    for i in range(200):
        k = int(rng.integers(1, 4))
        X, _ = datasets(rng, k, 2.0)
        for mechanism in ("gaussian", "laplace"):
            statistic = means(Ball(2.0), 1.0, adjacency="add-remove", mechanism=mechanism)
            audit(statistic, X, X[1:], seed=i)


# --- persons
# ---------------------------------------------------------------------------------


def studies(rng, k, radius):
    """Records of persons, and a neighbour in which one person's records are others.

    The person may have any number of records before and after, and another id; the
    order of all records is another one, too.
    """
    X, other = datasets(rng, k, radius)
    times = rng.integers(1, 5, len(X))
    ids = np.repeat(np.arange(len(X)), times)
    before, after = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    mine = {**dict(enumerate(np.split(np.arange(len(ids)), np.cumsum(times)[:-1])))}
    keep = np.concatenate([mine[i] for i in range(1, len(X))])
    data = np.concatenate([np.repeat(X[:1], before, axis=0), X[ids[keep]]])
    neighbour = np.concatenate([np.repeat(other[:1], after, axis=0), X[ids[keep]]])
    people = np.concatenate([np.zeros(before, int), ids[keep]])
    renamed = np.concatenate([np.full(after, 10**6), ids[keep]])
    order = rng.permutation(len(renamed))
    return (data, people), (neighbour[order], renamed[order]), (X[ids[keep]], ids[keep])


def person_means(domain, epsilon, **options):
    def statistic(data):
        X, ids = data
        return private_mean(
            X,
            groups=ids,
            epsilon=epsilon,
            delta=1e-6,
            domain=domain,
            on_invalid="center",
            **options,
        )

    return statistic


PERSON_STATISTICS = {
    **STATISTICS,
    "by records": {"weights": "records", "max_records": 3, "mechanism": "gaussian"},
    "by records, pure": {"weights": "records", "max_records": 3, "mechanism": "laplace"},
}


def person_transcripts(count, seed, options):
    rng = np.random.default_rng(seed)
    shares = []
    for i in range(count):
        k, radius = int(rng.integers(1, 4)), float(rng.choice([0.5, 5.0]))
        domain = (Ball(radius), EigenvalueBounds(np.exp(-radius), np.exp(radius)))[i % 2]
        data, neighbour, _ = studies(rng, k, radius)
        statistic = person_means(domain, rng.choice((0.1, 1.0, 10.0, 60.0)), **options)
        shares.append(audit(statistic, data, neighbour, seed=i))
    return np.array(shares)


@pytest.mark.parametrize("name", PERSON_STATISTICS)
def test_persons_with_all_their_records_pass(name):
    shares = person_transcripts(150, 13, PERSON_STATISTICS[name])
    assert shares.max() <= 1
    assert shares.max() > 0.8


@pytest.mark.audit
@pytest.mark.parametrize("name", PERSON_STATISTICS)
def test_persons_pass_thousands_of_times(name):
    shares = person_transcripts(2000, 17, PERSON_STATISTICS[name])
    print(f"{name}, persons: {len(shares)} transcripts, largest cost {shares.max():.9f}")
    assert shares.max() <= 1


@pytest.mark.parametrize("weighted", [False, True])
def test_a_person_added_or_removed_passes(weighted):
    rng = np.random.default_rng(19)
    weights = {"weights": "records", "max_records": 2} if weighted else {}
    for i in range(150):
        data, _, without = studies(rng, int(rng.integers(1, 4)), 2.0)
        for mechanism in ("gaussian", "laplace"):
            options = {"adjacency": "add-remove", "mechanism": mechanism, **weights}
            audit(person_means(Ball(2.0), 1.0, **options), data, without, seed=i)


def test_a_record_counted_as_a_person_is_caught():
    """Without groups, a person's five records move the sum five times as far."""
    X = np.tile(np.eye(2), (30, 1, 1))
    data, neighbour = (X.copy() for _ in range(2))
    data[:5], neighbour[:5] = np.exp(1.0) * np.eye(2), np.exp(-1.0) * np.eye(2)
    statistic = means(Ball(2.0), 1.0, method="oneshot", mechanism="gaussian")
    with pytest.raises(Caught, match="more than its stated sensitivity"):
        audit(statistic, data, neighbour)


@pytest.mark.parametrize("options", [{"method": "oneshot"}, {"method": "adaptive"}])
def test_several_matrices_per_record_pass(options):
    rng = np.random.default_rng(23)
    for i in range(60):
        X, other = datasets(rng, 2, 2.0)
        pairs = [np.stack([Z, Z[::-1]], axis=1) for Z in (X, other)]
        pairs[1][1:] = pairs[0][1:]
        statistic = means(Ball(2.0), rng.choice((1.0, 60.0)), mechanism="gaussian", **options)
        audit(statistic, *pairs, seed=i)


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
    with pytest.raises(Caught, match="cost"):
        search_with(monkeypatch)


def test_the_budget_of_a_transcript_is_used_up():
    """The adaptive mean spends what it was given, to the last bit but a few."""
    X, _ = datasets(np.random.default_rng(1), 2, 2.0)
    release = means(Ball(2.0), 5.0, method="adaptive")(X)
    c = release.certificate
    spent = sum(Fraction(step["mu"]) ** 2 for step in c["steps"])
    assert 1 - 1e-12 < float(spent / Fraction(c["mu"]) ** 2) <= 1
