r"""Geometries of symmetric positive definite (SPD) matrices.

``vecd ∘ logm`` is an isometry from SPD(k) with the log-Euclidean metric onto Euclidean
R^d, d = k(k+1)/2, ``log_cholesky`` one with the log-Cholesky metric, ``off_log`` one
from full-rank correlation matrices with the off-log metric, d = k(k−1)/2: everything in
this package rests on such isometries. The affine-invariant metric, which is curved, is
in :mod:`.riemann`. Functions take arrays ``(..., k, k)`` of float32 or float64 and
return float64; the log-Euclidean and affine-invariant ones also take complex Hermitian
matrices. Results that are matrices are exactly symmetric, or Hermitian. Invalid input
raises :class:`~spdp.errors.InvalidMatrixError`, which names the first
offending matrix by index.

References
----------
V. Arsigny, P. Fillard, X. Pennec, N. Ayache, "Geometric means in a novel vector space
structure on symmetric positive-definite matrices", SIAM J. Matrix Anal. Appl. 29
(2007). Z. Lin, "Riemannian geometry of symmetric positive definite matrices via
Cholesky decomposition", SIAM J. Matrix Anal. Appl. 40 (2019). Y. Thanwerdas, X. Pennec,
"Theoretically and computationally convenient geometries on full-rank correlation
matrices", SIAM J. Matrix Anal. Appl. 43 (2022).
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spdp.data.batching import NUMBERS, check_status, matrix_stack
from spdp.errors import InvalidMatrixError, ParameterError
from spdp.geometry.factors import (
    above,
    correlation_of,
    correlations,
    factor_of,
    hermitian_expm,
    hermitian_logm,
    several,
    square,
    vector_of,
    weights_of,
)
from spdp.geometry.riemann import distance_riemann, geodesic_riemann, mean_riemann
from spdp.kernels import kernels_for, reference
from spdp.kernels import vecd as shapes
from spdp.kernels.arrays import Array
from spdp.kernels.base import Status, unit_slack
from spdp.kernels.vecd import size_of

__all__ = [
    "add",
    "distance_logchol",
    "distance_logeuclid",
    "distance_offlog",
    "distance_riemann",
    "expm",
    "geodesic_riemann",
    "invvecd",
    "log_cholesky",
    "logm",
    "mean_logchol",
    "mean_logeuclid",
    "mean_offlog",
    "mean_riemann",
    "off_log",
    "scale",
    "subtract",
    "vecd",
]


def _flat(A: NDArray[Any]) -> NDArray[Any]:
    return A.reshape(-1, *A.shape[-2:])


def logm(X: ArrayLike) -> Array:
    r"""Matrix logarithm of SPD matrices: X = V diag(λ) Vᵀ ↦ V diag(ln λ) Vᵀ.

    Examples
    --------
    >>> import numpy as np
    >>> logm(np.diag([1.0, np.e]))
    array([[0., 0.],
           [0., 1.]])
    """
    A = matrix_stack(X)
    L, status, smallest = kernels_for(A).logm(_flat(A))
    check_status(status, A, smallest)
    return L.reshape(A.shape)


def expm(S: ArrayLike) -> Array:
    """Matrix exponential of symmetric matrices, the inverse of :func:`logm`.

    Examples
    --------
    >>> import numpy as np
    >>> expm(np.diag([0.0, 1.0])).round(4)
    array([[1.    , 0.    ],
           [0.    , 2.7183]])
    """
    A = matrix_stack(S, "S")
    E, status = kernels_for(A).expm(_flat(A))
    check_status(status, A)
    if not np.isfinite(E).all():
        raise InvalidMatrixError(
            "expm overflows: an eigenvalue of S exceeds 709, the logarithm of the largest float64"
        )
    return E.reshape(A.shape)


def vecd(S: ArrayLike) -> Array:
    r"""Vector of a symmetric matrix, of the same norm: ‖vecd S‖₂ = ‖S‖_F.

    vecd S = [S_11 … S_kk, √2·S_12, √2·S_13, …, √2·S_(k-1)k].

    Examples
    --------
    >>> vecd([[1.0, 3.0], [3.0, 2.0]])
    array([1.        , 2.        , 4.24264069])
    """
    A = matrix_stack(S, "S")
    slack = unit_slack(A.dtype, A.shape[-1])
    check_status(reference.prepare(_flat(A), slack).status, A)
    half = 0.5 * A.astype(np.float64)
    return shapes.vecd(half + np.swapaxes(half, -1, -2))


def invvecd(v: ArrayLike) -> Array:
    """Symmetric matrix of a vector, the inverse of :func:`vecd`.

    ``v`` has shape (..., k(k+1)/2).

    Examples
    --------
    >>> import numpy as np
    >>> invvecd([1.0, 2.0, np.sqrt(2.0)])
    array([[1., 1.],
           [1., 2.]])
    """
    u = np.asarray(v, dtype=np.float64)
    if u.ndim == 0 or size_of(u.shape[-1]) == 0:
        raise ParameterError(f"v has shape {u.shape}; its last axis must have length k(k+1)/2")
    return shapes.invvecd(u)


def add(X: ArrayLike, Y: ArrayLike) -> Array:
    """Group operation X ⊕ Y = Expm(Logm X + Logm Y).

    Examples
    --------
    >>> import numpy as np
    >>> add(np.diag([1.0, 2.0]), np.diag([3.0, 4.0])).round(6)
    array([[3., 0.],
           [0., 8.]])
    """
    return expm(logm(X) + logm(Y))


def subtract(X: ArrayLike, Y: ArrayLike) -> Array:
    """X ⊖ Y = Expm(Logm X − Logm Y).

    Examples
    --------
    >>> import numpy as np
    >>> subtract(np.diag([3.0, 8.0]), np.diag([3.0, 4.0])).round(6)
    array([[1., 0.],
           [0., 2.]])
    """
    return expm(logm(X) - logm(Y))


def scale(a: ArrayLike, X: ArrayLike) -> Array:
    """Scalar multiplication a ⊙ X = Expm(a·Logm X); ``a`` broadcasts over the batch.

    Examples
    --------
    >>> import numpy as np
    >>> scale(2.0, np.diag([3.0, 4.0])).round(6)
    array([[ 9.,  0.],
           [ 0., 16.]])
    """
    factor = np.asarray(a, dtype=np.float64)
    if not np.isfinite(factor).all():
        raise ParameterError("a must be finite")
    return expm(factor[..., None, None] * logm(X))


def distance_logeuclid(X: ArrayLike, Y: ArrayLike, squared: bool = False) -> Any:
    """Log-Euclidean distance ρ(X, Y) = ‖Logm X − Logm Y‖_F; batch shapes broadcast.

    Complex matrices must be Hermitian.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(distance_logeuclid(np.eye(4), np.e * np.eye(4))), 12)
    2.0
    """
    D = _logarithms(X) - _logarithms(Y)
    square = np.einsum("...ij,...ij->...", D, D.conj()).real
    return square if squared else np.sqrt(square)


def mean_logeuclid(X: ArrayLike, sample_weight: ArrayLike | None = None) -> NDArray[Any]:
    """Fréchet mean Expm(Σ wᵢ Logm Xᵢ) over the axis before the matrices; not private.

    Parameters
    ----------
    X : array (..., n, k, k)
        Symmetric, or complex and Hermitian: so is the mean.
    sample_weight : array (n,), optional
        Non-negative, normalised to sum 1. Uniform when absent.

    Examples
    --------
    >>> import numpy as np
    >>> mean_logeuclid([np.diag([1.0, 2.0]), np.diag([4.0, 2.0])]).round(6)
    array([[2., 0.],
           [0., 2.]])
    """
    A = several(matrix_stack(X, kinds=NUMBERS))
    n = A.shape[-3]
    if A.ndim > 3 or np.iscomplexobj(A):
        w = weights_of(sample_weight, n)
        S = np.einsum("n,...nij->...ij", w, _logarithms(A))
        return hermitian_expm(S) if np.iscomplexobj(S) else expm(S)
    weights = None if sample_weight is None else weights_of(sample_weight, n)
    total, status, smallest = kernels_for(A).log_sum(A, weights)
    check_status(status, A, smallest)
    return expm(total / n if weights is None else total)


def log_cholesky(X: ArrayLike) -> Array:
    """Vectors (ln L_ii, L_ij for i > j) of SPD matrices X = LLᵀ; shape (..., k(k+1)/2).

    Entries below the diagonal are in the order in which vecd has those above it.

    Examples
    --------
    >>> log_cholesky([[1.0, 2.0], [2.0, 5.0]])
    array([0., 0., 2.])
    """
    A = matrix_stack(X)
    prepared = reference.prepare(_flat(A))
    odd = prepared.exponent % 2  # roots of even powers of two are exact
    check_status(prepared.status, A)
    scaled = np.ldexp(prepared.stack, odd[:, None, None])
    try:
        L = np.linalg.cholesky(scaled)
    except np.linalg.LinAlgError:
        _, status, smallest = kernels_for(A).logm(_flat(A))
        check_status(np.maximum(status, _without_factor(scaled)), A, smallest)
        raise
    L = np.ldexp(L, ((prepared.exponent - odd) // 2)[:, None, None])
    return vector_of(L.reshape(A.shape))


def _without_factor(stack: Array) -> NDArray[np.uint8]:
    """Status by Cholesky factor: by rounding, a matrix may have only a logarithm."""
    status = np.zeros(len(stack), np.uint8)
    for i, matrix in enumerate(stack):
        try:
            np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            status[i] = Status.NOT_POSITIVE
    return status


def distance_logchol(X: ArrayLike, Y: ArrayLike, squared: bool = False) -> Any:
    """Log-Cholesky distance ‖log_cholesky X − log_cholesky Y‖; batch shapes broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(distance_logchol(np.eye(4), np.e * np.eye(4))), 12)
    1.0
    """
    return _length(log_cholesky(X) - log_cholesky(Y), squared)


def mean_logchol(X: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
    """Fréchet mean of the log-Cholesky metric; parameters as in :func:`mean_logeuclid`.

    LLᵀ of the factor whose vector is the mean of the matrices' vectors; not private.

    Examples
    --------
    >>> import numpy as np
    >>> mean_logchol([np.diag([1.0, 2.0]), np.diag([4.0, 2.0])]).round(6)
    array([[2., 0.],
           [0., 2.]])
    """
    A = several(matrix_stack(X))
    return square(factor_of(_average(log_cholesky(A), sample_weight)))


def off_log(X: ArrayLike) -> Array:
    """Vectors √2·(Logm C)_ij, i < j, of correlation matrices C; shape (..., k(k−1)/2).

    In the order (1,2), (1,3), …, (1,k), (2,3), …, (k−1,k): row by row above the
    diagonal. A covariance matrix counts as its correlation matrix.

    Examples
    --------
    >>> off_log([[1.0, 0.5], [0.5, 1.0]]).round(4)
    array([0.7768])
    """
    A = matrix_stack(X)
    C, _ = correlations(_flat(A))
    return above(logm(C.reshape(A.shape)))


def distance_offlog(X: ArrayLike, Y: ArrayLike, squared: bool = False) -> Any:
    """Off-log distance ‖off_log X − off_log Y‖ of correlations; batch shapes broadcast.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(distance_offlog(np.eye(2), [[1.0, 0.5], [0.5, 1.0]])), 4)
    0.7768
    """
    return _length(off_log(X) - off_log(Y), squared)


def mean_offlog(X: ArrayLike, sample_weight: ArrayLike | None = None) -> Array:
    """Fréchet mean of the off-log metric; parameters as in :func:`mean_logeuclid`.

    The correlation matrix whose vector is the mean of the matrices' vectors; not
    private.

    Examples
    --------
    >>> mean_offlog([[[1.0, 0.5], [0.5, 1.0]], [[1.0, -0.5], [-0.5, 1.0]]]).round(6)
    array([[1., 0.],
           [0., 1.]])
    """
    A = several(matrix_stack(X))
    return correlation_of(_average(off_log(A), sample_weight), A.shape[-1])


def _logarithms(X: ArrayLike) -> NDArray[Any]:
    A = matrix_stack(X, kinds=NUMBERS)
    return hermitian_logm(A) if np.iscomplexobj(A) else logm(A)


def _length(D: Array, squared: bool) -> Any:
    square = np.einsum("...i,...i->...", D, D)
    return square if squared else np.sqrt(square)


def _average(V: Array, sample_weight: ArrayLike | None) -> Array:
    """Weighted mean of vectors (..., n, d)."""
    w = weights_of(sample_weight, V.shape[-2])
    return np.asarray(np.einsum("n,...nd->...d", w, V))
