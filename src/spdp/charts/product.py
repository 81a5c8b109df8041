"""Several matrices per record: p copies of a chart, side by side.

The vectors of a record's matrices stand one after the other, so squared distances add
up: with every matrix within r of the centre, a record lies within √p·r of it. One
budget then pays for all p means.
"""

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.charts.base import Chart, Component
from spdp.kernels.arrays import Array, Statuses
from spdp.kernels.base import Kernels, Region


class Product(Chart):
    """Records (p, k, k) in the metric of ``base``, p of them at a time.

    Every matrix is clipped to the domain on its own. An invalid matrix becomes its
    centre; the other matrices of that record are not affected.
    """

    parts: int

    def __init__(self, base: Chart, parts: int) -> None:
        self.base, self.parts = base, parts
        self.name, self.distance, self.kinds = base.name, base.distance, base.kinds
        self.refuses = base.refuses
        self.flat = base.flat
        self.key, self.reference_point = f"{base.key}×{parts}", base.reference_point

    def dimension(self, k: int) -> int:
        return self.parts * self.base.dimension(k)

    def size(self, d: int) -> int:
        return self.base.size(d // self.parts) if d % self.parts == 0 else 0

    def coordinates(self, X: NDArray[Any], kernels: Kernels) -> tuple[Array, Statuses]:
        Y, status = self.base.coordinates(X.reshape(-1, *X.shape[-2:]), kernels)
        return Y.reshape(len(X), -1), _any(status, len(X))

    def vectors(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Array, Statuses]:
        flat = X.reshape(-1, *X.shape[-2:])
        Y, status = self.base.vectors(flat, self.one(region), kernels)
        return Y.reshape(len(X), -1), _any(status, len(X))

    def matrices(self, v: Array) -> Array:
        return self.base.matrices(self._cut(v))

    def representable(self, v: Array) -> Array:
        return self.base.representable(self._cut(v)).reshape(v.shape)

    def vector(self, M: Any) -> Array:
        """Vectors of (..., p, k, k); a single matrix stands for p equal ones."""
        V = self.base.vector(M)
        if np.ndim(M) == 2:
            V = np.tile(V, (self.parts, 1))
        return V.reshape(*V.shape[:-2], -1)

    def ball(self, center: Array | None, radius: float, k: int) -> Region:
        d = self.base.dimension(k)
        one = None if center is None else center[:d]
        whole = self._joined(self.base.ball(one, radius, k))
        return whole if center is None else whole._replace(center=center)

    def bounded(self, low: float, high: float, k: int) -> Region:
        return self._joined(self.base.bounded(low, high, k))

    def traced(self, low: float, trace: float, k: int) -> Region:
        return self._joined(self.base.traced(low, trace, k))

    def log_jacobian(self, M: Any) -> Any:
        return self.base.log_jacobian(M).sum(axis=-1)

    def components(self, v: Array) -> list[Component]:
        each = self.base.components(self._cut(v))
        return [Component(part.reshape(v.shape), self.parts * p) for part, p in each]

    def at_edge(self, Y: Array, region: Region, kernels: Kernels) -> NDArray[np.bool_]:
        flat = Y.reshape(len(Y) * self.parts, Y.shape[1] // self.parts)
        each = self.base.at_edge(flat, self.one(region), kernels)
        return np.asarray(each.reshape(len(Y), self.parts).any(axis=1))

    def project(self, v: Array, region: Region) -> Array:
        """Part by part, of a vector (d,) or of vectors (..., d)."""
        each = np.moveaxis(self._cut(v), -2, 0)
        parts = zip(each, region.center.reshape(self.parts, -1), strict=True)
        one = self.one(region)
        return np.concatenate(
            [self.base.project(part, one._replace(center=center)) for part, center in parts],
            axis=-1,
        )

    def one(self, region: Region) -> Region:
        """The region of one of the matrices."""
        d = len(region.center) // self.parts
        return region._replace(center=region.center[:d], radius=region.radius / sqrt(self.parts))

    def _joined(self, region: Region) -> Region:
        center = np.tile(region.center, self.parts)
        return region._replace(center=center, radius=region.radius * sqrt(self.parts))

    def _cut(self, v: Array) -> Array:
        return v.reshape(*v.shape[:-1], self.parts, v.shape[-1] // self.parts)


def _any(status: Statuses, m: int) -> Statuses:
    """Status of records from the status of their matrices."""
    return np.asarray(status.reshape(m, -1).max(axis=1, initial=0))
