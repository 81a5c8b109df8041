r"""What statistics beyond the mean will be worth, told from public numbers alone.

Forecasts are *predictions*, by the formulas of :mod:`spdp.statistics.foreseen`: of the
noise alone, for Gaussian records that are equally wide in all directions, within a
factor of two where n·μ/√d is 30 or more (tested). They promise nothing of data that are
not looked at; certificates state what a release is really worth.
"""

from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from spdp.choices import Covariance, choose, positive, positive_int
from spdp.domain import Domain
from spdp.errors import ParameterError
from spdp.lattice import MAX_RECORDS
from spdp.privacy.costs import Budget
from spdp.statistics.foreseen import STATISTICS, Numbers, Public
from spdp.statistics.planner import Planner

__all__ = ["Forecast", "plan_statistic"]

ASSUMED = (
    "a prediction for Gaussian records, equally wide in all directions, from public numbers "
    "alone; of noise, not of clipping"
)


@dataclass(frozen=True, repr=False)
class Forecast:
    """What a statistic is predicted to reach; see :func:`plan_statistic`.

    Attributes
    ----------
    predictions : tuple of dict
        Numbers by name, for each spread.
    needed : dict
        Numbers of records by what they are needed for, whatever the spread; None where
        more than 2**32 would be needed.
    verdict : str
        What will happen at this number of records, in words.
    assumed : str
        What the predictions rest on.
    """

    statistic: str
    n: int
    k: int
    epsilon: float
    delta: float
    mu: float
    radius: float
    distance: str
    adjacency: str
    predictions: tuple[Numbers, ...]
    needed: dict[str, int | None]
    verdict: str
    assumed: str = ASSUMED

    def describe(self) -> dict[str, Any]:
        """All of it, JSON-ready."""
        return asdict(self)

    def lines(self) -> list[str]:
        """All of it in words."""
        told = [
            "; ".join(f"{name} {value:.3g}" for name, value in row.items())
            for row in self.predictions
        ]
        told += [f"{what}: {_records(n)}" for what, n in self.needed.items()]
        return [*told, self.verdict, self.assumed]

    def __repr__(self) -> str:
        head = f"<Forecast of {self.statistic}, n={self.n}, k={self.k}, epsilon={self.epsilon:g}"
        return "\n  ".join([head, *self.lines()]) + ">"


def _records(n: int | None) -> str:
    return "more than 2**32 records" if n is None else f"{n:,} records"


def _verdict(p: Public, needed: dict[str, int | None]) -> str:
    for what, number in needed.items():
        if number is None:
            return f"too few records {what}: more than 2**32 are needed"
        if p.n < number:
            return f"too few records {what}: {number:,} are needed"
    if not p.finds:
        return (
            f"hopeless: among fewer than {ceil(p.findable):,} records no search finds where they "
            "lie at this ε, and noise is that of the whole domain"
        )
    return "enough records"


def _possible(number: float) -> int | None:
    """None for more records than spdp adds up exactly."""
    return None if number > MAX_RECORDS else ceil(number)


def plan_statistic(
    statistic: str,
    *,
    n: int,
    k: int,
    epsilon: float,
    delta: float,
    domain: Domain,
    spread: float | str | None = None,
    metric: str = "logeuclid",
    adjacency: str = "replace-one",
    classes: int = 2,
    covariance: str = "none",
    covariates: int = 1,
    effect: float | None = None,
) -> Forecast:
    """Predict what a statistic is worth; no data are needed, no budget is spent.

    Parameters
    ----------
    statistic : "class-means", "dispersion", "pca", "median", "regression" or
        "difference"
    n, k, epsilon, delta, domain, spread, metric, adjacency
        As in :func:`spdp.plan`; ``spread`` is that within the classes.
    classes : int
        Number of classes, taken to be of one size.
    covariance : "none", "diagonal" or "full"
        As in :func:`spdp.private_class_means`.
    covariates : int
        Number of covariates of a regression, taken to be normal.
    effect : float, optional
        Distance of two class means: how probably would the test find it, and how many
        records would find it with power 80 %? Without it, that number is told for an
        effect of half the spread.

    Returns
    -------
    Forecast
        Of noise, from public numbers: this module's text says what it rests on.

    Examples
    --------
    >>> from spdp import Ball, plan_statistic
    >>> f = plan_statistic("pca", n=500, k=9, epsilon=1.0, delta=1e-6, domain=Ball(5.0))
    >>> f.verdict
    'too few records to release them without a warning: 2,551 are needed'
    """
    if statistic not in STATISTICS:
        names = ", ".join(map(repr, STATISTICS))
        raise ParameterError(f"statistic must be one of {names}, got {statistic!r}")
    planner = Planner(
        n=n,
        k=k,
        epsilon=epsilon,
        delta=delta,
        domain=domain,
        spread=spread,
        metric=metric,
        adjacency=adjacency,
        mechanism="gaussian",
        method="oneshot",
    )
    mu = Budget.gaussian(epsilon, delta).mu
    assert mu is not None  # of Gaussian noise
    p = Public(
        planner,
        mu,
        len(planner.region.center),
        positive_int("classes", classes),
        choose(Covariance, covariance, "covariance").value,
        positive_int("covariates", covariates),
        None if effect is None else positive("effect", effect),
    )
    predict, need = STATISTICS[statistic]
    needed = {what: _possible(number) for what, number in need(p).items()}
    rows = tuple({"spread": s, **predict(p, s)} for s in planner.spreads)
    return Forecast(
        statistic,
        n,
        k,
        epsilon,
        delta,
        mu,
        planner.radius,
        planner.chart.distance,
        adjacency,
        rows,
        needed,
        _verdict(p, needed),
    )
