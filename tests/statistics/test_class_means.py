"""Means, sizes and covariances of classes: what is released, what is said of it, and
what one record, or person, or label can do to it."""

import numpy as np
import pytest
from replay import Caught, audit, datasets

from spdp import Ball, EigenvalueBounds, Release, private_class_means
from spdp.adaptive.classes import ClassSearch
from spdp.charts import chart_of
from spdp.data import as_source
from spdp.domain.base import Space
from spdp.engines.store import ArrayStore
from spdp.errors import DataError, InvalidMatrixError, ParameterError, TooNoisy
from spdp.geometry import distance_logeuclid, expm, invvecd, logm, vecd
from spdp.kernels import kernels_for
from spdp.privacy.account import Account
from spdp.privacy.budget import Budget
from spdp.queries import Rows
from spdp.queries.moments import ClassDeviation, ClassDistance, ClassHistogram, MomentSum, centred
from spdp.queries.sums import DistanceSum, VectorSum

DOMAIN = EigenvalueBounds(0.01, 100.0)
OPTIONS = {"epsilon": 2.0, "delta": 1e-6, "domain": DOMAIN}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [3000, 2000, 1000])
    Y = rng.standard_normal((6000, 6)) * [0.1, 0.2, 0.3, 0.1, 0.2, 0.3]
    Y[:, 2] += y
    Y[:, 3] += Y[:, 2] - y
    return expm(invvecd(Y)), y


def exact(X, y, names):
    V = vecd(logm(X))
    means = np.array([V[y == c].mean(axis=0) for c in names])
    R = V - means[y]
    return expm(invvecd(means)), R.T @ R / len(R)


@pytest.mark.parametrize("covariance", ["none", "diagonal", "full"])
@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
def test_releases_are_near_the_truth_and_verify(data, covariance, method):
    X, y = data
    release = private_class_means(
        X, y, classes=[0, 1, 2], covariance=covariance, method=method, **OPTIONS
    )
    means, W = exact(X, y, [0, 1, 2])
    assert release.certificate["private"] is True
    assert all(check.ok for check in release.verify()), release.verify()
    limit = 0.1 if method == "adaptive" else 0.6
    assert distance_logeuclid(release.values["means"], means).max() < limit
    np.testing.assert_allclose(release.values["counts"], [3000, 2000, 1000], atol=120)
    if covariance == "full" and method == "adaptive":
        np.testing.assert_allclose(release.values["covariance"], W, atol=0.03)
    if covariance == "diagonal" and method == "adaptive":
        np.testing.assert_allclose(release.values["covariance"], np.diag(W), atol=0.03)
    steps = release.certificate["steps"]
    assert steps[-1]["classes"] == [0, 1, 2]
    assert (len(steps) == 1) == (method == "oneshot")


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_covariance_that_noise_would_hide_is_not_asked_for(adjacency):
    """n·μ < 2d for a number of records that is public, or was counted first."""
    rng = np.random.default_rng(0)
    X, y = expm(invvecd(0.02 * rng.standard_normal((400, 210)))), np.arange(400) % 2
    options = OPTIONS | {"domain": Ball(3.0), "classes": [0, 1], "covariance": "full"}
    options |= {"adjacency": adjacency, "anyway": True}
    with pytest.warns(TooNoisy, match=r"noise hides the covariance of 210 coordinates"):
        release = private_class_means(X, y, method="adaptive", **options)
    assert release.values["covariance"].shape == (210,)
    assert all(check.ok for check in release.verify())
    few = options | {"epsilon": 20.0}
    assert private_class_means(X, y, method="adaptive", **few).values["covariance"].ndim == 2


