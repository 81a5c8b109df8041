r"""A bound on the joint error of class means over the whole domain.

Let class c of C have n_c records of mean m_c, seen from the centre of the domain's ball
of radius R. One query answers s_c = n_c·m_c + N_c and a_c = n_c + e_c with independent
N_c ~ N(0, σ²I) and e_c ~ N(0, τ²), and z_c = s_c/a_c is released if the class is
*seen*, a_c ≥ f for a public f. As s_c − a_c·m_c is free of n_c (Fieller 1954),

    a_c·‖z_c − m_c‖ = x_c,   x_c = ‖N_c − e_c·m_c‖,

and x_c² has the law of weights σ², …, σ², σ² + τ²·‖m_c‖², with ‖m_c‖ ≤ R. Of the sum of
x_c²/a_c² over the classes seen, only the a_c are random beside the x_c. Let
b_c = max(a_c, f) and ν_c = max(n_c, f), so that b_c = a_c where c is seen, and
|b_c − ν_c| ≤ E for all classes but for a probability of 7·10⁻⁶ (|e_c| ≤ E). With
b = min b_c ≤ ν + E, ν = min ν_c, that sum is then at most

    (1/b²)·Σ min(1, ρ_c)²·x_c²  over all classes,   ρ_c = (ν + E)/(ν_c − E),

and min(1, ρ_c) ≤ r_c = min(1, (b + 2E)/(b_c − 2E)), which is what is known. The sum
with ρ_c has weights that no noise moves, hence a known law, whose quantiles are at most
those with r_c. *Therefore* the root of the quantile with r_c, over b, bounds the joint
error of the classes seen. The argument does not look at which these are: nothing is
conditional on that. A class not seen is given another point of the ball, no farther
from its own mean than the ball's other side; by the triangle inequality that is added
as a shift. So a bound is stated always.
"""

from math import sqrt

import numpy as np
from numpy.typing import NDArray
from scipy import special

from spdp.privacy.bounds import SURE, SURE_PART, Bound
from spdp.privacy.laws import Spec, weighted_chi2_law

__all__ = ["count_reach", "joint_bound", "joint_law", "least_count"]

Array = NDArray[np.float64]

RISK = 2e-5  # that the noise of some class's count is larger
# A class is seen from so many standard deviations of its count's noise, and records.
SEEN, FEWEST = 2.0, 5.0


def count_reach(classes: int, sd: float) -> float:
    """What the noise of no class's count exceeds, but for a small risk."""
    return -float(special.ndtri(0.5 * RISK / classes)) * sd


def least_count(sd: float) -> float:
    """The count from which a class is seen."""
    return max(FEWEST, SEEN * sd)


def joint_law(counts: Array, d: int, sum_sd: float, count_sd: float, radius: float) -> Spec:
    """Law of (1/b²)·Σ r_c²·x_c² of this module's text.

    ``counts`` are the b_c, ``sum_sd`` is σ, ``count_sd`` τ.
    """
    off = count_sd * float(special.ndtri(1.0 - special.ndtr(-SURE) / len(counts)))
    least = float(counts.min())
    ratio = np.minimum(1.0, (least + 2.0 * off) / np.maximum(counts - 2.0 * off, least))
    one = np.append(np.full(d - 1, sum_sd**2), sum_sd**2 + (count_sd * radius) ** 2)
    return weighted_chi2_law(np.outer((ratio / least) ** 2, one).ravel())


def joint_bound(
    law: Spec, offsets: Array, seen: NDArray[np.bool_], radius: float, rounding: float
) -> Bound:
    """The bound on means released at ``offsets`` (C, d) from the ball's centre.

    ``rounding`` is what the lattice may add to a coordinate of a mean.
    """
    farthest = np.linalg.norm(offsets, axis=1) + radius
    shift = float(np.linalg.norm(farthest[~seen]))
    slack = sqrt(offsets.size) * rounding
    return Bound(law, 0.0, 0.0, shift, slack, float(np.linalg.norm(farthest)), SURE_PART)
