"""Work on blocks of records, and the stores that answer queries with exact totals.

*Enforced.* Exact totals stay in a store and go nowhere but into an account's answers
(:meth:`spdp.privacy.account.Account.ask`). An overflow or underflow would reveal
something of a record: it affects that record's code alone. It raises no warning, nor an
error where the caller's own np.errstate asks for errors.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.charts import Chart
from spdp.charts.riemann import CarriedChart
from spdp.data.batching import Block, Part, Shape, describe_fault, split
from spdp.data.columns import canonical_ids, numbers_of, places_of
from spdp.errors import named
from spdp.kernels import kernels_for
from spdp.kernels.arrays import Array, Ints, Statuses, on_device, take_rows, to_device_of, to_host
from spdp.kernels.base import Region
from spdp.queries import Query, Rows
from spdp.queries.sums import VectorSum, WholeSum

MAX_RECORDS = 1 << 32  # sums of more might not be exact
FEW_BYTES = 1 << 20  # of rows that are worth bringing from a device: some 0.1 ms
SAME_AXES = 1e-12  # a rotation and its reverse, up to rounding
quiet = np.errstate(all="ignore")  # decorates every function that computes with records


class Unusable(NamedTuple):
    """The first invalid record of a block, for the holder of the data."""

    place: int  # in the block
    why: str
    remedy: str = ""  # of its own; else that of invalid matrices


Fault = Unusable | None


def fault_of(part: Part, status: Statuses, explain: bool = True) -> Fault:
    """The first invalid record of a part, by its place in the block.

    None, without a search, where ``explain`` is false.
    """
    if not (explain and len(status) and status.max()):
        return None
    first = int(np.flatnonzero(status)[0])
    text = part.fault or describe_fault(int(status[first]), part.stack[first])
    return Unusable(part.place(first), text)


def first_fault(a: Fault, b: Fault) -> Fault:
    """The one of two faults that comes first in the block."""
    return a if b is None or (a is not None and a.place < b.place) else b


class Task(NamedTuple):
    """What to do with each block of a source: all that a worker needs to know."""

    chart: Chart
    region: Region
    shape: Shape
    name: str
    kernels: str | None = None
    explain: bool = True  # whether to say what is wrong with an invalid record
    classes: tuple[Any, ...] | None = None  # the public list of labels
    ranges: Array | None = None  # (p, 2), public ranges of covariates
    allow_none: bool = False  # whether a dataset may have no records
    key: int = 0  # of the secret subsample (:mod:`.subsampling`)
    files: tuple[tuple[str, str], ...] = ()  # that columns were read from, for messages

    def seen(self, W: Array) -> "Task":
        """The task with records seen from another point, W from the chart's own."""
        chart = CarriedChart(self.chart, self.region, W)
        return self._replace(chart=chart, region=chart.region)


class Columns(NamedTuple):
    """The columns of a block, ready for use."""

    person: NDArray[Any] | None = None
    label: NDArray[np.intp] | None = None  # places in the task's classes, or -1
    x: Array | None = None  # (m, p), covariates brought to [-1, 1]


def columns_of(block: Any, task: Task) -> tuple[Columns, Fault]:
    """The columns of a block, and the first record whose label is none of the classes.

    A covariate outside its public range becomes the nearest end of it, one that is not
    a number its middle: what becomes of it depends on that record alone.
    """
    given = block.columns if isinstance(block, Block) else {}
    person = canonical_ids(given["person"]) if "person" in given else None
    label, fault, x = None, None, None
    if task.classes is not None:
        labels = np.asarray(given["label"])
        label = places_of(labels, task.classes)
        bad = np.flatnonzero(label < 0) if task.explain else np.empty(0)
        if bad.size:
            fault = _no_class(int(bad[0]), labels, task)
    if task.ranges is not None:
        numbers, unread = numbers_of(np.asarray(given["x"]), len(task.ranges))
        x = _scaled(numbers, task.ranges)
        if task.explain and unread.any():
            fault = _no_numbers(int(np.argmax(unread)), task)
    return Columns(person, label, x), fault


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
        f"{named('on_invalid', 'center')} replaces what is not a number by its range's middle",
    )


def _scaled(x: Array, ranges: Array) -> Array:
    middle, half = ranges.mean(axis=1), 0.5 * (ranges[:, 1] - ranges[:, 0])
    scaled = (x - middle) / half  # what overflows is outside its range
    return np.asarray(np.clip(np.nan_to_num(scaled, nan=0.0), -1.0, 1.0))


class Vectors(NamedTuple):
    """The rows of one block, its number of records, and its first invalid one."""

    rows: Rows
    m: int
    fault: Fault

    def counted(self) -> "Totals":
        """Their number and first fault, without the vectors."""
        return Totals(None, self.m, self.fault)


class Totals(NamedTuple):
    """Exact total of one block, its number of records, and its first invalid one."""

    total: Any  # integers; None where records are only counted
    m: int
    fault: Fault


Done = list[tuple[Part, Any]]


