"""Every statistic is put to the replay audit, and the audit to planted errors."""

import pkgutil
import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib import import_module
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest
from replay import Caught, Uncovered, audit, covered, datasets, replays

import spdp.statistics
from spdp import (
    Ball,
    CorrelationBounds,
    EigenvalueBounds,
    RiemannianLaplace,
    TangentGaussian,
    TraceBounds,
    private_mean,
)
from spdp.adaptive import TUNING, MeanSearch, Search
from spdp.charts import CHARTS, chart_of
from spdp.data import source
from spdp.engines import base as engine_base
from spdp.privacy.account import Account
from spdp.queries import Query
from spdp.queries.moments import CorrelationSum
from spdp.queries.sums import AbsoluteSum, ClippingBias, DistanceSum, Frame, Histogram, VectorSum
from spdp.statistics.base import Statistic
from spdp.statistics.median import Median
from spdp.statistics.options import option


def means(domain, epsilon, **options):
    def statistic(X):
        return private_mean(
            X,
            epsilon=epsilon,
            delta=1e-6,
            domain=domain,
            on_invalid="center",
            anyway=True,
            **options,
        )

    return statistic


STATISTICS = {
    "one shot": {"method": "oneshot", "mechanism": "gaussian"},
    "pure": {"method": "oneshot", "mechanism": "laplace"},
    "adaptive": {"method": "adaptive", "mechanism": "gaussian"},
    "pure search": {"method": "adaptive", "mechanism": "laplace"},
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
        X, other = datasets(
            rng, k, radius, chart_of(**{"metric": "logeuclid", **seen}, curved=True)
        )
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
    searches = STATISTICS[name].get("method") == "adaptive"
    shares = transcripts(150 if searches else 100, 7, STATISTICS[name])
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
    monkeypatch.setattr(Search, "tuning", replace(TUNING, clear_enough=4.0))
    monkeypatch.setattr(source, "BLOCK_BYTES", 300)
    options = STATISTICS["adaptive"]
    assert transcripts(150, 23, options, budgets=(10.0, 60.0)).max() <= 1
    monkeypatch.setattr(engine_base, "KEEP_BYTES", 125)
    assert transcripts(150, 29, options, budgets=(10.0, 60.0)).max() <= 1


def add_remove_costs(count, options):
    """Costs of ``count`` replayed pairs of which one has a record less."""
    rng, costs = np.random.default_rng(3), []
    for i in range(count):
        k, epsilon = int(rng.integers(1, 4)), float(rng.choice([1.0, 10.0, 60.0]))
        X, _ = datasets(rng, k, 2.0)
        statistic = means(Ball(2.0), epsilon, adjacency="add-remove", **options)
        pair = (X, X[1:]) if rng.random() < 0.5 else (X[1:], X)
        costs.append(audit(statistic, *pair, seed=i))
    return np.array(costs)


@pytest.mark.parametrize("name", STATISTICS)
def test_add_remove_passes(name):
    """No records at all are a neighbour of one."""
    assert 0.9 < add_remove_costs(80, STATISTICS[name]).max() <= 1


@pytest.mark.parametrize("metric", ["logeuclid", "riemann"])
@pytest.mark.parametrize("name", ["adaptive", "pure search"])
def test_a_record_more_that_does_not_fit_into_memory_shows_nowhere(name, metric, monkeypatch):
    """One dataset fits, its neighbour does not; float64 hardly holds the records."""
    monkeypatch.setattr(engine_base, "IN_MEMORY", 1)
    rng = np.random.default_rng(17)
    options = STATISTICS[name] | {"metric": metric, "adjacency": "add-remove"}
    spectra = np.repeat([[9.0, -9.0], [-9.0, 9.0]], [1500, 200], axis=0)
    angle = np.array([0.0, *rng.uniform(0, np.pi, 2)])
    for i, turn in enumerate(angle):
        V = np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
        X = (V * np.exp(spectra)[:, None, :]) @ V.T
        X = 0.5 * (X + X.transpose(0, 2, 1))
        monkeypatch.setattr(engine_base, "KEEP_BYTES", (len(X) - 1) * 8 * 3)
        assert audit(means(Ball(13.5), 8.0, **options), X[:-1], X, seed=i) <= 1


@pytest.mark.audit
@pytest.mark.parametrize("name", STATISTICS)
def test_add_remove_passes_thousands_of_times(name):
    costs = add_remove_costs(2000, STATISTICS[name])
    print(f"{name}, add-remove: {len(costs)} transcripts, largest cost {costs.max():.9f}")
    assert costs.max() <= 1


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
            anyway=True,
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
    shares = person_transcripts(60, 14, PERSON_STATISTICS[name])
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
    for i in range(60):
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


# --- every statistic that is registered, as it is declared
# --------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("grouped", [False, True], ids=["record", "person"])
@pytest.mark.parametrize("name", spdp.statistics.STATISTICS)
def test_every_statistic_passes(name, grouped, adjacency):
    count, seed = (40, 3) if adjacency == "replace-one" else (25, 5)
    shares = replays(covered()[name], count, seed, grouped, adjacency)
    assert 0.1 < shares.max() <= 1


@pytest.mark.audit
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize("grouped", [False, True], ids=["record", "person"])
@pytest.mark.parametrize("name", spdp.statistics.STATISTICS)
def test_every_statistic_passes_hundreds_of_times(name, grouped, adjacency):
    shares = replays(covered()[name], 400, 13, grouped, adjacency)
    print(f"{name}, {grouped=}, {adjacency}: largest cost {shares.max():.6f} of the budget")
    assert shares.max() <= 1


def halved(honest):
    return lambda self, kind: honest(self, kind) // 2


def kinds_of(kind):
    return [kind, *(more for one in kind.__subclasses__() for more in kinds_of(one))]


@pytest.mark.parametrize("name", spdp.statistics.STATISTICS)
def test_halved_sensitivities_of_every_statistic_are_caught(monkeypatch, name):
    for query in kinds_of(Query):
        if honest := vars(query).get("sensitivity"):
            monkeypatch.setattr(query, "sensitivity", halved(honest))
    with pytest.raises(Caught, match="more than its stated sensitivity"):
        replays(covered()[name], 80, 3)


def test_no_statistic_is_left_out_of_the_table():
    """What a module declares is audited only if the table names it."""
    modules = [m.name for m in pkgutil.iter_modules(spdp.statistics.__path__)]
    here = {name: import_module(f"spdp.statistics.{name}") for name in modules}
    declared = {name for name, module in here.items() if hasattr(module, "STATISTIC")}
    assert declared == set(map(spdp.statistics.module_of, spdp.statistics.STATISTICS))
    made = {type(statistic) for statistic in spdp.statistics.every()}
    named = {kind for kind in kinds_of(Statistic) if "name" in vars(kind)}
    assert {kind for kind in named if kind.__module__.startswith("spdp.")} == made


@pytest.fixture
def register(monkeypatch):
    """Put a toy into the table, as a module of its own would be."""
    spdp.statistics.find.cache_clear()

    def put(statistic):
        module = ModuleType("spdp.statistics.toy")
        module.STATISTIC = statistic
        monkeypatch.setitem(sys.modules, module.__name__, module)
        monkeypatch.setattr(spdp.statistics, "STATISTICS", (*spdp.statistics.STATISTICS, "toy"))

    yield put
    spdp.statistics.find.cache_clear()


@dataclass(frozen=True, eq=False)
class Toy(Median):
    """A median by another name."""

    name: ClassVar = "toy"


@dataclass(frozen=True, eq=False)
class Telling(Toy):
    """One that steers by an exact number."""

    def run(self, context):
        store = context.gather()
        query = VectorSum("", Frame.plain(context.space.region.center), 1.0)
        outcome = super().run(context)
        outcome.vectors["median"] = outcome.vectors["median"] + 1e-3 * (store.total(query)[0] % 5)
        return outcome


@dataclass(frozen=True, eq=False)
class Weathered(Toy):
    """One with a column that the audit has not heard of."""

    columns: ClassVar = ("weather",)


@dataclass(frozen=True, eq=False)
class Unlisted(Toy):
    """One of labels that does not declare its classes."""

    columns: ClassVar = ("label",)


@dataclass(frozen=True, eq=False)
class Silent(Toy):
    """One with an option that must be given, and no example of it."""

    level: float | None = option("A level.", None, kind=float, required=True)


def test_a_statistic_that_is_registered_is_audited(register):
    register(Toy())
    assert 0.1 < replays(covered()["toy"], 10, 3).max() <= 1
    register(Telling())
    spdp.statistics.find.cache_clear()
    with pytest.raises(Caught, match="published"):
        replays(covered()["toy"], 10, 3)


@pytest.mark.parametrize("toy", [Weathered(), Unlisted(), Silent()])
def test_a_statistic_that_the_audit_cannot_run_is_an_error(register, toy):
    register(toy)
    with pytest.raises(Uncovered, match="toy"):
        covered()


# --- planted errors
# --------------------------------------------------------------------


def search_with(monkeypatch, seed=5, count=60):
    """Replays of the adaptive mean, whatever was planted."""
    return transcripts(count, seed, STATISTICS["adaptive"], budgets=(10.0, 60.0))


QUERIES = [VectorSum, AbsoluteSum, Histogram, DistanceSum, ClippingBias, CorrelationSum]


@pytest.mark.parametrize("query", QUERIES)
def test_a_halved_sensitivity_is_caught(monkeypatch, query):
    honest = query.sensitivity
    monkeypatch.setattr(query, "sensitivity", lambda self, adjacency: honest(self, adjacency) // 2)
    with pytest.raises(Caught, match="more than its stated sensitivity"):
        search_with(monkeypatch, count=200)


def test_an_unnoised_number_that_steers_is_caught(monkeypatch):
    honest = MeanSearch.guarded

    def peeking(self, radius, loss):
        s = self.search
        exact = s.store.total(VectorSum("", s.frame, s.radius))
        return honest(self, radius * (1.0 + 1e-12 * float(exact[0] % 1000)), loss)

    monkeypatch.setattr(MeanSearch, "guarded", peeking)
    with pytest.raises(Caught, match="steered"):
        search_with(monkeypatch)


def test_an_unnoised_number_that_is_published_is_caught(monkeypatch):
    honest = MeanSearch.run

    def telling(self):
        found, s = honest(self), self.search
        norms = s.store.total(VectorSum("", Frame.plain(s.domain_center), s.domain_radius))
        s.account.steps[-1].center[0] = float(norms.sum())
        return found

    monkeypatch.setattr(MeanSearch, "run", telling)
    with pytest.raises(Caught, match="published"):
        search_with(monkeypatch)


def test_a_step_that_is_not_charged_is_caught(monkeypatch):
    honest = Account.ask

    def forgetful(self, query, *args, **options):
        spent, left = self._spent, self.left
        answer = honest(self, query, *args, **options)
        if query.name == "distance":
            self._spent, self.left = spent, left
        return answer

    monkeypatch.setattr(Account, "ask", forgetful)
    with pytest.raises(Caught, match="stated sensitivities cost more"):
        search_with(monkeypatch)


def test_noise_for_less_than_the_query_s_own_sensitivity_is_caught(monkeypatch):
    honest = Account.ask

    def stingy(self, query, *args, **options):
        half = query.sensitivity(self.adjacency) // 2
        with monkeypatch.context() as patch:
            patch.setattr(type(query), "sensitivity", lambda *_: half)
            return honest(self, query, *args, **options)

    monkeypatch.setattr(Account, "ask", stingy)
    with pytest.raises(Caught, match="not for the query's sensitivity"):
        search_with(monkeypatch)


def test_half_the_noise_is_caught(monkeypatch):
    from spdp.privacy import account

    honest = account.lattice_scale
    monkeypatch.setattr(account, "lattice_scale", lambda s, mu: honest(s, mu) / 2)
    with pytest.raises(Caught, match="cost"):
        search_with(monkeypatch)


@pytest.mark.parametrize(("mechanism", "power"), [("gaussian", 2), ("laplace", 1)])
def test_the_budget_of_a_transcript_is_used_up(mechanism, power):
    """The adaptive mean spends what it was given, to the last bit but a few."""
    X, _ = datasets(np.random.default_rng(1), 2, 2.0)
    c = means(Ball(2.0), 50.0, method="adaptive", mechanism=mechanism)(X).certificate
    price = "mu" if power == 2 else "epsilon"
    spent = sum(Fraction(step[price]) ** power for step in c["steps"])
    assert len(c["steps"]) > 3
    assert 1 - 1e-12 < float(spent / Fraction(c[price]) ** power) <= 1
