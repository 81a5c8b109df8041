r"""Private regression of matrices on covariates of public range.

In a flat metric geodesics are straight lines of the chart, so the geodesic regression
of matrices X on covariates x is linear there: vector(X) ≈ a + Σ_j x_j·b_j, fitted by
least squares.

There are two fits; the second fits the residuals of the first, in a smaller ball:

1. *ball*: a few rounds of the search (:meth:`spdp.adaptive.Search.find_ball`) find
centre and typical distance of all records; 2. *covariates*: their noisy mean and mean
absolute deviations give narrower ranges to clip them to, since the error of a slope
grows with the range's width over the covariate's spread; 3. *first fit*: cross moments
and Gram matrix (``CrossSum``) in the ball; 4. *residual*: the mean distance of records
from that trend sets a smaller ball; 5. *cross moments*: those of the residuals in it,
with the remaining budget, correct the trend.

Slopes are shrunk toward zero by James and Stein's factor for their known noise, so that
noise is not taken for a trend.

*Enforced*, *assumed*, *therefore*: as in :mod:`spdp.statistics.base`. Covariates are
clipped to their public ranges, each on its own; ``ranges`` are assumed to be public.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike

from spdp.adaptive import TUNING, Search
from spdp.adaptive.steps import (
    BALL,
    ROUNDS_ORDER,
    START_ORDER,
    DistanceStep,
    Kinds,
    Length,
    Queries,
    ball_queries,
)
from spdp.charts import chart_of
from spdp.data.batching import is_list
from spdp.errors import DataError, NotReleased, ParameterError, named
from spdp.kernels.arrays import Array
from spdp.kernels.vecd import symmetric
from spdp.options import counted as plural
from spdp.options import positive_int
from spdp.privacy.account import Step
from spdp.queries import Rows, covariates, sums
from spdp.queries.covariates import Trend
from spdp.queries.sums import Frame
from spdp.release import Release
from spdp.release.certificate import Facts
from spdp.release.declaration import MATRIX, NONE, Check, Sampled, Values
from spdp.release.verify import Arrays, equal
from spdp.rendering.panels import Panel, changes, matrix_panels, stacked
from spdp.statistics import base
from spdp.statistics.base import Context, Outcome, Statistic
from spdp.statistics.options import Options, option, public

MOST = 8  # covariates
NARROWEST = 1e-140  # range of a covariate: squares of slopes stay finite
FEWEST = 4.0  # n·μ/√(d(1 + p)) below which no trend can be found
# Shares of μ². Chosen, like the radii, on the regression of MNIST's class 3 on ink.
MIDDLE_SHARE, WIDTH_SHARE, FIRST_SHARE, RESIDUAL_SHARE = 0.02, 0.02, 0.2, 0.02
WIDTH = 3.5  # half width of the covariates' range over their mean absolute deviation
CLEAR = 1.0  # noise that is added to the deviation, in standard deviations
FIRST_BALL, LAST_BALL = 1.3, 1.5  # radius over the typical distance
# Eigenvalues of the covariates' covariance, in units of squared half ranges, are at
# least LEAST_SPREAD and RIDGE standard deviations of their noise: smaller ones cannot
# be told from 0.
LEAST_SPREAD, RIDGE = 0.01, 3.0

STATEMENT = (
    "the last noise in a prediction at x: each of its {d} coordinates has variance (1, x − at)"
    "·noise·(1, x − at)ᵀ, given the released Gram matrix of the covariates. It does not cover "
    "shrinkage of slopes, noise in the Gram matrix, nor clipping of residuals to the released "
    "ball, which leaves a part of the first fit's error: up to about as much again was seen"
)
Numbers = list[float]


class MiddleStep(Step):
    """Mean of the covariates, in units in which their public ranges are [−1, 1]."""

    middle: Numbers


class RangeStep(Step):
    """Narrower ranges that covariates are clipped to, in the same units."""

    low: Numbers
    high: Numbers


class FitStep(Step):
    """Mean and covariance of the covariates in those ranges; the residuals' ball."""

    radius: Length
    at: Numbers
    gram: list[Numbers]
    ranges: list[Numbers] | None = None  # the public ones, in the last step


