r"""A bound on the error of an affine-invariant mean, from one on its last vector.

X_i are the records clipped to the domain, M* their mean, C a released point, y_i =
Log_C X_i, v = mean y_i, which is minus the gradient of f = ½·mean d²(·, X_i) at C. The
last vector released is ŷ, with ‖ŷ − v‖ ≤ U on an event of probability 1 − β
(:class:`~spdp.error.bound.Bound`); w is any function of released numbers, and Exp_C(w)
is what is released. h and S are those of :mod:`spdp.geometry.curvature`.

**Lemma A.** v = H·e for e = Log_C M*, H symmetric, 1 ⪯ H ⪯ 1 + h̄, h̄ = mean of h(‖y_i‖
+ ‖e‖). *Proof.* Along γ(t) = Exp_C(t·e) the transported gradient has the derivative
H_t·e, H_t the transported mean Hessian, and vanishes at t = 1: v = ∫H_t dt·e. At γ(t)
the Hessian of ½d²(·, X_i) is at most 1 + h(d(γ(t), X_i)), and that distance is at most
‖y_i‖ + ‖e‖. ∎ *Therefore* ‖e‖ = d(C, M*) ≤ ‖v‖.

**Lemma B.** ‖e − c·v‖ ≤ ρ·‖v‖ with ρ = h̄/(2(1 + h̄)) and c = 1 − ρ. *Proof.* The
eigenvalues of H⁻¹ lie in [1/(1 + h̄), 1] = [c − ρ, c + ρ]. ∎

**Theorem.** On the event, d(Exp_C(w), M*) ≤ S(x)·(U + ‖w − c·ŷ‖ + ρ·‖ŷ‖), x =
max(‖w‖, ‖ŷ‖ + U)/√2. *Proof.* ‖w − e‖ ≤ ‖w − cŷ‖ + c‖ŷ − v‖ + ‖cv − e‖ ≤ ‖w − cŷ‖ + cU
+ ρ(‖ŷ‖ + U), and c + ρ = 1; then Rauch. ∎

**Two more**, of which the least is taken. *The gradient at the end*: ‖grad f‖ at
Exp_C(w), transported back, is at most ‖v − w‖ + h̄'·‖w‖ with ‖w‖ in place of ‖e‖ in h̄,
and bounds the distance to M* (lemma A): U + ‖w − ŷ‖ + h̄'·‖w‖. *The triangle*: ‖w‖ +
d(C, M*) ≤ ‖w‖ + ‖ŷ‖ + U.

*h̄ from released numbers.* Let ``reach`` be the distance from C beyond which the last
clipping leaves no record, and e_U what the event allows for the mean clipping bias. A
record clipped by b lies within reach + b, and h is 1/√2-Lipschitz, so h̄ ≤ h(reach + ‖ŷ‖
+ U) + e_U/√2. A person's vector is the mean of those of their records, which may lie
far from it on all sides and are not clipped: there ``reach`` is the distance of the
farthest point of the domain. The bound grows with h̄ (as c falls by δ, ‖w − cŷ‖ falls by
at most δ‖ŷ‖, which ρ adds), so an upper bound may stand for it. In a flat metric h̄ = 0,
and what remains is U and the step beyond ŷ.

**Rounding.** A carried record A = W·X·Wᵀ is computed as A' with ‖A' − A‖ ≤ η =
8k·2⁻⁵²·‖W‖²·‖X‖, its small eigenvalues raised to no more than that. With t = η/λ_min(A)
both A' ⪯ (1 + t)A and A ⪯ (1 + t)A', so that d(A, A') ≤ √k·ln(1 + t), in this metric
and whatever the record. Such distances add up over moves, and Log_C is 1-Lipschitz:
their sum is added to U (:func:`carried_rounding`). It is next to nothing unless domain
and point have condition numbers whose product nears 10¹⁴.
"""

from math import inf, log, sqrt
from typing import Annotated

import msgspec
import numpy as np

from spdp.geometry.curvature import ROOT2, excess, stretch
from spdp.kernels.arrays import Array
from spdp.kernels.base import Region
from spdp.kernels.constants import RANK_SLACK

Length = Annotated[float, msgspec.Meta(ge=0)]
# error of a carried record, relative; small eigenvalues are raised to that, too
UNIT = RANK_SLACK * 2.0**-52


def carried_rounding(region: Region, before: Array, after: Array) -> float:
    """How far float64 may move a record of the region, carried between two points.

    The points are given by factors G, C = G·Gᵀ.
    """
    k = len(before)
    first, last = (np.log(np.linalg.svd(G, compute_uv=False)) * 2.0 for G in (before, after))
    W = 2.0 * float(np.log(np.linalg.norm(np.linalg.solve(after, before), 2)))
    spread = min(region.log_high - region.log_low, ROOT2 * region.radius)
    t = W + spread + float(last.max()) - float(first.min())
    return sqrt(k) * float(np.logaddexp(0.0, t + log(UNIT * k)))


def held_to(factor: Array) -> float:
    """How far off :func:`carried_rounding` is for a point rounded to float64."""
    k, values = len(factor), np.linalg.svd(factor, compute_uv=False)
    return 4.0 * sqrt(k) * UNIT * k * float(values[0] / max(values[-1], 1e-300)) ** 2


class Curvature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What turns a bound on the last vector into one on an affine-invariant mean.

    Attributes
    ----------
    length : float
        ‖ŷ‖, seen from C.
    step : float
        ‖w‖, the distance of what is released from C.
    along : float
        ⟨w, ŷ⟩.
    reach : float
        Distance from C that no clipped record exceeds.
    rounding : float
        How far float64 may have moved records that were carried.
    """

    length: Length
    step: Length
    along: float
    reach: Length
    rounding: Length = 0.0

    @classmethod
    def of(cls, y: Array, w: Array, reach: float, rounding: float = 0.0) -> "Curvature":
        """Of the last vector y, and the step w to what is released."""
        length, step = (float(np.linalg.norm(v)) for v in (y, w))
        return cls(length, step, float(w @ y), reach, rounding)

    def away(self, c: float) -> float:
        """‖w − c·ŷ‖."""
        square = self.step**2 - 2.0 * c * self.along + (c * self.length) ** 2
        return sqrt(max(square, 0.0))

    def bound(self, U: float, bias: float = 0.0) -> float:
        """The least of the three bounds, on an event that allows U and this bias."""
        U += self.rounding
        rest = max(bias, 0.0) / ROOT2
        tangent = self.in_tangent_space(U, float(excess(self.reach + self.length + U)) + rest)
        gradient = U + self.away(1.0) + self.step * (float(excess(self.reach + self.step)) + rest)
        return min(tangent, gradient, self.step + self.length + U)

    def in_tangent_space(self, U: float, h: float) -> float:
        """The theorem's bound, for an upper bound h on h̄."""
        rho = 0.5 * h / (1.0 + h) if h < inf else 0.5
        inside = U + self.away(1.0 - rho) + rho * self.length
        return stretch(max(self.step, self.length + U) / ROOT2) * inside
