"""``spdp stats compare``."""

from spdp.cli import options
from spdp.cli.groups import Budget, Publication, Space
from spdp.cli.stats.classes import Labels, Names, names_of
from spdp.cli.stats.columns import labels_of
from spdp.cli.stats.running import Work, run

__all__ = ["compare"]

NAMES = ("difference", "means", "counts", "p_value")  # of what is released


def compare(
    data: options.Data,
    *,
    names: Names,
    budget: Budget,
    labels: Labels = None,
    space: Space,
    publication: Publication,
    work: Work,
) -> None:
    """Release the difference of two classes' means, and a test of it."""
    from spdp.statistics.difference import private_difference

    found, work = labels_of(labels, work)
    run(
        private_difference,
        NAMES,
        data,
        budget,
        space,
        publication,
        work,
        y=found,
        classes=names_of(names),
    )
