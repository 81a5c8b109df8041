r"""Private centre and radius: most of the budget is spent inside a ball as small as the data, found with the rest.

A public domain is far wider than the data in it. Since log-Euclidean means are means in R^d, a few cheap private queries find out
where the records are and how far they spread, and the final mean is clipped to that ball:

1. *centre*: noisy mean of the records clipped to the current ball, shrunk toward the ball's centre (James–Stein);
2. *distance*: noisy mean of the records' distances to it. While the centre's own error dominates that distance, the ball shrinks around
   the new centre and both steps are repeated;
3. *shape*: noisy mean of |y − c| coordinate by coordinate; coordinate j is then measured in units w_j = √(its spread), which spends
   noise where the data are wide (as in PLAN, Aumüller et al. 2023; the optimum for independent coordinates);
4. *tail*: noisy histogram of the distances. The radius minimises known noise plus the clipping bias that the histogram's tail allows;
5. *mean*: the clipped mean in that ellipsoid, with all the budget that is left, combined with the last noisy centre by precision.

If the first round finds that the data fill the domain, or no radius promises less than the whole domain, the rest is spent there. Below a
resolution of 8 nothing can be found: all is spent on one mean, shrunk toward the domain's centre.

The search looks at all records, or where their log-vectors would take more than 160 MB at every 2nd, 4th, … block of them, which depends on
the sizes of the blocks only; the last step reads all records.

Limit. A minority too small to be counted privately at the given budget, but far away, is clipped: the result then describes the majority.

*Enforced.* Every query is a sum of integer vectors, one per record, whose norm is bounded in integer arithmetic: by 2³⁰ (replacing a
record moves the sum by at most 2³¹; by √2·2³⁰ if coordinates are non-negative; by 2³⁰ for one non-negative number), or one of the unit
vectors of a histogram (√2). Noise is drawn by :class:`Steps` alone, which converts a step's μ_i into noise and keeps Σ μ_i² ≤ μ² in
exact arithmetic. All choices (rounds, radii, shapes, shares) are functions of public numbers and of what earlier steps released.
*Assumed.* What :mod:`spdp.lattice` assumes.
*Therefore.* Each step is, up to its share of η (see :mod:`spdp.lattice`), post-processing of a μ_i-GDP mechanism; adaptive composition of
those is μ-GDP with μ² = Σ μ_i² (Dong, Roth, Su 2022), and μ is the largest value that is (ε, δ)-DP.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from math import inf, isqrt, nextafter, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp import kernels, lattice
from spdp.domain import Domain, clip_to_ball
from spdp.errors import ParameterError
from spdp.kernels import Region
from spdp.privacy import check_budget, gaussian_mu
from spdp.records import Records

__all__ = ["Adaptive", "Steps", "adaptive_mean", "predict", "resolution"]

Array = NDArray[np.float64]
Seed = int | np.random.Generator | None

KEEP_BYTES = 160 << 20  # log-vectors kept for the search; of more records it looks at every 2nd, 4th, … block
MAX_ROUNDS = 6
# Shares of μ². A round's share makes the ball shrink to about 0.4 of its radius.
ROUND_FACTOR, ROUND_LEAST, ROUND_MOST = 5.0, 0.015, 0.15
DISTANCE_SHARE = 0.2  # of a round's
SHAPE_SHARE, TAIL_SHARE, FINAL_SHARE = 0.03, 0.08, 0.5  # the last one at least
# Resolutions n·μ/√d from which the ball can shrink, and the shape can be seen.
SHRINK_FROM, SHAPE_FROM = 8.0, 25.0
BALL = 0.95  # next radius, in units of the typical distance: clipping half of the records costs less than noise on a wider ball
SETTLED = 0.12  # squared error of the centre over squared distance below which another round would not pay
FULL = 0.85  # a ball that does not shrink below this share of the domain means that the data fill the domain
FAR = 2.0  # growth of the histogram's outer intervals
# Standard deviations by which a noisy tail must stand out: few near the bulk, many far out, where believing in noise costs most.
CAUTION_NEAR, CAUTION_SLOPE, CAUTION_FAR = 1.0, 2.0, 3.5
TAIL_FACTORS = np.array([0.45, 0.55, 0.65, 0.75, 0.85, 0.95, 1.1, 1.25, 1.45, 1.7, 2.1, 2.7])


def resolution(n: float, d: int, mu: float) -> float:
    """n·μ/√d: twice a ball's radius over the rms noise of a mean in it. The one public number all choices here start from."""
    return n * mu / sqrt(d)


