r"""An error in the units of the field: from a distance between matrices to numbers.

A release states that the distance from its matrix A to the exact one, B, is at most u.
What that says of eigenvalues, of their mean, of fractional anisotropy and of
correlations is proven here, for the released A and every B within u.

*Eigenvalues.* Let a_i and b_i be the ordered eigenvalues, x_i = ln(b_i/a_i). For the
log-Euclidean distance u = ‖Logm A − Logm B‖_F, Hoffman and Wielandt give Σ x_i² ≤ u²,
and Weyl |x_i| ≤ u: **each eigenvalue lies within a factor e^u**. The affine-invariant
distance is at least the log-Euclidean one (Bhatia 2003), so all of this holds for it.

*Their mean*, which is the mean diffusivity of a diffusion tensor: Σ a_i·e^{x_i}/k over
the ball ‖x‖ ≤ u. *Least*: the function is convex, and at its least point
a_i·e^{x_i} = −ν·x_i; with y = −x this is y·e^y = a_i/ν, so y_i = W₀(a_i/ν), and ‖y‖
falls as ν grows. *Largest*: it is on the sphere, with every x_i > 0 (to change a sign
only helps, and x_i = 0 solves no equation), where a_i·e^{x_i} = ν·x_i. For u ≤ 1 all
x_i ≤ 1, where e^x/x falls: x_i = −W₀(−a_i/ν) is the only solution, ‖x‖ falls as ν
grows, and one ν is left. For u > 1 the bound is e^u. Both ends are attained, by B that
commute with A.

*Fractional anisotropy* of three eigenvalues is √(3/2)·sin θ, with θ the angle between
a and (1, 1, 1). Along a path x the unit vector n = a/‖a‖ moves by
n_i·(ẋ_i − Σ_j n_j²·ẋ_j), whose squared length is the variance of ẋ under the weights
n_i². A variance is at most a quarter of the squared range, and (max ẋ − min ẋ)² ≤
2·‖ẋ‖². So θ changes by at most **u/√2**.

*Correlations, off-log distance.* C = Expm(H + D), where the diagonal D makes the
diagonal of C one. Let M be the derivative of Expm at H + D: in the eigenbasis it
multiplies entries by (e^a − e^b)/(a − b), so it is symmetric and 0 ≺ M ⪯ m for m the
largest eigenvalue of C. For a change Ḣ, the change G = Ḣ + Ḋ has diag(M G) = 0, hence
G is M-orthogonal to all diagonal matrices, the M-projection of Ḣ, and
⟨G, M G⟩ ≤ ⟨Ḣ, M Ḣ⟩ ≤ m·‖Ḣ‖². With S the symmetric matrix that picks entry ij,
‖S‖² = 1/2, two bounds follow:

- |Ċ_ij| = |⟨S, M G⟩| ≤ ‖S‖·√m·√⟨G, M G⟩ ≤ m·‖Ḣ‖/√2;
- ⟨S, M S⟩ = ½∫₀¹ (C^s)_ii·(C^{1−s})_jj + (C^s)_ij·(C^{1−s})_ij ds ≤ 1, as
  (C^s)_ii ≤ (C_ii)^s = 1 (Jensen), so |Ċ_ij| ≤ √m·‖Ḣ‖.

On the straight path from A to B, ‖Ḣ‖ = 1 and its length is u. There m starts at the
largest eigenvalue of A, is at most k, and grows by at most c·m, c = √((k−1)/k):
‖Ċ‖_F ≤ m, and the largest eigenvalue of a k×k matrix of trace zero is at most c times
its Frobenius norm. The bound is the integral of min(√m, m/√2) with the largest such m.

*Correlations, affine-invariant distance.* Distances of 2×2 principal blocks are no
larger (generalised eigenvalues interlace), and congruence by a diagonal matrix changes
neither distance nor correlation r. At A = [[1, r], [r, 1]] let h be the change seen
from A, in the basis of its eigenvectors (1, ±1): then d artanh r = (h₊₊ − h₋₋)/2, at
most ‖h‖/√2. So **artanh r changes by at most u/√2**.

References
----------
R. Bhatia, "On the exponential metric increasing property", Linear Algebra Appl. 375
(2003). A. J. Hoffman, H. W. Wielandt, "The variation of the spectrum of a normal
matrix", Duke Math. J. 20 (1953).
"""