def test_the_law_of_one_shot_holds_and_not_a_narrower_one(data):
    """The joint bound covers in 95 % of runs or more; 0.6 of it does not."""
    X, y = data
    X, y = X[::20], y[::20]
    names = [0, 1, 2]
    means, _ = exact(X, y, names)
    inside, narrow = 0, 0
    for seed in range(150):
        release = private_class_means(
            X, y, classes=names, method="oneshot", random_state=seed, **OPTIONS | {"epsilon": 20}
        )
        error = np.sqrt((distance_logeuclid(release.values["means"], means) ** 2).sum())
        inside += error <= release.error_bound(0.95)
        narrow += error <= 0.6 * release.error_bound(0.95)
    assert inside >= 0.9 * 150
    assert narrow < 0.6 * 150


@pytest.mark.parametrize("sizes", [(1,), (20, 20), (35, 35), (400, 20), (400, 3)])
def test_the_joint_bound_is_stated_always_and_covers(sizes):
    """Also where classes are seen in some runs only, which depends on the noise."""
    n, C, runs = sum(sizes), len(sizes), 120
    X, y = np.exp(3.9) * np.ones((n, 1, 1)), np.repeat(np.arange(C), sizes)
    options = {"epsilon": 1.0, "delta": 1e-6, "domain": EigenvalueBounds(0.02, 50.0)}
    missed = {0.5: 0, 0.95: 0}
    for seed in range(runs):
        release = private_class_means(
            X, y, classes=range(C), method="oneshot", anyway=True, random_state=seed, **options
        )
        error = np.linalg.norm(np.log(release.values["means"].ravel()) - 3.9)
        for level in missed:
            missed[level] += error > release.error_bound(level) * (1 + 1e-9)
    for level, count in missed.items():
        assert count <= runs * (1 - level) + 3 * np.sqrt(runs * level * (1 - level)), level


def test_adaptive_says_what_is_bounded_and_what_is_not(data):
    X, y = data
    release = private_class_means(X, y, classes=[0, 1, 2], **OPTIONS)
    with pytest.raises(AttributeError, match="no bound"):
        release.error_bound()
    c = release.certificate
    assert "no bound on the whole error" in c["error_statement"]
    assert 0 < c["error_bound_within"]["95%"] < c["error_bound_within"]["99%"]
    c["error_bound_within"]["95%"] *= 0.9
    assert not all(check.ok for check in Release(release.values, c).verify())


class Watched(ClassSearch):
    """Notes what records are clipped to, in the last step."""

    def last(self, frame, radius):
        self.clipped = frame, radius, self.centers.copy()
        return super().last(frame, radius)


@pytest.mark.parametrize("second", ["none", "full"])
@pytest.mark.parametrize("sizes", [(300, 300), (60, 540)])
def test_the_bound_for_clipped_records_covers(second, sizes):
    """Heavy tails, small classes: 95 % of the runs or more, and 0.4 of it does not."""
    y = np.repeat([0, 1], sizes)
    Y = np.random.default_rng(3).standard_t(3, (600, 6)) * 0.3 + y[:, None]
    store = ArrayStore(Rows(Y, y))
    space = Space.of(chart_of("logeuclid"), Ball(20.0), 3)
    inside, narrow, runs = 0, 0, 100
    for seed in range(runs):
        account = Account(Budget.gaussian(20.0, 1e-6), random_state=seed)
        search = Watched(store, account, space, [0, 1], second)
        found = search.run()
        frame, radius, centers = search.clipped
        Z = centred(Rows(Y, y), frame, centers, kernels_for())
        Z *= np.minimum(1.0, radius / np.linalg.norm(Z, axis=1))[:, None]
        home = frame.moved(np.zeros(6))
        truth = np.array([centers[c] + home.back(Z[y == c].mean(axis=0)) for c in (0, 1)])
        error = np.linalg.norm(found.means - truth)
        inside += error <= found.clipped.at(0.95)
        narrow += error <= 0.4 * found.clipped.at(0.95)
    assert inside >= 0.95 * runs
    assert narrow < 0.9 * runs


