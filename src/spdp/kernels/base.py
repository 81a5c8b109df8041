"""What all kernels share: their interface, and what counts as rounding."""

from collections.abc import Callable
from enum import IntEnum
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from spdp.kernels import constants
from spdp.kernels.arrays import Array, Ints, Statuses

RECORD_NORM = 1 << constants.LATTICE_BITS  # largest ℓ2 norm of an encoded record
PRODUCT_NORM = 1 << constants.PRODUCT_BITS  # and of one that is multiplied with itself


class Status(IntEnum):
    """Whether a matrix is valid, and if not, why."""

    OK = constants.OK
    NOT_FINITE = constants.NOT_FINITE
    NOT_SYMMETRIC = constants.NOT_SYMMETRIC
    NOT_POSITIVE = constants.NOT_POSITIVE


class Region(NamedTuple):
    """A domain in a chart.

    Clip log-eigenvalues to an interval, then vectors to a ball.
    """

    log_low: float
    log_high: float
    center: Array
    radius: float


class OwnKernels(NamedTuple):
    """Kernels of one chart, each a single pass over a stack (m, k, k).

    What a matrix becomes depends on that matrix alone. An invalid matrix is encoded as
    the centre.
    """

    vectors: Callable[[NDArray[Any]], tuple[Array, Statuses]]  # (m, d), not clipped
    encode: Callable[[NDArray[Any], Region], tuple[Ints, Statuses]]  # lattice points (m, d)
    lattice_sum: Callable[[NDArray[Any], Region], tuple[Ints, Statuses]]  # their sum (d,)


# adds the lattice point of matrix i of a stack to row rows[i] of a table, to none where
# that is -1, and returns the status of each
CodeAdder = Callable[[NDArray[Any], Region, NDArray[np.intp], Ints], Statuses]


class Kernels(Protocol):
    """Batch work on stacks ``(m, k, k)`` of float32 or float64 with any strides.

    Functions of matrices return one :class:`Status` per matrix instead of raising, so
    that callers decide how to handle an invalid one. What a kernel makes of a matrix
    depends on that matrix alone, never on its neighbours in the stack.

    A module may also have ``OWN``, kernels of other charts by the charts' names, and
    ``ADD_CODES``, a :data:`CodeAdder` of each chart it knows. ``FUSED`` holds whole
    queries in one pass over vectors, where there are any.
    """

    NAME: str
    FUSED: dict[str, Callable[..., Any]]

    def eigh(self, X: NDArray[Any]) -> tuple[Array, Array, Statuses]:
        """Eigenvalues (ascending) and eigenvectors of symmetric matrices."""

    def logm(self, X: NDArray[Any]) -> tuple[Array, Statuses, Array]:
        """Matrix logarithms, status, and smallest eigenvalues (for messages)."""

    def log_sum(
        self, X: NDArray[Any], weights: Array | None = None, congruence: Array | None = None
    ) -> tuple[Array, Statuses, Array]:
        """Weighted sum of matrix logarithms, status, and smallest eigenvalues.

        With ``congruence`` W, of the matrices W·X·Wᵀ.
        """

    def carry(self, Y: Array, W: Array) -> Array:
        """Vectors vecd Logm(W·Expm(invvecd y)·Wᵀ) of vectors y (m, d)."""

    def expm(self, S: NDArray[Any]) -> tuple[Array, Statuses]:
        """Matrix exponentials of symmetric matrices."""

    def log_vectors(
        self, X: NDArray[Any], log_low: float, log_high: float
    ) -> tuple[Array, Statuses]:
        """vecd of logarithms with clipped log-eigenvalues.

        Zero for invalid matrices.
        """

    def encode(self, X: NDArray[Any], region: Region) -> tuple[Ints, Statuses]:
        """Lattice points (m, d) of records in a region.

        Invalid ones become the centre, 0.
        """

    def lattice_sum(self, X: NDArray[Any], region: Region) -> tuple[Ints, Statuses]:
        """Sum of :meth:`encode` over the records, exact, without storing them."""

    def encode_vectors(self, Y: Array, center: Array, radius: float) -> Ints:
        """Lattice points of vectors clipped to a ball."""

    def vector_sum(
        self, Y: Array, center: Array, width: Array, radius: float, absolute: bool = False
    ) -> Ints:
        """Sum of the lattice points of z = (y − center)/width, or of |z|, in a ball."""

    def rotate(self, Y: Array, center: Array, axes: Array, out: Array | None = None) -> Array:
        """Rows (y − center)·axes, each computed on its own.

        ``out`` is memory that may be used for them; it may be that of Y.
        """

    def vector_norms(self, Y: Array, center: Array, width: Array) -> Array:
        """‖(y − center)/width‖ of each row."""

    def add_rows(self, Q: Ints, rows: NDArray[np.int64], out: Ints) -> None:
        """Add row i of ``Q`` to row rows[i] of ``out``, for all i, exactly."""


def own_kernels(kernels: Kernels, chart: str) -> OwnKernels | None:
    """The kernels of the chart of that name; None where there are none."""
    table: dict[str, OwnKernels] = getattr(kernels, "OWN", {})
    return table.get(chart)


def any_unusable(status: Statuses) -> bool:
    """Whether any matrix is invalid: the largest status is quick to find."""
    return bool(len(status) and int(status.max()) != Status.OK)


def code_adder(kernels: Kernels, chart: str) -> CodeAdder | None:
    """The kernel that encodes a chart's records and adds them to rows; or None."""
    table: dict[str, CodeAdder] = getattr(kernels, "ADD_CODES", {})
    return table.get(chart)


@lru_cache(maxsize=64)
def working_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 for records stored as such in any byte order, float64 for all others.

    complex64 and complex128, likewise, for records of complex numbers.
    """
    if dtype.kind == "c":
        return np.dtype(np.complex64 if dtype.itemsize == 8 else np.complex128)
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize == 4 else np.float64)


def symmetry_tolerance(dtype: np.dtype[Any]) -> float:
    """Largest ``|a_ij - a_ji| / max|a|`` that counts as rounding of ``dtype``."""
    single = working_dtype(dtype) == np.float32
    return constants.SYMMETRY_SINGLE if single else constants.SYMMETRY_DOUBLE


@lru_cache(maxsize=64)
def unit_slack(dtype: np.dtype[Any], k: int) -> float:
    """Asymmetry that is rounding where the operation's own scale is 1, as in Expm(S).

    Expm(S) moves by no more, relatively, than S does absolutely: a logarithm whose
    entries are all rounding errors of numbers near 1 is as symmetric as it can be.
    """
    return float(constants.RANK_SLACK * k * np.finfo(working_dtype(dtype)).eps)


def rounding(dtype: np.dtype[Any], largest: Array, exponent: NDArray[np.intc]) -> Array:
    """Rounding of stored entries (of matrices·2**-exponent).

    Relative to the largest one, or, among subnormal numbers, absolute.
    """
    info = np.finfo(working_dtype(dtype))
    subnormal = int(np.frexp(info.smallest_subnormal)[1]) - 1
    return np.maximum(float(info.eps) * largest, np.ldexp(1.0, subnormal - exponent))


def rank_tolerance(
    dtype: np.dtype[Any], largest: Array, exponent: NDArray[np.intc], k: int
) -> Array:
    """Smallest eigenvalues above minus this count as positive, in the same scale."""
    return np.asarray(float(constants.RANK_SLACK) * k * rounding(dtype, largest, exponent))
