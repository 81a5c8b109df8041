"""private_mean(metric="riemann"): what it releases, from where, and what it states."""

import json

import numpy as np
import pytest
from pyriemann.tangentspace import TangentSpace

from spdp import (
    Ball,
    EigenvalueBounds,
    PrivateFrechetMean,
    Release,
    TraceBounds,
    plan,
    private_mean,
    private_pca,
)
from spdp.adaptive import MovingSearch
from spdp.data import open_records
from spdp.engines import base as engine_base
from spdp.error.bound import Bound
from spdp.errors import ParameterError, Uninformative
from spdp.geometry import (
    distance_riemann,
    expm,
    geodesic_riemann,
    invvecd,
    mean_logeuclid,
    mean_riemann,
)
from spdp.kernels.vecd import dimension
from spdp.statistics.partial_sums import LatticeSum

DOMAIN = EigenvalueBounds(1e-3, 1e3)
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN}
pytestmark = pytest.mark.filterwarnings("ignore::spdp.errors.UninformativeRelease")


def records(n, k, spread=1.0, condition=10.0, seed=0):
    """Records of this rms distance from a matrix of this condition number."""
    rng = np.random.default_rng(seed)
    d = dimension(k)
    S = rng.standard_normal((n, d)) * spread / np.sqrt(d)
    Q = np.linalg.qr(rng.standard_normal((k, k)))[0]
    root = (Q * np.sqrt(np.geomspace(1.0, condition, k))) @ Q.T
    X = root @ expm(invvecd(S)) @ root
    return 0.5 * (X + X.transpose(0, 2, 1))


def released(X, seed=0, **options):
    return private_mean(X, metric="riemann", random_state=seed, **{**BUDGET, **options})


def verifies(release):
    return all(check.ok for check in release.verify())


def names(release):
    return [step["step"] for step in release.certificate["steps"]]


