r"""The affine-invariant metric, d(X, Y) = ‖Logm(X^-½·Y·X^-½)‖_F: a curved one.

No isometry takes it to R^d. Its chart at C is the logarithm map there: with C = G·Gᵀ
the vector of X is y = vecd Logm(G⁻¹·X·G⁻ᵀ), and ‖y‖ = d(C, X) exactly. Here C is the
identity (or a public reference point), where vectors are those of the log-Euclidean
metric; :class:`Point` carries them to a point that was released since.

*Same regions.* From e^t·I both metrics have the same distances, so balls about it are
the same. {ℓI ⪯ X ⪯ LI} is geodesically convex, as A #_s B is monotone in A and B; so is
tr X ≤ T, which is convex along geodesics, and so is a ball, as in every Hadamard space.
*Same clipping.* Conjugation by an orthogonal matrix and by diag(±1) are isometries that
keep the interval, so the projection of a diagonal matrix is diagonal, and among those
the metric is Euclidean in logarithms: clamping eigenvalues is the projection. Toward
e^t·I geodesics are straight in logarithms: so is the projection onto a ball. Both are
projections onto closed convex sets of a Hadamard space, hence 1-Lipschitz, and
``project`` brings a matrix no farther from any point of the domain in this metric,
too.

*How far.* Logarithms of the eigenvalues of C⁻¹X are majorised by sums of those of X
and of C⁻¹, both in descending order (Gel'fand, Naimark and Lidskii), so that
:meth:`~spdp.charts.logeuclid.LogEuclidean.farthest` bounds d(C, X), too.

*Seen from elsewhere.* Log_C is 1-Lipschitz (curvature ≤ 0): records of a ball of radius
R about O lie, seen from C, in the flat ball of radius R about Log_C O.

*Enforced.* Records are judged and clipped where they are read, seen from the chart's
own point. What a vector becomes elsewhere depends on that vector and on C alone
(:func:`spdp.kernels.reference.carry`): never an error, and float64's limits are met by
raising eigenvalues of that record. *Assumed.* C is public, or was released by the same
account. *Therefore* a query over carried vectors is as sensitive as over any others:
its integer norm bound stands beside it, and curvature enters nowhere.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.charts.base import Chart
from spdp.charts.logeuclid import LogEuclidean
from spdp.charts.whitened import Whitened
from spdp.errors import ParameterError, named
from spdp.kernels import kernels_for
from spdp.kernels.arrays import Array, Ints, Statuses
from spdp.kernels.base import Kernels, Region
from spdp.kernels.vecd import compose, invvecd, size_of

OFF_CENTER = 1e-9  # off a multiple of I, relative to the radius: rounding of a centre
CONDITION = 1e6  # largest of a point's factor: float64 can invert it


class _AffineInvariant(LogEuclidean):
    """What both charts of the metric share."""

    name = "riemann"
    distance = "affine-invariant"
    flat = False

    def about(self, center: Any) -> Chart:
        return AffineInvariantAt(center)

    def ball(self, center: Array | None, radius: float, k: int) -> Region:
        """A ball about a multiple of I, the only ones whose form is that of R^d."""
        if center is not None:
            away = center.copy()
            away[:k] -= center[:k].mean()
            if float(np.linalg.norm(away)) > OFF_CENTER * radius:
                raise ParameterError(
                    f"in the affine-invariant metric a ball about a matrix is seen from that "
                    f"matrix: pass it as {named('reference_point')}, and a ball without a centre"
                )
        return super().ball(center, radius, k)


class AffineInvariant(_AffineInvariant):
    """SPD matrices with the affine-invariant metric, seen from the identity."""


class AffineInvariantAt(_AffineInvariant, Whitened):
    """The metric seen from a public SPD matrix.

    Domains are about whitened records; the estimand does not depend on the point.
    """


class Point(NamedTuple):
    """A point C = G·Gᵀ, in the coordinates of its chart, from which records are seen.

    G is a product of exponentials of half the steps that led here, so that axes, units
    and covariances found earlier were transported in parallel.
    """

    factor: Array  # G, (k, k)

    @classmethod
    def start(cls, d: int) -> "Point":
        """The chart's own point."""
        return cls(np.eye(size_of(d)))

    def moved(self, w: Array) -> "Point":
        """The point Exp_C(w), with the frame transported there: G·Expm(½·invvecd w)."""
        values, V = np.linalg.eigh(invvecd(w))
        return Point(np.asarray(self.factor @ compose(V, np.exp(0.5 * values))))

    def held(self) -> "Point":
        """This point, or one near it whose factor float64 can invert."""
        U, values, V = np.linalg.svd(self.factor)
        if values[-1] * CONDITION >= values[0]:
            return self
        return Point(np.asarray((U * np.maximum(values, values[0] / CONDITION)) @ V))

    def at(self, w: Array) -> Array:
        """The vector of Exp_C(w), seen from the chart's own point."""
        return one_carried(w, self.factor)

    def seen(self, y: Array) -> Array:
        """The vector, seen from here, of what the chart's own point sees at y."""
        return one_carried(y, self.to_here(None))

    def to_here(self, other: "Point | None") -> Array:
        """W with which vectors seen from another point are carried here."""
        inverse = np.linalg.inv(self.factor)
        return np.asarray(inverse if other is None else inverse @ other.factor)


class CarriedChart(AffineInvariant):
    """The vectors of another chart, clipped to a region there, seen from a point.

    *Enforced.* Each record is clipped by the other chart, to its own region, and then
    carried; an invalid one becomes that region's centre. Log at another point is
    1-Lipschitz, so carried vectors lie in the carried ball, and are not clipped again:
    the region that callers pass is not used. Fused kernels of the log-Euclidean metric
    do not carry, so records are encoded by the chart's general way.
    """

    def __init__(self, base: Chart, region: Region, W: Array) -> None:
        self.base, self.own, self.W, self.kinds = base, region, W, base.kinds
        self.key = f"{base.key}, carried"
        home = one_carried(region.center, W)
        # all records lie within the radius of it: the map is 1-Lipschitz
        self.region = Region(-np.inf, np.inf, home, region.radius)

    def vectors(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Array, Statuses]:
        Y, status = self.base.vectors(X, self.own, kernels)
        return kernels.carry(Y, self.W), status

    def encode(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Ints, Statuses]:
        return Chart.encode(self, X, region, kernels)

    def lattice_sum(
        self, X: NDArray[Any], region: Region, kernels: Kernels
    ) -> tuple[Ints, Statuses]:
        return Chart.lattice_sum(self, X, region, kernels)


def one_carried(y: Array, W: Array) -> Array:
    """One vector carried, by the same kernel as records."""
    return np.asarray(kernels_for().carry(np.ascontiguousarray(y[None]), W)[0])
