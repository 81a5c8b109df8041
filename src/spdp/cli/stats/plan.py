"""``spdp stats plan``: what a statistic would be worth, from public numbers."""

from enum import StrEnum
from typing import Annotated

import typer

from spdp.choices import Adjacency, Covariance
from spdp.cli import options
from spdp.cli.groups import Bounds, Budget
from spdp.cli.output import print_json, say
from spdp.cli.plan import Number, Size

__all__ = ["plan"]


class Statistic(StrEnum):
    """Statistics that can be planned, as they are called in certificates."""

    CLASSES = "class-means"
    SPREAD = "dispersion"
    PCA = "pca"
    MEDIAN = "median"
    REGRESSION = "regression"
    DIFFERENCE = "difference"


Name = Annotated[Statistic, typer.Argument(metavar="STATISTIC", help="What would be released.")]
Spread = Annotated[
    str | None,
    typer.Option(
        metavar="SPREAD",
        help="Root mean square distance of records from their (class's) mean: a number, or a "
        "share of the domain's radius such as 10%.",
    ),
]
Classes = Annotated[int, typer.Option(min=1, metavar="C", help="Number of classes.")]
Second = Annotated[Covariance, typer.Option(help="Covariance to be released with class means.")]
Covariates = Annotated[int, typer.Option(min=1, metavar="P", help="Number of covariates.")]
Effect = Annotated[
    float | None,
    typer.Option(metavar="DISTANCE", help="Of two class means: would the test find it?"),
]


def plan(
    statistic: Name,
    *,
    k: Size,
    n: Number,
    budget: Budget,
    bounds: Bounds,
    metric: options.Metric = "logeuclid",
    spread: Spread = None,
    classes: Classes = 2,
    covariance: Second = Covariance.NONE,
    covariates: Covariates = 1,
    effect: Effect = None,
    adjacency: options.Adjacency = Adjacency.REPLACE_ONE,
    as_json: options.Json = False,
) -> None:
    """Show how much noise a statistic would have; no data is needed."""
    from spdp.statistics.forecast import plan_statistic

    made = plan_statistic(
        statistic,
        n=n,
        k=k,
        epsilon=budget.epsilon,
        delta=budget.delta,
        domain=bounds.domain(),
        spread=spread,
        metric=metric,
        adjacency=adjacency,
        classes=classes,
        covariance=covariance,
        covariates=covariates,
        effect=effect,
    )
    if as_json:
        print_json(made.describe())
        return
    for line in made.lines():
        say(line[0].upper() + line[1:] + ".")
