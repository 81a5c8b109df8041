"""``spdp stats classes``."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from spdp.choices import Covariance, Method
from spdp.cli import options
from spdp.cli.groups import Budget, Publication, Space
from spdp.cli.stats.running import Work, run
from spdp.errors import DataError

__all__ = ["classes", "read_labels"]

Labels = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Class of each record: .npy, or text, one a line."),
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
    found = None if labels is None else partial(read_labels, labels)
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


def read_labels(file: Path, n: int | None) -> Any:
    """One label for each of n records, from a .npy file or the lines of a text."""
    import numpy as np

    from spdp.data.labels import entries_of, lines_of

    try:
        if file.suffix != ".npy":
            return entries_of(lines_of(file, n))
        labels = np.load(file, allow_pickle=False)
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"{file}: cannot be read as labels ({error})") from None
    if not isinstance(labels, np.ndarray) or labels.ndim != 1 or labels.dtype.kind not in "biufU":
        raise DataError(f"{file}: does not hold one number or text per record")
    return labels


def names_of(names: str) -> list[Any]:
    """The classes of an option, as labels are spelt."""
    from spdp.data.labels import label_of

    return [label_of(name) for name in names.split(",")]
