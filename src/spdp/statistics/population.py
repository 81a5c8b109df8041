r"""From the mean of the records to that of the population they were drawn from.

Let Y be a record of the population, of mean m = E Y, and g(Y) what pulling to the last
ellipsoid makes of it; g is fixed, given what was released before. Of n records drawn
independently the release sees y = (1/n)·Σ g(y_i) + N, so that

    y − m = N + S + (E g(Y) − E Y),   S = (1/n)·Σ g(y_i) − E g(Y),
    ‖y − m‖ ≤ ‖N + S‖ + E h,   h = ‖Y − g(Y)‖.

S is approximately N(0, Σ/n) for large n (the central limit theorem), Σ the covariance
of the *pulled* records, which is what was released; N and S are independent. What
pulling took off the records is not in S but in E h, the mean excess of the population:
what was measured is ê = (1/n)·Σ h_i + noise, which varies about E h by no more than
:func:`spdp.privacy.bounds.sampled_sd`, however few and far the records are that are
pulled. *Therefore* the bound is that for the mean of the records, with the variances of
S added to those of N, and with a larger standard deviation of the excess. That S and
the h_i come from the same records does not matter: the risk is split between the two.

*Assumed.* Independent records (or persons), each drawn from the population; n large
enough for the normal limit, of the few that are pulled too. Variances and E h are taken
to be two standard deviations of their noise larger than measured. The probability is
over noise and sampling, and approximate. Everything is made of released numbers.

*One axis is the worst case.* Where only t = tr Σ/n is known, Q = ‖N + S‖² is a sum of
λ_k·χ²_1, each λ_k ≥ σ², Σ λ_k = dσ² + t. Moving weight from b to a ≥ b, with a + b
fixed, changes the law: from its characteristic function Π (1 − 2iλ_k s)^(−1/2),

    (∂_a − ∂_b) P(Q > x) = −2(a − b)·g'(x),   g the density of Q' = Q + aχ²_2 + bχ²_2.

g is unimodal, for sums of gamma variables are self-decomposable (Yamazato 1978). With
K(s) = Σ (n_k/2)·exp(−s/2λ_k), n_k the degrees of freedom in Q', y·g(y) is the integral
of K(s)·g(y − s), so that at the mode m·g(m) ≤ g(m)·∫K = g(m)·E Q'. *Therefore* beyond
E Q' ≤ (d + 4)σ² + 3t such a move only adds to P(Q > x), and of all Σ the one along a
single axis has most beyond x. More than 5 % of its law lie beyond that point if d ≥ 3;
for d = 2 the integral ends at m, and the same holds beyond 2.83·(2σ² + t) (both are
tested). For σ = 0, Székely and Bakirov (2003) show it from 1.5364·t on.

*Not below 90 %.* Nearer, one axis is not the worst case: a law of many axes gathers at
its mean dσ² + t, which a single χ²_1 stays below in 68 % of all draws: at confidences
of 60 to 68 % the bound covered in 51 % of 500 runs with k = 7. From 80 % on no law of
two or more axes was seen to have 2 % more beyond the bound than it may, at 90 % none to
have more (tested, for d from 2 to 100 and t from σ²/1000 to 1000·σ²): smaller
confidences are refused (:data:`spdp.privacy.bounds.POPULATION_FROM`).
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.certificate import population_estimand, stated_bounds
from spdp.choices import Unit
from spdp.privacy.bounds import Bound, Number, sampled_sd
from spdp.privacy.laws import weighted_chi2_law

__all__ = ["population_bound"]


def population_bound(
    bound: Bound,
    variances: NDArray[np.float64],
    reach: float,
    number: Number,
    distance: str,
    unit: Unit,
) -> dict[str, Any]:
    """What a certificate says of the population's mean.

    ``variances`` are those of noise and sampling together, along principal axes;
    ``reach`` is a distance to the centre that no record exceeds.
    """
    sd = sampled_sd(bound.excess, bound.excess_sd, reach, number.value / number.stretch)
    noise = weighted_chi2_law(np.maximum(variances, 0.0))
    wider = replace(bound, noise=noise, excess_sd=sd)
    return {
        **stated_bounds(wider),
        "parts": wider.describe(),
        "estimand": population_estimand(distance, unit.value),
    }
