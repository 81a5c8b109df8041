r"""Integers between data and noise: the only place where private noise is drawn.

Noise in floating point is not differentially private (Mironov 2012; Casacuberta et al. 2022 for sums). Here a record becomes an
integer vector, sums are integers, and noise is an exact integer sample, so the guarantee is a fact about integers.

Claim. With S = :func:`exact_sum`, the vector S + N, N = :func:`gaussian_noise` at scale :func:`gaussian_scale`, is (ε, δ)-DP under
replacement of one record, and so is everything computed from it.

*Enforced by the code.* (1) Each record is encoded on its own, as q = trunc((y − c)/g) with y its clipped log-vector, c the domain's centre
and g = r/2³⁰; Σ q² ≤ 2⁶⁰ is checked in integer arithmetic and a record over it is shrunk, so any two records differ by at most 2³¹ in ℓ2
norm, whatever rounding happened before. An unusable record is q = 0, or an error for the curator before any noise is drawn.
(2) S = Σ q is exact in int64 (at most 2³² records, |S| ≤ 2⁶²): independent of order, blocks and threads. (3) The noise is OpenDP's discrete
Gaussian from operating-system entropy with s² ≥ s0² + 16 in exact rational arithmetic, where s0 is the analytic σ for sensitivity 2³¹.

*Assumed.* The domain is public; the number of records n is public (replace-one adjacency); one person owns at most one record; OpenDP's
sampler is exact; what the computer reveals besides the output (timing, memory) is out of scope.

*Therefore.* N(q, s0²·I) is (ε, δ)-DP for sensitivity 2³¹ (theorem 2). Round z ~ N(q, s0²) at random to j ∈ ℤ with probability ∝
exp(−(j − z)²/2τ²), τ = 4. By Poisson summation Σ_j exp(−(j − z)²/2τ²) is constant in z up to a factor 1 ± 2.1·exp(−2π²τ²), so j has, up to
that factor, the discrete Gaussian law of parameter s0² + τ²: the exact sampler is post-processing of the continuous mechanism but for
η < d·10⁻¹³⁰, which is covered by calibrating to the next double below δ (δ ≥ 10⁻¹⁰⁰ is required). More noise than s0² + 16 is more private.
"""

import random
from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from math import inf, nextafter, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spdp import kernels
from spdp.domain import Domain, check_domain
from spdp.errors import DataError, ParameterError
from spdp.geometry import complain, matrix_stack, problem
from spdp.kernels import Region
from spdp.privacy import analytic_sigma, check_budget
from spdp.progress import track
from spdp.records import Records, as_records

__all__ = [
    "encode",
    "exact_sum",
    "gather",
    "gaussian_noise",
    "gaussian_scale",
    "laplace_noise",
    "log_vectors",
    "quantize",
    "sum_block",
    "sum_records",
]

Ints = NDArray[np.int64]
Seed = int | np.random.Generator | None
Complaint = tuple[int, str] | None  # position within a block, and what is wrong there

RECORD_NORM = 1 << 30  # largest ℓ2 norm of an encoded record
REPLACE_ONE = 2 * RECORD_NORM  # how far replacing one record moves the sum
MAX_RECORDS = 1 << 32
ROUNDING_VARIANCE = 16  # τ² of the proof
SMALLEST_DELTA = 1e-100
LARGEST_SCALE = 2.0**57  # beyond, noise would saturate int64: still private, but useless


def encode(X: ArrayLike, domain: Domain) -> Ints:
    """Integer vectors (n, d) of records (n, k, k): Σ q² ≤ 2⁶⁰ for each, whatever the input."""
    A = matrix_stack(X)
    records = as_records(A)
    q, status = kernels.encode(A, check_domain(domain).region(records.k))
    complaint = _complaint(status, A)
    if complaint is not None:
        raise complain(complaint[1], (complaint[0],))
    return q


def exact_sum(X: Any, domain: Domain, on_invalid: str = "raise") -> Ints:
    """Σ encode(X): exact, and identical to the bit for any order, blocks and number of threads.

    NOT private by itself: it must not be published before noise is added.
    """
    return sum_records(X, domain, on_invalid)[0]


def log_vectors(block: NDArray[Any], region: Region) -> tuple[NDArray[np.float64], int, Complaint]:
    """Log-vectors of one block (unusable records at the centre), their number, and what is wrong with the first unusable one."""
    Y, status = kernels.log_vectors(block, region.log_low, region.log_high)
    Y[status != 0] = region.center
    return Y, len(block), _complaint(status, block)


def sum_block(block: NDArray[Any], region: Region) -> tuple[Ints, int, Complaint]:
    """Exact sum of one block, its number of records, and what is wrong with the first unusable one: all that leaves a worker."""
    total, status = kernels.lattice_sum(block, region)
    return total, len(block), _complaint(status, block)


