"""``spdp stats spread``."""

from spdp.cli import options
from spdp.cli.groups import Budget, Publication, Space
from spdp.cli.stats.running import Work, run

__all__ = ["spread"]

NAMES = ("mean", "variance", "deviations", "distances")  # of what is released


def spread(
    data: options.Data,
    *,
    budget: Budget,
    space: Space,
    reference_point: options.ReferencePoint = None,
    publication: Publication,
    work: Work,
) -> None:
    """Release mean, variance, deviations and distances of matrices.

    Variance and deviations are lower estimates, and what they leave out is measured.
    All of it is for one budget.
    """
    from spdp.statistics.dispersion import private_dispersion

    run(
        private_dispersion,
        NAMES,
        data,
        budget,
        space,
        publication,
        work,
        reference_point=options.load_matrix(reference_point),
    )
