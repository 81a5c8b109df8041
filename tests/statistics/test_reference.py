import numpy as np
import pytest
from sklearn.base import clone

from spdp import Ball, Ledger, PrivateFrechetMean, Reference, plan, private_mean
from spdp.charts import chart_of
from spdp.errors import DataError, InvalidMatrixError, ParameterError
from spdp.geometry import expm, invvecd
from spdp.release.summary import Summary

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "domain": Ball(6.0)}


@pytest.fixture
def public(random_spd):
    return Reference.from_public(random_spd(200, 3, condition=4.0))


def test_a_reference_has_the_moments_of_the_data(random_spd):
    X = random_spd(101, 3)
    Y = chart_of("logeuclid").vector(X)
    expected, center = Reference.from_vectors(Y), Y.mean(axis=0)
    pieces = [list(X), iter([X[:1], X[1:50], X[50:]]), lambda: iter([X])]
    for source in (X, *pieces):
        reference = Reference.from_public(source)
        assert (reference.n, reference.k) == (101, 3)
        assert reference.spread**2 == pytest.approx(((Y - center) ** 2).sum(axis=1).mean())
        np.testing.assert_allclose(reference.frame.center, center, atol=1e-12)
        np.testing.assert_allclose(reference.frame.width, expected.frame.width, rtol=1e-9)
        turned = (Y - center) @ reference.frame.axes
        along = np.sqrt((turned**2).mean(axis=0))
        np.testing.assert_allclose(reference.frame.width**2, along / along.mean(), rtol=1e-6)
        np.testing.assert_allclose(reference.sample, Y, atol=1e-12)


def test_the_repr_is_short(public):
    assert repr(public) == (
        f"<Reference k=3, n=200, metric='logeuclid', sha256 {public.digest[:12]}…>"
    )


def test_many_public_records_are_thinned_for_plans(rng):
    Y = rng.standard_normal((9000, 3))
    X = expm(invvecd(Y))
    pieces = Reference.from_public(iter([X[:1000], X[1000:8000], X[8000:]]))
    for reference in (pieces, Reference.from_public(X), Reference.from_vectors(Y)):
        assert reference.n == 9000
        assert 2000 <= len(reference.sample) <= 4000
        np.testing.assert_allclose(reference.sample.std(axis=0), 1.0, atol=0.1)
    # records of all pieces are among them
    place = [int(np.abs(Y - y).sum(axis=1).argmin()) for y in pieces.sample[::50]]
    assert min(place) < 1000
    assert max(place) >= 8000


def test_what_is_not_public_data_is_refused(random_spd):
    X = random_spd(20, 3)
    with pytest.raises(DataError, match="at least 2"):
        Reference.from_public(X[:1])
    X[13] = -X[13]
    with pytest.raises(InvalidMatrixError, match="13"):
        Reference.from_public(iter([X[:10], X[10:]]))


def test_saved_and_loaded(public, tmp_path):
    file = public.save(tmp_path / "ref.npz")
    again = Reference.load(file)
    assert again.digest == public.digest
    assert (again.n, again.k, again.metric) == (public.n, 3, "logeuclid")
    assert again.spread == public.spread
    with pytest.raises(DataError, match="exists already"):
        public.save(file)
    public.save(file, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["ref.npz"]


@pytest.mark.parametrize(
    ("message", "change"),
    [
        ("not a reference", {"axes": None}),
        ("has format", {"format": "other"}),
        ("metric", {"metric": "affine"}),
        ("fits no size of matrices", {"center": np.zeros(5)}),
        ("center is not finite", {"center": np.full(6, np.nan)}),
        ("6 positive numbers", {"width": np.zeros(6)}),
        ("6 positive numbers", {"width": np.ones(3)}),
        ("orthonormal", {"axes": np.ones((6, 6))}),
        ("orthonormal", {"axes": np.eye(5)}),
        ("does not hold vectors", {"sample": np.zeros((9, 5))}),
        ("does not hold vectors", {"sample": np.zeros((1, 6))}),
        ("not possible", {"spread": -1.0}),
        ("not possible", {"n": 1}),
        ("not possible", {"n": [5]}),
        ("digest", {"center": np.zeros(6)}),
        ("digest", {"digest": "0"}),
        ("cannot be read", {"n": "many"}),
    ],
)
def test_a_damaged_file_is_refused(public, tmp_path, message, change):
    with np.load(public.save(tmp_path / "ref.npz")) as archive:
        content = {**archive, **change}
    np.savez(tmp_path / "bad.npz", **{name: v for name, v in content.items() if v is not None})
    with pytest.raises(DataError, match=f"bad.npz.*{message}"):
        Reference.load(tmp_path / "bad.npz")


def test_other_files_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(3))
    (tmp_path / "text.npz").write_text("text")
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "cut.npz").write_bytes(b"PK\x03\x04cut")
    for name in ("a.npy", "text.npz", "empty.npz", "cut.npz", "missing.npz"):
        with pytest.raises(DataError, match=name):
            Reference.load(tmp_path / name)


