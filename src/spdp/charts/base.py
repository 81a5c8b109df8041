"""A chart: from matrices to R^d, all that privacy needs of a metric."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.charts.spectra import largest_eigenvalue
from spdp.data.batching import REAL
from spdp.kernels import kernels_for
from spdp.kernels.arrays import Array, Ints, Statuses, to_device_of, to_host
from spdp.kernels.base import Kernels, Region, code_adder, own_kernels
from spdp.kernels.vecd import dimension, size_of
from spdp.options import MatrixKind

EDGE = 1e-7  # relative distance from a region's edge that counts as rounding


class Component(NamedTuple):
    """The part of vectors (..., d) in a subspace, and the subspace's dimension."""

    v: Array
    dimension: int


class Chart(ABC):
    """One metric on k×k matrices, seen from one point.

    Only :meth:`vector` and :meth:`log_jacobian` raise errors for invalid matrices.
    A metric needs one chart, and kernels where speed matters: where a kernels module
    has kernels under the chart's name (:func:`own_kernels`), they are used in place of
    :meth:`coordinates`.

    Attributes
    ----------
    name : str
        Its name in ``metric=`` and in certificates.
    distance : str
        The name of its distance in prose.
    kinds : str
        Kinds of dtypes of the matrices it accepts: real ones by default.
    refuses : mapping
        Kinds of matrices that it refuses where a source states them, and why.
    flat : bool
        Whether it is an isometry to R^d. Else distances from one point are those of
        its vectors, and no others: a statistic must say that it takes such a metric.
    works_on_device : bool
        Whether it maps matrices on a device there; others are mapped in this memory.
    """

    name: str
    distance: str
    kinds: str = REAL
    refuses: Mapping[MatrixKind, str] = MappingProxyType({})
    flat: bool = True
    works_on_device: bool = False
    key: str  # identifies this chart among all others: its name by default
    edge_kernel: str | None = None  # the fused kernel that counts records at the edge
    log_diagonal: bool = False  # whether vectors begin with logarithms of a diagonal
    parts: int | None = None  # matrices of one record, where there are several
    reference_point: Any = None  # public matrix that whitens records, as nested lists

    def __init_subclass__(cls) -> None:
        if "name" in vars(cls):
            cls.key = cls.name

    def dimension(self, k: int) -> int:
        """d, the dimension of the vectors of k×k matrices; k(k + 1)/2 by default."""
        return dimension(k)

    def size(self, d: int) -> int:
        """The k whose dimension is d; 0 where there is none."""
        return size_of(d)

    @abstractmethod
    def coordinates(self, X: NDArray[Any], kernels: Kernels) -> tuple[Array, Statuses]:
        """Vectors (m, d) of a stack, each from its matrix alone, and their status."""

    def vectors(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Array, Statuses]:
        """Vectors (m, d) of a stack, in the region up to rounding, and their status.

        An invalid matrix becomes the region's centre.
        """
        own = own_kernels(kernels, self.key)
        Y, status = self.coordinates(X, kernels) if own is None else own.vectors(X)
        at_center(Y, status, region)
        return clip_to_ball(Y, region.center, region.radius), status

    @abstractmethod
    def matrices(self, v: Array) -> Array:
        """Matrices (..., k, k) of :meth:`representable` vectors (..., d).

        The inverse of :meth:`vectors`. They lie in the metric's space in float64, too.
        """

    def of_representable(self, v: Array) -> Array:
        """Matrices of vectors that are known to be :meth:`representable`."""
        return self.matrices(v)

    @abstractmethod
    def representable(self, v: Array) -> Array:
        """The vector, or one near it whose matrix float64 numbers can hold."""

    @abstractmethod
    def vector(self, M: Any) -> Array:
        """Vectors (..., d) of matrices, or an error that names the invalid one."""

    def ball(self, center: Array | None, radius: float, k: int) -> Region:
        """Region of the ball around a vector (the identity's when None)."""
        at = np.zeros(self.dimension(k)) if center is None else center
        return Region(-np.inf, np.inf, at, radius)

    def about(self, center: Any) -> "Chart":
        """The chart in which a ball about a public matrix is one of R^d: this one."""
        del center
        return self

    @abstractmethod
    def bounded(self, low: float, high: float, k: int) -> Region:
        """Smallest known region of all matrices with eigenvalues in [low, high]."""

    def traced(self, low: float, trace: float, k: int) -> Region:
        """Smallest known region of all with eigenvalues >= low and a trace <= trace.

        No eigenvalue exceeds trace − (k − 1)·low, so the region of those bounds will
        do. A chart that knows a smaller one overrides this: :mod:`spdp.charts.spectra`.
        """
        return self.bounded(low, largest_eigenvalue(low, trace, k), k)

    @abstractmethod
    def log_jacobian(self, M: Any) -> Any:
        """ln |det| of the map from matrices to vectors, at matrices (..., k, k).

        With respect to the vectors' own measure and Lebesgue measure on the free
        entries of a matrix, each off-diagonal one counted with √2 as in vecd.
        """

    def project(self, v: Array, region: Region) -> Array:
        """A point of the (convex) region, no farther from any of its points than v is.

        A noisy result is thus brought no farther from the true one.
        """
        return clip_to_ball(v, region.center, region.radius)

    def at_edge(self, Y: Array, region: Region, kernels: Kernels) -> NDArray[np.bool_]:
        """Whether records lie at the region's edge, where clipping puts them."""
        norms = kernels.vector_norms(Y, region.center, np.ones(Y.shape[1]))
        return np.asarray(norms >= region.radius * (1.0 - EDGE))

    def farthest(self, y: Array, region: Region) -> float:
        """A distance from y that no point of the region exceeds."""
        return float(region.radius + np.linalg.norm(y - region.center))

    def edge_count(self, Y: Array, region: Region, kernels: Kernels) -> int:
        """How many records lie at the region's edge."""
        if whole := kernels.FUSED.get(self.edge_kernel or ""):
            return int(whole(Y, region, self.size(Y.shape[1]), EDGE))
        if type(Y) is not np.ndarray:
            Y, kernels = to_host(Y), kernels_for()
        return int(np.count_nonzero(self.at_edge(Y, region, kernels)))

    def components(self, v: Array) -> list[Component]:
        """Vectors (..., d) split into orthogonal components of one kind each.

        Estimates may be shrunk component by component. A first component of one
        dimension is the overall scale of the matrices, in which a domain's centre is
        often wrong. Where vectors begin with logarithms of a diagonal, components are
        their mean, their deviations from it, and all other coordinates.
        """
        d = v.shape[-1]
        k = self.size(d) if self.log_diagonal else 0
        if k < 2:
            return [Component(v, d)]
        trace, diagonal, rest = np.zeros_like(v), np.zeros_like(v), v.copy()
        trace[..., :k] = v[..., :k].mean(axis=-1, keepdims=True)
        diagonal[..., :k] = v[..., :k] - trace[..., :k]
        rest[..., :k] = 0.0
        return [Component(trace, 1), Component(diagonal, k - 1), Component(rest, d - k)]

    def encode(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Ints, Statuses]:
        """Lattice points of a stack in a region."""
        own = own_kernels(kernels, self.key)
        if own is not None:
            return own.encode(X, region)
        Y, status = self.vectors(X, region, kernels)
        return kernels.encode_vectors(Y, region.center, region.radius), status

    def lattice_sum(
        self, X: NDArray[Any], region: Region, kernels: Kernels
    ) -> tuple[Ints, Statuses]:
        """Sum of :meth:`encode`."""
        own = own_kernels(kernels, self.key)
        if own is not None:
            return own.lattice_sum(X, region)
        q, status = self.encode(X, region, kernels)
        return to_host(q.sum(axis=0)), status

    def add_codes(
        self, X: NDArray[Any], region: Region, kernels: Kernels, rows: NDArray[np.intp], out: Ints
    ) -> Statuses:
        """Add :meth:`encode` of record i to row rows[i] of ``out``; -1 adds nowhere."""
        adder = code_adder(kernels, self.key)
        if adder is not None:
            return adder(X, region, rows, out)
        q, status = self.encode(X, region, kernels)
        some = rows >= 0
        kernels_for().add_rows(to_host(q)[some], rows[some], out)
        return status


def at_center(Y: Array, status: Statuses, region: Region) -> Array:
    """``Y`` with invalid records moved to the region's centre, in place."""
    if len(status) and status.max():
        Y[np.flatnonzero(status)] = to_device_of(region.center, Y)
    return Y


def clip_to_ball(Y: Array, center: Array, radius: float) -> Array:
    """Radial clip y ← c + (y − c)·min(1, r/‖y − c‖).

    A vector too long for float64 numbers becomes the centre.
    """
    at = center if type(Y) is np.ndarray else to_device_of(center, Y)
    Z = Y - at
    with np.errstate(over="ignore"):
        norm = np.sqrt((Z * Z).sum(axis=-1, keepdims=True))
    clipped: Array = at + Z * np.minimum(1.0, radius / np.maximum(norm, radius))
    return clipped