def each_part(
    block: Any, task: Task, work: Callable[..., tuple[Any, Statuses]]
) -> tuple[Done, Fault]:
    """``work(stack, region, kernels)`` on the records of each dtype, and what it found.

    ``work`` is a method of the chart. The first invalid record comes second.
    """
    done: Done = []
    fault: Fault = None
    for part in split(block, task.shape, task.name, task.chart.kinds):
        stack, kernels = part.stack, task.kernels
        if not task.chart.works_on_device and on_device(stack):
            stack, kernels = to_host(stack), None
        result, status = work(stack, task.region, kernels_for(stack, kernels))
        done.append((part, result))
        fault = first_fault(fault, fault_of(part, status, task.explain))
    return done, fault


def joined(done: Done) -> Any:
    """One row for each record, in the order of the block."""
    if len(done) == 1:
        return done[0][1]
    rows = np.concatenate([result for _, result in done])
    places = np.concatenate([part.places for part, _ in done])
    return rows[to_device_of(np.argsort(places), rows)]


@quiet
def vectors_of(block: Any, task: Task) -> Vectors:
    """Vectors of one block, invalid records at the region's centre."""
    columns, fault = columns_of(block, task)
    done, invalid = each_part(block, task, task.chart.vectors)
    if not task.chart.works_on_device:  # vectors lie where the records do
        done = [(part, to_device_of(Y, part.stack)) for part, Y in done]
    Y = joined(done) if done else no_vectors(task).rows.Y
    rows = Rows(Y, label=columns.label, x=columns.x)
    return Vectors(rows, len(Y), first_fault(fault, invalid))


def no_vectors(task: Task) -> Vectors:
    """The vectors of no records at all."""
    label = None if task.classes is None else np.zeros(0, np.intp)
    x = None if task.ranges is None else np.zeros((0, len(task.ranges)))
    return Vectors(Rows(np.zeros((0, len(task.region.center))), label=label, x=x), 0, None)


@quiet
def sum_block(block: Any, task: Task) -> Totals:
    """Exact sum of one block's codes."""
    done, fault = each_part(block, task, task.chart.lattice_sum)
    zero = np.zeros(len(task.region.center), np.int64)
    return Totals(sum((q for _, q in done), zero), sum(len(p.stack) for p, _ in done), fault)


def totals_of(block: Any, task: Task, query: Query[Any]) -> Totals:
    """Exact total of a query over one block of records."""
    if isinstance(query, WholeSum) and _is_of(query, task.region):
        total, m, fault = sum_block(block, task)
        return Totals(query.counted(total, m) if query.weight else total, m, fault)
    rows, m, fault = vectors_of(block, task)
    return Totals(total_of_rows(rows, query, task.kernels), m, fault)


def _is_of(query: VectorSum, region: Region) -> bool:
    """Whether a sum over a whole domain is over this region: kernels sum over it."""
    center = query.frame.center
    same = center is region.center or np.array_equal(center, region.center)
    return same and query.radius == region.radius


@quiet
def total_of_rows(rows: Rows, query: Query[Any], kernels: str | None) -> Ints:
    """Exact total of a query over vectors that were kept."""
    if not query.works_on_device and on_device(rows.Y):
        rows, kernels = rows._replace(Y=to_host(rows.Y)), None
    return query.total(rows, kernels_for(rows.Y, kernels))


@quiet
def rotate(rows: Rows, axes: Array, kernels: str | None, reuse: bool = False) -> Rows:
    """Rows in coordinates along other axes; ``reuse`` overwrites those given."""
    zero, out = np.zeros(len(axes)), rows.Y if reuse else None
    return rows._replace(Y=kernels_for(rows.Y, kernels).rotate(rows.Y, zero, axes, out=out))


@quiet
def carry(rows: Rows, W: Array, kernels: str | None) -> Rows:
    """Rows of a curved metric, seen from another point (:mod:`spdp.charts.riemann`)."""
    return rows._replace(Y=kernels_for(rows.Y, kernels).carry(rows.Y, W))


class Moves:
    """Maps of vectors by released numbers, in order: rotations, and other points.

    Neighbouring maps of one kind become one, which float64 rounds otherwise than both.
    """

    def __init__(self) -> None:
        self.steps: list[tuple[str, Array]] = []

    def rotate(self, axes: Array) -> None:
        """Coordinates along other axes, after all moves before."""
        if self.steps and self.steps[-1][0] == "rotate":
            axes = self.steps.pop()[1] @ axes
            if np.allclose(axes, np.eye(len(axes)), rtol=0.0, atol=SAME_AXES):
                return
        self.steps.append(("rotate", axes))

    def carry(self, W: Array) -> None:
        """Vectors seen from another point, after all moves before."""
        if self.steps and self.steps[-1][0] == "carry":
            W = W @ self.steps.pop()[1]
        self.steps.append(("carry", W))

    def followed_by(self, other: "Moves") -> "Moves":
        """These moves and then those, none of them made one."""
        both = Moves()
        both.steps = [*self.steps, *other.steps]
        return both

    def apply(self, rows: Rows, kernels: str | None) -> Rows:
        """Rows after all moves; memory of those given may be used."""
        for kind, matrix in self.steps:
            if kind == "rotate":
                rows = rotate(rows, matrix, kernels, reuse=True)
            else:
                rows = carry(rows, matrix, kernels)
        return rows


