"""The NumPy reference of every kernel: short enough to check by eye, and a fallback."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.kernels import base, constants
from spdp.kernels.arrays import Array, Ints, Statuses
from spdp.kernels.base import RECORD_NORM, Region, Status
from spdp.kernels.vecd import compose, dimension, invvecd, size_of, symmetric, vecd

NAME = "numpy"
FUSED: dict[str, Any] = {}  # whole queries in one pass: none
LN2 = float(np.log(2.0))
BLOCK_BYTES = 4 << 20
VECTOR_ROWS = 4096


def blocks(m: int, k: int) -> Iterator[slice]:
    """Slices that keep every temporary array near ``BLOCK_BYTES``."""
    step = max(1, BLOCK_BYTES // (8 * k * k))
    return (slice(start, min(start + step, m)) for start in range(0, m, step))


class Prepared(NamedTuple):
    stack: Array  # symmetrised, scaled by powers of two to entries near 1
    exponent: NDArray[np.intc]
    largest: Array  # entry of each, scaled
    status: Statuses  # so far


def prepare(X: NDArray[Any], slack: float = 0.0) -> Prepared:
    """Symmetrise and scale; asymmetry up to a tolerance counts as rounding."""
    with np.errstate(invalid="ignore"):
        A = X.astype(np.float64)
    big = np.abs(A).max(axis=(1, 2))
    finite = np.isfinite(big)
    A[~finite] = np.eye(A.shape[1])
    big[~finite] = 1.0
    exponent = np.frexp(big)[1]
    A = np.ldexp(A, -exponent[:, None, None])
    transposed = A.transpose(0, 2, 1)
    with np.errstate(over="ignore"):
        largest = np.ldexp(big, -exponent)
        relative = base.symmetry_tolerance(X.dtype) * largest
        tolerance = np.maximum(relative, np.ldexp(slack, -exponent))
    symmetric = np.abs(A - transposed).max(axis=(1, 2)) <= tolerance
    status = np.where(symmetric, Status.OK, Status.NOT_SYMMETRIC)
    status[~finite] = Status.NOT_FINITE
    return Prepared(0.5 * (A + transposed), exponent, largest, status.astype(np.uint8))


def eigh(X: NDArray[Any]) -> tuple[Array, Array, Statuses]:
    """Eigenvalues (ascending) and orthonormal eigenvectors of symmetric matrices."""
    m, k = X.shape[:2]
    w, V, status = np.empty((m, k)), np.empty((m, k, k)), np.empty(m, np.uint8)
    for s in blocks(m, k):
        A, exponent, _, status[s] = prepare(X[s])
        values, V[s] = np.linalg.eigh(A)
        w[s] = np.ldexp(values, exponent[:, None])
    return w, V, status


def _log_eigen(X: NDArray[Any]) -> tuple[Array, Array, Statuses, Array]:
    """Log-eigenvalues, eigenvectors, status and smallest eigenvalues of one block.

    Invalid matrices get the logarithm of 1.
    """
    A, exponent, _, status = prepare(X)
    w, V = np.linalg.eigh(A)
    smallest = np.ldexp(w[:, 0], exponent)
    status[(status == Status.OK) & ~(w[:, 0] > 0)] = Status.NOT_POSITIVE
    w[status != Status.OK] = 1.0
    return np.log(w) + (exponent * LN2)[:, None], V, status, smallest


def logm(X: NDArray[Any]) -> tuple[Array, Statuses, Array]:
    """Matrix logarithms, status, and smallest eigenvalues (for messages)."""
    m, k = X.shape[:2]
    L, status, smallest = np.empty((m, k, k)), np.empty(m, np.uint8), np.empty(m)
    for s in blocks(m, k):
        logs, V, status[s], smallest[s] = _log_eigen(X[s])
        L[s] = compose(V, logs)
    return L, status, smallest


def log_sum(
    X: NDArray[Any], weights: Array | None = None, congruence: Array | None = None
) -> tuple[Array, Statuses, Array]:
    """Weighted sum of matrix logarithms, status, and smallest eigenvalues.

    With ``congruence`` W, of the matrices W·X·Wᵀ.
    """
    m, k = X.shape[:2]
    total, status, smallest = np.zeros((k, k)), np.empty(m, np.uint8), np.empty(m)
    for s in blocks(m, k):
        A = X[s] if congruence is None else congruent(X[s], congruence)
        L, status[s], smallest[s] = logm(A)
        total += L.sum(axis=0) if weights is None else np.tensordot(weights[s], L, 1)
    return total, status, smallest


def congruent(X: NDArray[Any], W: Array) -> Array:
    """W·X·Wᵀ of a stack, exactly symmetric; not finite where X is not symmetric."""
    A, exponent, _, status = prepare(X)
    B = symmetric(W @ A @ W.T)
    B[status != Status.OK] = np.nan
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(B, exponent[:, None, None]))


def scaled(W: Array) -> tuple[Array, int]:
    """W over a power of two, with a largest entry near 1, and its exponent."""
    exponent = int(np.frexp(np.abs(W).max())[1])
    return np.ascontiguousarray(np.ldexp(W, -exponent)), exponent


def carry(Y: Array, W: Array) -> Array:
    r"""Vectors vecd Logm(W·Expm(invvecd y)·Wᵀ) of vectors y (m, d).

    With Expm(invvecd y) = V·diag(eˡ)·Vᵀ and B = W·V·diag(e^½ˡ), W·X·Wᵀ = B·Bᵀ. Sizes
    stand apart as exponents, so that no product leaves the range of float64. An
    eigenvalue below 8k·2⁻⁵² of the largest one, which float64 does not resolve, is
    raised to that: every finite vector has an image, which depends on that vector and
    on W alone. One that is not finite becomes zero.
    """
    Z = np.empty(Y.shape)
    k = size_of(Y.shape[1])
    U, power = scaled(W)
    floor = constants.RANK_SLACK * k * float(np.finfo(np.float64).eps)
    for s in blocks(len(Y), k):
        finite = np.isfinite(Y[s]).all(axis=1, keepdims=True)
        w, V = np.linalg.eigh(invvecd(np.where(finite, Y[s], 0.0)))
        top = w[:, -1:]
        B = (U @ V) * np.exp(0.5 * (w - top))[:, None, :]
        A = symmetric(B @ B.transpose(0, 2, 1))
        exponent = np.frexp(np.diagonal(A, axis1=1, axis2=2).max(axis=1))[1]
        w, V = np.linalg.eigh(np.ldexp(A, -exponent[:, None, None]))
        logs = np.log(np.maximum(w, floor * w[:, -1:])) + top
        sizes = (exponent + 2 * power) * LN2
        Z[s] = np.where(finite, vecd(compose(V, logs + sizes[:, None])), 0.0)
    return Z


def expm(S: NDArray[Any]) -> tuple[Array, Statuses]:
    """Matrix exponentials of symmetric matrices."""
    m, k = S.shape[:2]
    E, status = np.empty((m, k, k)), np.empty(m, np.uint8)
    for s in blocks(m, k):
        A, exponent, _, status[s] = prepare(S[s], base.unit_slack(S.dtype, k))
        w, V = np.linalg.eigh(A)
        with np.errstate(over="ignore", invalid="ignore"):
            E[s] = compose(V, np.exp(np.ldexp(w, exponent[:, None])))
    return E, status


def log_vectors(X: NDArray[Any], log_low: float, log_high: float) -> tuple[Array, Statuses]:
    """vecd of logarithms with log-eigenvalues clipped; zero for invalid matrices.

    Unlike :func:`logm`, a smallest eigenvalue that is non-positive only by rounding is
    accepted: the record is about to be clipped, and must not be refused for being
    nearly singular. It counts as eps times the largest.
    """
    m, k = X.shape[:2]
    Y, status = np.empty((m, dimension(k))), np.empty(m, np.uint8)
    floor = float(np.finfo(np.float64).eps)
    for s in blocks(m, k):
        A, exponent, largest, code = prepare(X[s])
        w, V = np.linalg.eigh(A)
        top = w[:, -1]
        positive = (top > 0) & (w[:, 0] >= -base.rank_tolerance(X.dtype, largest, exponent, k))
        code[(code == Status.OK) & ~positive] = Status.NOT_POSITIVE
        w = np.where(w > 0, w, floor * top[:, None])
        w[code != Status.OK] = 1.0
        logs = np.clip(np.log(w) + (exponent * LN2)[:, None], log_low, log_high)
        Y[s] = vecd(compose(V, logs))
        Y[s][code != Status.OK] = 0.0
        status[s] = code
    return Y, status


def _norm_exceeds(q: Ints) -> NDArray[np.bool_]:
    """Whether Σ q² > 2⁶⁰, exactly, for |q| <= 2³⁰: squares are summed in two halves."""
    square = q * q
    high = (square >> 32).sum(axis=1)
    low = (square & 0xFFFFFFFF).sum(axis=1)
    high, low = high + (low >> 32), low & 0xFFFFFFFF
    bound = RECORD_NORM**2 >> 32
    return np.asarray((high > bound) | ((high == bound) & (low > 0)))


def enforce_norm(q: Ints) -> Ints:
    """The rule of the lattice: rows shrink toward zero until Σ q² <= 2⁶⁰ in integers.

    Every non-zero coordinate moves by at least one each time, so this ends.
    """
    over = np.flatnonzero(_norm_exceeds(q))
    while over.size:
        norm = np.sqrt((q[over].astype(np.float64) ** 2).sum(axis=1))
        shrink = np.minimum(1.0 - 1.0 / RECORD_NORM, RECORD_NORM / norm)
        q[over] = np.trunc(q[over] * shrink[:, None]).astype(np.int64)
        over = over[_norm_exceeds(q[over])]
    return q


def encode_vectors(Y: Array, center: Array, radius: float) -> Ints:
    """Clip vectors to the ball and round them toward its centre onto the lattice r/2³⁰.

    Enforced in integer arithmetic, whatever happened before in floating point: Σ q² <=
    2⁶⁰ for every row. A row whose norm is not a finite number is the centre.
    """
    top = float(RECORD_NORM)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        Z = (Y - center) / radius
        norm = np.sqrt(np.einsum("ij,ij->i", Z, Z))
        factor = np.minimum(1.0, 1.0 / norm)
    Z[~np.isfinite(norm)] = 0.0
    factor[~np.isfinite(norm)] = 0.0
    return enforce_norm(np.clip(np.trunc(Z * (factor * top)[:, None]), -top, top).astype(np.int64))


def vector_sum(
    Y: Array, center: Array, width: Array, radius: float, absolute: bool = False
) -> Ints:
    """Sum of the lattice points of z = (y − center)/width, or of |z|, in a ball."""
    total = np.zeros(Y.shape[1], np.int64)
    for start in range(0, len(Y), VECTOR_ROWS):
        with np.errstate(over="ignore", invalid="ignore"):
            Z = (Y[start : start + VECTOR_ROWS] - center) / width
        q = encode_vectors(Z, np.zeros(Y.shape[1]), radius)
        total += (np.abs(q) if absolute else q).sum(axis=0)
    return total


def rotate(Y: Array, center: Array, axes: Array, out: Array | None = None) -> Array:
    """Rows (y − center)·axes.

    Coordinate by coordinate: BLAS may round a row by its place among the others.
    """
    Z = np.zeros_like(Y)
    for j, axis in enumerate(axes):
        Z += (Y[:, j] - center[j])[:, None] * axis
    return Z


def vector_norms(Y: Array, center: Array, width: Array) -> Array:
    """‖(y − center)/width‖ of each row."""
    with np.errstate(over="ignore", invalid="ignore"):
        Z = (Y - center) / width
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", Z, Z)))


def encode(X: NDArray[Any], region: Region) -> tuple[Ints, Statuses]:
    """Lattice points of records in a region.

    An invalid record becomes the centre, 0.
    """
    q = np.empty((len(X), dimension(X.shape[1])), np.int64)
    status = np.empty(len(X), np.uint8)
    for s in blocks(*X.shape[:2]):
        Y, status[s] = log_vectors(X[s], region.log_low, region.log_high)
        Y[status[s] != Status.OK] = region.center
        q[s] = encode_vectors(Y, region.center, region.radius)
    return q, status


def lattice_sum(X: NDArray[Any], region: Region) -> tuple[Ints, Statuses]:
    """Sum of :func:`encode` over the records: exact in int64 for up to 2³² records."""
    total = np.zeros(dimension(X.shape[1]), np.int64)
    status = np.empty(len(X), np.uint8)
    for s in blocks(*X.shape[:2]):
        q, status[s] = encode(X[s], region)
        total += q.sum(axis=0)
    return total, status


def add_rows(Q: Ints, rows: NDArray[np.int64], out: Ints) -> None:
    """Add row i of ``Q`` to row rows[i] of ``out``."""
    np.add.at(out, rows, Q)
