"""Work on one block of records: what is sent to the block, and what comes back."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.charts import Chart
from spdp.data.identity import spelt
from spdp.data.labels import numbers_of, places_of
from spdp.errors import named
from spdp.kernels import Region, kernels_for
from spdp.kernels.place import beside as on_the_side_of
from spdp.kernels.place import take_rows
from spdp.lattice import Fault, Unusable, fault_of, first_fault, quiet, sum_block
from spdp.queries import Query, Rows, VectorSum
from spdp.stacks import Block, Shape, split

__all__ = [
    "Beside",
    "Fault",
    "Held",
    "Task",
    "Totals",
    "Vectors",
    "beside_of",
    "nobody",
    "totals_of",
    "vectors_of",
]

Ints = NDArray[np.int64]
Array = NDArray[np.float64]


class Task(NamedTuple):
    """What to do with each block of a source: all that a worker needs to know."""

    chart: Chart
    region: Region
    shape: Shape
    name: str
    kernels: str | None = None
    explain: bool = True  # whether to say what is wrong with an unusable record
    classes: tuple[Any, ...] | None = None  # the public list of labels
    ranges: Array | None = None  # (p, 2), public ranges of covariates
    allow_none: bool = False  # whether no records at all are a dataset, too
    key: int = 0  # of the coins that choose records (:mod:`.coins`)
    files: tuple[tuple[str, str], ...] = ()  # that columns were read from, for messages


class Beside(NamedTuple):
    """What stands beside the records of a block, ready for use."""

    person: NDArray[Any] | None = None
    label: NDArray[np.intp] | None = None  # places in the task's classes, or -1
    x: Array | None = None  # (m, p), covariates brought to [-1, 1]


def beside_of(block: Any, task: Task) -> tuple[Beside, Fault]:
    """The columns of a block, and the first record whose label is none of the classes.

    A covariate outside its public range counts as the nearest end of it, one that is no
    number as its middle: what becomes of it depends on that record alone.
    """
    columns = block.beside if isinstance(block, Block) else {}
    person = spelt(columns["person"]) if "person" in columns else None
    label, fault, x = None, None, None
    if task.classes is not None:
        given = np.asarray(columns["label"])
        label = places_of(given, task.classes)
        bad = np.flatnonzero(label < 0) if task.explain else np.empty(0)
        if bad.size:
            fault = _no_class(int(bad[0]), given, task)
    if task.ranges is not None:
        numbers, unread = numbers_of(np.asarray(columns["x"]), len(task.ranges))
        x = _scaled(numbers, task.ranges)
        if task.explain and unread.any():
            fault = _no_numbers(int(np.argmax(unread)), task)
    return Beside(person, label, x), fault


def _no_class(place: int, given: NDArray[Any], task: Task) -> Unusable:
    file = dict(task.files).get("label")
    label = f"label {given[place]!s:.40}" + ("" if file is None else f" in {file}")
    return Unusable(
        place,
        f"has {label}, which is none of the classes",
        f"name all labels in {named('classes')}, or pass {named('on_invalid', 'center')}: such "
        "records count in no class, and stay among the n records",
    )


def _no_numbers(place: int, task: Task) -> Unusable:
    assert task.ranges is not None
    return Unusable(
        place,
        f"has covariates that are not {len(task.ranges)} number(s), one per range",
        f"{named('on_invalid', 'center')} takes the middle of its range for what is no number",
    )


def _scaled(x: Array, ranges: Array) -> Array:
    middle, half = ranges.mean(axis=1), 0.5 * (ranges[:, 1] - ranges[:, 0])
    scaled = (x - middle) / half  # what overflows is outside its range
    return np.asarray(np.clip(np.nan_to_num(scaled, nan=0.0), -1.0, 1.0))


class Vectors(NamedTuple):
    """The vectors of one block, its number of records, and its first unusable one."""

    Y: Array
    m: int
    fault: Fault
    beside: Beside  # no default: vectors made of others must say what became of it

    @property
    def rows(self) -> Rows:
        return Rows(self.Y, label=self.beside.label, x=self.beside.x)


class Totals(NamedTuple):
    """Exact totals of one block, its number of records, and its first unusable one."""

    totals: list[Ints]
    m: int
    fault: Fault


@quiet
def vectors_of(block: Any, task: Task) -> Vectors:
    """Vectors of one block, unusable records at the region's centre."""
    pieces, m = [], 0
    columns, fault = beside_of(block, task)
    places: list[Any] = []
    for part in split(block, task.shape, task.name, task.chart.kinds):
        Y, status = task.chart.vectors(
            part.stack, task.region, kernels_for(part.stack, task.kernels)
        )
        pieces.append(Y)
        places.append(part.places)
        m += len(Y)
        fault = first_fault(fault, fault_of(part, status, task.explain))
    if len(pieces) == 1:
        return Vectors(pieces[0], m, fault, columns)
    together = np.concatenate(pieces)
    order = on_the_side_of(np.argsort(np.concatenate(places)), together)
    return Vectors(together[order], m, fault, columns)