def thinned(blocks: Sequence[Rows], places: Sequence[NDArray[np.intp]]) -> Rows:
    """Some rows of each block, copied into one block: they are queried often."""
    first, m = blocks[0].Y, sum(map(len, places))
    Y, start = np.empty_like(first, shape=(m, first.shape[1])), 0
    for rows, some in zip(blocks, places, strict=True):
        take_rows(rows.Y, some, Y[start : start + len(some)])
        start += len(some)
    columns: Any = (
        None
        if parts[0] is None
        else np.concatenate([a[i] for a, i in zip(parts, places, strict=True)])
        for parts in zip(*(rows[1:] for rows in blocks), strict=True)
    )
    return Rows(Y, *columns)


def at_hand(rows: Rows, kernels: str | None) -> tuple[Rows, str | None]:
    """Rows, and the name of their kernels: a device's rows, if few, in this memory.

    A pass over so few takes less time here than it takes to ask a device for one.
    """
    if not on_device(rows.Y) or rows.Y.nbytes > FEW_BYTES:
        return rows, kernels
    return rows._replace(Y=to_host(rows.Y)), None


class VectorStore(ABC):
    """Vectors of records, or of a secret subsample of them, that queries are asked of.

    Attributes
    ----------
    n : int
        Number of records (or persons); where it is private, a released estimate.
    m : int
        Number of records that queries with ``subsampled=True`` sum over.
    d : int
        Dimension of the vectors.
    """

    n: int
    m: int
    d: int

    @abstractmethod
    def total(self, query: Query[Any], subsampled: bool = False) -> Ints:
        """Exact total of a query over the subsample, or over all records."""

    @abstractmethod
    def rotated(self, axes: Array) -> "VectorStore":
        """Vectors in coordinates along other axes, yᵀ·axes, to use in place of these.

        Rotating once costs as much as asking one query along those axes.
        """

    def carried(self, W: Array) -> "VectorStore":
        """Vectors of a curved metric seen from another point, to use in place of these.

        W = G'⁻¹·G of the two points' factors (:mod:`spdp.charts.riemann`); coordinates
        are those that records have without a rotation.
        """
        raise TypeError(f"{type(self).__name__} cannot be seen from another point")

    def axes_for(self, axes: Array) -> Array:
        """The axes that will be used where these are asked for.

        Others in a study that is checked on another machine (:mod:`spdp.federated`):
        of equal eigenvalues, each machine finds eigenvectors of its own.
        """
        return axes

    def subsample(self, one_in: int) -> None:
        """Let queries with ``subsampled=True`` sum over about one in so many records.

        Which ones is secret (:mod:`.subsampling`). In stores that must never subsample
        this does nothing.
        """
        del one_in

    def pooled(self) -> "VectorStore":
        """The same records, or persons, one row each: for queries without classes."""
        return self


class ArrayStore(VectorStore):
    """Rows that are here already, as they are: for simulation."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.n = self.m = len(rows.Y)
        self.d = rows.Y.shape[1]

    def total(self, query: Query[Any], subsampled: bool = False) -> Ints:
        return total_of_rows(self.rows, query, None)

    def rotated(self, axes: Array) -> "ArrayStore":
        return ArrayStore(rotate(self.rows, axes, None))

    def carried(self, W: Array) -> "ArrayStore":
        return ArrayStore(carry(self.rows, W, None))

    def pooled(self) -> "ArrayStore":
        return ArrayStore(Rows(self.rows.Y))


class CountedStore(VectorStore):
    """Vectors of all records, and a released estimate n of their private number.

    *Enforced.* Records are never subsampled: one more of them would change which are
    drawn. *Therefore* what a search does depends on the number of records through
    its noisy answer alone.
    """

    def __init__(self, store: VectorStore, n: int) -> None:
        self.store = store
        self.n = self.m = n
        self.d = store.d

    def total(self, query: Query[Any], subsampled: bool = False) -> Ints:
        return self.store.total(query)

    def rotated(self, axes: Array) -> "CountedStore":
        return CountedStore(self.store.rotated(axes), self.n)

    def carried(self, W: Array) -> "CountedStore":
        return CountedStore(self.store.carried(W), self.n)

    def pooled(self) -> "CountedStore":
        return CountedStore(self.store.pooled(), self.n)


class SumStore(VectorStore):
    """An exact sum over the whole domain, computed elsewhere: it answers one query."""

    def __init__(self, total: Ints, n: int) -> None:
        self._total = total
        self.n = self.m = n
        self.d = len(total)

    def total(self, query: Query[Any], subsampled: bool = False) -> Ints:
        assert isinstance(query, WholeSum)
        return query.counted(self._total, self.n)

    def rotated(self, axes: Array) -> "SumStore":
        raise TypeError("a sum cannot be rotated before it is answered")
