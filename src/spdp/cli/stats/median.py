"""``spdp stats median``."""

from spdp.cli import options
from spdp.cli.groups import Budget, Publication, Space
from spdp.cli.stats.running import Work, run

__all__ = ["median"]


def median(
    data: options.Data,
    budget: Budget,
    space: Space,
    publication: Publication,
    work: Work,
) -> None:
    """Release the geometric median, for data with outliers."""
    from spdp.statistics.median import private_median

    run(
        private_median,
        ("median",),
        data,
        budget,
        space,
        publication,
        work,
    )
