r"""Private principal directions in the tangent space: mean, covariance, components.

In a flat metric, principal geodesic analysis is principal component analysis of the
records' vectors y. A private search finds centre, axes and units
(:mod:`spdp.adaptive`); in that ellipsoid one query (``MomentSum``)
gives the noisy mean and all noisy second moments of z = Vᵀ(y − c)/w, for the price of a
mean. The covariance is

    Ŝ = V·W·(mean of zzᵀ − z̄z̄ᵀ + σ²·I)·W·Vᵀ,   W = diag(w),

where σ² corrects for the noise of z̄. The noise of second moments has a known law: its
effect on the spectrum is removed by :func:`spdp.adaptive.preconditioner.denoised`.
Components are leading eigenvectors of Ŝ; explained variances are taken from the
denoised Ŝ along them.

*How far to trust them.* Ŝ = S + E, with E of known law and S the covariance of the
clipped records. For the projection P onto k components and K a quantile of the sum of
the k largest eigenvalues of E, the components hold tr(PS) ≥ tr(PŜ) − K, and the best k
at most Σ λ_i(Ŝ) + K (Ky Fan): the share (tr(PŜ) − K)/(Σ λ_i(Ŝ) + K) of what the best k
hold is certain (95 %).

*Private number of records.* Under add-remove adjacency a first query, for 1 % of μ²,
estimates the number of records for the search. The last query counts them in any case,
and its sums are divided by that n̂. An error |n̂ − n| ≤ E scales Ŝ, which cancels in the
share, except for z̄z̄ᵀ: K grows by ‖z̄‖²·E/(n̂ − E), and by n̂/(n̂ − E).

*A public rule.* The noise of second moments is as large as the variances themselves
where n·μ ≲ d^1.5: below 2·d^1.5 a warning says so, below d^1.5/4 nothing is released.
(A private n is known by a noisy answer only, when some of the budget is spent: then
there is a warning only.)

*Enforced*, *assumed*, *therefore*: as in :mod:`spdp.statistics.base`. Clipping records
to the ellipsoid lowers variances: they are lower estimates.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, Unpack

import numpy as np

from spdp.adaptive import Search
from spdp.adaptive.preconditioner import denoised
from spdp.adaptive.steps import ROUNDS_ORDER, SHAPE_ORDER, START_ORDER, ClippingBiasStep
from spdp.data.progress import track
from spdp.error.bound import UPPER
from spdp.errors import ParameterError, TooNoisy, named
from spdp.kernels.arrays import Array
from spdp.kernels.vecd import symmetric
from spdp.options import real
from spdp.queries.moments import OFF_NOISE, ON_DIAGONAL, MomentSum
from spdp.queries.sums import Frame
from spdp.release import Release
from spdp.release.certificate import Facts
from spdp.release.declaration import MATRIX, Check, Sampled, Values
from spdp.release.synthetic import covariance_root
from spdp.release.verify import CLOSE, Arrays, covariance, farthest, same
from spdp.rendering.panels import Panel, changes, matrix_panels, row, stacked
from spdp.statistics.base import Context, Outcome, whole_records
from spdp.statistics.clipped_mean import ClippedMean, MomentStep, clipped_mean, variances_of
from spdp.statistics.options import Options, option, public

RADIUS = 1.4  # of the ellipsoid, over the typical distance; chosen like spdp.adaptive.tuning
ENOUGH, LEAST = 2.0, 0.25  # n·μ/d^1.5: a warning below the first, refused below the second
NOISES, CERTAIN, SEED = 200, 0.975, 0  # draws of noise of known law, to know its spectrum

COMPONENTS = {"flag": "--components", "kind": int, "metavar": "P", "min": 1, "required": True}

FEW = (
    "n·μ = {have:.4g} is less than 2·d^1.5 = {want:.4g}: noise is large beside the covariance of "
    "{d} coordinates"
)
STATEMENT = (
    "the mean: the whole error (noise and clipping), with at least the stated probability over "
    "the noise, whatever the records are. Covariance and explained variances are lower "
    "estimates, for the {unit}s were clipped to an ellipsoid; with 95 % "
    "confidence, the components explain at least {trusted:.0%} of the variance that the best "
    "directions, as many of them, explain of the clipped {unit}s"
)


class CovarianceStep(MomentStep, kw_only=True):
    """The last answer: noise of the second moments, and how far to trust components."""

    second_sd: float
    trusted: float


@dataclass(frozen=True, eq=False)
class PCA(ClippedMean):
    """Mean, covariance and principal components."""

    name: ClassVar = "pca"
    title: ClassVar = "principal components"
    target: ClassVar = ClippedMean.mean + ", and their principal components"
    releases: ClassVar = {
        "mean": MATRIX,
        "components": ("p", "d"),
        "explained_variance": ("p",),
        "covariance": ("d", "d"),
    }
    shaped: ClassVar = True
    last: ClassVar = "moments"
    steps: ClassVar = ClippedMean.steps | {last: CovarianceStep}
    order: ClassVar = f"{START_ORDER}({ROUNDS_ORDER}{SHAPE_ORDER})?(clipping bias;)?moments;"
    over_sites: ClassVar = ("n_components",)
    command: ClassVar = """Release mean, covariance and principal components.

    Directions are vectors of the metric's chart. Warns or refuses if the noise is too
    large for the number of coordinates.
    """

    n_components: int = option("Principal directions to release.", 2, 1, **COMPONENTS)

    # --- asking

    def prepare(self, records: Any) -> None:
        d, count = len(records.space.region.center), real("n_components", self.n_components)
        if not (1 <= count <= d and count == int(count)):
            raise ParameterError(
                f"{named('n_components')} must be a whole number between 1 and {d}, got "
                f"{self.n_components!r}"
            )

    def run(self, context: Context) -> Outcome:
        search = context.search(context.gather())
        few = check_enough(search.n, search.d, search.mu, search.public)
        search.ask_edge()
        t = search.tuning
        look: ClippingBiasStep | None = None
        reserve = search.reserve() + t.square_share
        if search.resolution < t.rounds_from or not search.find_ball(t.max_rounds, reserve):
            search.frame, radius = Frame.plain(search.domain_center), search.domain_radius
        else:
            if search.resolution >= t.shape_from and not search.wide:
                search.find_shape()
                search.find_center()
            radius = RADIUS * search.distance
            look = search.ask_square_bias(radius)
        outcome, trusted = self.measure(search, radius, look)
        if few is not None:
            held = f"the components hold at least {trusted:.0%} of what the best would"
            outcome.warning = f"{few}; {held}", TooNoisy
        return outcome

    def measure(
        self, search: Search, radius: float, look: ClippingBiasStep | None
    ) -> tuple[Outcome, float]:
        """Moments with the remaining budget, and what follows from them."""
        d, p, width = search.d, int(self.n_components), search.frame.width
        query = MomentSum(self.last, search.frame, radius, second="full")
        answer = search.account.ask(query, search.store)
        count = search.count(answer.estimate.counts[0], answer.estimate.count_sd)
        found = answer.estimate.over(count.value)
        z, sigma, units = found.sums[0], found.sum_sd, np.outer(width, width)
        raw = found.second[0] - np.outer(z, z) + sigma**2 * np.eye(d)
        covariance = denoised(raw, sqrt(2.0 * d) * found.second_sd) * units
        vectors, variances = _leading(raw * units, covariance, p)
        v = z * width
        counted = count.shift(float(v @ v), float(np.trace(covariance)))
        noisy = found.second_sd * count.stretch
        trusted = _trusted(raw * units, vectors, noisy, width, counted)
        last = answer.note(
            CovarianceStep,
            radius=radius,
            second_sd=found.second_sd,
            trusted=trusted,
            width=None if look is None else width.tolist(),
            **({} if search.public else {"n_estimate": count.value, "count_sd": count.sd}),
        )
        # an upper limit: noise may have lowered the trace
        sd = found.second_sd * float(np.sqrt((width**4).sum()))
        upper = covariance * (1.0 + UPPER * sd / float(np.trace(covariance)))
        both = count.stretch**2 * (np.diag((width * sigma) ** 2) + upper / count.value)
        sampling = np.asarray(np.linalg.eigvalsh(both), np.float64)
        outcome = clipped_mean(search, last, v, sigma, look, count, sampling)
        axes = np.eye(d) if search.axes is None else search.axes
        outcome.numbers = {
            "components": _signed((axes @ vectors).T),
            "explained_variance": variances,
            "covariance": symmetric(axes @ covariance @ axes.T),
        }
        return outcome, trusted

    @classmethod
    def planned(cls, asked: Any) -> "PCA":
        return cls(asked.n_components)

    def errors(self, outcome: Outcome, records: Any) -> dict[str, float]:
        C = records.once("covariance", lambda rows: np.atleast_2d(np.cov(rows.Y.T, bias=True)))
        P = outcome.numbers["components"]
        off = np.linalg.norm(outcome.numbers["covariance"] - C) / np.linalg.norm(C)
        best = float(np.linalg.eigvalsh(C)[-len(P) :].sum())
        held = float(np.einsum("ij,jk,ik->", P, C, P)) / best
        share = "share of the best components' variance that is held"
        return {"relative error of the covariance": float(off), share: held}

    def thresholds(self, d: int, mu: float) -> dict[str, int | None]:
        return {
            "to release components": whole_records(LEAST * d**1.5 / mu),
            "to release components without a warning": whole_records(ENOUGH * d**1.5 / mu),
        }

    # --- what the certificate says

    def queries(self, facts: Facts) -> dict[str, Any]:
        frame = Frame.plain(facts.space.region.center)
        return super().queries(facts) | {self.last: MomentSum("", frame, 1.0, second="full")}

    def axes(self, facts: Facts) -> dict[str, int]:
        return {"p": min(max(facts.arrays["components"][0], 1), facts.d)}

    def statement(self, facts: Facts) -> str:
        return STATEMENT.format(unit=facts.unit, trusted=facts.last.trusted)

    def check_values(self, facts: Facts, values: Arrays) -> Iterator[Check]:
        yield farthest(facts, values)
        yield from self.check_components(values)
        yield from self.check_sampling(facts, values["covariance"])

    def check_components(self, values: Values) -> Iterator[Check]:
        """Components are orthonormal; the variances along them are as stated."""
        P, C, variances = (values[n] for n in ("components", "covariance", "explained_variance"))
        off = float(np.abs(P @ P.T - np.eye(len(P))).max())
        yield Check("components", off <= 1e-9, f"orthonormal: off by {off:.3g}")
        yield covariance(C)
        along, size = np.einsum("ij,jk,ik->i", P, C, P), CLOSE * float(np.trace(C))
        ok = np.allclose(along, variances, rtol=1e-7, atol=size)
        yield Check("explained variance", bool(ok), "the covariance along the components")
        yield Check("explained variance", bool((np.diff(variances) <= size).all()), "falling")

    def check_sampling(self, f: Facts, C: Array) -> Iterator[Check]:
        """Sampling variances agree in sum, and each within the range of the noise."""
        assert f.population is not None
        assert f.bound is not None
        last, count, query = f.last, f.count, f.queries[self.last]
        square = (last.radius / query.factor) ** 2 / ON_DIAGONAL
        expected = last.scale * square / count.value
        yield same("noise of squares", last.second_sd, expected, "σ")
        yield Check("trusted", 0.0 <= last.trusted < 1.0, "a share below 1")
        own_noise, found = variances_of(f.bound.noise), variances_of(f.population.noise)
        fourth = float((own_noise**2).sum()) / (f.noise_scale * count.stretch) ** 4
        larger = 1.0 + UPPER * last.second_sd * sqrt(fourth) / float(np.trace(C))
        added = np.linalg.eigvalsh(C) * larger * count.stretch**2 / count.value
        total = float(own_noise.sum() + added.sum())
        yield same("variance of sampling", float(found.sum()), total, "from the covariance")
        low, high = added + own_noise.min(), added + own_noise.max()
        rising, room = np.sort(found), 1e-7 * float(found.max())
        ok = bool((rising >= low - room).all() and (rising <= high + room).all())
        yield Check("variance of sampling", ok, "along each axis")
        yield Check("noise", f.bound.noise.mean() > 0, "there is some")

    # --- pictures, synthetic records

    def panels(self, facts: Facts, values: Values) -> list[Panel]:
        """The mean, and half the change between one deviation below and above it."""
        variance = np.maximum(values["explained_variance"], 0.0)
        steps = np.sqrt(variance)[:, None] * values["components"]
        titles = [f"Direction {i + 1}: one standard deviation" for i in range(len(steps))]
        explained = row(variance, "Variance along each direction", "variance")
        mean = matrix_panels(*stacked(values["mean"], "Mean"))
        return mean + changes(values["mean"], steps, titles, facts.chart) + explained

    def sampled(self, facts: Facts, values: Values) -> Sampled:
        return Sampled(values["mean"], covariance_root(values["covariance"]))


def _leading(raw: Array, covariance: Array, p: int) -> tuple[Array, Array]:
    """Leading eigenvectors (d, p) of a noisy covariance, and variances along them.

    Eigenvectors are those of the noisy covariance: denoising gives all directions that
    do not stand out from noise the same variance. Variances are those of the denoised
    one.
    """
    vectors = np.linalg.eigh(raw)[1][:, ::-1][:, :p]
    variances = np.einsum("ji,jk,ki->i", vectors, covariance, vectors)
    falling = np.argsort(-variances, kind="stable")
    return vectors[:, falling], variances[falling]


def _signed(components: Array) -> Array:
    """Rows whose largest entry is positive: signs are arbitrary otherwise."""
    largest = np.abs(components).argmax(axis=1)
    signs = np.sign(components[np.arange(len(components)), largest])
    return np.asarray(components * signs[:, None])


def _trusted(raw: Array, vectors: Array, sd: float, width: Array, counted: float) -> float:
    """Share of the best components' variance that these hold, at 95 % confidence.

    ``counted`` is what the noise of a private number of records may add.
    """
    d, p = vectors.shape
    rng = np.random.default_rng(SEED)
    sums = []
    with track("judging the components", NOISES) as advance:
        for _ in range(NOISES):
            E = np.tril(rng.standard_normal((d, d)), -1) * OFF_NOISE
            E = (E + E.T + np.diag(rng.standard_normal(d))) * np.outer(width, width)
            sums.append(sd * float(np.linalg.eigvalsh(E)[-p:].sum()))
            advance(1)
    noise = float(np.quantile(sums, CERTAIN)) + counted
    held = float(np.einsum("ji,jk,ki->", vectors, raw, vectors))
    best = float(np.linalg.eigvalsh(raw)[-p:].sum())
    return (held - noise) / (best + noise) if held > noise else 0.0


def check_enough(n: float, d: int, mu: float, public: bool = True) -> str | None:
    """The public rule: raises an error, or returns a warning or None."""
    have, want = n * mu, ENOUGH * d**1.5
    text = FEW.format(have=have, want=want, d=d)
    if public and have < LEAST * d**1.5:
        raise ParameterError(
            f"{text}, far too large: principal components would be noise. Use more records, a "
            f"larger {named('epsilon')}, or fewer coordinates"
        )
    return text if have < want else None


STATISTIC = PCA()


@public
def private_pca(X: Any, *, n_components: int, **options: Unpack[Options]) -> Release:
    """Release mean, covariance and principal components, under one budget.

    Warns (:class:`spdp.errors.TooNoisy`) or refuses if n·μ is too small for the number
    of coordinates. Under "add-remove" the number of records (or persons) is private,
    and a noisy number is released with the rest; it then only warns.

    Parameters
    ----------
    X : array (n, k, k), or anything :func:`spdp.data.source.as_source` takes
    n_components : int
        Number of principal components to release.
    {options}

    Returns
    -------
    Release
        ``values["mean"]`` (k, k); ``"components"`` (p, d), orthonormal rows in the
        metric's chart; ``"explained_variance"`` (p,), debiased for noise;
        ``"covariance"`` (d, d), positive definite. This module's text says how far they
        can be trusted; the share is in the certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, private_pca
    >>> from spdp.distributions import LogGaussian
    >>> X = LogGaussian(np.eye(2), np.diag([1.0, 0.04, 0.04])).rvs(4000, 0)
    >>> domain = EigenvalueBounds(0.01, 100.0)
    >>> release = private_pca(X, n_components=1, epsilon=1.0, delta=1e-6, domain=domain)
    >>> bool(release.values["components"][0, 0] > 0.95)
    True
    """
    return PCA(n_components).release(X, **options)