@dataclass(frozen=True, eq=False)
class Solved:
    """A trend about the covariates' mean, in units of the narrower ranges."""

    at: Array  # (p,)
    base: Array  # (d,), the trend at ``at``
    slopes: Array  # (p, d)
    cover: Array  # (1 + p, 1 + p): variance of a prediction's coordinates

    def shrunk(self, d: int) -> "Solved":
        """Slopes shrunk toward zero, each by James and Stein's factor."""
        if d < 3:
            return self
        noise = np.diagonal(self.cover)[1:] * (d - 2)
        square = np.maximum((self.slopes**2).sum(axis=1), 1e-300)
        return replace(self, slopes=self.slopes * np.maximum(0.0, 1.0 - noise / square)[:, None])

    def coefficients(self) -> Array:
        """Trend at zero, and its slopes."""
        return np.vstack([self.base - self.at @ self.slopes, self.slopes])


def parse_ranges(text: str) -> list[tuple[float, float]]:
    """Pairs of the option ``--ranges``."""
    try:
        pairs = [part.split(":") for part in text.split(",")]
        return [(float(low), float(high)) for low, high in pairs]
    except ValueError:
        raise ParameterError(f"--ranges {text}: expected LOW:HIGH for each covariate") from None


RANGES = {"kind": str, "metavar": "LOW:HIGH,...", "parse": parse_ranges, "required": True}


