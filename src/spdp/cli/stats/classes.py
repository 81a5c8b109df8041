"""``spdp stats classes``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from spdp.choices import Covariance, Method
from spdp.cli import options
from spdp.cli.groups import Budget, Publication, Space
from spdp.cli.stats.columns import labels_of
from spdp.cli.stats.running import Work, run

__all__ = ["classes", "names_of"]

Labels = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Class of each record: .npy, .npz, or text, one a line. With --label-column, the "
        "array of an .npz.",
    ),
]
Names = Annotated[
    str,
    typer.Option(
        "--classes", metavar="A,B,...", help="The public list of classes, never from the data."
    ),
]
Second = Annotated[
    Covariance, typer.Option(help="Covariance within the classes to release as well.")
]


def classes(
    data: options.Data,
    *,
    names: Names,
    budget: Budget,
    labels: Labels = None,
    covariance: Second = Covariance.NONE,
    space: Space,
    publication: Publication,
    method: options.Method = Method.AUTO,
    work: Work,
) -> None:
    """Release the mean and the size of every class of matrices."""
    from spdp.statistics.classes import private_class_means

    arrays = ("means", "counts", *(() if covariance is Covariance.NONE else ("covariance",)))
    found, work = labels_of(labels, work)
    run(
        private_class_means,
        arrays,
        data,
        budget,
        space,
        publication,
        work,
        y=found,
        classes=names_of(names),
        covariance=covariance,
        method=method,
    )


def names_of(names: str) -> list[Any]:
    """The classes of an option, as labels are spelt."""
    from spdp.data.labels import label_of

    return [label_of(name) for name in names.split(",")]
