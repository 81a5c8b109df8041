"""Hermitian positive definite matrices: cross-spectra from the file to the release."""

import json

import numpy as np
import pytest
from scipy import linalg

from spdp import (
    Ball,
    EigenvalueBounds,
    Ledger,
    PrivateFrechetMean,
    Release,
    TraceBounds,
    plan,
    private_mean,
)
from spdp.charts import CHARTS
from spdp.domain.sets import domain_of
from spdp.errors import InvalidMatrixError
from spdp.kernels import kernels_for, reference
from spdp.kernels.base import Status
from spdp.lattice import encode, exact_sum
from spdp.release.report import html_report
from spdp.statistics.partial_sums import LatticeSum, release_sum

CHART = CHARTS["hermitian"]
REAL = CHARTS["logeuclid"]
DOMAIN = EigenvalueBounds(0.01, 100.0)
OPTIONS = {"epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN, "metric": "hermitian"}


def cross_spectra(n, k, seed=0, tapers=12):
    """Averages of tapered periodograms z zᴴ of k coupled signals, at one frequency."""
    rng = np.random.default_rng(seed)
    mixing = np.eye(k) + 0.4 * np.exp(0.7j * np.subtract.outer(np.arange(k), np.arange(k)))
    z = rng.standard_normal((n, k, tapers)) + 1j * rng.standard_normal((n, k, tapers))
    Z = mixing @ z / np.sqrt(2 * tapers)
    return Z @ Z.conj().transpose(0, 2, 1)


@pytest.fixture(scope="module")
def X():
    return cross_spectra(2000, 3)


# --- the chart


@pytest.mark.parametrize("k", [1, 2, 5, 20, 70])
def test_vectors_are_those_of_the_logarithm(k):
    X = cross_spectra(2, k, tapers=2 * k)
    L = linalg.logm(X[0])
    np.testing.assert_allclose(CHART.logarithms(X[0]), L, atol=1e-11)
    v, w = CHART.vector(X)
    assert np.linalg.norm(v) == pytest.approx(np.linalg.norm(L), rel=1e-11)
    assert np.linalg.norm(v - w) == pytest.approx(np.linalg.norm(L - linalg.logm(X[1])), rel=1e-11)
    np.testing.assert_allclose(CHART.matrices(np.array([v, w])), X, atol=1e-11)


def test_distances_do_not_change_with_coordinates_or_inversion(X):
    U = np.linalg.qr(X[0])[0]
    turned = U @ X[:50] @ U.conj().T
    far = np.linalg.norm(CHART.vector(X[:25]) - CHART.vector(X[25:50]), axis=1)
    for Y in (turned, np.linalg.inv(X[:50]), X[:50].conj()):
        Y = 0.5 * (Y + Y.conj().transpose(0, 2, 1))
        again = np.linalg.norm(CHART.vector(Y[:25]) - CHART.vector(Y[25:]), axis=1)
        np.testing.assert_allclose(again, far, rtol=1e-10)


@pytest.mark.parametrize("domain", [DOMAIN, TraceBounds(0.05, 9.0), Ball(1.0)])
def test_a_real_record_is_a_complex_one_without_imaginary_part(random_spd, domain):
    X = random_spd(50, 3)
    np.testing.assert_array_equal(encode(X, domain, CHART), encode(X + 0j, domain, CHART))
    Y, _ = CHART.vectors(X, domain.region(3, CHART), kernels_for())
    wanted, _ = REAL.vectors(X, domain.region(3), kernels_for())
    np.testing.assert_allclose(Y[:, :6], wanted, atol=1e-12)
    np.testing.assert_allclose(Y[:, 6:], 0.0, atol=1e-12)
    assert domain.radius_for(3, CHART) == domain.radius_for(3)


def test_kernels_agree(X):
    for domain in (DOMAIN, TraceBounds(0.05, 9.0)):
        region = domain.region(3, CHART)
        a, b = (CHART.vectors(X, region, kernels)[0] for kernels in (reference, kernels_for()))
        np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("domain", [DOMAIN, TraceBounds(0.05, 9.0)])
def test_extreme_spectra_lie_in_the_region_and_at_its_edge(domain):
    region, rng = domain.region(3, CHART), np.random.default_rng(0)
    low, high = np.exp(region.log_low), np.exp(region.log_high)
    U = np.linalg.qr(rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3)))[0]
    X = np.stack([(U * w) @ U.conj().T for w in ([low, low, low], [low, low, high], [1, 2, 3])])
    Y, status = CHART.vectors(X, region, kernels_for())
    assert not status.any()
    assert (np.linalg.norm(Y - region.center, axis=1) <= region.radius * (1 + 1e-9)).all()
    np.testing.assert_allclose(CHART.matrices(Y), X, rtol=1e-9, atol=1e-9)
    for kernels in (reference, kernels_for()):
        assert CHART.at_edge(Y, region, kernels).tolist() == [True, True, False]


