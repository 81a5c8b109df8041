"""The NumPy reference of every kernel: short enough to check by eye, and what runs where nothing was compiled."""

from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Region",
    "Status",
    "eigh",
    "encode",
    "encode_vectors",
    "expm",
    "lattice_sum",
    "log_sum",
    "log_vectors",
    "logm",
    "vector_norms",
    "vector_sum",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Codes = NDArray[np.uint8]

LATTICE_BITS = 30  # a record's integer vector has norm at most 2**30
LN2 = float(np.log(2.0))
BLOCK_BYTES = 4 << 20


class Status(IntEnum):
    """What became of one matrix."""

    OK = 0
    NOT_FINITE = 1
    NOT_SYMMETRIC = 2
    NOT_POSITIVE = 3


class Region(NamedTuple):
    """A domain as the kernels see it: clip log-eigenvalues to an interval, then log-vectors to a ball."""

    log_low: float
    log_high: float
    center: Array
    radius: float


def symmetry_tolerance(dtype: np.dtype[Any]) -> float:
    """Largest ``|a_ij - a_ji| / max|a|`` that counts as rounding, for a matrix stored in ``dtype``."""
    return 1e-5 if dtype == np.float32 else 1e-8


def rank_tolerance(dtype: np.dtype[Any], k: int, exponent: NDArray[np.intc]) -> Array:
    """Smallest eigenvalues above ``-tolerance`` count as positive up to rounding, for matrices scaled by 2**-exponent.

    Rounding is that of the stored entries: relative to the largest one, or, among subnormal numbers, absolute.
    """
    info = np.finfo(np.float32 if dtype == np.float32 else np.float64)
    subnormal = int(np.frexp(info.smallest_subnormal)[1]) - 1
    return np.asarray(8.0 * k * np.maximum(float(info.eps), np.ldexp(1.0, subnormal - exponent)))


