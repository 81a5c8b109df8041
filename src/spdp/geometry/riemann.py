r"""The affine-invariant metric: distance, geodesics and the Fréchet (Karcher) mean.

d(A, B) = ‖Logm(A^-½·B·A^-½)‖_F. With a factor G of C = G·Gᵀ, the *vector of X seen from
G* is y = vecd Logm(G⁻¹·X·G⁻ᵀ): ‖y‖ = d(C, X), and another factor of C only rotates it.
Exp_C(w) = G·Expm(invvecd w)·Gᵀ. Going there by G ← G·Expm(½·invvecd w) transports in
parallel: a tangent vector keeps its coordinates.

*The mean.* f = ½·mean d²(·, X_i) has the gradient −v at C, v the mean of the vectors
seen from C, and 1 ≤ ∇²f, so that d(C, mean) ≤ ‖v‖: the iteration ends with a bound on
its own error. It is L-BFGS in transported coordinates, from the log-Euclidean mean. A
step at which ‖v‖ grows is taken back and halved.
"""

import warnings
from collections import deque
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spdp.data.batching import NUMBERS, check_status, matrix_stack
from spdp.errors import ParameterError
from spdp.geometry import factors
from spdp.kernels import kernels_for
from spdp.kernels.arrays import Array
from spdp.kernels.vecd import compose, symmetric

MEMORY = 8  # steps that L-BFGS remembers
ROUNDING = 64.0 * float(np.finfo(np.float64).eps)  # per dimension: a step that is no more than it
_TINY = float(np.finfo(np.float64).tiny)


def distance_riemann(A: ArrayLike, B: ArrayLike, squared: bool = False) -> Any:
    """Affine-invariant distance ‖Logm(A^-½·B·A^-½)‖_F; batch shapes broadcast.

    Complex matrices must be Hermitian.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(distance_riemann(np.eye(4), np.e * np.eye(4))), 12)
    2.0
    """
    X, Y = (_checked(M, name) for M, name in ((A, "A"), (B, "B")))
    w = _eigenvalues(X, Y)
    square = (np.log(w) ** 2).sum(axis=-1)
    return square if squared else np.sqrt(square)


def geodesic_riemann(A: ArrayLike, B: ArrayLike, alpha: ArrayLike = 0.5) -> NDArray[Any]:
    """The point A^½·(A^-½·B·A^-½)^α·A^½ of the geodesic from A (α = 0) to B (α = 1).

    Batch shapes broadcast, that of ``alpha`` too. Complex matrices must be Hermitian.

    Examples
    --------
    >>> import numpy as np
    >>> geodesic_riemann(np.diag([1.0, 2.0]), np.diag([4.0, 8.0])).round(6)
    array([[2., 0.],
           [0., 4.]])
    """
    X, Y = (_checked(M, name) for M, name in ((A, "A"), (B, "B")))
    at = np.asarray(alpha, dtype=np.float64)
    if not np.isfinite(at).all():
        raise ParameterError("alpha must be finite")
    G = np.linalg.cholesky(X)
    w, V = np.linalg.eigh(_seen_from(G, Y))
    U = G @ V
    return np.asarray(compose(U, np.maximum(w, _TINY) ** at[..., None]))


def mean_riemann(
    X: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    tol: float = 1e-10,
    maxiter: int = 50,
    init: ArrayLike | None = None,
) -> NDArray[Any]:
    """Fréchet mean of the affine-invariant metric over the axis before the matrices.

    Not private; :func:`spdp.private_mean` with ``metric="riemann"`` is.

    Parameters
    ----------
    X : array (..., n, k, k)
        Symmetric, or complex and Hermitian: so is the mean.
    sample_weight : array (n,), optional
        Non-negative, normalised to sum 1. Uniform when absent.
    tol : float
        The iteration ends when the mean's distance to the result is at most this, or
        when rounding lets it come no closer.
    maxiter : int
        Passes over the matrices, at most; a warning says that they did not suffice.
    init : array (k, k), optional
        Where to start; by default at the log-Euclidean mean.

    Examples
    --------
    >>> import numpy as np
    >>> mean_riemann([np.diag([1.0, 2.0]), np.diag([4.0, 2.0])]).round(6)
    array([[2., 0.],
           [0., 2.]])
    """
    A = matrix_stack(X, kinds=NUMBERS)
    n, k = factors.several(A).shape[-3], A.shape[-1]
    w = None if sample_weight is None else factors.weights_of(sample_weight, n)
    start = None if init is None else _checked(init, "init")
    if start is not None and start.shape != (k, k):
        raise ParameterError(f"init has shape {start.shape}; expected {(k, k)}")
    stack = A.reshape(-1, n, k, k)
    if np.iscomplexobj(A):
        stack = factors.doubled(A.reshape(-1, k, k)).reshape(-1, n, 2 * k, 2 * k)
    if start is not None and np.iscomplexobj(A):
        start = factors.doubled(start[None].astype(np.complex128))[0]
    means = []
    for place, one in enumerate(stack):
        M, status, smallest = _karcher(one, w, start, tol, maxiter)
        all_status = np.zeros((len(stack), n), np.uint8)
        all_status[place] = status
        low = np.zeros((len(stack), n))
        low[place] = smallest
        check_status(all_status.ravel(), A, low.ravel())
        means.append(M)
    result = np.array(means)
    if np.iscomplexobj(A):
        result = symmetric(result[:, :k, :k] + 1j * result[:, k:, :k])
    return np.asarray(result.reshape(*A.shape[:-3], k, k))


