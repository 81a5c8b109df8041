"""Public numbers at the ends of float64: refused before payment, or released."""

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spdp import Ball, CorrelationBounds, EigenvalueBounds, Ledger, TraceBounds, private_mean
from spdp.charts import CHARTS
from spdp.errors import DataWarning, InvalidMatrixError, ParameterError

EXPONENTS = st.one_of(
    st.floats(-323.0, 308.0), st.sampled_from([-323.3, -320.0, -307.8, 0.0, 300.0, 308.2])
)
SIZES = EXPONENTS.map(lambda power: 10.0**power)
CONDITIONS = st.sampled_from([1.0, 1e3, 1e8, 1e13, 1e15, 1e30])
SEEDS = st.integers(0, 2**32 - 1)


def matrix(seed, k, size, condition):
    Q, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((k, k)))
    with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is refused
        A = (Q * (size * np.geomspace(condition**-0.5, condition**0.5, k))) @ Q.T
        return 0.5 * A + 0.5 * A.T


def matrices(k):
    return st.builds(matrix, SEEDS, st.just(k), SIZES, CONDITIONS)


def domains(k):
    """Functions, as a domain may refuse its numbers itself."""
    pair = st.tuples(SIZES, SIZES).map(sorted)
    radius = st.floats(-100.0, 100.0).map(lambda power: 10.0**power)
    near = st.floats(-3.0, 4.0).map(lambda power: 10.0**power)
    return st.one_of(
        st.builds(lambda p: lambda: EigenvalueBounds(*p), pair),
        st.builds(lambda p: lambda: TraceBounds(*p), pair),
        st.builds(lambda r: lambda: Ball(r), radius),
        st.builds(lambda r, C: lambda: Ball(r, C), near, matrices(k)),
        st.builds(lambda eta: lambda: CorrelationBounds(eta), st.floats(1e-320, 0.99)),
    )


def paid_and_lost(X, domain, **options):
    """What went wrong after payment; None where nothing did, or nothing was paid."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        ledger = Ledger(Path(folder) / "ledger", epsilon=50.0, delta=1e-5)
        try:
            release = private_mean(
                X, domain=domain(), on_invalid="center", ledger=ledger, anyway=True, **options
            )
        except (ParameterError, InvalidMatrixError) as error:
            return error if ledger.history() else None
        assert np.isfinite(release.value).all()
        return [check for check in release.verify() if not check.ok] or None


@pytest.mark.parametrize("seed", [1, 7, 9, 13])
def test_a_centre_beyond_the_domains_edge_verifies(seed):
    """The mean is brought back into the domain, hence away from such a centre."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((60, 2, 4))
    X = half @ half.swapaxes(-1, -2) * 10.0 ** rng.uniform(-150, 150)
    few = {"epsilon": 8.0, "delta": 0.0, "adjacency": "add-remove", "metric": "hermitian"}
    for _ in range(5):
        assert paid_and_lost(X, lambda: CorrelationBounds(0.3487), **few) is None


@settings(max_examples=100)
@given(st.data())
def test_nothing_is_paid_or_a_release_comes_back(data):
    check_extremes(data)


@pytest.mark.audit
@settings(max_examples=1000)
@given(st.data())
def test_nothing_is_paid_or_a_release_comes_back_a_thousand_times(data):
    check_extremes(data)


def check_extremes(data):
    k = data.draw(st.integers(1, 4), "k")
    metric = data.draw(st.sampled_from(list(CHARTS)), "metric")
    seen = metric == "logeuclid" and data.draw(st.booleans())
    options = {
        "metric": metric,
        "method": data.draw(st.sampled_from(["oneshot", "adaptive", "auto"]), "method"),
        "adjacency": data.draw(st.sampled_from(["replace-one", "add-remove"]), "adjacency"),
        "epsilon": data.draw(st.sampled_from([0.01, 1.0, 8.0]), "epsilon"),
        "delta": data.draw(st.sampled_from([1e-6, 1e-6, 0.0]), "delta"),
        "reference_point": data.draw(matrices(k), "point") if seen else None,
    }
    rng = np.random.default_rng(data.draw(SEEDS, "seed"))
    shape = data.draw(st.sampled_from([(3,), (60,), (30, 2)]), "shape")
    half = rng.standard_normal((*shape, k, k + 2))
    X = half @ half.swapaxes(-1, -2) * 10.0 ** rng.uniform(-150, 150)
    lost = paid_and_lost(X, data.draw(domains(k), "domain"), **options)
    assert lost is None, lost


@pytest.mark.parametrize(
    "point", [1e150 * np.eye(3), 1e-150 * np.eye(3), np.diag([1e140, 1e147, 1e153])]
)
def test_what_is_mapped_back_stays_within_float64(point):
    """Whitened results of e^±700 lie beyond it, seen from such a point."""
    X = np.broadcast_to(np.eye(3), (3, 3, 3))
    options = {"epsilon": 0.01, "delta": 1e-6, "method": "oneshot", "reference_point": point}
    for _ in range(10):
        assert paid_and_lost(X, lambda: TraceBounds(1e-320, 1e300), **options) is None
