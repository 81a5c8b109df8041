r"""A bound on the whole error of a mean found by a search: noise, clipping, shrinkage.

Let the last step see y = c + (1/n)·Σ g(y_i − c) + N, with g the clip to the last
ellipsoid and N noise of known covariance, and let m be the mean of the records (clipped
to the public domain only). By the triangle inequality

    ‖y − m‖ ≤ ‖N‖ + e,   e = (1/n)·Σ ‖(y_i − c) − g(y_i − c)‖.

The *clipping bias* e is measured as ê = e + σ_e·Z after c and g are fixed and before N
is drawn. Given all that was released before, Z and N are of known law (normal, or
Laplace), so with q and z chosen such that P(‖N‖ > q) + P(−Z > z) ≤ β the error is at
most q + z·σ_e + ê with probability 1 − β, whatever the data. Nothing is assumed of
them. How β is split between the two depends on σ_e and the law of N only, which are
known before either is drawn.

*Retreat.* If ê is large, e is measured once more, or the whole domain is used instead,
where e = 0. The outcomes are (a) the ellipsoid after the first ê, (b) the ellipsoid
after a fresh second one, (c) the whole domain. P(miss) is at most the sum over these of
the probability above with each one's own numbers, so the risk is split among the three.

*Shrinkage and shift.* What is released is y shrunk toward a point that was fixed before
it was seen, which :mod:`spdp.error.shrinkage` puts in the place of ‖N‖; or y
moved by a known amount (an earlier estimate mixed in), which is added; and then
projected onto the domain, a convex set that holds m, which brings it no further
from m.

*A noisy count.* Where the number n of records is private, the last step sees a noisy
sum S + N and a noisy number n̂ = n + η in one answer, and v = (S + N)/n̂ is released.
Then v − S/n = (N − η·v)/n, n = n̂ − η. With |η| ≤ E, but for a probability of 7·10⁻⁶,

    ‖v − S/n‖ ≤ (‖N‖ + E·‖v‖)/(n̂ − E),

so noise and bias, given over n̂, are stretched by n̂/(n̂ − E) (:class:`Count`). A
coordinate x of the ℓ2 Laplace law on R^D of scale s has E exp(θx/s) =
(1 − θ²)^(−(D+1)/2), so that P(|x| > E) ≤ 2·exp(−θE/s)·(1 − θ²)^(−(D+1)/2) for every
0 < θ < 1 (:func:`laplace_margin`).

*Within reach.* With records clipped to within x of c in place of y_i, e is the bias
within reach x, and the same bound holds for the distance to the mean of those records.
A pure search looks for it up to four times, each time at a larger radius, and stops by
the answer: the risk is split among the looks.

*From the mean of the records to that of the population they were drawn from.* Let Y be
a record of the population, of mean m = E Y, and g(Y) what clipping to the last
ellipsoid makes of it; g is fixed, given what was released before. Of n records drawn
independently the release sees y = (1/n)·Σ g(y_i) + N, so that

    y − m = N + S + (E g(Y) − E Y),   S = (1/n)·Σ g(y_i) − E g(Y),
    ‖y − m‖ ≤ ‖N + S‖ + E h,   h = ‖Y − g(Y)‖.

S is approximately N(0, Σ/n) for large n (the central limit theorem), Σ the covariance
of the *clipped* records, which is what was released; N and S are independent. What
clipping took off the records is not in S but in E h, the population's clipping bias:
what was measured is ê = (1/n)·Σ h_i + noise, which varies about E h by no more than
:func:`sampled_sd`, however few and far the records are that are clipped. *Therefore*
the bound is that for the mean of the records, with the variances of S added to those of
N, and with a larger standard deviation of the bias. That S and the h_i come from the
same records does not matter: the risk is split between the two.

*Assumed.* Independent records (or persons), each drawn from the population; n large
enough for the normal limit, of the few that are clipped too. Variances and E h are
taken to be two standard deviations of their noise larger than measured. The probability
is over noise and sampling, and approximate. Everything is made of released numbers.

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
confidences are refused (:data:`POPULATION_FROM`).
"""

from functools import lru_cache
from math import sqrt
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
import numpy as np
from scipy import special

