"""``spdp stats regress``."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from spdp.cli import options
from spdp.cli.groups import Budget, Publication, Space
from spdp.cli.stats.columns import read_covariates
from spdp.cli.stats.running import Work, run
from spdp.errors import ParameterError

__all__ = ["read_ranges", "regress"]

NAMES = ("fitted", "slopes", "at", "noise")  # of what is released

Covariates = Annotated[
    Path,
    typer.Option(
        metavar="FILE", help="Covariates of each record: .npy, or text, a line of numbers each."
    ),
]
Ranges = Annotated[
    str,
    typer.Option(metavar="LOW:HIGH,...", help="Public least and largest value of each covariate."),
]


def regress(
    data: options.Data,
    covariates: Covariates,
    ranges: Ranges,
    budget: Budget,
    space: Space,
    publication: Publication,
    work: Work,
) -> None:
    """Release the regression of the matrices in files on covariates."""
    from spdp.statistics.regression import private_regression

    run(
        private_regression,
        NAMES,
        data,
        budget,
        space,
        publication,
        work,
        covariates=partial(read_covariates, covariates),
        ranges=read_ranges(ranges),
    )


def read_ranges(text: str) -> list[tuple[float, float]]:
    """Pairs of the option ``--ranges``."""
    try:
        pairs = [part.split(":") for part in text.split(",")]
        return [(float(low), float(high)) for low, high in pairs]
    except ValueError:
        raise ParameterError(f"--ranges {text}: expected LOW:HIGH for each covariate") from None