@dataclass(frozen=True, eq=False)
class Regression(Statistic):
    """Linear regression in the chart, on covariates of public range."""

    name: ClassVar = "regression"
    title: ClassVar = "regression on covariates"
    measured_from: ClassVar = "what was released"
    target: ClassVar = (
        "the least-squares regression, in the {distance} chart, of {units}, each clipped to the "
        "domain, on covariates ({covariates}) of public range"
    )
    releases: ClassVar = {
        "fitted": MATRIX,
        "slopes": ("p", "d"),
        "at": ("p",),
        "noise": ("1 + p", "1 + p"),
    }
    steps: ClassVar[Kinds] = BALL | {
        "covariates": MiddleStep,
        "covariate deviations": RangeStep,
        "first fit": FitStep,
        "residual": DistanceStep,
        "cross moments": FitStep,
    }
    order: ClassVar = (
        f"{START_ORDER}{ROUNDS_ORDER}covariates;covariate deviations;first fit;residual;"
        "cross moments;"
    )
    forms: ClassVar = {"adaptive": (NONE,)}
    columns: ClassVar = ("x",)
    command: ClassVar = "Release the regression of the matrices in files on covariates."
    aliases: ClassVar = ("regress",)

    ranges: ArrayLike = option("Public range of each covariate.", "18:90", (), **RANGES)

    # --- asking

    def prepare(self, records: Any) -> None:
        records.ranges = check_ranges(self.ranges)

    def run(self, context: Context) -> Outcome:
        store, account = context.gather(), context.account
        limits = check_ranges(self.ranges)
        p = len(limits)
        fewest = FEWEST * sqrt(store.d * (1 + p)) / account.budget.whole
        if context.public and store.n < fewest:
            raise ParameterError(
                f"{store.n:,} {plural(account.unit)} are too few for {store.d} coordinates at "
                f"this budget: at least {fewest:,.0f} are needed, or a larger {named('epsilon')}"
            )
        search = context.search(store)
        search.ask_edge()
        search.find_ball(TUNING.max_rounds, search.reserve())
        start = np.vstack([search.frame.center, np.zeros((p, search.d))])
        trend = Trend(*self.ask_ranges(search, p), start)
        cap = FIRST_BALL * search.distance
        first = self.ask_fit(search, "first fit", trend, cap, FIRST_SHARE)
        trend = replace(trend, coefficients=first.shrunk(search.d).coefficients())
        distance = self.ask_residual(search, trend, cap)
        last = self.ask_fit(search, "cross moments", trend, LAST_BALL * distance, 1.0, limits)
        return self.solution(search, trend, last.shrunk(search.d), limits)

    def solution(self, search: Search, trend: Trend, solved: Solved, limits: Array) -> Outcome:
        """The trend in the covariates' own units."""
        half = 0.5 * (limits[:, 1] - limits[:, 0])
        seen = trend.middle + trend.half * solved.at  # in the public ranges' [−1, 1]
        scale = trend.half * half  # one unit of a covariate as seen, in its own units
        unscale = np.diag(np.append(1.0, 1.0 / scale))
        numbers = {
            "slopes": solved.slopes / scale[:, None],
            "at": limits.mean(axis=1) + seen * half,
            "noise": unscale @ solved.cover @ unscale,
        }
        return Outcome(search.n, {"fitted": solved.base}, numbers)

    def ask_ranges(self, search: Search, p: int) -> tuple[Array, Array]:
        """Middle and half width of the narrower ranges of the covariates."""
        far, frame = sqrt(p), Frame.plain(np.zeros(p))
        means = covariates.CovariateSum("covariates", sums.VectorSum("", frame, far))
        answer = search.account.ask(means, search.store, MIDDLE_SHARE)
        middle = np.clip(answer.estimate.value, -1.0, 1.0)
        answer.note(MiddleStep, middle=middle.tolist())
        around = sums.AbsoluteSum("", frame.moved(middle), 2.0 * far)
        asked = covariates.CovariateSum("covariate deviations", around)
        answer = search.account.ask(asked, search.store, WIDTH_SHARE)
        width = np.maximum(answer.estimate.value, 0.0) + CLEAR * answer.estimate.sd
        low = np.maximum(middle - WIDTH * width, -1.0)
        high = np.minimum(middle + WIDTH * width, 1.0)
        answer.note(RangeStep, low=low.tolist(), high=high.tolist())
        return 0.5 * (low + high), 0.5 * (high - low)

    def ask_fit(
        self,
        search: Search,
        name: str,
        trend: Trend,
        radius: float,
        share: float,
        limits: Array | None = None,
    ) -> Solved:
        """Fit a trend to the residuals of ``trend``, and return the sum of both."""
        query = covariates.CrossSum(name, trend, radius)
        answer = search.account.ask(query, search.store, share)
        G, C, gram_sd, cross_sd = answer.estimate
        at = np.clip(G[0, 1:], -1.0, 1.0)
        S = _positive(G[1:, 1:] - np.outer(at, at), max(LEAST_SPREAD, RIDGE * gram_sd))
        A = about_mean(at, S)
        old, new = trend.coefficients, A @ C
        ranges = None if limits is None else limits.tolist()
        answer.note(FitStep, radius=radius, at=at.tolist(), gram=S.tolist(), ranges=ranges)
        base, slopes = old[0] + at @ old[1:] + new[0], old[1:] + new[1:]
        return Solved(at, base, slopes, cross_sd**2 * (A @ A.T))

    def ask_residual(self, search: Search, trend: Trend, cap: float) -> float:
        """Noisy mean distance of records from a trend."""
        query = covariates.ResidualDistance("residual", trend, cap)
        answer = search.account.ask(query, search.store, RESIDUAL_SHARE)
        distance = float(answer.estimate.value[0])
        answer.note(DistanceStep, distance=distance)
        return distance

    @classmethod
    def planned(cls, asked: Any) -> "Regression":
        return cls([[-1.0, 1.0]] * positive_int("covariates", asked.covariates))

    def errors(self, outcome: Outcome, records: Any) -> dict[str, float]:
        middle, sd, exact = records.once("trend", least_squares)
        slopes, at = outcome.numbers["slopes"], outcome.numbers["at"]
        fitted = outcome.vectors["fitted"] - (exact[0] + (at - middle) @ exact[1:])
        moved = np.linalg.norm((slopes - exact[1:]) * sd[:, None], axis=1)
        slope = float(np.sqrt(np.mean(moved**2)))
        return {
            "rms error of the fit": float(np.linalg.norm(fitted)),
            "rms error of a slope, for one standard deviation": slope,
        }

    def thresholds(self, d: int, mu: float) -> dict[str, int | None]:
        p = len(check_ranges(self.ranges))
        return {"to release a regression": base.whole_records(FEWEST * sqrt(d * (1 + p)) / mu)}

    # --- what the certificate says

    def queries(self, facts: Facts) -> Queries:
        p, d = facts.arrays["at"][0], facts.d
        frame = Frame.plain(np.zeros(p))
        trend = Trend(np.zeros(p), np.ones(p), np.zeros((1 + p, d)))
        return ball_queries(facts.space) | {
            "covariates": covariates.CovariateSum("", sums.VectorSum("", frame, 1.0)),
            "covariate deviations": covariates.CovariateSum("", sums.AbsoluteSum("", frame, 1.0)),
            "first fit": covariates.CrossSum("", trend, 1.0),
            "residual": covariates.ResidualDistance("", trend, 1.0),
            "cross moments": covariates.CrossSum("", trend, 1.0),
        }

    def estimand(self, facts: Facts) -> str:
        return self.target.format(
            distance=facts.chart.distance, units=self.units(facts), covariates=facts.arrays["at"][0]
        )

    def axes(self, facts: Facts) -> dict[str, int]:
        p = max(facts.arrays["at"][0], 1)
        return {"p": p, "1 + p": 1 + p}

    def statement(self, facts: Facts) -> str:
        return STATEMENT.format(d=facts.d)

    def check(self, facts: Facts) -> Iterator[Check]:
        yield equal("last step", facts.last.step, "cross moments")
        stated = [step.ranges is not None for step in facts.answers if isinstance(step, FitStep)]
        yield Check("ranges", stated == [False, True], "in the last step")

    def check_values(self, facts: Facts, values: Arrays) -> Iterator[Check]:
        """Noise of predictions, mean of covariates: from Gram matrix and ranges."""
        last, seen = facts.last, facts.step("covariate deviations")
        at, S, limits = (np.asarray(v, float) for v in (last.at, last.gram, last.ranges))
        low, high = np.asarray(seen.low), np.asarray(seen.high)
        half = 0.5 * (limits[:, 1] - limits[:, 0])
        place = limits.mean(axis=1) + half * (0.5 * (low + high) + 0.5 * (high - low) * at)
        unscale = np.diag(np.append(1.0, 1.0 / (0.5 * (high - low) * half)))
        A = unscale @ about_mean(at, S)
        noise = facts.noise_scale**2 * (A @ A.T)
        ok = bool(np.allclose(values["at"], place, rtol=1e-7, atol=1e-12))
        yield Check("at", ok, "by the ranges")
        off = np.abs(values["noise"] - noise)
        ok = bool(off.max() <= 1e-7 * np.abs(noise).max())
        yield Check("noise of predictions", ok, "from σ, Gram matrix and ranges")
        yield Check("noise of the fit", bool(off[0, 0] <= 1e-7 * noise[0, 0]), "from σ")
        ok = bool((half > 0).all() and (np.abs(at) <= 1).all())
        yield Check("ranges", ok, "low < high")

    # --- pictures, synthetic records

    def panels(self, facts: Facts, values: Values) -> list[Panel]:
        at = ", ".join(f"{x:.4g}" for x in values["at"])
        end = ":" if values["fitted"].ndim == 3 else ""  # before the number of a matrix
        title = f"Fitted where the covariates are {at}{end}"
        fitted = matrix_panels(*stacked(values["fitted"], title))
        titles = [f"Change with one unit of covariate {i}" for i in range(len(values["slopes"]))]
        return fitted + changes(values["fitted"], values["slopes"], titles, facts.chart)

    def sampled(self, facts: Facts, values: Values) -> Sampled:
        raise NotReleased(
            "a regression cannot be sampled: the spread of records about its trend was not "
            "released. spdp.statistics.regression.predict gives the trend at any covariates"
        )