def test_a_reference_of_another_size_costs_nothing(public, random_spd, tmp_path):
    ledger = Ledger(tmp_path / "a.ledger", epsilon=2.0, delta=1e-5)
    for method in ("auto", "adaptive"):
        with pytest.raises(ParameterError, match=r"reference .*3×3.*4×4"):
            private_mean(
                random_spd(50, 4), reference=public, ledger=ledger, method=method, **BUDGET
            )
    assert ledger.history() == []


def test_the_estimator_takes_a_reference(public, random_spd):
    X = random_spd(60, 3, seed=1, condition=4.0)
    options = {**BUDGET, "method": "adaptive"}
    estimator = PrivateFrechetMean(**options, random_state=1, reference=public)
    release = private_mean(X, **options, random_state=1, reference=public)
    np.testing.assert_array_equal(clone(estimator).fit(X).mean_, release.value)
    assert estimator.fit(X).certificate_["reference"] == public.digest


@pytest.mark.parametrize(
    ("n", "radius", "method", "use"),
    [
        (100, 6.0, "adaptive", "checked privately"),
        (3000, 6.0, "adaptive", "not used: with this many records"),
        (300, 1.0, "oneshot", "not used: one shot"),
    ],
)
def test_a_reference_is_never_ignored_without_a_word(public, random_spd, n, radius, method, use):
    X, options = random_spd(n, 3, seed=1, condition=4.0), BUDGET | {"domain": Ball(radius)}
    release = private_mean(X, **options, random_state=0, reference=public)
    c = release.certificate
    assert (c["method"], c["reference"]) == (method, public.digest)
    assert Summary(c).rows()["reference"].startswith(use)
    assert all(check.ok for check in release.verify())
    assert plan(n=n, k=3, **options, reference=public).method == method


@pytest.mark.parametrize(
    "bad",
    [
        {"delta": 0.0},
        {"mechanism": "laplace"},
        {"method": "oneshot"},
    ],
)
def test_a_reference_that_no_search_can_use_is_refused(public, random_spd, tmp_path, bad):
    ledger = Ledger(tmp_path / "a.ledger", epsilon=2.0, delta=1e-5)
    with pytest.raises(ParameterError, match=r"reference .*adaptive"):
        private_mean(random_spd(50, 3), reference=public, ledger=ledger, **BUDGET | bad)
    assert ledger.history() == []
    with pytest.raises(ParameterError, match=r"reference .*adaptive"):
        plan(n=50, k=3, reference=public, **BUDGET | bad)


def test_a_sum_in_parts_cannot_start_from_a_reference(public, random_spd):
    with pytest.raises(ParameterError, match="use fit"):
        PrivateFrechetMean(**BUDGET, reference=public).partial_fit(random_spd(5, 3))


def test_a_source_that_is_not_counted_yet_is_searched(public, random_spd):
    X = random_spd(60, 3, seed=1, condition=4.0)
    release = private_mean(iter([X[:30], X[30:]]), **BUDGET, reference=public, random_state=0)
    assert release.certificate["method"] == "adaptive"
