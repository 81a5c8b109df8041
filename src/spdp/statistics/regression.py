r"""Private regression of matrices on covariates of public range.

In a flat metric geodesics are straight lines of the chart, so the geodesic regression
of matrices X on covariates x is linear there: vector(X) ≈ a + Σ_j x_j·b_j, fitted by
least squares.

The steps are those of :mod:`spdp.statistics.trend`: two fits, the second of what the
first left, in a ball as small as that.

*Enforced.* Records are clipped to the public domain and covariates to their public
ranges, each on its own; the queries' integers are bounded beside them; only the account
answers, and all choices are functions of public and released numbers. *Assumed.* As for
:func:`spdp.private_mean`; ``ranges`` are public. *Therefore* all answers together are
(ε, δ)-DP.
"""

from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spdp.certificate import estimand_of
from spdp.charts import chart_of
from spdp.choices import Adjacency
from spdp.domain import Domain
from spdp.engines import Engine
from spdp.errors import DataError, ParameterError, named
from spdp.privacy.account import Seed
from spdp.privacy.ledger import Ledger
from spdp.publishing import publish
from spdp.release import Release
from spdp.stacks import is_list
from spdp.statements import REGRESSION
from spdp.statistics.counted import countable
from spdp.statistics.search import Search
from spdp.statistics.setting import Setting, prepare
from spdp.statistics.trend import Fit

__all__ = ["predict", "prediction_variance", "private_regression"]

Array = NDArray[np.float64]

MOST = 8  # covariates
NARROWEST = 1e-140  # range of a covariate: squares of slopes along it are numbers
FEWEST = 4.0  # n·μ/√(d(1 + p)) below which no trend can be found


def private_regression(
    X: Any,
    covariates: Any,
    *,
    ranges: ArrayLike,
    epsilon: float,
    delta: float,
    domain: Domain,
    metric: str = "logeuclid",
    adjacency: str = "replace-one",
    groups: Any = None,
    on_invalid: str = "raise",
    ledger: Ledger | None = None,
    label: str | None = None,
    random_state: Seed = None,
    engine: Engine | None = None,
) -> Release:
    """Release the linear regression of matrices on covariates, with privacy.

    Parameters
    ----------
    X : array (n, k, k), or anything :func:`spdp.data.source.as_source` takes
    covariates : array (n,) or (n, p), or Dask array
        At most 8 for each record; of a person's records, with ``groups``, the mean.
    ranges : pair, or array (p, 2)
        Public least and largest value of each covariate. A value outside counts as the
        nearer of them, one that is no number as the middle.
    epsilon, delta, domain, metric, adjacency, groups, on_invalid, ledger, label,
    random_state, engine
        As in :func:`spdp.private_mean`; ``delta`` must be positive.

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
    limits = check_ranges(ranges)
    setting = prepare(
        X,
        epsilon=epsilon,
        delta=delta,
        domain=domain,
        metric=metric,
        adjacency=adjacency,
        groups=groups,
        on_invalid=on_invalid,
        ledger=ledger,
        label=label,
        random_state=random_state,
        engine=engine,
        covariates=check_covariates(covariates, len(limits)),
    )
    if "x" not in setting.source.columns:
        raise ParameterError("the covariates of each record are missing", ask="covariates")
    held = setting.gather(ranges=limits)
    account, p = setting.account, len(limits)
    fewest = FEWEST * sqrt(held.d * (1 + p)) / account.mu
    if account.adjacency is Adjacency.REPLACE_ONE and held.n < fewest:
        raise ParameterError(
            f"{held.n:,} {setting.source.unit.value}s are too few for {held.d} coordinates at "
            f"this budget: at least {fewest:,.0f} are needed, or a larger {named('epsilon')}"
        )
    held = countable(held, account, setting.region)
    search = Search(held, account, setting.region, setting.chart)
    return _publish(setting, search, Fit(search, p), limits)


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
            f"{named('ranges')} are {width.min():.3g} wide; slopes along less than {NARROWEST:g} "
            "are no numbers: take another unit"
        )
    return limits


def check_covariates(covariates: Any, p: int) -> Any:
    """Covariates of p columns, or an error; None where records bring their own."""
    if covariates is None:
        return None
    if is_list(covariates):
        return covariates  # each entry is read on its own
    shape = np.shape(covariates)
    if len(shape) not in (1, 2) or (1 if len(shape) == 1 else shape[1]) != p:
        raise DataError(
            f"{named('covariates')} have shape {shape}; expected (n, {p}), one column per range"
        )
    return covariates


def _publish(setting: Setting, search: Search, fit: Fit, limits: Array) -> Release:
    account, chart = setting.account, setting.chart
    solved, half = fit.solved, 0.5 * (limits[:, 1] - limits[:, 0])
    seen = fit.trend.middle + fit.trend.half * solved.at  # in the public ranges' [−1, 1]
    scale = fit.trend.half * half  # one unit of a covariate as seen, in its own units
    y = chart.representable(chart.project(solved.base, setting.region))
    unscale = np.diag(np.append(1.0, 1.0 / scale))
    account.note(ranges=limits.tolist())
    return publish(
        account,
        {
            "fitted": chart.matrices(y),
            "slopes": solved.slopes / scale[:, None],
            "at": limits.mean(axis=1) + seen * half,
            "noise": unscale @ solved.cover @ unscale,
        },
        None,
        statistic="regression",
        method="adaptive",
        estimand=estimand_of("regression", chart.distance, account.unit, fit.p),
        error_statement=REGRESSION.format(d=search.d),
        **setting.facts(fit.outside, search.n, fit.radius),
    )


def _from_mean(release: Release, x: ArrayLike) -> Array:
    """Covariates (m, p) less where the trend is given."""
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
