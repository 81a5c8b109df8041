r"""Private dispersion: Fréchet variance, deviations of the coordinates, distances.

The Fréchet variance of records y_i with mean ȳ is V = (1/n)·Σ ‖y_i − ȳ‖², the sum of
the variances of all coordinates. With a released centre c and records clipped to within
r of it, g(y) = c + (y − c)·min(1, r/‖y − c‖), one query
(``SquaredNormSum``) gives noisy means of g − c and of ‖g − c‖²; hence

    V̂ = mean of ‖g − c‖² − ‖mean of (g − c)‖² + d·σ²,

where the last term corrects for the noise σ of the mean. g is the projection onto a
ball, so ‖g(x) − g(y)‖ ≤ ‖x − y‖: since V = (1/2n²)·Σ ‖y_i − y_j‖², clipping never
raises V, and V̂ is a *lower estimate*. To keep this clipping bias small, r is larger
than for a mean, and is chosen from a histogram of distances. The bias is measured for
records within 2r of the centre.

Deviations of coordinates come from noisy means of absolute values, whose noise is far
smaller than the noise of squares. Their ratios are taken for those of the standard
deviations, and they are scaled such that their squares add up to V̂.

*Private number of records.* Under add-remove adjacency a first query, for 1 % of μ²,
estimates the number of records for the search. The last query counts them again, at a
sensitivity that is still at most the one of replacing a record, and its sums are
divided by that n̂. Its noise adds |‖v‖² − V̂|·sd(n̂)/n̂ to the sd of V̂, in quadrature.

*Enforced*, *assumed*, *therefore*: as in :mod:`spdp.statistics.base`; the choice of c
and r depends on earlier answers only.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, Unpack

import numpy as np

from spdp.adaptive import Search
from spdp.adaptive.preconditioner import deviations
from spdp.adaptive.steps import ROUNDS_ORDER, START_ORDER
from spdp.error.bound import UPPER, along_one_axis
from spdp.error.laws import weighted_chi2
from spdp.kernels.arrays import Array
from spdp.kernels.base import RECORD_NORM
from spdp.privacy.account import Step
from spdp.queries.moments import COUNTED, SquaredNormSum
from spdp.queries.sums import AbsoluteSum, Frame
from spdp.release import Release
from spdp.release.certificate import Facts
from spdp.release.declaration import MATRIX, Check, Sampled, Values
from spdp.release.verify import Arrays, at_least, close, farthest, same
from spdp.rendering.panels import Panel, matrix_panels, row, stacked
from spdp.statistics.base import Context, Outcome
from spdp.statistics.clipped_mean import ClippedMean, Look, MomentStep, clipped_mean
from spdp.statistics.options import Options, public

LEVELS = np.array([0.1, 0.25, 0.5, 0.75, 0.9, 0.95])  # of the distances that are released
SHOWN_LEVELS = tuple(f"{level:.0%}" for level in LEVELS)
# Chosen on MNIST's class 3 and the sets of :mod:`spdp.adaptive.tuning`.
CENTER_FROM = 18.0  # resolution from which a better centre is worth its budget
TAIL_SHARE, RATIO_SHARE = 0.05, 0.05  # of μ²

STATEMENT = (
    "the mean: the whole error (noise and clipping), with at least the stated probability over "
    "the noise, whatever the records are. The variance and the deviations are lower estimates, "
    "for the {unit}s were clipped to within {radius:.4g} of a released centre; the noise of the "
    "variance has a standard deviation of {sd:.3g}"
)
BIAS = (
    ", and clipping {unit}s from within {reach:.4g} lowered it by an estimated {bias:.3g}, whose "
    "own noise has a standard deviation of {bias_sd:.2g} (a negative one is noise)"
)


class DispersionStep(MomentStep, kw_only=True):
    """The last answer, and the standard deviation of the variance's noise."""

    variance_sd: float