def predict(n: float, d: int, mu: float, radius: float, spread: float) -> float:
    """Expected squared noise for data whose typical distance from their mean is ``spread``: a rule of thumb from public numbers.

    Without shape and clipping bias, which pull in opposite directions.
    """
    whole = d * (2.0 * radius / (n * mu)) ** 2
    if resolution(n, d, mu) < SHRINK_FROM:
        return min(whole, radius**2)
    return min(whole, d * (2.0 * 1.2 * spread / (n * mu)) ** 2 / 0.75)


class Steps:
    """The account of an adaptive release: each noisy query is charged here, or it is not drawn.

    Enforced: Σ μ_i² ≤ μ² in exact rational arithmetic; the noise of a step is at least (sensitivity/μ_i)² + 16 in variance.
    """

    def __init__(self, mu: float, random_state: Seed) -> None:
        self.mu = mu
        self.spent = Fraction(0)
        self.log: list[dict[str, Any]] = []
        self._rng = None if random_state is None else np.random.default_rng(random_state)

    @property
    def left(self) -> float:
        """Share of μ² not yet spent."""
        return float(1 - self.spent / Fraction(self.mu) ** 2)

    def query(self, name: str, total: NDArray[np.int64], sensitivity: int, share: float) -> tuple[Array, float]:
        """Noisy integers (as floats) and the standard deviation of their noise, for ``share`` of μ² (or all that is left)."""
        mu, trim = self.mu * sqrt(min(share, self.left)), 2.0**-53
        while mu > 0 and Fraction(mu) ** 2 + self.spent > Fraction(self.mu) ** 2:
            mu, trim = max(0.0, min(nextafter(mu, 0.0), mu * (1 - trim))), 2 * trim  # at most some fifty turns
        if not mu > 0:
            raise ParameterError("an adaptive release tried to spend more than its budget")
        s0 = sensitivity / mu
        while Fraction(s0) * Fraction(mu) < sensitivity:
            s0 = nextafter(s0, inf)
        scale = lattice.widen(s0)
        self.spent += Fraction(mu) ** 2
        self.log.append({"step": name, "mu": mu})
        return lattice.gaussian_noise(total, scale, self._rng).astype(np.float64), scale

    def note(self, **released: Any) -> None:
        """Attach released values to the last step, for the certificate."""
        self.log[-1].update(released)


class _Vectors:
    """Log-vectors of the records, kept where the records are if they fit, and queried block by block."""

    def __init__(self, records: Records, region: Region, on_invalid: str) -> None:
        self.d = len(region.center)
        self._vectors = records.prepare(lattice.log_vectors, region, keep_bytes=KEEP_BYTES)
        self.n = sum(m for _, m in lattice.gather(records, self._vectors.each(_counted), on_invalid))
        self.m = sum(m for _, m, _ in self._vectors.sample(_counted))  # records that the search looks at

    def sum(self, center: Array, width: Array, radius: float, absolute: bool = False, whole: bool = False) -> NDArray[np.int64]:
        visit = self._vectors.each if whole else self._vectors.sample
        return _total(visit(_vector_sum, center, width, radius, absolute))

    def distance_sum(self, center: Array, cap: float) -> NDArray[np.int64]:
        """Σ of distances to ``center`` in units of cap/2³⁰, each at most 2³⁰."""
        return np.array([sum(self._vectors.sample(_distance_sum, center, cap))], np.int64)

    def histogram(self, center: Array, width: Array, edges: Array, unit: int) -> NDArray[np.int64]:
        """``unit`` times the number of records in each interval between ``edges``, and beyond the last."""
        return unit * _total(self._vectors.sample(_counts, center, width, edges))


# Work on one block of log-vectors, as `lattice.log_vectors` prepared it.
_Block = tuple[Array, int, lattice.Complaint]