def least_squares(rows: Rows) -> tuple[Array, Array, Array]:
    """Mean and deviations of the covariates, and the exact trend, for plans."""
    middle, sd = rows.x.mean(axis=0), rows.x.std(axis=0)
    F = np.hstack([np.ones((len(rows.x), 1)), rows.x - middle])
    return middle, sd, np.linalg.lstsq(F, rows.Y, rcond=None)[0]


def about_mean(at: Array, S: Array) -> Array:
    """The matrix that maps cross moments to a trend about the covariates' mean.

    There the features (1, z − at) have the Gram matrix diag(1, S).
    """
    p = len(at)
    T, solve = np.eye(1 + p), np.eye(1 + p)
    T[1:, 0], solve[1:, 1:] = -at, np.linalg.inv(S)
    return np.asarray(solve @ T)


def _positive(S: Array, least: float) -> Array:
    """The nearest matrix whose eigenvalues are no smaller than ``least``."""
    values, V = np.linalg.eigh(symmetric(S))
    return np.asarray((V * np.maximum(values, least)) @ V.T)


def check_ranges(ranges: ArrayLike) -> Array:
    """Public ranges as an array (p, 2), or an error."""
    try:
        limits = np.atleast_2d(np.asarray(ranges, float))
    except (TypeError, ValueError):
        raise ParameterError(f"{named('ranges')} must be numbers, got {ranges!r}") from None
    if limits.ndim != 2 or limits.shape[1] != 2 or not 1 <= len(limits) <= MOST:
        raise ParameterError(
            f"{named('ranges')} have shape {np.shape(ranges)}; expected (p, 2): the public least "
            f"and largest value of each of up to {MOST} covariates"
        )
    with np.errstate(over="ignore"):
        width = limits[:, 1] - limits[:, 0]
    if not (np.isfinite(limits).all() and np.isfinite(width).all() and (width > 0).all()):
        raise ParameterError(f"{named('ranges')} must be pairs low < high, got {limits.tolist()}")
    if width.min() < NARROWEST:
        raise ParameterError(
            f"{named('ranges')} are {width.min():.3g} wide; slopes overflow below {NARROWEST:g}: "
            "use another unit"
        )
    return limits


