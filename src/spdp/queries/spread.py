r"""A sum with the sum of squared lengths, for the price of the sum alone.

A vector y of the unit ball becomes φ(y) = (y, b·‖y‖²).

*Lemma.* If b² ≤ γ = (11 + 5√5)/8 ≈ 2.7725, two such vectors are at most 2 apart, as y
and y' alone may be. With s = ‖y‖ ≥ u = ‖y'‖ their squared distance is at most
(s + u)² + b²(s² − u²)² = (s + u)²·(1 + b²(s − u)²), which grows with s, up to s = 1.
There, with v = 1 − u, it is (2 − v)²(1 + b²v²), at most 4 iff
b² ≤ (4 − v)/(v(2 − v)²), whose minimum over 0 < v ≤ 1 is γ, at v = 3 − √5.
"""

from dataclasses import dataclass

import numpy as np

from spdp.choices import Adjacency
from spdp.frame import Frame
from spdp.kernels import RECORD_NORM, Kernels
from spdp.queries.base import Array, Ints, Query, either, root_upward

__all__ = ["COUNTED", "SpreadSum"]

COUNTED = RECORD_NORM // 2  # weight of a count: 1 + b² + ¼ < 4
WEIGHT, OF = 53, 32  # b = 53/32: b² < 2.744 < γ
ROWS = 1 << 14  # at once


@dataclass(frozen=True, eq=False)
class SpreadSum(Query):
    """Σ of y − c in the ball of ``radius``, and of its squared length, on one lattice.

    For a record's lattice point q, of norm ≤ N = 2³⁰, the total holds Σ q, and
    Σ ⌊53·⌊‖q‖²/N⌋/32⌋. By this module's lemma N·φ(q/N) moves by at most 2N; rounding
    takes less than b + 1 < 3 off a record's square, so a record replaced moves the
    total by at most 2N + 3, and one added or removed by at most √(1 + b²)·N. No entry
    exceeds 53N/32, so 2³² records fit into 64 bits.

    With ``weight`` w one more number counts the records, w for each, and one added or
    removed moves the total by at most √((1 + b²)·N² + w²): for w = N/2 still less than
    2N. A record replaced leaves the count as it is.
    """

    frame: Frame  # without axes, its units 1
    radius: float
    weight: int = 0

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        total = np.zeros(len(self.frame.center) + 1, np.int64)
        for start in range(0, len(Y), ROWS):
            some = np.ascontiguousarray(Y[start : start + ROWS])
            q = kernels.encode_vectors(some, self.frame.center, self.radius)
            squares = (q * q).sum(axis=1) // RECORD_NORM
            total += np.append(q.sum(axis=0), (WEIGHT * squares // OF).sum())
        return np.append(total, len(Y) * self.weight) if self.weight else total

    def sensitivity(self, adjacency: Adjacency) -> int:
        alone = root_upward((OF**2 + WEIGHT**2) * (RECORD_NORM // OF) ** 2 + self.weight**2)
        return either(adjacency, 2 * RECORD_NORM + 3, alone)

    def moments(self, values: Array, n: float) -> tuple[Array, float]:
        """Means of y − c and of ‖y − c‖² that (noisy) totals over n records mean."""
        (one, square), d = self.units(n), len(self.frame.center)
        return values[:d] * one, float(values[d] * square)

    def units(self, n: float) -> tuple[float, float]:
        """What one unit of the total is in each of :meth:`moments`."""
        unit = self.radius / RECORD_NORM / n
        return unit, unit * self.radius * OF / WEIGHT
