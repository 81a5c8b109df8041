"""The kernels of an NVIDIA GPU, with the same interface, for CuPy arrays.

The sources in ``device/`` are compiled when first needed, once per size and type of
matrix, by CuPy (the extra ``gpu``); CuPy keeps what it compiled between runs. NumPy
arrays are copied to the device. Vectors, lattice points and statuses stay there; sums
come back as NumPy integers.

Cholesky factor, then one-sided Jacobi: one thread per matrix up to k = 10, parts of
a warp up to 40, a block up to 64, cuSOLVER beyond. Sums are exact in 64-bit integers,
hence the same for any launch; a record's lattice point may differ from the CPU's in its
last digits, as between instruction sets of the CPU.
"""

from functools import lru_cache
from math import isfinite
from typing import Any

import numpy as np

from spdp.errors import ParameterError
from spdp.kernels import base, kernels_for, reference
from spdp.kernels.base import Region, Status
from spdp.kernels.launch import MAX_K, WARP, Launch, launch_for, source
from spdp.kernels.vecd import dimension, upper_triangle

try:
    import cupy
except ImportError as error:
    raise ImportError("the GPU's kernels need CuPy: pip install 'spdp[gpu]'") from error


NAME = "cuda"
OK = int(Status.OK)
LOGVEC, ENCODE, LATTICE_SUM = range(3)
OPTIONS = ("--std=c++17", "--diag-suppress=177,128")
COPIES = 64  # of the sums, so that blocks do not wait for each other
TILE = 64, 48  # rows and columns of row_turns, which has as many threads as rows
SHARED_BYTES = 48 << 10  # of a block that asks for nothing special
FEW = 24  # coordinates up to which a thread rotates a row by itself
KNOWN = 256  # coordinates up to which passes over rows are compiled for their number
LANE_COORDINATES = 6  # of a row, in passes over rows
ROW_THREADS, FEW_THREADS = 128, 64
LARGE_BYTES = 256 << 20  # of a batch for cuSOLVER


@lru_cache(maxsize=128)
def _kernel(name: str, *options: str) -> Any:
    return cupy.RawModule(code=source(), options=OPTIONS + options).get_function(name)


@lru_cache(maxsize=8)
def _processors(device: int) -> int:
    return int(cupy.cuda.runtime.getDeviceProperties(device)["multiProcessorCount"])


def library() -> Any:
    """CuPy."""
    return cupy


@lru_cache(maxsize=1)
def check_device() -> None:
    """Raise an error that says why no GPU can be used, before budget is spent."""
    try:
        count = cupy.cuda.runtime.getDeviceCount()
        cupy.zeros(1).sum()
    except cupy.cuda.memory.OutOfMemoryError as error:
        raise ParameterError(f"the GPU has no memory left: {error}") from None
    except Exception as error:  # no driver, an old one, no device, no compiler
        raise ParameterError(
            f"no usable GPU: {error}; use engine='local', or see CuPy's installation notes"
        ) from None
    if count == 0:
        raise ParameterError("no GPU on this machine; use engine='local'")


def asarray(X: Any, dtype: Any = None) -> Any:
    """On the device and contiguous, in its working dtype unless another is named."""
    A = X if isinstance(X, cupy.ndarray) else cupy.asarray(np.asarray(X))
    return cupy.ascontiguousarray(A, dtype=dtype or base.working_dtype(A.dtype))


def _sent(*numbers: Any) -> Any:
    """A few numbers on the device, together, as kernels' parameters.

    CUDA copies them before this returns, which is quicker for so few numbers than
    CuPy's page-locked memory; sending each number alone takes longer than a pass.
    """
    host = np.concatenate([np.ravel(part) for part in numbers], dtype=np.float64)
    device = cupy.empty(len(host))
    device.data.copy_from_host_async(host.ctypes.data, host.nbytes)
    return device