@dataclass(frozen=True, eq=False)
class Dispersion(ClippedMean):
    """Mean, Fréchet variance, deviations and distances."""

    name: ClassVar = "dispersion"
    title: ClassVar = "mean and dispersion"
    plain: ClassVar = "Dispersion: the mean, and how far records lie from it."
    target: ClassVar = ClippedMean.mean + ", and their dispersion"
    releases: ClassVar = {
        "mean": MATRIX,
        "variance": (),
        "deviations": ("d",),
        "distances": (len(LEVELS),),
    }
    last: ClassVar = "squared norms"
    steps: ClassVar = ClippedMean.steps | {"ratios": Step, last: DispersionStep}
    order: ClassVar = (
        f"{START_ORDER}({ROUNDS_ORDER}(center;)?)?tail;ratios;(clipping bias;)?squared norms;"
    )
    over_sites: ClassVar = ()
    command: ClassVar = """Release mean, variance, deviations and distances of matrices.

    Variance and deviations are lower estimates; the clipping bias of the variance is
    measured. All of it is released under one budget.
    """
    aliases: ClassVar = ("spread",)

    # --- asking

    def run(self, context: Context) -> Outcome:
        search = context.search(context.gather())
        search.ask_edge()
        t = search.tuning
        reserve = TAIL_SHARE + RATIO_SHARE + search.bias_share() + t.square_share
        reserve += search.share(t.center)
        clipped = search.resolution >= t.rounds_from and search.find_ball(t.max_rounds, reserve)
        if clipped and search.resolution >= CENTER_FROM:
            search.find_center()
        tail = search.ask_tail(TAIL_SHARE)
        distances = tail.quantiles(LEVELS, search.distance, search.m)
        ratios = self.ask_ratios(search)
        if clipped:
            radius = tail.square_radius(search.distance, search.m, square_noise(search))
            look = search.ask_square_bias(radius)
        else:  # no ball was found: nothing is clipped
            search.frame, radius = Frame.plain(search.domain_center), search.domain_radius
            look = None
        return self.measure(search, radius, look, distances, ratios)

    def ask_ratios(self, search: Search) -> Array:
        """Deviations of the coordinates, up to a common factor."""
        radius = min(search.tuning.center_ball * search.distance, search.domain_radius)
        query = AbsoluteSum("ratios", search.frame, radius)
        answer = search.account.ask(query, search.store, RATIO_SHARE, subsampled=True)
        return deviations(answer.estimate.value, answer.estimate.sd)

    def measure(
        self, search: Search, radius: float, look: Look, distances: Array, ratios: Array
    ) -> Outcome:
        """The dispersion, debiased for noise, with the remaining budget."""
        weight, d = 0 if search.public else COUNTED, search.d
        query = SquaredNormSum(self.last, search.frame, radius, weight)
        answer = search.account.ask(query, search.store)
        v, square, sigma, square_sd, count = answer.estimate
        length = max(float(v @ v) - d * sigma**2, 0.0)
        variance = max(square - float(v @ v) + d * sigma**2, 0.0)
        counted = (length - variance) * count.sd / count.value
        sd = sqrt(square_sd**2 + counted**2 + 4.0 * length * sigma**2 + 2.0 * d * sigma**4)
        private = {} if search.public else {"n_estimate": count.value, "count_sd": count.sd}
        last = answer.note(DispersionStep, radius=radius, variance_sd=sd, **private)
        sampling = sampling_variances(d, sigma, variance, sd, count.stretch, count.value)
        outcome = clipped_mean(search, last, v, sigma, look, count, sampling)
        outcome.numbers = {
            "variance": np.array(variance),
            "deviations": ratios * sqrt(variance / float(ratios @ ratios)),
            "distances": distances,
        }
        return outcome

    def errors(self, outcome: Outcome, records: Any) -> dict[str, float]:
        truth = records.once("variance", lambda rows: float(rows.Y.var(axis=0).sum()))
        off = float(outcome.numbers["variance"]) / truth - 1.0
        mean = records.once("mean", lambda rows: rows.Y.mean(axis=0))
        y = records.space.chart.project(outcome.vectors["mean"], records.space.region)
        distance = float(np.linalg.norm(y - mean))
        return {"relative error of the variance": off, "error of the mean": distance}

    # --- what the certificate says

    def queries(self, facts: Facts) -> dict[str, Any]:
        frame = Frame.plain(facts.space.region.center)
        weight = 0 if facts.public else COUNTED
        return super().queries(facts) | {
            "ratios": AbsoluteSum("", frame, 1.0),
            self.last: SquaredNormSum("", frame, 1.0, weight),
        }

    def statement(self, facts: Facts) -> str:
        last, look = facts.last, facts.step("clipping bias")
        text = STATEMENT.format(unit=facts.unit, radius=last.radius, sd=last.variance_sd)
        if look is None:
            return text
        first = facts.step("count")  # the bias was divided by this noisier number
        ratio = 1.0 if first is None else first.n_estimate / facts.count.value
        bias, sd = look.bias[1] * ratio, look.sd[1] * ratio
        return text + BIAS.format(unit=facts.unit, bias=bias, bias_sd=sd, reach=look.reach[1])

    def check_values(self, facts: Facts, values: Arrays) -> Iterator[Check]:
        f, last, variance = facts, facts.last, float(values["variance"])
        deviation, distances = values["deviations"], values["distances"]
        yield farthest(f, values)
        yield Check("variance", variance >= 0, "not negative")
        square = float(deviation @ deviation)
        yield same("deviations", variance, square, "their squares add up to the variance")
        ok = bool((deviation >= 0).all() and (np.diff(np.append(0.0, distances)) >= 0).all())
        yield Check("distances", ok, "rising; no deviation is negative")
        frame = Frame.plain(f.space.region.center)
        unit = SquaredNormSum("", frame, last.radius).units(f.count.value)[1]
        least = sqrt((last.scale * unit) ** 2 + 2.0 * f.d * f.noise_scale**4)
        yield at_least("noise of the variance", last.variance_sd, least, "from σ")
        count = f.count
        expected = weighted_chi2(
            sampling_variances(
                f.d, f.noise_scale, variance, last.variance_sd, count.stretch, count.value
            )
        )
        ok = f.population is not None and close(f.population.noise, expected)
        yield Check("variance of sampling", ok, "from the variance released")

    # --- pictures, synthetic records

    def panels(self, facts: Facts, values: Values) -> list[Panel]:
        title = "Standard deviation of each coordinate"
        mean = matrix_panels(*stacked(values["mean"], "Mean"))
        far = row(values["distances"], "Quantiles of the distance", "distance", SHOWN_LEVELS)
        return mean + row(values["deviations"], title, "deviation") + far

    def sampled(self, facts: Facts, values: Values) -> Sampled:
        return Sampled(values["mean"], np.diag(values["deviations"]))