KINDS = {  # what runs: records, options, and what is asked last
    "shape, Newton": (records(6000, 5, 2.0), {}, ["center", "tail", "clipping bias", "mean"]),
    "ball": (records(120, 3), {"mechanism": "gaussian", "method": "adaptive"}, ["mean"]),
    "noise only": (records(30, 5), {}, ["mean"]),
    "pure": (records(3000, 3), {"delta": 0.0}, ["clipping bias", "mean"]),
    "one step": (records(30, 3), {"method": "oneshot"}, ["mean"]),
    "two steps": (records(3000, 3), {"method": "oneshot"}, ["center", "mean"]),
    "filled": (
        records(20_000, 3, 1.5),
        {"domain": Ball(1.6), "mechanism": "gaussian", "method": "adaptive"},
        ["mean"],
    ),
    "persons": (records(3000, 3), {"groups": np.arange(3000) // 2}, ["mean"]),
    "private number": (records(3000, 5), {"adjacency": "add-remove"}, ["mean"]),
    "seen from a point": (
        records(3000, 3),
        {"reference_point": np.diag([1.0, 2.0, 5.0])},
        ["mean"],
    ),
    "a ball about a matrix": (
        records(3000, 3),
        {"domain": Ball(6.0, np.diag([1.0, 2.0, 5.0]))},
        [],
    ),
    "a trace": (records(3000, 3), {"domain": TraceBounds(1e-3, 1e3)}, ["mean"]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_releases_verify_cover_and_are_read_again(kind, tmp_path):
    X, options, last = KINDS[kind]
    release = released(X, **options)
    assert verifies(release), [check for check in release.verify() if not check.ok]
    assert names(release)[len(names(release)) - len(last) :] == last
    domain = options.get("domain", DOMAIN)
    if options.get("reference_point") is None and domain is DOMAIN and "groups" not in options:
        error = float(distance_riemann(release.value, mean_riemann(X)))
        assert error <= release.error_bound(0.95)
    certificate = release.certificate
    assert certificate["metric"] == "riemann"
    assert certificate["distance"] == "affine-invariant"
    assert "affine-invariant Fréchet mean" in certificate["estimand"]
    assert "curvature" in certificate["error_statement"]
    bounds = [release.error_bound(c) for c in (0.5, 0.9, 0.95, 0.99)]
    assert bounds == sorted(bounds)
    release.save(tmp_path / "release")
    assert verifies(Release.load(tmp_path / "release"))


def forged(release, change):
    """A certificate changed by somebody who computes the bound anew."""
    content = json.loads(json.dumps(release.certificate))
    change(content)
    content["error_bound"] = Bound.read(content["error_bound_parts"]).stated()
    return Release(release.values, content)


FORGERIES = {
    "reach": lambda c: c["error_bound_parts"]["curvature"].update(reach=0.01),
    "step": lambda c: c["error_bound_parts"]["curvature"].update(step=0.0, along=0.0),
    "length": lambda c: c["error_bound_parts"]["curvature"].update(length=0.0),
    "along": lambda c: c["error_bound_parts"]["curvature"].update(along=5.0),
    "none": lambda c: c["error_bound_parts"].update(curvature=None),
    "point": lambda c: c["steps"][-1].update(point=[0.0] * len(c["steps"][-1]["point"])),
    "no point": lambda c: c["steps"][-1].pop("point"),
    "another metric": lambda c: c.update(metric="logeuclid", distance="log-Euclidean"),
}


@pytest.mark.parametrize("what", FORGERIES)
def test_forged_curvature_is_found(what):
    release = released(*KINDS["shape, Newton"][:1])
    checks = forged(release, FORGERIES[what]).verify()
    failed = [check.name for check in checks if not check.ok and check.name != "seal"]
    assert failed, what
    assert all(check.ok for check in forged(release, lambda c: None).verify())


def test_the_affine_invariant_mean_is_found_where_the_log_euclidean_one_is_elsewhere():
    """The gap of both means is several times the private error."""
    X = records(20_000, 5, 2.0, condition=100.0)
    exact = mean_riemann(X)
    gap = float(distance_riemann(mean_logeuclid(X), exact))
    for seed in range(3):
        flat = private_mean(X, random_state=seed, **BUDGET)
        curved = released(X, seed)
        assert float(distance_riemann(curved.value, exact)) < 0.2 * gap
        assert float(distance_riemann(flat.value, exact)) > 0.8 * gap


def test_commuting_records_give_the_log_euclidean_release_in_one_step():
    """The flat limit: the same query and noise; the same matrix, up to rounding."""
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    X = (Q * np.exp(rng.standard_normal((500, 1, 3)))) @ Q.T
    X = 0.5 * (X + X.transpose(0, 2, 1))
    options = {"method": "oneshot", "mechanism": "laplace"}
    ours, theirs = released(X, **options), private_mean(X, random_state=0, **BUDGET, **options)
    assert names(ours) == ["mean"]
    np.testing.assert_allclose(ours.value, theirs.value, rtol=1e-9)


def test_the_estimand_does_not_depend_on_a_congruence():
    """Seen from W·Wᵀ, records W·X·Wᵀ are the same numbers up to a rotation."""
    X = records(20_000, 3, 1.0)
    W = np.array([[2.0, 0.0, 0.0], [0.5, 1.0, 0.0], [-0.3, 0.2, 0.7]])
    moved = W @ X @ W.T
    moved = 0.5 * (moved + moved.transpose(0, 2, 1))
    plain = released(X, reference_point=np.eye(3))
    there = released(moved, reference_point=W @ W.T)
    exact = mean_riemann(X)
    assert float(distance_riemann(plain.value, exact)) < 0.05
    assert float(distance_riemann(there.value, W @ exact @ W.T)) < 0.05


def test_a_file_that_does_not_fit_into_memory_gives_the_same_kind_of_release(tmp_path, monkeypatch):
    X = records(6000, 3, 1.0)
    np.save(tmp_path / "records.npy", X)
    whole = released(open_records(tmp_path / "records.npy"))
    monkeypatch.setattr(engine_base, "KEEP_BYTES", 40_000)
    monkeypatch.setattr(engine_base, "IN_MEMORY", 1)
    part = released(open_records(tmp_path / "records.npy"))
    assert verifies(part)
    exact = mean_riemann(X)
    for release in (whole, part):
        assert float(distance_riemann(release.value, exact)) < 0.1


def test_moves_that_wait_are_those_that_were_made(monkeypatch):
    """Rows kept, rows looked at, and rows read again are the same vectors."""
    from spdp.charts import CHARTS
    from spdp.charts.riemann import Point
    from spdp.data.source import as_source
    from spdp.domain.base import Space
    from spdp.engines import LocalEngine
    from spdp.options import OnInvalid
    from spdp.queries.sums import Frame, VectorSum

    rng = np.random.default_rng(4)
    X, space = records(500, 3), Space.of(CHARTS["riemann"], DOMAIN, 3)
    engine, source = LocalEngine(), as_source(X)
    task = engine.task(source, space.chart, space.region, OnInvalid.RAISE)
    axes = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    first = Point.start(6).moved(0.3 * rng.standard_normal(6))
    second = first.moved(0.3 * rng.standard_normal(6))
    query = VectorSum("mean", Frame.plain(np.zeros(6)), 20.0)
    totals = []
    for kept in (1 << 30, 1 << 30, 4000):
        store = engine.hold(source, task, kept)
        eager = len(totals) == 1
        for step in (
            lambda s: s.carried(first.to_here(None)),
            lambda s: s.rotated(axes),
            lambda s: s.rotated(axes.T).carried(second.to_here(first)).rotated(axes),
        ):
            store = step(store)
            if eager:
                store.total(query)  # so that nothing waits
        totals.append(store.total(query) / 2**30 * 20.0 / 500)
    np.testing.assert_allclose(totals[1], totals[0], rtol=0, atol=1e-7)
    np.testing.assert_allclose(totals[2], totals[0], rtol=0, atol=1e-7)
    Y, _ = space.chart.vectors(X, space.region, engine_kernels())
    exact = engine_kernels().carry(Y, second.to_here(None)) @ axes
    np.testing.assert_allclose(totals[0], exact.mean(axis=0), rtol=0, atol=1e-7)


@pytest.mark.parametrize("metric", ["logeuclid", "riemann"])
def test_rows_that_are_read_again_are_the_rows_that_were_kept_to_the_bit(metric):
    """Whether all fit follows from their number, which may be private."""
    from spdp.charts import CHARTS
    from spdp.charts.riemann import Point
    from spdp.data.source import as_source
    from spdp.domain.base import Space
    from spdp.engines import LocalEngine
    from spdp.options import OnInvalid
    from spdp.queries.sums import Frame, VectorSum

    rng = np.random.default_rng(5)
    spectra = np.exp(rng.choice([-9.0, 9.0], (400, 3)))  # hardly held by float64 elsewhere
    Q = np.linalg.qr(rng.standard_normal((400, 3, 3)))[0]
    X = (Q * spectra[:, None, :]) @ Q.transpose(0, 2, 1)
    X = 0.5 * (X + X.transpose(0, 2, 1))
    space = Space.of(CHARTS[metric], Ball(16.0), 3)
    engine, source = LocalEngine(), as_source(X)
    task = engine.task(source, space.chart, space.region, OnInvalid.CENTER)
    turns = [np.linalg.qr(rng.standard_normal((6, 6)))[0] for _ in range(3)]
    first = Point.start(6).moved(4.0 * rng.standard_normal(6))
    second = first.moved(-4.0 * rng.standard_normal(6))

    def carried(store, W):
        return store.carried(W) if metric == "riemann" else store

    query = VectorSum("mean", Frame.plain(np.zeros(6)), 40.0)
    totals = []
    for kept in (1 << 30, 4000):
        store, found = engine.hold(source, task, kept), []
        for step in (
            lambda s: carried(s, first.to_here(None)),
            lambda s: s.rotated(turns[0]).rotated(turns[1]),
            lambda s: s.rotated(turns[1].T).rotated(turns[0].T),
            lambda s: carried(s, second.to_here(first)),
            lambda s: carried(s.rotated(turns[2]).rotated(turns[2].T), first.to_here(second)),
        ):
            store = step(store)
            found.append(store.total(query))
        totals.append(found)
    np.testing.assert_array_equal(totals[1], totals[0])


WIDE = [
    (EigenvalueBounds(1e-20, 1e20), np.empty((0, 2, 2)), 758464574),
    (Ball(200.0), np.tile(np.eye(2), (8, 1, 1)), 854570105),
    (EigenvalueBounds(1e-15, 1e15), np.tile(np.eye(3), (300, 1, 1)), 722716828),
]


@pytest.mark.parametrize(("domain", "X", "seed"), WIDE)
@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_domains_wider_than_float64_can_invert_give_releases_that_verify(
    domain, X, seed, adjacency, tmp_path
):
    if adjacency == "replace-one" and not len(X):
        return
    options = {"metric": "riemann", "method": "adaptive", "mechanism": "gaussian"}
    options |= {"adjacency": adjacency, "anyway": True}
    for i in range(20):
        release = private_mean(
            X, epsilon=0.05, delta=1e-6, domain=domain, random_state=seed + i, **options
        )
        assert verifies(release)
    release.save(tmp_path / "wide")


def test_wider_domains_yet_are_refused_before_payment():
    with pytest.raises(ParameterError, match="must lie between 0 and 200"):
        private_mean(np.eye(2)[None], metric="riemann", epsilon=1.0, delta=1e-6, domain=Ball(201.0))


def test_a_point_that_float64_cannot_invert_is_one_near_it():
    from spdp.charts.riemann import CONDITION, Point

    point = Point.start(6).moved(np.array([60.0, -60.0, 0.0, 3.0, 0.0, 0.0]))
    values = np.linalg.svd(point.held().factor, compute_uv=False)
    assert values[0] / values[-1] <= CONDITION * (1 + 1e-9)
    np.testing.assert_allclose(values[0], np.linalg.svd(point.factor, compute_uv=False)[0])
    near = Point.start(6).moved(np.array([3.0, -3.0, 0.0, 1.0, 0.0, 0.0]))
    assert near.held() is near


def engine_kernels():
    from spdp.kernels import kernels_for

    return kernels_for()


def test_persons_are_means_of_their_records_seen_from_the_point():
    """A person with many records counts once, whatever the point."""
    X = records(3000, 3, 1.0)
    many = np.concatenate([X, np.repeat(X[:1], 3000, axis=0)])
    groups = np.concatenate([np.arange(3000), np.zeros(3000, int)])
    once, often = released(X, groups=np.arange(3000)), released(many, groups=groups)
    assert once.certificate["n"] == often.certificate["n"] == 3000
    np.testing.assert_allclose(once.value, often.value, rtol=1e-5)


def test_what_a_curved_metric_does_not_have_is_refused_in_one_sentence():
    X = records(50, 3)
    with pytest.raises(ParameterError, match="max_records needs a flat metric"):
        released(X, groups=np.arange(50), max_records=2)
    with pytest.raises(ParameterError, match="one matrix each"):
        released(np.stack([X, X], axis=1))
    stream = iter([X[:25], X[25:]])
    with pytest.raises(ParameterError, match="read only once"):
        released(stream, groups=np.arange(50))
    for refused in (
        lambda: private_pca(X, n_components=1, metric="riemann", **BUDGET),
        lambda: LatticeSum.of(X, DOMAIN, metric="riemann"),
        lambda: PrivateFrechetMean(metric="riemann", domain=DOMAIN).partial_fit(X),
    ):
        with pytest.raises(ParameterError, match="curved.*'logeuclid'.*reference_point"):
            refused()


def test_an_estimator_gives_pyriemanns_tangent_vectors_at_the_released_mean():
    X = records(2000, 3)
    model = PrivateFrechetMean(metric="riemann", random_state=0, **BUDGET).fit(X)
    ours = model.transform(X[:20])
    theirs = TangentSpace(metric="riemann")
    theirs.reference_ = model.mean_
    lengths = np.linalg.norm(ours, axis=1)
    np.testing.assert_allclose(lengths, np.linalg.norm(theirs.transform(X[:20]), axis=1))
    np.testing.assert_allclose(lengths, distance_riemann(X[:20], model.mean_), atol=1e-9)


@pytest.mark.parametrize("method", ["auto", "oneshot", "adaptive"])
def test_a_plan_simulates_the_curved_metric(method):
    planned = plan(
        n=2000, k=3, epsilon=1.0, delta=1e-6, domain=DOMAIN, metric="riemann", method=method, runs=3
    )
    assert not planned.one_shot
    assert planned.adaptive
    assert all(np.isfinite(p.rms) and p.bound > p.rms for p in planned.adaptive)
    assert "affine-invariant" in str(planned)


HARD = {
    "outliers": lambda rng: np.concatenate([records(990, 3, 0.5), records(10, 3, 8.0, seed=1)]),
    "two groups": lambda rng: np.concatenate(
        [records(800, 3, 0.3), geodesic_riemann(np.eye(3), records(200, 3, 0.3), 4.0)]
    ),
    "one geodesic": lambda rng: geodesic_riemann(
        np.eye(3), np.diag([1.0, 3.0, 9.0]), rng.standard_normal(1000)
    ),
    "heavy tails": lambda rng: expm(invvecd(0.3 * rng.standard_t(2, (1000, 6)).clip(-18, 18))),
}


@pytest.mark.parametrize("kind", HARD)
def test_the_bound_covers_where_data_are_hard(kind):
    """20 releases each: fewer than 16 of 20 would happen in 0.03 % at 95 %."""
    X = HARD[kind](np.random.default_rng(5))
    domain = EigenvalueBounds(1e-6, 1e6)
    exact = mean_riemann(domain.clip(X))
    covered = 0
    for seed in range(20):
        epsilon = (0.3, 1.0, 3.0)[seed % 3]
        release = released(X, seed, domain=domain, epsilon=epsilon)
        covered += float(distance_riemann(release.value, exact)) <= release.error_bound(0.95)
    assert covered >= 17


def test_hostile_records_do_not_raise_when_they_are_seen_from_elsewhere():
    X = records(3000, 3, 1.0)
    X[::50] = np.diag([1e-300, 1.0, 1e300])
    X[1::50] = 1e-310 * np.eye(3)
    release = released(X, domain=EigenvalueBounds(1e-40, 1e40), on_invalid="center")
    assert verifies(release), [check for check in release.verify() if not check.ok]
    assert np.isfinite(release.value).all()


def test_a_search_goes_home_to_where_it_started():
    from spdp.charts import CHARTS
    from spdp.domain.base import Space
    from spdp.engines.store import ArrayStore
    from spdp.options import Adjacency
    from spdp.privacy.account import Account
    from spdp.privacy.budget import Budget
    from spdp.queries import Rows

    space = Space.of(CHARTS["riemann"], DOMAIN, 3)
    Y = np.random.default_rng(6).standard_normal((100, 6))
    account = Account(Budget.gaussian(1.0, 1e-6), Adjacency.REPLACE_ONE, random_state=0)
    search = MovingSearch(ArrayStore(Rows(Y)), account, space)
    search.move(Y[0])
    search.move(0.5 * Y[1])
    at = search.in_chart(np.zeros(6))
    search.go_home()
    np.testing.assert_allclose(search.store.rows.Y, Y, atol=1e-9)
    np.testing.assert_allclose(search.frame.center, at, atol=1e-9)
    assert search.base_point() is None


def test_what_is_of_no_use_is_refused_as_in_any_metric():
    with pytest.raises(Uninformative, match="refused before any budget is spent"):
        private_mean(records(10, 5), metric="riemann", **{**BUDGET, "epsilon": 0.1})


def test_the_bound_covers_persons_whose_records_lie_on_both_sides():
    """A person's vector is short where their records are far: curvature is theirs."""
    rng, S = np.random.default_rng(0), np.diag([2.0, -2.0])
    root = expm(np.array([[0.0, 0.15], [0.15, 0.0]]))
    both = [root @ expm(sign * S) @ root for sign in (1.0, -1.0)]
    J = expm(invvecd(0.02 * rng.standard_normal((3000, 3))))
    X = np.concatenate([J @ base @ J for base in both])
    groups = np.tile(np.arange(3000), 2)
    release = released(X, groups=groups, epsilon=8.0, domain=Ball(5.4), mechanism="gaussian")
    error = float(distance_riemann(release.value, mean_riemann(X)))
    assert error <= release.error_bound(0.95)
    parts = release.certificate["error_bound_parts"]["curvature"]
    assert parts["reach"] > 5.4  # of the domain, not of persons' vectors
    near = Bound.read(release.certificate["error_bound_parts"])
    clipped = near.replace(curvature=near.curvature.__class__(**{**parts, "reach": 0.9}))
    assert error > clipped.at(0.95)  # what it would be for records
    assert verifies(release)


def test_the_bound_counts_what_float64_does_to_carried_records():
    """A record of condition number 10⁸, seen from another like it, is not resolved."""
    far, near = np.exp([9.0, -9.0]), np.exp([-9.0, 9.0])
    X = np.stack([np.diag(far)] * 18_000 + [np.diag(near)] * 2000)
    own = {"epsilon": 8.0, "domain": Ball(13.5), "mechanism": "gaussian", "anyway": True}
    release = released(X, seed=1003, **own)
    exact = np.diag(np.exp(0.9 * np.log(far) + 0.1 * np.log(near)))
    assert release.certificate["error_bound_parts"]["curvature"]["rounding"] > 0.5
    assert float(distance_riemann(release.value, exact)) <= release.error_bound(0.95)
    assert verifies(release)
    usual = released(records(6000, 5, 2.0))
    assert usual.certificate["error_bound_parts"]["curvature"]["rounding"] < 1e-6
