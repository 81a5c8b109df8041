"""``spdp stats pca``."""

from typing import Annotated

import typer

from spdp.cli import options
from spdp.cli.groups import Budget, Publication, Space
from spdp.cli.stats.running import Work, run

__all__ = ["pca"]

NAMES = ("mean", "components", "explained_variance", "covariance")  # of what is released

Components = Annotated[
    int, typer.Option("--components", min=1, metavar="P", help="Principal directions to release.")
]


def pca(
    data: options.Data,
    *,
    components: Components,
    budget: Budget,
    space: Space,
    reference_point: options.ReferencePoint = None,
    publication: Publication,
    work: Work,
) -> None:
    """Release mean, covariance and principal directions of matrices.

    Directions are those of the metric's chart (log-vectors). Where noise is too large
    for the number of coordinates, it warns or refuses, from public numbers.
    """
    from spdp.statistics.pca import private_pca

    run(
        private_pca,
        NAMES,
        data,
        budget,
        space,
        publication,
        work,
        n_components=components,
        reference_point=options.load_matrix(reference_point),
    )