def square_noise(search: Search) -> float:
    """Noise of a variance in a unit ball, with the remaining budget."""
    unit = SquaredNormSum("", Frame.plain(search.domain_center), 1.0).units(1)[1]
    noise = search.noise()
    return sqrt((noise * RECORD_NORM * unit) ** 2 + 2.0 * search.d * noise**4)


def sampling_variances(
    d: int, sigma: float, variance: float, sd: float, stretch: float, n: float
) -> Array:
    """Variances of noise and, as if along one axis, of sampling: upper limits."""
    return along_one_axis(d, (sigma * stretch) ** 2, (variance + UPPER * sd) * stretch / n)


STATISTIC = Dispersion()


@public
def private_dispersion(X: Any, **options: Unpack[Options]) -> Release:
    """Release mean, Fréchet variance and dispersion of matrices, under one budget.

    Under "add-remove" the number of records (or persons) is private, and a noisy
    number is released with the rest.

    Parameters
    ----------
    X : array (n, k, k), or anything :func:`spdp.data.source.as_source` takes
    {options}

    Returns
    -------
    Release
        ``values["mean"]`` (k, k); ``"variance"``, a number, the sum of the variances of
        all coordinates; ``"deviations"`` (d,), the standard deviation of each
        coordinate of the metric's chart; ``"distances"``, quantiles at :data:`LEVELS`
        of the distance to the centre that the search had found. Variance and deviations
        are lower estimates (this module's text); ``population_bound`` bounds the
        distance to the population's mean.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, private_dispersion
    >>> scales = np.exp(np.random.default_rng(0).normal(0.0, 0.5, 2000))
    >>> X = scales[:, None, None] * np.eye(2)
    >>> domain = EigenvalueBounds(0.01, 100.0)
    >>> release = private_dispersion(X, epsilon=2.0, delta=1e-6, domain=domain)
    >>> bool(0.4 < release.values["variance"] < 0.6)  # 2·0.5²
    True
    """
    return STATISTIC.release(X, **options)