# --- hostile records


def broken():
    X = cross_spectra(1, 3)[0]
    skew, turned, hidden, negative = X.copy(), X.copy(), X.copy(), X - 10 * np.eye(3)
    skew[0, 1] += 0.1j
    turned[1, 1] += 0.2j
    hidden[0, 2] = complex(X[0, 2].real, np.nan)
    return {
        "is not Hermitian: entries (0, 1) and conjugate (1, 0) differ by 0.1": skew,
        "is not Hermitian: entry (1, 1) is": turned,
        "is not finite: entry (0, 2) is": hidden,
        "is not positive definite: smallest eigenvalue": negative,
        "has dtype object; expected real or complex numbers": X.astype(object),
    }


@pytest.mark.parametrize(("message", "record"), broken().items(), ids=range(len(broken())))
def test_invalid_records_are_named_or_are_the_centre(X, message, record):
    data = [*X[:20], record]
    with pytest.raises(InvalidMatrixError) as refused:
        private_mean(data, **OPTIONS)
    assert str(refused.value).startswith(f"X: matrix 20 {message}")
    total = exact_sum(data, DOMAIN, "center", CHART)
    np.testing.assert_array_equal(total, exact_sum(X[:20], DOMAIN, chart=CHART))


def test_rounding_is_that_of_the_dtype(X):
    """An asymmetry of 1e-7 is rounding in complex64 and none in complex128."""
    A = X[:1].copy()
    A[0, 0, 1] += 1e-7j * np.abs(A).max()
    for dtype, status in ((np.complex64, Status.OK), (np.complex128, Status.NOT_SYMMETRIC)):
        assert CHART.vectors(A.astype(dtype), DOMAIN.region(3, CHART), kernels_for())[1] == status
    singles = encode(A.astype(np.complex64), DOMAIN, CHART)
    mixed = encode([X[1], *A.astype(np.complex64), X[2].real], DOMAIN, CHART)
    np.testing.assert_array_equal(mixed[1], singles[0])


# --- releases


@pytest.mark.parametrize("method", ["oneshot", "adaptive"])
def test_means_of_cross_spectra_are_within_their_bounds(X, method):
    truth = CHART.vector(X).mean(axis=0)
    missed, errors = 0, []
    for seed in range(20):
        release = private_mean(X, method=method, random_state=seed, **OPTIONS)
        M = release.value
        assert M.dtype == np.complex128
        assert (M == M.conj().T).all()
        assert np.linalg.eigvalsh(M)[0] > 0
        errors.append(np.linalg.norm(CHART.vector(M) - truth))
        missed += errors[-1] > release.error_bound(0.95)
    assert missed <= 4
    assert max(errors) < np.linalg.norm(truth - CHART.vector(np.eye(3)))  # it says something


