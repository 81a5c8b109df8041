"""Data to try things on: public or made up, never private."""

import numpy as np
from numpy.typing import NDArray

from spdp.errors import ParameterError
from spdp.privacy import check_positive

__all__ = ["synthetic_spd"]


def synthetic_spd(n: int, k: int, radius: float = 0.25, random_state: int | np.random.Generator | None = None) -> NDArray[np.float64]:
    """The paper's synthetic records: eigenvalues uniform in [e^-r, e^r], eigenvectors Haar-distributed; shape (n, k, k)."""
    if n < 1 or k < 1:
        raise ParameterError(f"n and k must be at least 1, got {n} and {k}")
    r = check_positive("radius", radius)
    rng = np.random.default_rng(random_state)
    Q, R = np.linalg.qr(rng.standard_normal((n, k, k)))
    Q *= np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None, :]  # makes QR's orthogonal factor Haar-distributed
    w = rng.uniform(np.exp(-r), np.exp(r), (n, k))
    X = (Q * w[:, None, :]) @ Q.transpose(0, 2, 1)
    return np.asarray(0.5 * (X + X.transpose(0, 2, 1)))