def _records(mode: int, X: Any, region: Region, out: Any, codes: Any) -> Any:
    """Run one pass over matrices; returns their status."""
    m, k = X.shape[:2]
    status = cupy.empty(m, np.uint8)
    if m == 0:
        return status
    launch = launch_for(k)
    real = "float" if X.dtype == np.float32 else "double"
    kernel = _kernel("records", *launch.options, f"-DSPDP_MODE={mode}", f"-DSPDP_REAL={real}")
    center = _sent(region.center)
    bounds = map(np.float64, (region.log_low, region.log_high, region.radius))
    copies = np.int32(len(codes) if mode == LATTICE_SUM else 1)
    arguments = (X, np.int64(m), *bounds, center, out, codes, status, copies)
    grid = min(-(-m // launch.together), _processors(X.device.id) * _resident(kernel, launch))
    kernel((grid,), (launch.threads,), arguments, shared_mem=launch.bytes)
    return status


@lru_cache(maxsize=128)
def _resident(kernel: Any, launch: Launch) -> int:
    """Blocks of a kernel that one processor holds at once."""
    if launch.bytes > 48 << 10:
        kernel.max_dynamic_shared_size_bytes = launch.bytes
    ask = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor
    return max(1, int(ask(kernel.kernel.ptr, launch.threads, launch.bytes)))


def _everywhere(k: int) -> Region:
    return Region(-np.inf, np.inf, np.zeros(dimension(k)), 1.0)


def log_vectors(X: Any, log_low: float, log_high: float) -> tuple[Any, Any]:
    A = asarray(X)
    m, k = A.shape[:2]
    region = _everywhere(k)._replace(log_low=log_low, log_high=log_high)
    if k > MAX_K:
        return _large_vectors(A, region)
    Y = cupy.empty((m, dimension(k)))
    return Y, _records(LOGVEC, A, region, Y, cupy.empty(0, np.int64))


def encode(X: Any, region: Region) -> tuple[Any, Any]:
    A = asarray(X)
    m, k = A.shape[:2]
    if k > MAX_K:
        Y, status = _large_vectors(A, region)
        Y[status != OK] = cupy.asarray(region.center)
        return encode_vectors(Y, region.center, region.radius), status
    q = cupy.empty((m, dimension(k)), np.int64)
    return q, _records(ENCODE, A, region, cupy.empty(0), q)


def lattice_sum(X: Any, region: Region) -> tuple[Any, Any]:
    A = asarray(X)
    k = A.shape[1]
    if k > MAX_K:
        return _large_sum(A, region)
    sums = cupy.zeros((COPIES, dimension(k)), np.int64)
    status = _records(LATTICE_SUM, A, region, cupy.empty(0), sums)
    return sums.get().sum(axis=0), status


def _large_sum(A: Any, region: Region) -> tuple[Any, Any]:
    """Batch by batch: eigenvectors of all records at once need not fit."""
    k = A.shape[1]
    step = max(1, LARGE_BYTES // (8 * k * k))
    total, status = np.zeros(dimension(k), np.int64), cupy.empty(len(A), np.uint8)
    for start in range(0, len(A), step):
        q, status[start : start + step] = encode(A[start : start + step], region)
        total += q.sum(axis=0).get()
    return total, status


def _large_vectors(A: Any, region: Region) -> tuple[Any, Any]:
    """As :func:`spdp.kernels.reference.log_vectors`, with cuSOLVER's eigenvectors."""
    m, k = A.shape[:2]
    Y, status = cupy.empty((m, dimension(k))), cupy.empty(m, np.uint8)
    i, j = (cupy.asarray(index) for index in upper_triangle(k))
    step = max(1, LARGE_BYTES // (8 * k * k))
    for start in range(0, m, step):
        s = slice(start, start + step)
        logs, V, code = _large_eigen(A[s])
        logs = cupy.clip(logs, region.log_low, region.log_high)
        L = (V * logs[:, None, :]) @ V.transpose(0, 2, 1)
        Y[s, :k] = cupy.diagonal(L, axis1=1, axis2=2)
        Y[s, k:] = np.sqrt(0.5) * (L[:, i, j] + L[:, j, i])
        Y[s] *= (code == OK)[:, None]
        status[s] = code
    return Y, status


def _large_eigen(X: Any) -> tuple[Any, Any, Any]:
    """Log-eigenvalues, eigenvectors and status; see the reference for the rules."""
    k = X.shape[1]
    A = X.astype(np.float64)
    big = cupy.abs(A).max(axis=(1, 2))
    finite = cupy.isfinite(big)
    A = cupy.where(finite[:, None, None], A, cupy.eye(k))
    largest, exponent = cupy.frexp(cupy.where(finite, big, 1.0))
    A = cupy.ldexp(A, -exponent[:, None, None])
    other = A.transpose(0, 2, 1)
    symmetric = cupy.abs(A - other).max(axis=(1, 2)) <= base.symmetry_tolerance(X.dtype) * largest
    w, V = cupy.linalg.eigh(0.5 * (A + other))
    least = cupy.asarray(base.rank_tolerance(X.dtype, largest.get(), exponent.get(), k))
    positive = (w[:, -1] > 0) & (w[:, 0] >= -least)
    code = cupy.where(positive, OK, int(Status.NOT_POSITIVE))
    code = cupy.where(symmetric, code, int(Status.NOT_SYMMETRIC))
    code = cupy.where(finite, code, int(Status.NOT_FINITE)).astype(np.uint8)
    w = cupy.where(w > 0, w, float(np.finfo(np.float64).eps) * w[:, -1:])
    w = cupy.where((code == OK)[:, None], w, 1.0)
    return cupy.log(w) + np.log(2.0) * exponent[:, None], V, code


def _rows(
    name: str, Y: Any, frame: tuple[Any, Any], *rest: Any, more: Any = (), shared: int = 0
) -> None:
    """One pass over rows (m, d), with ``more`` numbers behind those of the frame."""
    A = asarray(Y, np.float64)
    m, d = A.shape
    if m == 0:
        return
    center, width = frame
    numbers = _sent(center, 1.0 / np.asarray(width), more)
    lanes = _lanes(d)
    grid = min(-(-m * lanes // ROW_THREADS), 16 * _processors(A.device.id))
    arguments = (np.int64(m), np.int32(d), A, numbers, np.int32(lanes), *rest)
    _kernel(name, *_row_options(d))((grid,), (ROW_THREADS,), arguments, shared_mem=shared)


def _row_options(d: int) -> tuple[str, ...]:
    """Compiler options for rows of a known length, if they are not too long."""
    return (f"-DSPDP_D={d}", f"-DSPDP_ROW_LANES={_lanes(d)}") if d <= KNOWN else ()


def _lanes(d: int) -> int:
    """Lanes that share a row: a power of two, with some six coordinates each."""
    return min(WARP, 1 << max(0, (d - 1) // LANE_COORDINATES).bit_length())


def encode_vectors(Y: Any, center: Any, radius: float) -> Any:
    q = cupy.empty(Y.shape, np.int64)
    _rows("row_codes", Y, (center, np.ones(Y.shape[1])), np.float64(radius), q)
    return q


def vector_sum(Y: Any, center: Any, width: Any, radius: float, absolute: bool = False) -> Any:
    sums = cupy.zeros(Y.shape[1], np.int64)
    needed = ROW_THREADS // _lanes(Y.shape[1]) * sums.nbytes
    kept = needed <= SHARED_BYTES
    rest = (np.float64(radius), np.int32(absolute), np.int32(kept), sums)
    _rows("row_sums", Y, (center, width), *rest, shared=needed if kept else 0)
    return sums.get()


def vector_norms(Y: Any, center: Any, width: Any) -> Any:
    out = cupy.empty(len(Y))
    _rows("row_norms", Y, (center, width), out)
    return out


def rotate(Y: Any, center: Any, axes: Any, out: Any = None) -> Any:
    A = asarray(Y, np.float64)
    m, d = A.shape
    turned, numbers = cupy.empty_like(A), _sent(center, axes)
    home, V = numbers[:d], numbers[d:]
    if m and d <= FEW:
        grid = min(-(-m // FEW_THREADS), 32 * _processors(A.device.id))
        kernel = _kernel("few_turns", *_row_options(d))
        kernel((grid,), (FEW_THREADS,), (np.int64(m), A, home, V, turned))
    elif m:
        grids = (-(-m // TILE[0]), -(-d // TILE[1]))
        _kernel("row_turns")(grids, (TILE[0],), (np.int64(m), np.int32(d), A, home, V, turned))
    return turned


# --- queries of the search, each in one pass; spdp.queries says what is summed


def _distance_sum(Y: Any, center: Any, width: Any, cap: float) -> Any:
    total = cupy.zeros(1, np.int64)
    _rows("row_distances", Y, (center, width), np.float64(cap), total)
    return total.get()


def _histogram(Y: Any, center: Any, width: Any, edges: Any) -> Any:
    counts = cupy.zeros(len(edges) + 1, np.int64)
    rest = (np.int32(len(edges)), counts)
    _rows("row_counts", Y, (center, width), *rest, more=edges, shared=4 * len(counts))
    return counts.get()


def _clipping_bias(Y: Any, center: Any, width: Any, radius: float, reaches: Any) -> Any:
    """``reaches`` (r, 4) holds a reach, weight, power and largest value in each row."""
    sums = cupy.zeros(len(reaches), np.int64)
    rest = (np.float64(radius), np.int32(len(reaches)), sums)
    _rows("row_excess", Y, (center, width), *rest, more=reaches)
    return sums.get()


def _products(Y: Any, center: Any, width: Any, radius: float, divisor: int) -> Any:
    q = cupy.empty(Y.shape)
    _rows("row_factors", Y, (center, width), np.float64(radius), np.int32(divisor), q)
    return (q.T @ q).get()


def _edge_count(Y: Any, region: Region, k: int, slack: float) -> int:
    """Rows at the ball's surface, or with an eigenvalue at an end."""
    A = asarray(Y, np.float64)
    m, d = A.shape
    if m == 0:
        return 0
    low, high = 0.0, 0.0  # no interval
    if isfinite(region.log_low):
        room = slack * (region.log_high - region.log_low)
        low, high = region.log_low + room, region.log_high - room
    numbers = _sent(region.center, np.ones(d))
    grid = min(-(-m // ROW_THREADS), _processors(A.device.id))
    scratch, count = cupy.empty((grid * ROW_THREADS, d)), cupy.zeros(1, np.int64)
    bounds = map(np.float64, (region.radius * (1.0 - slack), low, high))
    arguments = (np.int64(m), np.int32(d), A, numbers, np.int32(k))
    _kernel("row_edges")((grid,), (ROW_THREADS,), (*arguments, *bounds, scratch, count))
    return int(count.get()[0])


FUSED = {
    "distance_sum": _distance_sum,
    "histogram": _histogram,
    "clipping_bias": _clipping_bias,
    "products": _products,
    "edge_count": _edge_count,
}


def _on_host(name: str) -> Any:
    """A NumPy function for CuPy arrays: users call it with few matrices."""

    def function(X: Any, *rest: Any) -> tuple[Any, ...]:
        A = X.get() if isinstance(X, cupy.ndarray) else X
        return tuple(map(cupy.asarray, getattr(reference, name)(A, *rest)))

    return function


def carry(Y: Any, W: Any) -> Any:
    """On the CPU, by its own kernels; rows come and go."""
    return cupy.asarray(kernels_for().carry(Y.get() if isinstance(Y, cupy.ndarray) else Y, W))


eigh, logm, log_sum, expm = map(_on_host, ("eigh", "logm", "log_sum", "expm"))