def nobody(task: Task) -> Vectors:
    """The vectors of no records at all."""
    label = None if task.classes is None else np.zeros(0, np.intp)
    x = None if task.ranges is None else np.zeros((0, len(task.ranges)))
    return Vectors(np.zeros((0, len(task.region.center))), 0, None, Beside(label=label, x=x))


def totals_of(block: Any, task: Task, queries: Sequence[Query]) -> Totals:
    """Exact totals of queries over one block of records."""
    only = queries[0]
    if len(queries) == 1 and isinstance(only, VectorSum) and only.is_whole(task.region):
        kernels = kernels_for(wanted=task.kernels) if task.kernels else None
        total, m, fault = sum_block(
            block, task.chart, task.region, task.shape, task.name, kernels, task.explain
        )
        return Totals([only.counted(total, m)], m, fault)
    vectors = vectors_of(block, task)
    totals = [totals_of_vectors(vectors, query, task.kernels) for query in queries]
    return Totals(totals, vectors.m, vectors.fault)


@quiet
def totals_of_vectors(vectors: Vectors, query: Query, kernels: str | None) -> Ints:
    """Exact total of a query over vectors that were kept."""
    return query.over(vectors.rows, kernels_for(vectors.Y, kernels))


@quiet
def turn(vectors: Vectors, axes: Array, kernels: str | None, reuse: bool = False) -> Vectors:
    """Vectors in coordinates along other axes; ``reuse`` gives up those given."""
    Y, zero = vectors.Y, np.zeros(len(axes))
    turned = kernels_for(Y, kernels).rotate(Y, zero, axes, out=Y if reuse else None)
    return vectors._replace(Y=turned)


def thinned(blocks: Sequence[Vectors], places: Sequence[NDArray[np.intp]]) -> Vectors:
    """Some vectors of each block, side by side as those of one: they are seen often."""
    first, m = blocks[0].Y, sum(map(len, places))
    Y, start = np.empty_like(first, shape=(m, first.shape[1])), 0
    for vectors, some in zip(blocks, places, strict=True):
        take_rows(vectors.Y, some, Y[start : start + len(some)])
        start += len(some)
    columns: Any = (
        None
        if parts[0] is None
        else np.concatenate([a[i] for a, i in zip(parts, places, strict=True)])
        for parts in zip(*(vectors.beside for vectors in blocks), strict=True)
    )
    return Vectors(Y, m, None, Beside(*columns))


def part_of(vectors: Vectors, places: NDArray[np.intp]) -> Vectors:
    """Some vectors of one block."""
    return thinned([vectors], [places])


def counted(vectors: Vectors) -> Totals:
    """What is known of vectors without looking at them."""
    return Totals([], vectors.m, vectors.fault)


class Held(ABC):
    """Vectors of all records, or of a public part of them, kept for further queries.

    Attributes
    ----------
    n : int
        Number of records.
    m : int
        Number of records that queries with ``whole=False`` look at.
    d : int
        Dimension of the vectors.
    """

    n: int
    m: int
    d: int

    @abstractmethod
    def look_at(self, one_in: int) -> None:
        """Let queries with ``whole=False`` look at one in so many records.

        Which ones is left to coins (:mod:`.coins`); where all must be looked at, this
        does nothing.
        """

    @abstractmethod
    def total(self, query: Query, whole: bool = False) -> Ints:
        """Exact total of a query over the part that is kept, or over all."""

    @abstractmethod
    def turned(self, axes: Array) -> "Held":
        """Vectors in coordinates along other axes, yᵀ·axes, to use in place of these.

        Turning once costs as much as asking one query along those axes.
        """

    def unlabelled(self) -> "Held":
        """The same records, or persons, one row each: for queries without classes."""
        return self
