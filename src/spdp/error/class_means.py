r"""Bounds on the joint error of class means.

*Over the whole domain.* Let class c of C have n_c records of mean m_c, seen from the
centre of the domain's ball of radius R. One query answers s_c = n_c·m_c + N_c and a_c =
n_c + e_c with independent N_c ~ N(0, σ²I) and e_c ~ N(0, τ²), and z_c = s_c/a_c is
released if the class is *seen*, a_c ≥ f for a public f. As s_c − a_c·m_c is free of n_c
(Fieller 1954),

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

*Of clipped records.* Given all that was released before, the last answer of a search
for classes has for each class c the noisy sum S_c + N_c of its records' z, clipped to
the released ellipsoid about the released centre of the class; n̂_c = n_c + η_c are its
noisy counts, of all answers together. With v_c = (S_c + N_c)/n̂_c and |η_c| ≤ E for all
classes, but for a probability of 2·10⁻⁵, as in :mod:`spdp.error.bound`,

    ‖v_c − S_c/n_c‖ ≤ (‖N_c‖ + E·‖v_c‖)/(n̂_c − E).

What is released is v_c moved by a known amount (shrinkage, and into the domain), which
is added. By Minkowski's inequality the root of the sum of squares over the classes is
at most that of the noise, of known law, and that of the rest. Nothing is assumed of the
records, but the bound is about the means of the *clipped* records: how much clipping
took off each class is not measured, so no bound is known for the records themselves.
"""

from math import sqrt

import numpy as np
from scipy import special

from spdp.error.bound import SURE, SURE_SHARE, Bound
from spdp.error.laws import AnyLaw, weighted_chi2
from spdp.kernels.arrays import Array

RISK = 2e-5  # that the noise of some class's count exceeds its margin
# A class is seen if its count is at least so many sds of its noise, and records.
SEEN, FEWEST = 2.0, 5.0


def count_margin(classes: int, sd: float) -> float:
    """What the noise of no class's count exceeds, but for a probability of RISK."""
    return -float(special.ndtri(0.5 * RISK / classes)) * sd


def least_count(sd: float) -> float:
    """The smallest count at which a class is seen."""
    return max(FEWEST, SEEN * sd)


def joint_law(counts: Array, d: int, sum_sd: float, count_sd: float, radius: float) -> AnyLaw:
    """Law of (1/b²)·Σ r_c²·x_c² of the module's docstring.

    ``counts`` are the b_c, ``sum_sd`` is σ, ``count_sd`` τ.
    """
    off = count_sd * float(special.ndtri(1.0 - special.ndtr(-SURE) / len(counts)))
    least = float(counts.min())
    ratio = np.minimum(1.0, (least + 2.0 * off) / np.maximum(counts - 2.0 * off, least))
    one = np.append(np.full(d - 1, sum_sd**2), sum_sd**2 + (count_sd * radius) ** 2)
    return weighted_chi2(np.outer((ratio / least) ** 2, one).ravel())


def joint_bound(
    law: AnyLaw, counts: Array, d: int, step: float, shift: float, max_distance: float
) -> Bound:
    """The bound over the whole domain.

    A row that counts in part is rounded like a full one, and any class may hold a part
    of every person: hence the ratio of all counts to the least.
    """
    ratio = max(1.0, float(counts.sum()) / float(counts.min()))
    rounding = sqrt(len(counts) * d) * 2.0 * step * ratio
    return Bound(law, 0.0, 0.0, shift, rounding, max_distance, SURE_SHARE)


def clipped_bound(
    width: Array, step: float, sum_sd: float, counts: Array, sd: float, n: float, shift: float
) -> Bound | None:
    """The bound for means of clipped records; None where a class is too small for one.

    ``counts`` have noise of standard deviation ``sd``; ``shift`` is what noise of the
    counts and shrinkage add; n is the number of records in all.
    """
    least = counts - count_margin(len(counts), sd)
    if least.min() < 1.0:
        return None
    variances = np.outer(least**-2.0, (width * sum_sd) ** 2).ravel()
    # a row that counts in part is rounded by a whole step, too
    step = step * float(width.max()) * n / float(least.min())
    rounding = 2.0 * sqrt(len(counts) * len(width)) * step
    bound = Bound.shifted(weighted_chi2(variances), shift)
    return bound.replace(rounding=rounding, risk_share=SURE_SHARE)
