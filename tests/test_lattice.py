import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spdp import Ball, EigenvalueBounds
from spdp.charts import clip_to_ball
from spdp.errors import DataError, InvalidMatrixError, ParameterError
from spdp.geometry import logm, vecd
from spdp.kernels.reference import encode_vectors
from spdp.lattice import encode, exact_sum, quantize

BOUND = 1 << 60


def exact_norms(q):
    return [sum(int(v) ** 2 for v in row) for row in q]


def adversarial(rng, n, k):
    """SPD matrices with eigenvalues from 1e-300 to 1e300.

    Graded, clustered, nearly singular, subnormal.
    """
    kind = rng.integers(0, 5, n)
    exponent = rng.uniform(-300, 300, (n, k))
    exponent[kind == 1] = rng.uniform(-300, 300, (int((kind == 1).sum()), 1))
    exponent[kind == 2] = rng.choice([-300.0, 300.0], (int((kind == 2).sum()), k))
    exponent[kind == 3] = rng.uniform(-323, -307, (int((kind == 3).sum()), k))
    w = 10.0**exponent
    Q, _ = np.linalg.qr(rng.standard_normal((n, k, k)))
    Q[kind == 4] = np.eye(k)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        X = (Q * w[:, None, :]) @ Q.transpose(0, 2, 1)
    X = 0.5 * X + 0.5 * X.transpose(0, 2, 1)
    dead = ~(np.abs(X).max(axis=(1, 2)) > 0)
    X[dead] = 1e-300 * np.eye(k)
    return X


@pytest.mark.parametrize(
    "domain",
    [
        Ball(1e-3),
        Ball(5.0),
        Ball(1e4),
        EigenvalueBounds(1e-6, 3.0),
        EigenvalueBounds(1e-300, 1e300),
    ],
)
@pytest.mark.parametrize("k", [1, 2, 3, 5, 9])
def test_no_input_breaks_the_norm_bound(domain, k):
    """Tens of thousands of adversarial matrices, in exact Python integers."""
    X = adversarial(np.random.default_rng(k), 1500, k)
    q = encode(X, domain)
    assert q.dtype == np.int64
    assert max(exact_norms(q)) <= BOUND


@settings(max_examples=300)
@given(st.integers(1, 60), st.integers(0, 2**32 - 1), st.floats(-12, 12), st.floats(-12, 12))
def test_encoding_of_vectors_never_breaks_the_bound(d, seed, log_radius, log_size):
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((8, d)) * 10**log_size
    Y[1] = 0.0
    Y[1, 0] = 10**log_size
    Y[2] = 10**log_size
    center = rng.standard_normal(d)
    q = encode_vectors(Y, center, 10**log_radius)
    assert max(exact_norms(q)) <= BOUND


def test_records_over_the_bound_are_shrunk_toward_the_centre():
    """Sixteen equal coordinates, rounded up a little.

    The float clip alone would break the bound.
    """
    Y = np.full((1, 16), 0.25 * (1 + 4e-16))
    q = encode_vectors(Y, np.zeros(16), 1.0)
    assert exact_norms(q)[0] <= BOUND
    assert exact_norms(q)[0] >= BOUND * (1 - 1e-8)


@pytest.mark.parametrize(
    "domain", [Ball(1.5, np.diag([1.0, 2.0, 0.5])), EigenvalueBounds(0.3, 4.0)]
)
def test_encoding_is_the_clipped_record_rounded_toward_the_centre(random_spd, domain):
    X = random_spd(300, 3, condition=50.0)
    region = domain.region(3)
    Y = vecd(logm(domain.clip(X))) - region.center
    q = encode(X, domain)
    exact = Y * (2.0**30 / region.radius)
    assert np.abs(q - exact).max() < 1 + 1e-5
    assert (np.abs(q) <= np.abs(exact) + 1e-4).all()
    np.testing.assert_allclose(clip_to_ball(Y, np.zeros(6), region.radius), Y, atol=1e-9)


def test_sums_are_identical_for_any_order_and_blocks(random_spd):
    X = random_spd(2500, 4, condition=1e4)
    domain = Ball(2.0)
    total = exact_sum(X, domain)
    np.testing.assert_array_equal(total, encode(X, domain).sum(axis=0))
    rng = np.random.default_rng(0)
    for cut in (1, 7, 300, 2500):
        order = rng.permutation(len(X))
        pieces = (X[order][i : i + cut] for i in range(0, len(X), cut))
        np.testing.assert_array_equal(exact_sum(pieces, domain), total)
    np.testing.assert_array_equal(exact_sum(np.asfortranarray(X), domain), total)
    np.testing.assert_array_equal(exact_sum(X[::-1], domain), total)
    np.testing.assert_array_equal(exact_sum(list(X), domain), total)


def test_invalid_records(random_spd):
    X = random_spd(20, 3)
    for bad in (
        np.full((3, 3), np.nan),
        -np.eye(3),
        np.zeros((3, 3)),
        np.triu(np.ones((3, 3))),
        np.diag([1.0, np.inf, 1.0]),
    ):
        Y = X.copy()
        Y[11] = bad
        with pytest.raises(InvalidMatrixError, match="matrix 11 is not"):
            exact_sum(Y, Ball(1.0))
        with pytest.raises(InvalidMatrixError, match="matrix 11 is not"):
            exact_sum((Y[i : i + 4] for i in range(0, 20, 4)), Ball(1.0))
        np.testing.assert_array_equal(
            exact_sum(Y, Ball(1.0), on_invalid="center"), exact_sum(np.delete(X, 11, 0), Ball(1.0))
        )
    with pytest.raises(DataError, match="no records"):
        exact_sum(np.ones((0, 3, 3)), Ball(1.0), on_invalid="center")
    for shape in ((3, 3), (4, 2, 3)):
        with pytest.raises(DataError, match="shape"):
            exact_sum(np.ones(shape), Ball(1.0), on_invalid="center")
    with pytest.raises(DataError, match="block of shape"):
        exact_sum(iter([X, np.stack([np.eye(2)])]), Ball(1.0), on_invalid="center")
    with pytest.raises(DataError, match="no records"):
        exact_sum(iter([]), Ball(1.0))
    with pytest.raises(DataError, match="the others"):
        exact_sum([np.eye(2), np.eye(3)], Ball(1.0))


def test_encode_demands_a_domain(random_spd):
    with pytest.raises(ParameterError, match="leak"):
        encode(random_spd(3, 2), None)


def test_summaries_are_rounded_and_clamped():
    q = quantize(np.array([1e300, -1e300, 0.6]), 1.0)
    np.testing.assert_array_equal(q, [2**62, -(2**62), 1])


def test_a_misspelt_policy_is_refused(random_spd):
    with pytest.raises(ParameterError, match="on_invalid .*'center'"):
        exact_sum(random_spd(3, 2), Ball(1.0), on_invalid="rais")
