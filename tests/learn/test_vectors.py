"""Every model takes the records that it was fitted to, complex ones too."""

import numpy as np
import pytest

from spdp import Ball, PrivateFrechetMean, PrivateMDM, PrivateTangentLDA, PrivateTangentPCA
from spdp.charts import chart_of
from spdp.errors import InvalidMatrixError
from spdp.learn.base import vectors_of

OPTIONS = {"domain": Ball(3.0), "metric": "hermitian", "epsilon": 5.0, "delta": 1e-6}
OPTIONS["random_state"] = 0
MODELS = {
    "mean": PrivateFrechetMean(**OPTIONS),
    "pca": PrivateTangentPCA(2, **OPTIONS),
    "mdm": PrivateMDM(classes=[0, 1], **OPTIONS),
    "lda": PrivateTangentLDA(classes=[0, 1], **OPTIONS),
}


@pytest.fixture(scope="module")
def hermitian():
    """Two classes of complex 2×2 matrices, and their labels."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((2, 2000, 2, 16))
    Z, y = A[0] + 1j * A[1], np.arange(2000) % 2
    return (1.0 + 2.0 * y)[:, None, None] * (Z @ Z.conj().transpose(0, 2, 1) / 32), y


@pytest.mark.parametrize("name", MODELS)
def test_models_of_complex_matrices_take_complex_matrices(hermitian, name):
    X, y = hermitian
    model = MODELS[name].fit(X, y)
    if name in ("mdm", "lda"):
        assert model.score(X[:200], y[:200]) > 0.9
    else:
        assert model.transform(X[:200]).shape == (200, 4 if name == "mean" else 2)


def test_another_size_or_another_kind_is_refused():
    chart = chart_of("logeuclid")
    with pytest.raises(InvalidMatrixError, match=r"X has shape \(5, 2, 2\); expected \(n, 3, 3\)"):
        vectors_of(np.stack([np.eye(2)] * 5), chart, (3, 3))
    with pytest.raises(InvalidMatrixError, match="expected"):
        vectors_of(np.eye(3), chart, (3, 3))
    with pytest.raises(InvalidMatrixError, match="complex"):
        vectors_of(np.stack([np.eye(3, dtype=complex)]), chart, (3, 3))