def _karcher(
    X: NDArray[Any], weights: Array | None, start: Array | None, tol: float, maxiter: int
) -> tuple[Array, NDArray[np.uint8], Array]:
    """The mean of one stack (n, k, k), and status and smallest eigenvalues of it."""
    kernels, n, k = kernels_for(X), len(X), X.shape[-1]
    total, status, smallest = kernels.log_sum(X, weights)
    if status.any():
        return total, status, smallest
    if start is None:
        values, V = np.linalg.eigh(total if weights is not None else total / n)
        G = (V * np.exp(0.5 * values)) @ V.T
    else:
        G = np.linalg.cholesky(start)

    known, here, v, length = Transported(), G, np.zeros((k, k)), np.inf
    step, size = np.zeros((k, k)), np.inf
    for _ in range(maxiter):
        total, status, smallest = kernels.log_sum(X, weights, np.asarray(np.linalg.inv(G)))
        if status.any():  # a matrix that rounding leaves without a logarithm, seen from here
            break
        new = total if weights is not None else total / n
        known.learn(step, v - new)
        if float(np.linalg.norm(new)) < length:
            here, v, length, size = G, new, float(np.linalg.norm(new)), np.inf
        elif size <= max(tol, ROUNDING * k):  # all that rounding allows
            G = here
            break
        step = known.step(v)
        size = min(float(np.linalg.norm(step)), 0.5 * size)  # half of a step that led too far
        step = step * (size / max(float(np.linalg.norm(step)), _TINY))
        G = _moved(here, step)
        if length <= tol:
            break
    else:
        text = f"mean_riemann: convergence not reached after {maxiter} iterations"
        warnings.warn(text, stacklevel=3)
    return np.asarray(symmetric(G @ G.T)), status, smallest


def _moved(G: Array, step: Array) -> Array:
    """G·Expm(½·step): the factor at the end of a geodesic, and transport along it."""
    w, V = np.linalg.eigh(step)
    return np.asarray(G @ compose(V, np.exp(0.5 * w)))


class Transported:
    """L-BFGS for the zero of a gradient whose coordinates are transported along."""

    def __init__(self) -> None:
        self.pairs: deque[tuple[Array, Array]] = deque(maxlen=MEMORY)

    def learn(self, step: Array, change: Array) -> None:
        """Remember that the gradient changed by this along a step."""
        if float((step * change).sum()) > 0.0:
            self.pairs.append((step, change))

    def step(self, v: Array) -> Array:
        """H⁻¹·v, H what is known of the Hessian; v itself where nothing is."""
        q, used = v.copy(), []
        for s, y in reversed(self.pairs):
            rho = 1.0 / float((s * y).sum())
            a = rho * float((s * q).sum())
            q = q - a * y
            used.append((s, y, rho, a))
        if self.pairs:
            s, y = self.pairs[-1]
            q = q * (float((s * y).sum()) / float((y * y).sum()))
        for s, y, rho, a in reversed(used):
            q = q + (a - rho * float((y * q).sum())) * s
        return np.asarray(q)


def _checked(M: ArrayLike, name: str) -> NDArray[Any]:
    """Matrices that are symmetric (or Hermitian) and positive definite, or an error."""
    A = matrix_stack(M, name, kinds=NUMBERS)
    stack = A.reshape(-1, *A.shape[-2:])
    real = factors.doubled(stack) if np.iscomplexobj(A) else stack
    _, status, smallest = kernels_for(A).logm(real)
    check_status(status, A, smallest)
    return np.asarray(symmetric(A.astype(np.result_type(A.dtype, np.float64))))


def _seen_from(G: NDArray[Any], X: NDArray[Any]) -> NDArray[Any]:
    """G⁻¹·X·G⁻ᴴ, exactly Hermitian."""
    half = np.linalg.solve(G, X)
    return np.asarray(symmetric(np.linalg.solve(G, np.swapaxes(half, -1, -2).conj())))


def _eigenvalues(A: NDArray[Any], B: NDArray[Any]) -> Array:
    """Eigenvalues of A⁻¹·B, above zero."""
    w = np.linalg.eigvalsh(_seen_from(np.linalg.cholesky(A), B))
    return np.asarray(np.maximum(w, _TINY))