from collections.abc import Callable
from math import exp, sqrt
from typing import NamedTuple

import numpy as np
from scipy.special import lambertw

from spdp.kernels.arrays import Array

SPECTRAL = ("logeuclid", "hermitian", "riemann")  # metrics whose distance bounds spectra
SLACK = 1e-9  # relative: float64 rounds, and root finders stop
CELLS = 1000  # of an integral that is bounded from above
MOST = 700.0  # e^700 is the end of float64
NEAR_ONE = 0.99  # from this u on, the largest mean is bounded by e^u


class Range(NamedTuple):
    """Where an exact number lies."""

    low: float
    high: float


def eigenvalue_factor(u: float) -> float:
    """The factor that each eigenvalue lies within."""
    return exp(min(u, MOST)) * (1 + SLACK)


def mean_eigenvalue(A: Array, u: float) -> Range:
    """Where the mean of the exact matrix's eigenvalues lies."""
    a = np.linalg.eigvalsh(A)
    mean, top = float(a.mean()), float(a.max())
    if u <= 0:
        return Range(mean, mean)
    scaled = a / top  # in (0, 1]
    low, high = 0.0, mean * eigenvalue_factor(u)
    if u < MOST / 2:
        y = _at_norm(lambda nu: lambertw(scaled / nu).real, u, -MOST)
        low = float((a * np.exp(-y)).mean()) * (1 - SLACK)
    if u < NEAR_ONE:
        x = _at_norm(lambda nu: -lambertw(-scaled / nu).real, u, 1.0 + SLACK)
        high = float((a * np.exp(x)).mean()) * (1 + SLACK)
    return Range(low, high)


def _at_norm(point: Callable[[float], Array], u: float, least: float) -> Array:
    """The point of norm u on a curve whose norm falls with ν = e^t, from t = least."""

    def beyond(t: float) -> float:
        return float(np.linalg.norm(point(exp(t)))) - u

    from scipy.optimize import brentq  # takes a tenth of a second to import

    return point(exp(brentq(beyond, least, MOST, xtol=1e-13)))


def anisotropy(A: Array, u: float) -> tuple[float, Range]:
    """Fractional anisotropy of a 3×3 matrix, and where that of the exact one lies."""
    a = np.linalg.eigvalsh(A)
    a = a / a.max()
    off = float(np.linalg.norm(a - a.mean()))
    angle = np.arctan2(off, sqrt(3.0) * float(a.mean()))
    least, largest = angle - u / sqrt(2.0), angle + u / sqrt(2.0)
    edge = np.arccos(1 / sqrt(3.0))  # one eigenvalue alone
    fa = [sqrt(1.5) * float(np.sin(min(max(t, 0.0), edge))) for t in (angle, least, largest)]
    return fa[0], Range(max(fa[1] - SLACK, 0.0), min(fa[2] + SLACK, 1.0))


def correlation_shift(C: Array, u: float) -> float:
    """How far any correlation is from C's, for an off-log distance of u; at most 2."""
    k, m = len(C), float(np.linalg.eigvalsh(C)[-1])
    grid = np.linspace(0.0, u, CELLS + 1)[1:]  # right ends: the integrand grows
    exponent = np.minimum(sqrt((k - 1) / k) * grid, MOST)
    largest = np.minimum(m * np.exp(exponent), k)
    rate = np.minimum(np.sqrt(largest), largest / sqrt(2.0))
    return min(2.0, float(rate.mean()) * u * (1 + SLACK))


def correlation_range(r: float, u: float) -> Range:
    """Where a correlation lies, for an affine-invariant distance of u."""
    z, reach = float(np.arctanh(r)), u / sqrt(2.0) * (1 + SLACK)
    return Range(float(np.tanh(z - reach)), float(np.tanh(z + reach)))