@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
def test_a_class_too_small_to_be_seen_has_the_overall_mean(data, method):
    X, y = data
    release = private_class_means(
        X, y, classes=[0, 1, 2, 9], method=method, random_state=1, **OPTIONS
    )
    assert release.certificate["steps"][-1]["unseen"] == [9]
    if method == "oneshot":
        assert "overall mean" in release.certificate["error_statement"]
        assert release.error_bound() > DOMAIN.region(3).radius
    means = vecd(logm(release.values["means"]))
    overall = np.average(means[:3], axis=0, weights=release.values["counts"][:3])
    np.testing.assert_allclose(means[3], overall, atol=0.2)


def test_a_label_that_is_none_of_the_classes_is_an_invalid_record(data):
    X, y = data
    with pytest.raises(InvalidMatrixError, match="3000 has label 1"):
        private_class_means(X, y, classes=[0, 2], **OPTIONS)
    release = private_class_means(X, y, classes=[0, 2], on_invalid="center", **OPTIONS)
    np.testing.assert_allclose(release.values["counts"], [3000, 1000], atol=120)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": []}, "classes is empty"),
        ({"classes": [1, 1]}, "twice"),
        ({"classes": [None]}, "numbers or texts"),
        ({"classes": [0, 1, 2], "covariance": "some"}, "covariance must be"),
        ({"classes": [0, 1, 2], "delta": 0.0}, "delta"),
    ],
)
def test_wrong_options(data, options, message):
    with pytest.raises(ParameterError, match=message):
        private_class_means(*data, **OPTIONS | options)


def test_labels_are_needed(data):
    with pytest.raises(ParameterError, match="needs a class"):
        private_class_means(data[0], classes=[0], **OPTIONS)
    with pytest.raises(DataError, match="labels have 3 entries"):
        private_class_means(data[0], [0, 1, 2], classes=[0, 1, 2], **OPTIONS)


def test_add_remove_protects_the_numbers(data):
    X, y = data
    options = OPTIONS | {"adjacency": "add-remove", "classes": [0, 1, 2]}
    release = private_class_means(X, y, **options)
    assert release.certificate["n"] is None
    assert release.certificate["n_estimate"] == pytest.approx(6000, abs=60)
    assert all(check.ok for check in release.verify())
    nobody = private_class_means(X[:0], y[:0], **options)
    assert nobody.certificate["steps"][-1]["unseen"]


def test_sources_in_pieces_and_one_piece_agree(data, monkeypatch):
    from spdp.data import source

    X, y = data
    options = OPTIONS | {"classes": [0, 1, 2], "random_state": 5, "covariance": "full"}
    whole = private_class_means(X, y, **options)
    monkeypatch.setattr(source, "BLOCK_BYTES", 20_000)
    pieces = private_class_means(as_source(X), y, **options)
    np.testing.assert_array_equal(whole.values["covariance"], pieces.values["covariance"])


def test_a_person_counts_by_the_part_of_their_records(data):
    X, y = data
    persons = np.arange(len(X)) % 2000  # a record of class 0, one of 0 or 1, one of 1 or 2
    release = private_class_means(
        X, y, classes=[0, 1, 2], groups=persons, random_state=0, **OPTIONS | {"epsilon": 5}
    )
    np.testing.assert_allclose(release.values["counts"], np.array([3, 2, 1]) * 1000 / 3, atol=60)
    assert release.certificate["unit"] == "person"
    assert all(check.ok for check in release.verify())


def test_a_person_s_mean_in_a_class_counts_by_that_part_and_the_words_say_so():
    """Half of the persons are in a with all records, half with one of ten."""
    one = np.repeat([[1.0, 0.0, 0.0]], 10, axis=0)
    other = np.vstack([[-1.0, 0.0, 0.0], np.zeros((9, 3))])
    X = expm(invvecd(np.vstack([np.tile(one, (200, 1)), np.tile(other, (200, 1))])))
    y = ["a"] * 2000 + (["a"] + ["b"] * 9) * 200
    release = private_class_means(
        X,
        y,
        classes=["a", "b"],
        groups=np.repeat(np.arange(400), 10),
        domain=Ball(2.0),
        epsilon=5.0,
        delta=1e-6,
        method="oneshot",
        random_state=0,
    )
    weighted = (200 * 1.0 - 20 * 1.0) / 220  # plain, it would be 0
    assert abs(vecd(logm(release.value[0]))[0] - weighted) < 0.1
    assert "by the share of their records that lie in it" in release.certificate["estimand"]


