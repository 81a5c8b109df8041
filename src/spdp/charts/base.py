"""A chart.

An isometry from matrices to R^d, which is all that privacy needs of a metric.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.blocks import REAL
from spdp.charts.spectra import largest_eigenvalue
from spdp.kernels import Kernels, Region, kernels_for
from spdp.kernels.base import Array, Codes, Ints, any_unusable, code_adder, own_kernels
from spdp.kernels.place import beside, home

__all__ = ["Chart", "Component", "at_center", "clip_to_ball", "diagonal_components"]


EDGE = 1e-7  # relative distance from a region's edge that is rounding


class Component(NamedTuple):
    """What vectors (..., d) have in a subspace, and the subspace's dimension."""

    v: Array
    dimension: int


class Chart(ABC):
    """One flat metric on k×k matrices. All but :meth:`vector` never raises for data.

    A metric needs one of these, and a kernel where speed matters: a kernels module that
    has kernels of a chart's own offers them by its name (:func:`own_kernels`), and they
    are taken in place of :meth:`coordinates`.

    Attributes
    ----------
    name : str
        What ``metric=`` calls it, and certificates.
    distance : str
        What its distance is called in words.
    kinds : str
        Kinds of dtypes of the matrices it takes: real ones, unless it says otherwise.
    """

    name: str
    distance: str
    kinds: str = REAL
    parts: int | None = None  # matrices of one record, where there are several

    @property
    def key(self) -> str:
        """What tells this chart from all others."""
        return self.name

    def describe(self) -> dict[str, Any]:
        """What certificates and sums say of it, JSON-ready."""
        return {"metric": self.name, "distance": self.distance, "parts": self.parts}

    @abstractmethod
    def dimension(self, k: int) -> int:
        """d, the dimension of the vectors of k×k matrices."""

    @abstractmethod
    def size(self, d: int) -> int:
        """The k whose dimension is d; 0 where there is none."""

    @abstractmethod
    def coordinates(self, X: NDArray[Any], kernels: Kernels) -> tuple[Array, Codes]:
        """Vectors (m, d) of a stack, each of its matrix alone, and their status."""

    def vectors(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Array, Codes]:
        """Vectors (m, d) of a stack, in the region up to rounding, and their status.

        An unusable matrix is the region's centre.
        """
        own = own_kernels(kernels, self.name)
        Y, status = self.coordinates(X, kernels) if own is None else own.vectors(X)
        at_center(Y, status, region)
        return clip_to_ball(Y, region.center, region.radius), status

    @abstractmethod
    def matrices(self, v: Array) -> Array:
        """Matrices (..., k, k) of :meth:`representable` vectors (..., d).

        The inverse of :meth:`vectors`; in the metric's space as float64 numbers too.
        """

    @abstractmethod
    def representable(self, v: Array) -> Array:
        """The vector, or the nearest one whose matrix float64 numbers can hold."""

    @abstractmethod
    def vector(self, M: Any) -> Array:
        """Vectors (..., d) of matrices, or an error that names the invalid one."""

    @abstractmethod
    def ball(self, center: Array | None, radius: float, k: int) -> Region:
        """Region of the ball around a vector (the identity's when None)."""

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
        """A point of the (convex) region, as near to each of its points as the vector.

        That is all a noisy result needs: it is brought no farther from the true one.
        """
        return clip_to_ball(v, region.center, region.radius)

    def at_edge(self, Y: Array, region: Region, kernels: Kernels) -> NDArray[np.bool_]:
        """Whether records lie at the region's edge, where clipping puts them."""
        norms = kernels.vector_norms(Y, region.center, np.ones(Y.shape[1]))
        return np.asarray(norms >= region.radius * (1.0 - EDGE))

    def edge_count(self, Y: Array, region: Region, kernels: Kernels) -> int:
        """How many records lie at the region's edge."""
        seen = home(Y)
        return int(np.count_nonzero(self.at_edge(seen, region, kernels_for(seen))))

    def components(self, v: Array) -> list[Component]:
        """Vectors (..., d) taken apart into orthogonal components of one kind each.

        Estimates may be shrunk component by component. Where the first of them has one
        dimension it is the overall scale of the matrices, which a domain's centre gets
        wrong most.
        """
        return [Component(v, v.shape[-1])]

    def encode(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Ints, Codes]:
        """Lattice points of a stack in a region."""
        own = own_kernels(kernels, self.name)
        if own is not None:
            return own.encode(X, region)
        Y, status = self.vectors(X, region, kernels)
        return kernels.encode_vectors(Y, region.center, region.radius), status

    def lattice_sum(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Ints, Codes]:
        """Sum of :meth:`encode`."""
        own = own_kernels(kernels, self.name)
        if own is not None:
            return own.lattice_sum(X, region)
        q, status = self.encode(X, region, kernels)
        return home(q.sum(axis=0)), status

    def add_codes(
        self,
        X: NDArray[Any],
        region: Region,
        kernels: Kernels,
        rows: NDArray[np.intp],
        out: Ints,
    ) -> Codes:
        """Add :meth:`encode` of record i to row rows[i] of ``out``; to none for -1."""
        adder = code_adder(kernels, self.key)
        if adder is not None:
            return adder(X, region, rows, out)
        q, status = self.encode(X, region, kernels)
        some = rows >= 0
        kernels_for().add_rows(home(q)[some], rows[some], out)
        return status


def diagonal_components(v: Array, k: int) -> list[Component]:
    """Components of vectors that begin with logarithms of a diagonal of k numbers.

    Their trace, the traceless diagonal, and the rest.
    """
    d = v.shape[-1]
    if k < 2:
        return [Component(v, d)]
    trace, diagonal, rest = np.zeros_like(v), np.zeros_like(v), v.copy()
    trace[..., :k] = v[..., :k].mean(axis=-1, keepdims=True)
    diagonal[..., :k] = v[..., :k] - trace[..., :k]
    rest[..., :k] = 0.0
    return [Component(trace, 1), Component(diagonal, k - 1), Component(rest, d - k)]


def at_center(Y: Array, status: Codes, region: Region) -> Array:
    """``Y`` with unusable records moved to the region's centre, in place."""
    if any_unusable(status):
        Y[np.flatnonzero(status)] = beside(region.center, Y)
    return Y


def clip_to_ball(Y: Array, center: Array, radius: float) -> Array:
    """Radial clip y ← c + (y − c)·min(1, r/‖y − c‖).

    A vector too long for float64 numbers becomes the centre.
    """
    at = beside(center, Y)
    Z = Y - at
    with np.errstate(over="ignore"):
        norm = np.sqrt((Z * Z).sum(axis=-1, keepdims=True))
    clipped: Array = at + Z * np.minimum(1.0, radius / np.maximum(norm, radius))
    return clipped
