r"""A sum with its squares, coordinate by coordinate and in all, for the price of one.

A vector y of the unit ball becomes φ(y) = (y, a·(y_j²)_j, b·‖y‖²).

*Lemma.* If a² ≤ ½ and a² + b² ≤ γ = (11 + 5√5)/8 ≈ 2.7725, two such vectors are at most
2 apart, as y and y' alone may be. With s = ‖y‖ ≥ u = ‖y'‖ and t = y·y',
Σ (y_j² − y'_j²)² ≤ ‖yyᵀ − y'y'ᵀ‖² = s⁴ + u⁴ − 2t², so the squared distance is at most

    s² + u² − 2t + a²(s⁴ + u⁴ − 2t²) + b²(s² − u²)².

Its derivative in t is −2 − 4a²t ≤ 0 where t ≥ −1, so it is largest at t = −su, where it
is (s + u)²·(1 + (a² + b²)(s − u)²). That grows with s, up to s = 1, and with v = 1 − u
it is (2 − v)²(1 + (a² + b²)v²), at most 4 iff a² + b² ≤ (4 − v)/(v(2 − v)²), whose
minimum over 0 < v ≤ 1 is γ, at v = 3 − √5.
"""

from dataclasses import dataclass
from math import isqrt

import numpy as np

from spdp.choices import Adjacency
from spdp.frame import Frame
from spdp.kernels import RECORD_NORM, Kernels
from spdp.queries.base import Array, Ints, Query, either, root_upward

__all__ = ["SpreadSum"]

EACH = isqrt(RECORD_NORM**2 // 2)  # a = EACH/2³⁰ ≤ 1/√2
ALL, OF = 3, 2  # b = 3/2: a² + b² ≤ 2.75 < γ
ROWS = 1 << 14  # at once


@dataclass(frozen=True, eq=False)
class SpreadSum(Query):
    """Σ of y − c in the ball of ``radius``, and of its squares, on one lattice.

    For a record's lattice point q, of norm ≤ N = 2³⁰, the total holds Σ q; then, for
    every coordinate, Σ ⌊⌊q_j²/N⌋·EACH/N⌋; then Σ ⌊3·⌊‖q‖²/N⌋/2⌋. By this module's
    lemma N·φ(q/N) moves by at most 2N. Rounding takes less than a + 1 < 1.71 off every
    square and less than b + 1 = 2.5 off their sum, so a record replaced moves the total
    by at most 2N + √(3d + 7); one added or removed by at most √(1 + a² + b²)·N. No
    entry exceeds 3N/2, so 2³² records fit into 64 bits.
    """

    frame: Frame  # without axes, its units 1
    radius: float

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        d = len(self.frame.center)
        total = np.zeros(2 * d + 1, np.int64)
        for start in range(0, len(Y), ROWS):
            some = np.ascontiguousarray(Y[start : start + ROWS])
            q = kernels.encode_vectors(some, self.frame.center, self.radius)
            squares = q * q
            each = (squares // RECORD_NORM) * EACH // RECORD_NORM
            total[:d] += q.sum(axis=0)
            total[d:-1] += each.sum(axis=0)
            total[-1] += (squares.sum(axis=1) // RECORD_NORM * ALL // OF).sum()
        return total

    def sensitivity(self, adjacency: Adjacency) -> int:
        replaced = 2 * RECORD_NORM + root_upward(3 * len(self.frame.center) + 7)
        alone = root_upward((OF**2 + ALL**2) * RECORD_NORM**2 // OF**2 + EACH**2 + 1)
        return either(adjacency, replaced, alone)

    def moments(self, values: Array, n: int) -> tuple[Array, Array, float]:
        """Means of y − c, of its squares, and of ‖y − c‖², that (noisy) totals mean."""
        d, (one, each, all_) = len(self.frame.center), self.units(n)
        return values[:d] * one, values[d:-1] * each, float(values[-1] * all_)

    def units(self, n: int) -> tuple[float, float, float]:
        """What one unit of the total is in each of :meth:`moments`."""
        square = self.radius**2 / RECORD_NORM / n
        return self.radius / RECORD_NORM / n, square * RECORD_NORM / EACH, square * OF / ALL