def test_a_released_mean_is_the_centre_of_a_ball(X, tmp_path):
    """The ball travels with sums and certificates; other metrics refuse its centre."""
    domain = Ball(3.0, private_mean(X, **OPTIONS).value)
    options = {**OPTIONS, "domain": domain}
    release = private_mean(X, **options)
    assert all(check.ok for check in release.verify() if check.name != "signature")
    assert domain_of(json.loads(json.dumps(release.certificate["domain"]))) == domain
    assert domain.contains(X[:5], CHART).all()
    assert domain.contains(domain.clip(1e3 * X[:5], CHART), CHART).all()
    kept = LatticeSum.of(X, domain, metric="hermitian").save(tmp_path / "a.sum")
    assert LatticeSum.load(kept).domain == domain
    with pytest.raises(InvalidMatrixError, match="centre has dtype complex128; .*'hermitian'"):
        private_mean(X.real, **{**options, "metric": "logeuclid"})
    with pytest.raises(InvalidMatrixError, match="not Hermitian"):
        Ball(1.0, X[0] + 1j)


def test_a_release_is_saved_verified_and_drawn(X, tmp_path):
    ledger = Ledger(tmp_path / "a.ledger", epsilon=1.0, delta=1e-6)
    release = private_mean(X, ledger=ledger, label="spectra", **OPTIONS)
    again, certificate = ledger.recover(1)
    assert again.tobytes() == release.value.tobytes()
    assert certificate == release.certificate
    loaded = Release.load(release.save(tmp_path / "out"))
    assert loaded.value.tobytes() == release.value.tobytes()
    assert all(check.ok for check in loaded.verify() if check.name != "signature")
    assert loaded.certificate["metric"] == "hermitian"
    assert "imaginary part." in html_report(loaded)


def test_sums_estimators_persons_and_plans(X, tmp_path):
    halves = [LatticeSum.of(part, DOMAIN, metric="hermitian") for part in (X[:900], X[900:])]
    whole = halves[0] + LatticeSum.load(halves[1].save(tmp_path / "second.sum"))
    np.testing.assert_array_equal(whole.total, exact_sum(X, DOMAIN, chart=CHART))
    assert release_sum(whole, epsilon=1.0, delta=1e-6).value.dtype == np.complex128
    fitted = PrivateFrechetMean(**OPTIONS).fit(X)
    Z = fitted.transform(X[:5])
    np.testing.assert_allclose(Z, CHART.vector(X[:5]) - CHART.vector(fitted.mean_))
    people = private_mean(X, groups=np.arange(len(X)) // 4, **OPTIONS)
    assert people.certificate["unit"] == "person"
    pairs = private_mean(X.reshape(-1, 2, 3, 3), **OPTIONS)
    assert pairs.value.shape == (2, 3, 3)
    budget = {"n": 2000, "k": 3, "epsilon": 1.0, "delta": 1e-6, "domain": DOMAIN}
    plans = [plan(method="oneshot", metric=name, **budget) for name in ("hermitian", "logeuclid")]
    complex_one, real = (each.one_shot["gaussian"].rms for each in plans)
    assert complex_one / real == pytest.approx(np.sqrt(9 / 6), rel=1e-6)  # of dimensions


def test_on_the_command_line(X, tmp_path, monkeypatch, capsys):
    import sys

    from spdp import cli

    np.save(tmp_path / "spectra.npy", X.astype(np.complex64))
    monkeypatch.chdir(tmp_path)
    words = "spdp mean spectra.npy --epsilon 1 --delta 1e-6 --eigenvalues 0.01 100"
    for more, code in (("--metric hermitian --json", 0), ("--metric hermitian", 0), ("", 3)):
        monkeypatch.setattr(sys, "argv", [*words.split(), *more.split()])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        assert stop.value.code == code, err
        if "json" in more:
            value = json.loads(out)["value"]
            assert np.shape(value["real"]) == np.shape(value["imag"]) == (3, 3)
    assert err.count("\n") == 1
    assert "spectra.npy has dtype complex64; expected real numbers: metric='hermitian'" in err
