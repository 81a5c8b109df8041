"""The native kernels, with the same interface as the NumPy reference."""

import os
from typing import Any

import numpy as np
import threadpoolctl
from numpy.typing import NDArray

from spdp.kernels import _native, base, constants, reference
from spdp.kernels.arrays import Array, Ints, Statuses
from spdp.kernels.base import CodeAdder, OwnKernels, Region
from spdp.kernels.vecd import dimension, invvecd, size_of

NAME = "native"
# above this size LAPACK's blocked algorithms are faster
MAX_K = 64 if _native.instruction_set() == "baseline" else 512
ALONE = 48  # matrices from this size on are worked on one at a time
threads = _native.get_num_threads
EIGH, LOGM, EXPM, LOGSUM, LOGVEC, ENCODE, LATTICE_SUM, ADD_ROWS = range(8)

if _native.LATTICE_BITS != constants.LATTICE_BITS:
    raise ImportError("the native kernels were built for another lattice; build them again")


class _Threads(threadpoolctl.LibController):  # type: ignore[misc]
    """Lets threadpoolctl's limits reach the kernels as they reach BLAS."""

    user_api = "spdp"
    internal_api = "spdp"
    filename_prefixes = ("_native",)
    check_symbols = ("spdp_get_num_threads", "spdp_set_num_threads")

    def get_num_threads(self) -> int:
        return int(self.dynlib.spdp_get_num_threads())

    def set_num_threads(self, num_threads: int) -> None:
        self.dynlib.spdp_set_num_threads(num_threads)

    def get_version(self) -> None:
        return None

    def set_additional_attributes(self) -> None:
        self.instruction_set = _native.instruction_set()