from spdp.error import laws
from spdp.error.curvature import Curvature
from spdp.error.laws import AnyLaw, Chi2, GammaSquare, StretchedLaplace, WeightedChi2
from spdp.error.shrinkage import Shrinkage
from spdp.errors import ParameterError
from spdp.kernels.arrays import Array

NotNegative = Annotated[float, msgspec.Meta(ge=0)]

# Of the risk: for the ellipsoid after one look at the clipping bias, and for what a
# second look leads to (the ellipsoid, or the whole domain), each.
ELLIPSOID_SHARE, RETREAT_SHARE = 0.9, 0.05
# Of that first share: for the bias within reach after one, two, three or four looks.
NEAR_SHARES = tuple(ELLIPSOID_SHARE * share for share in (0.7, 0.1, 0.1, 0.1))
# Standard deviations that the noise of a count stays below, but for 7·10⁻⁶ (of several
# classes, 2·10⁻⁵), and the share of the risk that is left where that may fail: enough
# for confidences up to 0.998.
SURE, SURE_SHARE, SUREST = 4.5, 0.99, 0.998
SHARES = (1.0, ELLIPSOID_SHARE, RETREAT_SHARE, *NEAR_SHARES)
COUNTED_SHARES = tuple(SURE_SHARE * share for share in SHARES)
UPPER = 2.0  # standard deviations by which a bias is taken to be larger than measured
LARGEST = 1e300  # where nothing is known to limit the distance
GRID = np.geomspace(1.0, 1e-6, 100)  # of 1 − 2t·max w in Chernoff's bound
# Points of a tabulated law, and its least tail.
TABLE, SMALLEST_TABULATED = 80, 1e-6
# Shares of the risk that the noise may take, the rest being the bias's; and all of it.
SPLITS = np.array((0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9))
WHOLE_OR_SPLIT = np.append(1.0, SPLITS)


@lru_cache(maxsize=256)
def laplace_margin(dimension: int) -> float:
    """:data:`SURE` for a coordinate of the ℓ2 Laplace law, in standard deviations."""
    theta = np.linspace(0.01, 0.999, 1000)
    log_risk = np.log(2.0 / (2.0 * special.ndtr(-SURE)))
    reach = (log_risk - 0.5 * (dimension + 1.0) * np.log1p(-(theta**2))) / theta
    return float(reach.min()) / sqrt(dimension + 1.0)


class Count(NamedTuple):
    """What sums are divided by: the public number of records, or a noisy one.

    The module's docstring says what ``stretch`` and :meth:`shift` do to a bound. A
    count that does not stand out from 0 leaves no bound but the largest distance.
    """

    value: float
    sd: float = 0.0  # of its noise
    sure: float = SURE  # standard deviations that it stays below

    @classmethod
    def noisy(cls, value: float, sd: float, sure: float = SURE) -> "Count":
        """A noisy count, no smaller than 1."""
        return cls(max(value, 1.0), sd, sure)

    @property
    def least(self) -> float:
        """A lower bound on the number, but for a probability of 7·10⁻⁶."""
        return self.value - self.sure * self.sd

    @property
    def seen(self) -> bool:
        return self.least >= 1.0

    @property
    def stretch(self) -> float:
        """Factor by which noise and bias, given over this count, may be larger."""
        return self.value / self.least if self.seen else 1.0

    @property
    def risk_share(self) -> float:
        """Share of the risk that is left for the rest of a bound."""
        return SURE_SHARE if self.sd else 1.0

    def shift(self, length: float, max_distance: float) -> float:
        """What the count's noise adds for a mean of this length."""
        return self.sure * self.sd * length / self.least if self.seen else max_distance


class Free(NamedTuple):
    """The parts of a bound that no other number of a certificate determines."""

    shift: float
    max_distance: float
    shrinkage: Shrinkage | None = None
    curvature: Curvature | None = None