def _total(parts: Iterable[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.asarray(np.sum(list(parts), axis=0, dtype=np.int64))


def _counted(block: _Block) -> tuple[None, int, lattice.Complaint]:
    return None, block[1], block[2]


def _vector_sum(block: _Block, center: Array, width: Array, radius: float, absolute: bool) -> NDArray[np.int64]:
    return kernels.vector_sum(block[0], center, width, radius, absolute)


def _distance_sum(block: _Block, center: Array, cap: float) -> int:
    norms = kernels.vector_norms(block[0], center, np.ones(len(center)))
    return int((np.minimum(norms / cap, 1.0) * lattice.RECORD_NORM).astype(np.int64).sum())


def _counts(block: _Block, center: Array, width: Array, edges: Array) -> NDArray[np.int64]:
    norms = kernels.vector_norms(block[0], center, width)
    below = [int(np.count_nonzero(norms < edge)) for edge in edges]  # ascending, so differences are counts of disjoint intervals
    return np.diff([0, *below, len(norms)])


def shrink(v: Array, sigma: float) -> tuple[Array, float]:
    """Positive-part James–Stein estimate of a mean seen as v under noise σ²·I, and (an estimate of) its squared error.

    Post-processing, and in three dimensions or more never worse in expectation than v itself.
    """
    d, square = len(v), float(v @ v)
    if d < 3 or square == 0.0:
        return v, d * sigma**2
    factor = max(0.0, 1.0 - (d - 2) * sigma**2 / square)
    return factor * v, max(factor * d * sigma**2, min(square, (d - 2) * sigma**2) * 0.25)


@dataclass(frozen=True)
class Adaptive:
    """An adaptive release before it is put into a matrix: estimate, variances of its noise, and the steps that led to it."""

    y: Array
    variances: Array
    n: int
    mu: float
    radius: float
    steps: list[dict[str, Any]]


def adaptive_mean(
    records: Records,
    *,
    epsilon: float,
    delta: float,
    domain: Domain,
    on_invalid: str = "raise",
    pay: Callable[[float], None] | None = None,
    random_state: Seed = None,
) -> Adaptive:
    """Log-mean of the records with a total guarantee of (ε, δ), by the steps of this module's text.

    ``pay`` is called with the total μ once the records have been read and before any noise is drawn.
    """
    check_budget(epsilon, delta)
    if delta < lattice.SMALLEST_DELTA:
        raise ParameterError(f"delta must be at least {lattice.SMALLEST_DELTA} for a private release, got {delta!r}")
    region = domain.region(records.k)
    vectors = _Vectors(records, region, on_invalid)
    steps = Steps(gaussian_mu(epsilon, nextafter(delta, 0.0)), random_state)
    if pay is not None:
        pay(steps.mu)
    search = _Search(vectors, region, steps)
    y, variances = search.run()
    return Adaptive(clip_to_ball(y, region.center, region.radius), variances, vectors.n, steps.mu, steps.log[-1]["radius"], steps.log)


class _Search:
    """One run of the method: the state is the current ball, which is always a released value or the public domain."""

    def __init__(self, vectors: _Vectors, region: Region, steps: Steps) -> None:
        self.vectors, self.region, self.steps = vectors, region, steps
        self.n, self.m, self.d = vectors.n, vectors.m, vectors.d
        self.ones = np.ones(self.d)
        self.center, self.radius = region.center, region.radius
        self.resolution = resolution(self.m, self.d, steps.mu)
        self.tight = False

    def noisy_mean(self, name: str, width: Array, radius: float, share: float, whole: bool = True) -> tuple[Array, float]:
        """Clipped mean around the current centre, relative to it and in units of ``width``; standard deviation of its noise.

        Of all records, or of those that the search looks at.
        """
        total = self.vectors.sum(self.center, width, radius, whole=whole)
        noisy, scale = self.steps.query(name, total, lattice.REPLACE_ONE, share)
        unit = radius / lattice.RECORD_NORM / (self.n if whole else self.m)
        self.steps.note(center=self.center.tolist(), radius=radius)
        return noisy * unit, scale * unit

    def run(self) -> tuple[Array, Array]:
        if self.resolution < SHRINK_FROM:
            v, sigma = self.noisy_mean("mean", self.ones, self.radius, 1.0)
            return self.center + shrink(v, sigma)[0], np.full(self.d, sigma**2)
        prior, prior_sigma, distance = self.find_ball()
        width, radius = self.ones, self.radius
        if not self.tight:
            width, distance = self.find_shape(distance)
            radius = self.find_radius(width, distance)
        if self.tight:  # the data fill the domain: spend the rest on one more mean over all of it
            self.center, width, radius = self.region.center, self.ones, self.region.radius
        z, sigma = self.noisy_mean("mean", width, radius, 1.0)
        if width is self.ones and not self.tight:
            z = shrink(z, sigma)[0]
        self.steps.note(width=width.tolist())
        return self.combine(self.center + width * z, (width * sigma) ** 2, prior, prior_sigma)

    def combine(self, y: Array, variance: Array, prior: Array, prior_sigma: float) -> tuple[Array, Array]:
        """The last noisy centre is an independent estimate of the same mean: weigh both by their precision."""
        weight = variance / (variance + prior_sigma**2)
        return (1 - weight) * y + weight * prior, variance * (1 - weight)

    def find_ball(self) -> tuple[Array, float, float]:
        """Shrink the ball round by round; gives the last noisy centre with its noise, and the typical distance to the new one."""
        share = float(np.clip((ROUND_FACTOR / self.resolution) ** 2, ROUND_LEAST, ROUND_MOST))
        distance_share = DISTANCE_SHARE * share
        for turn in range(MAX_ROUNDS):
            v, sigma = self.noisy_mean("centre", self.ones, self.radius, share, whole=False)
            prior, (offset, error) = self.center + v, shrink(v, sigma)
            self.center = clip_to_ball(self.center + offset, self.region.center, self.region.radius)
            cap = self.radius
            noisy, scale = self.steps.query("distance", self.vectors.distance_sum(self.center, cap), lattice.RECORD_NORM, distance_share)
            blur = scale * cap / lattice.RECORD_NORM / self.m
            distance = float(np.clip(noisy[0] * cap / lattice.RECORD_NORM / self.m, max(blur, 1e-9 * self.radius), cap))
            self.steps.note(center=self.center.tolist(), distance=distance)
            radius = min(BALL * distance + blur, self.radius)
            if turn == 0 and radius > FULL * self.radius:
                self.tight = True
                break
            settled = error < SETTLED * distance**2 or radius > FULL * self.radius
            self.radius = radius
            if settled or turn == MAX_ROUNDS - 1 or self.steps.left - share - distance_share < FINAL_SHARE + SHAPE_SHARE + TAIL_SHARE:
                break
        return prior, sigma, distance

    def find_shape(self, distance: float) -> tuple[Array, float]:
        """Units of each coordinate, of mean square 1, and the typical distance measured in them."""
        if self.resolution < SHAPE_FROM or self.d < 2:
            return self.ones, distance
        total = self.vectors.sum(self.center, self.ones, self.radius, absolute=True)
        noisy, scale = self.steps.query("shape", total, isqrt(2 * lattice.RECORD_NORM**2) + 1, SHAPE_SHARE)
        unit = self.radius / lattice.RECORD_NORM / self.m
        spread = 1.25 * noisy * unit  # of a Gaussian coordinate with this mean absolute value
        floor = max(2.5 * scale * unit, 0.02 * float(spread.max()), 1e-12 * self.radius)
        spread = np.maximum(spread, floor)
        width = np.sqrt(spread / spread.mean())
        self.steps.note(spread=spread.tolist())
        return width, float(np.sqrt(((spread / width) ** 2).sum()))

    def find_radius(self, width: Array, distance: float) -> float:
        """Radius, in units of ``width``, that balances noise against the bias of clipping.

        The noise of a mean clipped at r is known. Its bias is at most B(r) = ∫_r^∞ (share of records beyond x) dx, which is read off the
        noisy histogram, as far as its tail stands out from the noise. If nothing beats the whole domain, ``tight`` is set.
        """
        farthest = 2.0 * self.region.radius / float(width.min())
        grow = FAR ** np.arange(1, 40)
        edges = distance * np.concatenate([TAIL_FACTORS, TAIL_FACTORS[-1] * grow])
        edges = np.append(edges[edges < farthest], farthest)
        unit = 1 << 20
        counts = self.vectors.histogram(self.center, width, edges, unit)
        noisy, scale = self.steps.query("tail", counts, isqrt(2 * unit**2) + 1, TAIL_SHARE)
        beyond = np.cumsum(noisy[::-1])[::-1][1:] / unit
        error = scale / unit * np.sqrt(np.arange(len(edges), 0, -1))
        caution = np.clip(CAUTION_NEAR + CAUTION_SLOPE * np.log(edges / distance), 0.5, CAUTION_FAR)
        seen = np.maximum.accumulate(np.clip(beyond - caution * error, 0.0, self.m)[::-1])[::-1]
        x = np.concatenate([np.linspace(a, b, 9)[:-1] for a, b in pairwise(edges)] + [edges[-1:]])
        tail = np.interp(x, edges, seen) / self.m
        pieces = 0.5 * (tail[1:] + tail[:-1]) * np.diff(x)
        bias = np.append(np.cumsum(pieces[::-1])[::-1], 0.0)
        noise = 2.0 * x / (self.n * self.steps.mu * sqrt(self.steps.left))
        # a bias lies mostly along wide coordinates: halfway between the mean square width and the largest
        loss = (width @ width) * noise**2 + 0.5 * (float(width.max()) ** 2 + (width @ width) / self.d) * bias**2
        self.steps.note(edges=edges.tolist(), beyond=beyond.tolist())
        best = int(np.argmin(loss))
        whole = self.d * (2.0 * self.region.radius / (self.n * self.steps.mu * sqrt(self.steps.left))) ** 2
        self.tight = bool(loss[best] > whole)
        return float(x[best])