def check_covariates(covariates: Any, p: int) -> Any:
    """Covariates of p columns, or an error; None where records bring their own."""
    if covariates is None:
        return None
    if is_list(covariates):
        return covariates  # each entry is checked when it is read
    shape = np.shape(covariates)
    if len(shape) not in (1, 2) or (1 if len(shape) == 1 else shape[1]) != p:
        raise DataError(f"{named('covariates')} have shape {shape}, not (n, {p}): one per range")
    return covariates


STATISTIC = Regression()


@public
def private_regression(
    X: Any, covariates: Any, *, ranges: ArrayLike, **options: Unpack[Options]
) -> Release:
    """Release the regression of matrices on covariates with differential privacy.

    Parameters
    ----------
    X : array (n, k, k), or anything :func:`spdp.data.source.as_source` takes
    covariates : array (n,) or (n, p), or Dask array
        At most 8 for each record. With ``groups``, the mean over a person's records
        counts.
    ranges : pair, or array (p, 2)
        Public least and largest value of each covariate. A value outside is clipped to
        them, and NaN counts as the middle.
    {options}

    Returns
    -------
    Release
        ``fitted`` (k, k), the trend where the covariates are ``at`` (p,), their
        released mean; ``slopes`` (p, d), in the chart's coordinates, for one unit of
        each covariate; ``noise`` (1 + p, 1 + p), from which the noise of a prediction
        follows. :func:`predict` and :func:`prediction_variance` use them.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, private_regression
    >>> age = np.random.default_rng(0).uniform(20, 80, 4000)
    >>> X = np.exp(0.01 * (age - 50))[:, None, None] * np.eye(2)
    >>> domain = EigenvalueBounds(0.1, 10.0)
    >>> release = private_regression(
    ...     X, age, ranges=(0, 100), epsilon=2.0, delta=1e-6, domain=domain
    ... )
    >>> {name: array.shape for name, array in release.values.items()}
    {'fitted': (2, 2), 'slopes': (1, 3), 'at': (1,), 'noise': (2, 2)}
    """
    checked = check_covariates(covariates, len(check_ranges(ranges)))
    return Regression(ranges).release(X, covariates=checked, **options)


def _from_mean(release: Release, x: ArrayLike) -> Array:
    """Covariates (m, p) relative to the released ``at``."""
    at = release.values["at"]
    X = np.asarray(x, float)
    X = X.reshape(-1, 1) if X.ndim < 2 and len(at) == 1 else np.atleast_2d(X)
    if X.ndim != 2 or X.shape[1] != len(at):
        raise DataError(f"covariates have shape {np.shape(x)}; expected (m, {len(at)})")
    return np.asarray(X - at)


def predict(release: Release, x: ArrayLike) -> Array:
    """Matrices (m, k, k) that a released regression predicts at covariates (m, p).

    Of records of several matrices, (m, parts, k, k).
    """
    c, values = release.certificate, release.values
    chart = chart_of(c["metric"], c["reference_point"], c["parts"])
    y = chart.vector(values["fitted"]) + _from_mean(release, x) @ values["slopes"]
    return np.asarray(chart.matrices(y))


def prediction_variance(release: Release, x: ArrayLike) -> Array:
    """Variance (m,) of the noise in each coordinate of predictions at x.

    The squared distance that noise moves a prediction by is this times χ² of d degrees
    of freedom, before slopes are shrunk.
    """
    z = _from_mean(release, x)
    F = np.hstack([np.ones((len(z), 1)), z])
    return np.asarray(np.einsum("ij,jk,ik->i", F, release.values["noise"], F))