def _complaint(status: NDArray[np.uint8], block: NDArray[Any]) -> Complaint:
    bad = np.flatnonzero(status)
    return (int(bad[0]), problem(int(status[bad[0]]), block[bad[0]])) if bad.size else None


def gather(records: Records, results: Iterable[tuple[Any, int, Complaint]], on_invalid: str) -> Iterator[tuple[Any, int]]:
    """Pass on results block by block, counting records; raise for an unusable one unless it counts as the centre."""
    n = 0
    with track("reading records", records.n) as advance:
        for result, m, complaint in results:
            if complaint is not None and on_invalid == "raise":
                raise complain(complaint[1], (n + complaint[0],))
            n += m
            if n > MAX_RECORDS:
                raise DataError(f"{records.name} has more than 2**32 records; sums would no longer be exact")
            advance(m)
            yield result, m
    if n == 0:
        raise DataError(f"{records.name} holds no records")


def sum_records(X: Any, domain: Domain, on_invalid: str = "raise") -> tuple[Ints, int]:
    """The exact sum and the number of records; reads the source once, in blocks of bounded size, wherever they are."""
    records = as_records(X)
    region = check_domain(domain).region(records.k)
    total, n = np.zeros(len(region.center), np.int64), 0
    for part, m in gather(records, records.each(sum_block, region), on_invalid):
        total += part
        n += m
    return total, n


def step(region: Region) -> float:
    """Lattice step g = r/2³⁰ of records in a region."""
    return region.radius / RECORD_NORM


def quantize(y: NDArray[np.float64], step: float) -> Ints:
    """A summary's coordinates rounded to multiples of ``step`` and clamped to ±2⁶².

    Rounding moves each coordinate by at most half a step and clamping brings points no further apart, so summaries within Δ of each
    other are integers within Δ/step + √d.
    """
    return np.clip(np.rint(y / step), -(2.0**62), 2.0**62).astype(np.int64)


def gaussian_scale(sensitivity: float, epsilon: float, delta: float) -> float:
    """Parameter s of the discrete Gaussian that is (ε, δ)-DP for an integer-valued sum of this ℓ2 sensitivity."""
    if check_budget(epsilon, delta)[1] < SMALLEST_DELTA:
        raise ParameterError(f"delta must be at least {SMALLEST_DELTA} for a private release, got {delta!r}")
    return widen(analytic_sigma(sensitivity, epsilon, nextafter(delta, 0.0)))


def widen(s0: float) -> float:
    """Smallest convenient double s with s² ≥ s0² + 16, checked in exact arithmetic."""
    s = sqrt(s0 * s0 + ROUNDING_VARIANCE)
    while Fraction(s) ** 2 < Fraction(s0) ** 2 + ROUNDING_VARIANCE:
        s = nextafter(s, inf)
    if s > LARGEST_SCALE:
        raise ParameterError("the privacy budget is too small: the noise it needs exceeds the integer range")
    return s


def gaussian_noise(total: Ints, scale: float, random_state: Seed = None) -> Ints:
    """``total`` plus discrete Gaussian noise: OpenDP's exact sampler, or a seeded simulation that is not private.

    The sum itself goes through OpenDP, which saturates at the ends of int64 after adding noise: post-processing.
    """
    if random_state is not None:
        z = np.random.default_rng(random_state).standard_normal(total.shape) * scale
        return total + np.rint(z).astype(np.int64)
    return np.array(_opendp_gaussian(scale)(total.tolist()), np.int64)


@lru_cache(maxsize=64)
def _opendp_gaussian(scale: float) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    return make_gaussian(vector_domain(atom_domain(T="i64")), l2_distance(T="f64"), scale=scale)


def laplace_noise(total: Ints, scale: float, random_state: Seed = None) -> Ints:
    """``total`` plus the ℓ2 Laplace law (density ∝ exp(−‖x‖/scale)) rounded to integers.

    *Enforced.* Noise does not depend on data, and is added in integers: neither do the reachable outputs depend on data. Rounding
    to the lattice keeps ε-DP for integer shifts, because each cell's mass changes by at most e^(‖shift‖/scale).
    *Not enforced.* Radius and direction are drawn in floating point from operating-system entropy: their law is the intended one only to
    about 1e-15 and its tails are finite. Certificates say ``float_safe: false``.
    """
    d = len(total)
    if scale * (d + 60 * sqrt(d)) > 2.0**61:
        raise ParameterError("the privacy budget is too small: the noise it needs exceeds the integer range")
    if random_state is not None:
        rng = np.random.default_rng(random_state)
        direction, radius = rng.standard_normal(d), float(rng.gamma(d, scale))
    else:
        source = random.SystemRandom()
        direction, radius = np.array([source.gauss(0.0, 1.0) for _ in range(d)]), source.gammavariate(d, scale)
    return total + np.rint(direction * (radius / np.sqrt(direction @ direction))).astype(np.int64)