class Bound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an error bound is made of: public and released numbers only.

    Attributes
    ----------
    noise : Law
        Law of ‖N‖², the last noise.
    clipping_bias, clipping_bias_sd : float
        Noisy mean of what clipping to the last ellipsoid moves records by, and the
        standard deviation of its noise; 0 where nothing was clipped.
    shift : float
        How far the last noisy mean was moved.
    rounding : float
        What rounding to the lattice can add.
    max_distance : float
        A distance to the mean that cannot be exceeded.
    risk_share : float
        Share of the risk that this outcome of the search may use.
    shrinkage : Shrinkage, optional
        How the last noisy mean was shrunk toward a point fixed before it was seen;
        ``shift`` does not count that.
    bias_law : "normal" or "laplace"
        Law of the noise in the clipping bias.
    curvature : Curvature, optional
        Where the metric is curved: what that adds (:mod:`spdp.error.curvature`).
    """

    noise: AnyLaw
    clipping_bias: float
    clipping_bias_sd: NotNegative
    shift: NotNegative
    rounding: NotNegative
    max_distance: NotNegative
    risk_share: float
    shrinkage: Shrinkage | None = None
    bias_law: Literal["normal", "laplace"] = "normal"
    curvature: Curvature | None = None

    @classmethod
    def shifted(cls, law: AnyLaw, shift: float) -> "Bound":
        """For a value that was moved by ``shift`` after noise of this law was added."""
        return cls(law, 0.0, 0.0, shift, 0.0, LARGEST, 1.0)

    @classmethod
    def certain(cls, d: int, distance: float) -> "Bound":
        """A distance that is never exceeded: it has no noise in it."""
        return cls(Chi2(d, 0.0), 0.0, 0.0, 0.0, distance, distance, 1.0)

    @classmethod
    def of_mean(
        cls, law: AnyLaw, rounding: float, bias: tuple[float, float], risk: float, free: "Free"
    ) -> "Bound":
        """For a clipped mean: the law of its noise, and what rounding can add."""
        kind: Literal["normal", "laplace"] = "laplace" if is_laplace(law) else "normal"
        limits = free.shift, rounding, free.max_distance, risk
        return cls(law, *bias, *limits, free.shrinkage, kind, free.curvature)

    @property
    def free(self) -> "Free":
        """The parts that verification takes as stated."""
        return Free(self.shift, self.max_distance, self.shrinkage, self.curvature)

    @classmethod
    def read(cls, parts: Any) -> "Bound":
        """The bound that plain data describe."""
        return msgspec.convert(parts, cls)

    def replace(self, **changes: Any) -> "Bound":
        """The bound with other parts."""
        return msgspec.structs.replace(self, **changes)

    def moved(self, shift: float) -> "Bound":
        """The bound after the value was moved once more.

        The largest possible distance grows by as much.
        """
        if not shift:
            return self
        return self.replace(shift=self.shift + shift, max_distance=self.max_distance + shift)

    def at(self, confidence: float = 0.95) -> float:
        """Distance below which the error lies with at least this probability.

        Where the noise of a count may fail its margin, a risk of 2·10⁻⁵ is spoken for:
        confidences above 0.998 are refused.
        """
        if self.risk_share in COUNTED_SHARES and confidence > SUREST:
            raise ParameterError(
                f"confidence must be at most {SUREST} where the number of records, or of a "
                f"class, is noisy, got {confidence!r}: the bound is not known to hold beyond"
            )
        return _reach(self, confidence)

    def stated(self) -> dict[str, float]:
        """The bounds that certificates state, by level."""
        return {name: self.at(level) for name, level in laws.STATED.items()}


@lru_cache(maxsize=64)  # a release asks several times
def _reach(bound: Bound, confidence: float) -> float:
    risk = bound.risk_share * (1.0 - confidence)
    risks = risk * WHOLE_OR_SPLIT
    noise = noise_quantiles(bound.noise, risks)
    error = noise if bound.shrinkage is None else bound.shrinkage.quantiles(risks)
    reach, bias = float(error[0]), 0.0
    if bound.clipping_bias_sd > 0:  # a bias is never negative: no less than noise alone
        rest = bound.clipping_bias_sd * _upper(bound.bias_law, risk)
        split = int(np.argmin(noise[1:] + rest))  # not by the length that was observed
        bias = float(rest[split]) + bound.clipping_bias
        reach = max(reach, float(error[1 + split]) + bias)
    whole = reach + bound.shift + bound.rounding
    if bound.curvature is not None:
        whole = bound.curvature.bound(whole, bias)
    return min(whole, bound.max_distance)


def is_laplace(law: AnyLaw) -> bool:
    """Whether it is the law of ℓ2 Laplace noise."""
    return isinstance(law, GammaSquare | StretchedLaplace)


def rounding(d: int, step: float) -> float:
    """What rounding to a lattice of this step can add to the error of a mean."""
    return 2.0 * sqrt(d) * step


@lru_cache(maxsize=64)  # risks are of a few public kinds
def _upper(law: str, risk: float) -> Array:
    """Standard deviations that noise exceeds with what SPLITS leave of a risk."""
    risks = risk * (1.0 - SPLITS)
    if law == "laplace":
        return np.asarray(-np.log(2.0 * risks) / sqrt(2.0))
    return np.asarray(special.ndtri(1.0 - risks))


def noise_quantiles(law: AnyLaw, risks: Array) -> Array:
    """Distances that ‖N‖ exceeds with probability at most ``risks``.

    Quantiles; where variances differ, the next larger point of a grid on which the law
    was tabulated, or Chernoff's bound for risks below its least tail.
    """
    return _quantiles(law, tuple(risks.tolist()))


@lru_cache(maxsize=64)  # bounds of one release share their law and levels
def _quantiles(law: AnyLaw, levels: tuple[float, ...]) -> Array:
    risks = np.array(levels)
    if isinstance(law, WeightedChi2):
        squares, tails = _table(law.weights)
        place = np.searchsorted(-tails, -risks)  # the first whose tail is at most the risk
        reaches = np.append(squares, np.inf)[place]
        for i in np.flatnonzero(risks <= SMALLEST_TABULATED):
            reaches[i] = _chernoff(np.asarray(law.weights), float(risks[i]))
    else:
        reaches = np.asarray(law.quantile(1.0 - risks))
    roots: Array = np.sqrt(reaches)
    roots.setflags(write=False)
    return roots


@lru_cache(maxsize=32)
def _table(weights: tuple[float, ...]) -> tuple[Array, Array]:
    """Points of ‖N‖², from its mean on, and the probability beyond each."""
    w = np.asarray(weights)
    squares = np.linspace(w.sum(), _chernoff(w, SMALLEST_TABULATED), TABLE)
    tails = laws.weighted_tails(w, squares)
    return squares, np.minimum.accumulate(tails)


def _chernoff(w: Array, risk: float) -> float:
    """x(t) with P(‖N‖² > x(t)) ≤ exp(−t·x(t) − ½Σ ln(1 − 2tw)) ≤ risk.

    x(t) = Σ w/(1 − 2tw), at the first t of a grid that is good enough.
    """
    t = (1.0 - GRID) / (2.0 * float(w.max()))
    room = 1.0 - 2.0 * t[:, None] * w
    x = (w / room).sum(axis=1)
    exponent = t * x + 0.5 * np.log(room).sum(axis=1)
    return float(np.append(x, np.inf)[np.searchsorted(exponent, -np.log(risk))])


# --- the population

POPULATION_FROM = 0.9  # confidence from which the bound covers, whatever the axes


def population_bound(bound: Bound, variances: Array, reach: float, count: Count) -> Bound:
    """The bound for the population's mean.

    ``variances`` are those of noise and sampling together, along principal axes;
    ``reach`` is a distance to the centre that no record exceeds.
    """
    n = count.value / count.stretch
    sd = sampled_sd(bound.clipping_bias, bound.clipping_bias_sd, reach, n)
    noise = laws.weighted_chi2(np.maximum(variances, 0.0))
    return bound.replace(noise=noise, clipping_bias_sd=sd)


def sampled_sd(bias: float, sd: float, reach: float, n: float) -> float:
    r"""Standard deviation of a measured clipping bias about the population's.

    What clipping moves a record by, h ≥ 0, is at most ``reach``, so Var h ≤ E h² ≤
    reach·E h: over n records drawn independently, noise and sampling together have a
    variance of at most sd² + reach·e/n, for e = E h. As e itself is not known, it is
    taken to be two standard deviations of its noise above ``bias``.
    """
    e = min(max(bias + UPPER * sd, 0.0), reach)
    return sqrt(sd**2 + reach * e / n)


def along_one_axis(d: int, noise: float, sampling: float) -> Array:
    """Variances of noise in all d directions, and of sampling, known by its trace only.

    As if all of it lay along one axis: of all covariances of one trace, that one puts
    most beyond any distance that few exceed (see the module's docstring).
    """
    variances = np.full(d, noise)
    variances[0] += sampling
    return variances