def upper_indices(k: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Strict upper triangle, row by row: the order of vecd's off-diagonal part."""
    return np.triu_indices(k, 1)


def vecd(S: Array) -> Array:
    """Isometry from symmetric matrices to vectors: diagonal, then √2 times the upper triangle."""
    k = S.shape[-1]
    i, j = upper_indices(k)
    return np.concatenate([np.diagonal(S, axis1=-2, axis2=-1), np.sqrt(2.0) * S[..., i, j]], axis=-1)


def invvecd(v: Array) -> Array:
    """Symmetric matrices of vectors ``(..., k(k+1)/2)``: the inverse of :func:`vecd`."""
    k = (int(np.sqrt(8 * v.shape[-1] + 1)) - 1) // 2
    S = np.zeros((*v.shape[:-1], k, k))
    i, j = upper_indices(k)
    S[..., np.arange(k), np.arange(k)] = v[..., :k]
    S[..., i, j] = v[..., k:] / np.sqrt(2.0)
    S[..., j, i] = S[..., i, j]
    return S


def blocks(m: int, k: int) -> Iterator[slice]:
    """Slices that keep every temporary array near ``BLOCK_BYTES``."""
    step = max(1, BLOCK_BYTES // (8 * k * k))
    return (slice(start, min(start + step, m)) for start in range(0, m, step))


def _prepare(X: NDArray[Any]) -> tuple[Array, NDArray[np.intc], Codes]:
    """Symmetrised copies scaled by powers of two to entries near 1 (exact), the exponents, and the status so far."""
    A = X.astype(np.float64)
    big = np.abs(A).max(axis=(1, 2))
    finite = np.isfinite(big)
    A[~finite] = np.eye(A.shape[1])
    big[~finite] = 1.0
    exponent = np.frexp(big)[1]
    A = np.ldexp(A, -exponent[:, None, None])
    transposed = A.transpose(0, 2, 1)
    symmetric = np.abs(A - transposed).max(axis=(1, 2)) <= symmetry_tolerance(X.dtype)
    status = np.where(finite, np.where(symmetric, Status.OK, Status.NOT_SYMMETRIC), Status.NOT_FINITE)
    return 0.5 * (A + transposed), exponent, status.astype(np.uint8)


def _compose(V: Array, values: Array) -> Array:
    """V diag(values) Vᵀ, exactly symmetric."""
    S = (V * values[:, None, :]) @ V.transpose(0, 2, 1)
    return 0.5 * (S + S.transpose(0, 2, 1))


def eigh(X: NDArray[Any]) -> tuple[Array, Array, Codes]:
    """Eigenvalues (ascending) and orthonormal eigenvectors of symmetric matrices."""
    m, k = X.shape[:2]
    w, V, status = np.empty((m, k)), np.empty((m, k, k)), np.empty(m, np.uint8)
    for s in blocks(m, k):
        A, exponent, status[s] = _prepare(X[s])
        values, V[s] = np.linalg.eigh(A)
        w[s] = np.ldexp(values, exponent[:, None])
    return w, V, status


def _log_eigen(X: NDArray[Any]) -> tuple[Array, Array, Codes, Array]:
    """Log-eigenvalues, eigenvectors, status and smallest eigenvalue of one block; non-positive matrices get log 1."""
    A, exponent, status = _prepare(X)
    w, V = np.linalg.eigh(A)
    smallest = np.ldexp(w[:, 0], exponent)
    status[(status == Status.OK) & ~(w[:, 0] > 0)] = Status.NOT_POSITIVE
    w[status != Status.OK] = 1.0
    return np.log(w) + (exponent * LN2)[:, None], V, status, smallest


def logm(X: NDArray[Any]) -> tuple[Array, Codes, Array]:
    """Matrix logarithms, status, and each matrix's smallest eigenvalue (for messages)."""
    m, k = X.shape[:2]
    L, status, smallest = np.empty((m, k, k)), np.empty(m, np.uint8), np.empty(m)
    for s in blocks(m, k):
        logs, V, status[s], smallest[s] = _log_eigen(X[s])
        L[s] = _compose(V, logs)
    return L, status, smallest


def log_sum(X: NDArray[Any], weights: Array | None = None) -> tuple[Array, Codes, Array]:
    """Weighted sum of matrix logarithms without storing them, status, and smallest eigenvalues."""
    m, k = X.shape[:2]
    total, status, smallest = np.zeros((k, k)), np.empty(m, np.uint8), np.empty(m)
    for s in blocks(m, k):
        L, status[s], smallest[s] = logm(X[s])
        total += L.sum(axis=0) if weights is None else np.tensordot(weights[s], L, 1)
    return total, status, smallest


def expm(S: NDArray[Any]) -> tuple[Array, Codes]:
    """Matrix exponentials of symmetric matrices."""
    m, k = S.shape[:2]
    E, status = np.empty((m, k, k)), np.empty(m, np.uint8)
    for s in blocks(m, k):
        A, exponent, status[s] = _prepare(S[s])
        w, V = np.linalg.eigh(A)
        with np.errstate(over="ignore", invalid="ignore"):
            E[s] = _compose(V, np.exp(np.ldexp(w, exponent[:, None])))
    return E, status


def log_vectors(X: NDArray[Any], log_low: float, log_high: float) -> tuple[Array, Codes]:
    """vecd of the logarithm with log-eigenvalues clipped to [log_low, log_high]; zero for unusable matrices.

    Unlike :func:`logm`, a smallest eigenvalue that is non-positive only by rounding is accepted: the record is about
    to be clipped, and must not be refused for being nearly singular. It counts as eps times the largest.
    """
    m, k = X.shape[:2]
    Y, status = np.empty((m, k * (k + 1) // 2)), np.empty(m, np.uint8)
    floor = float(np.finfo(np.float64).eps)
    for s in blocks(m, k):
        A, exponent, code = _prepare(X[s])
        w, V = np.linalg.eigh(A)
        top = w[:, -1]
        positive = (top > 0) & (w[:, 0] >= -rank_tolerance(X.dtype, k, exponent))
        code[(code == Status.OK) & ~positive] = Status.NOT_POSITIVE
        w = np.where(w > 0, w, floor * top[:, None])
        w[code != Status.OK] = 1.0
        logs = np.clip(np.log(w) + (exponent * LN2)[:, None], log_low, log_high)
        Y[s] = vecd(_compose(V, logs))
        Y[s][code != Status.OK] = 0.0
        status[s] = code
    return Y, status


def _norm_exceeds(q: Ints) -> NDArray[np.bool_]:
    """Whether Σ q² > 2**60, exactly, for |q| <= 2**30: squares are summed in two halves that cannot overflow."""
    square = q * q
    high = (square >> 32).sum(axis=1)
    low = (square & 0xFFFFFFFF).sum(axis=1)
    high, low = high + (low >> 32), low & 0xFFFFFFFF
    bound = 1 << (2 * LATTICE_BITS - 32)
    return np.asarray((high > bound) | ((high == bound) & (low > 0)))


def encode_vectors(Y: Array, center: Array, radius: float) -> Ints:
    """Clip vectors to the ball and round them toward its centre onto the lattice of step ``radius / 2**30``.

    Enforced in integer arithmetic, whatever happened before in floating point: Σ q² <= 2**60 for every row.
    """
    top = float(1 << LATTICE_BITS)
    Z = (Y - center) / radius
    norm = np.sqrt(np.einsum("ij,ij->i", Z, Z))
    with np.errstate(divide="ignore"):
        factor = np.minimum(1.0, 1.0 / norm)
    q: Ints = np.clip(np.trunc(Z * (factor * top)[:, None]), -top, top).astype(np.int64)
    over = np.flatnonzero(_norm_exceeds(q))
    while over.size:  # every non-zero coordinate moves toward 0 by at least one, so this ends
        shrunk = np.abs(q[over]) * ((1 << LATTICE_BITS) - 1) >> LATTICE_BITS
        q[over] = np.sign(q[over]) * shrunk
        over = over[_norm_exceeds(q[over])]
    return q


def vector_sum(Y: Array, center: Array, width: Array, radius: float, absolute: bool = False) -> Ints:
    """Sum of the lattice points of z = (y − center)/width, clipped to the ball of ``radius``; of |z| if ``absolute``."""
    total = np.zeros(Y.shape[1], np.int64)
    for s in (slice(i, i + 4096) for i in range(0, len(Y), 4096)):
        q = encode_vectors((Y[s] - center) / width, np.zeros(Y.shape[1]), radius)
        total += (np.abs(q) if absolute else q).sum(axis=0)
    return total


def vector_norms(Y: Array, center: Array, width: Array) -> Array:
    """‖(y − center)/width‖ of each row."""
    Z = (Y - center) / width
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", Z, Z)))


def encode(X: NDArray[Any], region: Region) -> tuple[Ints, Codes]:
    """Lattice points of records; an unusable record becomes the centre (the zero vector) and is told by its status."""
    q = np.empty((len(X), X.shape[1] * (X.shape[1] + 1) // 2), np.int64)
    status = np.empty(len(X), np.uint8)
    for s in blocks(*X.shape[:2]):
        Y, status[s] = log_vectors(X[s], region.log_low, region.log_high)
        Y[status[s] != Status.OK] = region.center
        q[s] = encode_vectors(Y, region.center, region.radius)
    return q, status


def lattice_sum(X: NDArray[Any], region: Region) -> tuple[Ints, Codes]:
    """Sum of :func:`encode` over the records, without storing them: exact in int64 for up to 2**32 records."""
    total = np.zeros(X.shape[1] * (X.shape[1] + 1) // 2, np.int64)
    status = np.empty(len(X), np.uint8)
    for s in blocks(*X.shape[:2]):
        q, status[s] = encode(X[s], region)
        total += q.sum(axis=0)
    return total, status