def _default_threads() -> int:
    wanted = os.environ.get("SPDP_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted) > 0:
        return int(wanted)
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


threadpoolctl.register(_Threads)
_native.set_num_threads(_default_threads())


def _run(mode: int, X: NDArray[Any], **arrays: Any) -> tuple[NDArray[Any], Statuses]:
    """Run a kernel; returns the aligned input it read and the status of each matrix."""
    dtype = base.working_dtype(X.dtype)
    A = X if X.dtype == dtype and X.flags.aligned else X.astype(dtype)
    status: Statuses = np.empty(len(A), np.uint8)
    _native.run(mode, A, status, **arrays)
    return A, status


def _lost(status: Statuses) -> NDArray[np.intp]:
    """Matrices whose iteration did not converge, to be given to LAPACK.

    No such matrix is known.
    """
    return np.asarray((status == constants.NOT_CONVERGED).nonzero()[0])


def eigh(X: NDArray[Any]) -> tuple[Array, Array, Statuses]:
    m, k = X.shape[:2]
    if k > MAX_K:
        return reference.eigh(X)
    w, V = np.empty((m, k)), np.empty((m, k, k))
    A, status = _run(EIGH, X, out=V, values=w)
    lost = _lost(status)
    if lost.size:
        w[lost], V[lost], status[lost] = reference.eigh(A[lost])
    return w, V, status


def logm(X: NDArray[Any]) -> tuple[Array, Statuses, Array]:
    m, k = X.shape[:2]
    if k > MAX_K:
        return reference.logm(X)
    L, smallest = np.empty((m, k, k)), np.empty(m)
    A, status = _run(LOGM, X, out=L, values=smallest)
    lost = _lost(status)
    if lost.size:
        L[lost], status[lost], smallest[lost] = reference.logm(A[lost])
    return L, status, smallest


def log_sum(
    X: NDArray[Any], weights: Array | None = None, congruence: Array | None = None
) -> tuple[Array, Statuses, Array]:
    m, k = X.shape[:2]
    if k > MAX_K:
        return reference.log_sum(X, weights, congruence)
    if congruence is not None and k >= ALONE:
        X, congruence = reference.congruent(X, congruence), None
    total, smallest = np.zeros(dimension(k)), np.empty(m)
    given = None if weights is None else np.ascontiguousarray(weights)
    W, power = (None, 0) if congruence is None else reference.scaled(congruence)
    arrays = {"out": total, "values": smallest, "weights": given, "congruence": W}
    A, status = _run(LOGSUM, X, exponent=2 * power, **arrays)
    matrix = invvecd(total)
    lost = _lost(status)
    if lost.size:
        part = None if weights is None else weights[lost]
        rest, status[lost], smallest[lost] = reference.log_sum(A[lost], part, congruence)
        matrix = matrix + rest
    return matrix, status, smallest


def carry(Y: Array, W: Array) -> Array:
    if size_of(Y.shape[1]) > _native.CARRIED_UP_TO:
        return reference.carry(Y, W)
    A, (U, power) = _rows(Y), reference.scaled(W)
    Z, status = np.empty(A.shape), np.empty(len(A), np.uint8)
    _native.carry(A, U, 2 * power, status, Z)
    lost = _lost(status)
    if lost.size:
        Z[lost] = reference.carry(A[lost], W)
    return Z


def expm(S: NDArray[Any]) -> tuple[Array, Statuses]:
    m, k = S.shape[:2]
    if k > MAX_K:
        return reference.expm(S)
    E = np.empty((m, k, k))
    A, status = _run(EXPM, S, out=E, slack=base.unit_slack(S.dtype, k))
    lost = _lost(status)
    if lost.size:
        E[lost], status[lost] = reference.expm(A[lost])
    return E, status


def log_vectors(X: NDArray[Any], log_low: float, log_high: float) -> tuple[Array, Statuses]:
    m, k = X.shape[:2]
    if k > MAX_K:
        return reference.log_vectors(X, log_low, log_high)
    Y = np.empty((m, k * (k + 1) // 2))
    A, status = _run(LOGVEC, X, out=Y, log_low=log_low, log_high=log_high)
    lost = _lost(status)
    if lost.size:
        Y[lost], status[lost] = reference.log_vectors(A[lost], log_low, log_high)
    return Y, status


def _clip(region: Region) -> dict[str, Any]:
    return {
        "center": np.ascontiguousarray(region.center, dtype=np.float64),
        "log_low": region.log_low,
        "log_high": region.log_high,
        "radius": region.radius,
    }


def encode(X: NDArray[Any], region: Region) -> tuple[Ints, Statuses]:
    m, k = X.shape[:2]
    if k > MAX_K:
        return reference.encode(X, region)
    q = np.empty((m, k * (k + 1) // 2), np.int64)
    A, status = _run(ENCODE, X, codes=q, **_clip(region))
    lost = _lost(status)
    if lost.size:
        q[lost], status[lost] = reference.encode(A[lost], region)
    return q, status


def lattice_sum(X: NDArray[Any], region: Region) -> tuple[Ints, Statuses]:
    k = X.shape[1]
    if k > MAX_K:
        return reference.lattice_sum(X, region)
    total = np.zeros(k * (k + 1) // 2, np.int64)
    A, status = _run(LATTICE_SUM, X, codes=total, **_clip(region))
    lost = _lost(status)
    if lost.size:
        rest, status[lost] = reference.lattice_sum(A[lost], region)
        total += rest
    return total, status


def _rows(Y: Array) -> Array:
    """Rows as the kernels read them: contiguous each, in ascending order."""
    A = np.asarray(Y, np.float64)
    further, step = A.strides
    fine = A.flags.aligned and step == 8 and further >= 8 * A.shape[1] and further % 8 == 0
    return A if fine else np.ascontiguousarray(A)


def encode_vectors(Y: Array, center: Array, radius: float) -> Ints:
    q = np.empty(Y.shape, np.int64)
    _native.run_vectors(_rows(Y), center, np.full(Y.shape[1], 1.0 / radius), codes=q)
    return q


def _histogram(Y: Array, center: Array, width: Array, edges: Array) -> Ints:
    """How many rows have a ‖z‖ between ascending edges."""
    beyond = np.zeros(len(edges), np.int64)
    _native.run_counts(_rows(Y), center, 1.0 / width, np.ascontiguousarray(edges), beyond)
    return np.asarray(-np.diff(beyond, prepend=len(Y), append=0))


def _products(Y: Array, center: Array, width: Array, radius: float, divisor: int) -> Ints:
    """Σ q_i·q_j, i ≤ j, of lattice points divided by 2¹⁶ toward zero; 0 elsewhere."""
    if divisor != 1 << (constants.LATTICE_BITS - constants.PRODUCT_BITS):
        raise ValueError("the native kernel divides by 2¹⁶")
    total = np.zeros((Y.shape[1],) * 2, np.int64)
    _native.run_products(_rows(Y), center, 1.0 / width, radius, total)
    return total


FUSED = {"histogram": _histogram, "products": _products}


def vector_sum(
    Y: Array, center: Array, width: Array, radius: float, absolute: bool = False
) -> Ints:
    total = np.zeros(Y.shape[1], np.int64)
    _native.run_vectors(_rows(Y), center, 1.0 / width, radius, absolute, total=total)
    return total


def rotate(Y: Array, center: Array, axes: Array, out: Array | None = None) -> Array:
    Z = np.empty_like(Y, order="C") if out is None else out
    _native.rotate(_rows(Y), center, np.ascontiguousarray(axes), Z)
    return Z


def vector_norms(Y: Array, center: Array, width: Array) -> Array:
    distance = np.empty(len(Y))
    _native.run_vectors(_rows(Y), center, 1.0 / width, distance=distance)
    return distance


def add_rows(Q: Ints, rows: NDArray[np.int64], out: Ints) -> None:
    _native.add_rows(np.ascontiguousarray(Q), np.ascontiguousarray(rows, np.int64), out)


def add_some_rows(Q: Ints, rows: NDArray[np.intp], out: Ints) -> None:
    """:func:`add_rows`, leaving out entries whose row is -1."""
    add_rows(Q[rows >= 0], rows[rows >= 0], out)


def _own(chart: int) -> OwnKernels:
    """Kernels of the chart at a place in the native table, d = k(k+1)/2."""

    def vectors(X: NDArray[Any]) -> tuple[Array, Statuses]:
        Y = np.empty((len(X), dimension(X.shape[1])))
        return Y, _run(LOGVEC, X, out=Y, chart=chart)[1]

    def encode(X: NDArray[Any], region: Region) -> tuple[Ints, Statuses]:
        q = np.empty((len(X), dimension(X.shape[1])), np.int64)
        return q, _run(ENCODE, X, codes=q, chart=chart, **_clip(region))[1]

    def lattice_sum(X: NDArray[Any], region: Region) -> tuple[Ints, Statuses]:
        total = np.zeros(dimension(X.shape[1]), np.int64)
        return total, _run(LATTICE_SUM, X, codes=total, chart=chart, **_clip(region))[1]

    return OwnKernels(vectors, encode, lattice_sum)


def _adder(chart: int) -> CodeAdder:
    """Kernel that encodes records of a chart of the native table and adds the codes."""

    def add_codes(X: NDArray[Any], region: Region, rows: NDArray[np.intp], out: Ints) -> Statuses:
        if chart == 0 and X.shape[1] > MAX_K:
            q, status = reference.encode(X, region)
            add_some_rows(q, rows, out)
            return status
        places = np.ascontiguousarray(rows, np.int64)
        A, status = _run(ADD_ROWS, X, codes=out, rows=places, chart=chart, **_clip(region))
        lost = _lost(status)
        if lost.size:
            q, status[lost] = reference.encode(A[lost], region)
            add_some_rows(q, places[lost], out)
        return status

    return add_codes


ADD_CODES = {name: _adder(chart) for chart, name in enumerate(_native.charts())}
# the first chart's kernels are those above
OWN = {name: _own(chart) for chart, name in enumerate(_native.charts()) if chart > 0}
