"""A chart.

An isometry from matrices to R^d, which is all that privacy needs of a metric.
"""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.kernels import Kernels, Region
from spdp.kernels.base import Array, Codes, Ints
from spdp.kernels.place import beside, home

__all__ = ["Chart", "clip_to_ball"]


class Chart(ABC):
    """One flat metric on k×k matrices. All but :meth:`vector` never raises for data.

    Attributes
    ----------
    name : str
        What ``metric=`` calls it, and certificates.
    distance : str
        What its distance is called in words.
    """

    name: str
    distance: str

    @abstractmethod
    def dimension(self, k: int) -> int:
        """d, the dimension of the vectors of k×k matrices."""

    @abstractmethod
    def size(self, d: int) -> int:
        """The k whose dimension is d; 0 where there is none."""

    @abstractmethod
    def vectors(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Array, Codes]:
        """Vectors (m, d) of a stack, in the region up to rounding, and their status.

        An unusable matrix is the region's centre.
        """

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

    @abstractmethod
    def project(self, v: Array, region: Region) -> Array:
        """The point of the (convex) region nearest to a vector."""

    def encode(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Ints, Codes]:
        """Lattice points of a stack in a region."""
        Y, status = self.vectors(X, region, kernels)
        return kernels.encode_vectors(Y, region.center, region.radius), status

    def lattice_sum(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Ints, Codes]:
        """Sum of :meth:`encode`: a chart with a fused kernel overrides this."""
        q, status = self.encode(X, region, kernels)
        return home(q.sum(axis=0)), status


def at_center(Y: Array, status: Codes, region: Region) -> Array:
    """``Y`` with unusable records moved to the region's centre, in place."""
    bad = np.flatnonzero(status)
    if bad.size:
        Y[bad] = beside(region.center, Y)
    return Y


def clip_to_ball(Y: Array, center: Array, radius: float) -> Array:
    """Radial clip y ← c + (y − c)·min(1, r/‖y − c‖)."""
    at = beside(center, Y)
    Z = Y - at
    norm = np.sqrt((Z * Z).sum(axis=-1, keepdims=True))
    clipped: Array = at + Z * np.minimum(1.0, radius / np.maximum(norm, radius))
    return clipped