# --- the replay audit


def statistic(domain, **options):
    def run(data):
        X, y, *groups = data
        return private_class_means(
            X,
            y,
            classes=["a", "b", "c"],
            delta=1e-6,
            domain=domain,
            on_invalid="center",
            anyway=True,
            groups=groups[0] if groups else None,
            **options,
        )

    return run


def pairs(rng, persons=False):
    """Neighbours: a record and its label replaced, or all of a person's."""
    X, other = datasets(rng, int(rng.integers(1, 4)), 2.0)
    y = rng.choice(["a", "b", "c"], len(X))
    changed = y.copy()
    changed[0] = rng.choice(["a", "b", "c", "unknown"])
    if not persons:
        return (X, y), (other, changed)
    groups = np.minimum(np.arange(len(X)), rng.integers(0, 6, len(X)))
    mine = groups == 0
    other[mine], changed[mine] = other[0], rng.choice(["a", "b", "c"], mine.sum())
    return (X, y, groups), (other, changed, groups)


def shares(count, seed, persons=False, **options):
    rng = np.random.default_rng(seed)
    found = []
    for i in range(count):
        data, neighbour = pairs(rng, persons)
        run = statistic(Ball(2.0), epsilon=float(rng.choice([1.0, 10.0, 60.0])), **options)
        found.append(audit(run, data, neighbour, seed=i))
    return np.array(found)


@pytest.mark.parametrize("persons", [False, True])
@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
@pytest.mark.parametrize("covariance", ["none", "diagonal", "full"])
def test_neighbours_pass_the_audit(method, covariance, persons):
    found = shares(30, 3, persons, method=method, covariance=covariance)
    assert found.max() <= 1
    if method == "oneshot" and not persons:
        assert found.max() > 0.8  # the neighbours are near the worst case


def test_add_remove_passes_the_audit():
    rng = np.random.default_rng(4)
    for i in range(40):
        (X, y), _ = pairs(rng)
        run = statistic(Ball(2.0), epsilon=1.0, adjacency="add-remove", covariance="full")
        audit(run, (X, y), (X[1:], y[1:]), seed=i)


@pytest.mark.parametrize(
    "query",
    [MomentSum, ClassDistance, ClassHistogram, ClassDeviation, VectorSum, DistanceSum],
)
def test_a_halved_sensitivity_is_caught(monkeypatch, query):
    honest = query.sensitivity
    monkeypatch.setattr(query, "sensitivity", lambda self, adjacency: honest(self, adjacency) // 2)
    with pytest.raises(Caught, match="more than its stated sensitivity"):
        shares(300, 9, method="adaptive", covariance="full")


def test_an_exact_count_that_steers_is_caught(monkeypatch):
    honest = ClassSearch.find_frame

    def peeking(self):
        frame = honest(self)
        exact = self.store.total(MomentSum("", frame, 1.0, self.classes))
        self.distance *= 1.0 + 1e-9 * float(exact[0] % 997)
        return frame

    monkeypatch.setattr(ClassSearch, "find_frame", peeking)
    with pytest.raises(Caught):
        shares(100, 5, method="adaptive")


@pytest.mark.parametrize("odd", ["?", b"x", [1, 2], 10**30, 0.5, None])
def test_a_list_of_labels_with_an_odd_one_passes_the_replay(data, odd):
    """One record's label must not change how the others' are read."""
    X, y = data

    def statistic(labels):
        return private_class_means(
            X[: len(labels)], labels, classes=[0, 1, 2], on_invalid="center", **OPTIONS
        )

    labels = y[:60].tolist()
    for seed in range(5):
        audit(statistic, labels, [odd, *labels[1:]], seed=seed)
