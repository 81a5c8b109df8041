r"""One vector per person: a person with many records counts once.

A person's contribution is the mean of the person's own clipped vectors. Codes of all
records are added up person by person, exactly, and divided by the number of the
person's records, toward zero.

*Enforced.* A record's code has norm at most 2³⁰, so the sum of m of them has norm at
most m·2³⁰, and divided toward zero by m at most 2³⁰: whatever a person's records are
and however many, the person is one point of the ball. Queries see that point alone, and
check its norm in integers once more. Persons are never subsampled, so that the order
of their rows matters to no answer. *Assumed.* Ids are complete: all records of one
person carry one id, here and at every site. *Therefore* replacing a person with all
their records, or adding or removing one, changes one row, and every query's sensitivity
holds with persons in place of records.

Sums are integers: the table is the same for any order of records, blocks and workers.
"""

import tempfile
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.data.batching import records_of, split
from spdp.engines import store
from spdp.engines.store import Task, VectorStore
from spdp.errors import DataError
from spdp.kernels import kernels_for
from spdp.kernels.arrays import Array, Ints, to_host
from spdp.kernels.base import RECORD_NORM
from spdp.queries import WHOLE, Query, Rows, toward_zero

DENSE = 1 << 23  # ids from 0 to here are looked up in an array
GAPS = 4  # a range of ids up to so many times their number is tabulated, not sorted


def distinct(ids: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """The ids that occur, and for each entry the place of its id among them."""
    if ids.dtype.kind == "O":
        return _distinct_objects(ids)
    if ids.dtype.kind == "i" and len(ids):
        low, high = int(ids.min()), int(ids.max())
        if high - low < GAPS * len(ids):
            shifted = np.subtract(ids, low, dtype=np.intp)
            seen = np.zeros(high - low + 1, bool)
            seen[shifted] = True
            place = np.cumsum(seen) - 1
            return np.flatnonzero(seen) + low, place.take(shifted)
    found, rows = np.unique(ids, return_inverse=True)
    return found, rows


def _distinct_objects(ids: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    places: dict[Any, int] = {}
    try:
        rows = [places.setdefault(value, len(places)) for value in ids.tolist()]
    except TypeError:
        raise DataError("groups hold ids that cannot be compared; use numbers or texts") from None
    found = np.empty(len(places), object)
    found[:] = list(places)
    return found, np.array(rows, np.intp)


class Roster:
    """Row numbers of persons, in the order in which they are first seen."""

    def __init__(self) -> None:
        self._dense = np.full(0, -1, np.intp)
        self._others: dict[Any, int] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def rows(self, ids: NDArray[Any]) -> NDArray[np.intp]:
        """Row of each of these distinct ids; new ones get the next rows."""
        if ids.dtype.kind == "i" and len(ids) and ids.min() >= 0 and ids.max() < DENSE:
            return self._dense_rows(ids)
        return np.array([self._row(value) for value in ids.tolist()], np.intp)

    def _dense_rows(self, ids: NDArray[np.int64]) -> NDArray[np.intp]:
        self._reach(int(ids.max()))
        rows = self._dense[ids]
        new = rows < 0
        rows[new] = self._count + np.arange(np.count_nonzero(new))
        self._dense[ids] = rows
        self._count += int(np.count_nonzero(new))
        return rows

    def _row(self, value: Any) -> int:
        if isinstance(value, int) and 0 <= value < DENSE:
            return int(self._dense_rows(np.array([value]))[0])
        row = self._others.setdefault(value, self._count)
        self._count += row == self._count
        return row

    def _reach(self, largest: int) -> None:
        if largest >= len(self._dense):
            more = max(2 * len(self._dense), largest + 1) - len(self._dense)
            self._dense = np.append(self._dense, np.full(more, -1, np.intp))


SPILL_BYTES = 256 << 20  # a larger table lies in a file
ROWS_AT_ONCE = 1 << 16  # persons turned into vectors at a time


class Cells(NamedTuple):
    """Sums of one block's codes, by person (and class)."""

    ids: NDArray[Any]  # (u,), distinct persons
    sums: Ints  # (u, C·D)
    counts: Ints  # (u, C)
    records: Ints  # (u,), including those of no class
    m: int
    fault: store.Fault


@store.quiet
def cells_of(block: Any, task: Task) -> Cells:
    """Add up the codes of one block's records person by person."""
    columns, fault = store.columns_of(block, task)
    assert columns.person is not None
    m = len(columns.person)
    ids, cells = distinct(columns.person)
    records = np.bincount(cells, minlength=len(ids))
    classes = 1 if task.classes is None else len(task.classes)
    if columns.label is not None:
        cells = np.where(columns.label < 0, -1, cells * classes + columns.label)
    d, p = len(task.region.center), 0 if columns.x is None else columns.x.shape[1]
    sums = np.zeros((len(ids) * classes, d + p), np.int64)
    if columns.x is None:
        fault = store.first_fault(fault, _add_codes(records_of(block), task, cells, sums))
    else:
        Q, unusable = _codes(records_of(block), task)
        Q = np.hstack([Q, np.rint(columns.x * RECORD_NORM).astype(np.int64)])
        _add(Q, cells, sums)
        fault = store.first_fault(fault, unusable)
    counts = records[:, None]
    if columns.label is not None:
        counts = np.bincount(cells[cells >= 0], minlength=len(sums)).reshape(len(ids), classes)
    return Cells(ids, sums.reshape(len(ids), classes * (d + p)), counts, records, m, fault)


def _add(Q: Ints, cells: NDArray[np.intp], sums: Ints) -> None:
    """Add codes to their cells; those of no class, -1, are left out."""
    if cells.min(initial=0) < 0:
        Q, cells = Q[cells >= 0], cells[cells >= 0]
    kernels_for(Q).add_rows(Q, cells, sums)


def _add_codes(records: Any, task: Task, cells: NDArray[np.intp], sums: Ints) -> store.Fault:
    """Add the codes of records to their cells; returns the first invalid one."""
    fault: store.Fault = None
    for part in split(records, task.shape, task.name, task.chart.kinds):
        kernels = kernels_for(part.stack, task.kernels)
        rows = cells if part.places is None else cells[part.places]
        status = task.chart.add_codes(part.stack, task.region, kernels, rows, sums)
        fault = store.first_fault(fault, store.fault_of(part, status, task.explain))
    return fault


def _codes(records: Any, task: Task) -> tuple[Ints, store.Fault]:
    """Lattice points (m, d) of records, and the first invalid one."""
    done, fault = store.each_part(records, task, task.chart.encode)
    return to_host(store.joined(done)), fault


class Persons:
    """What every person contributes; grows as blocks come in.

    A person has a cell in each class (a single one without classes), which holds the
    coordinates of a vector and the covariates.
    """

    def __init__(self, task: Task) -> None:
        self.region = task.region
        self.labelled = task.classes is not None
        classes = 1 if task.classes is None else len(task.classes)
        width = len(task.region.center) + (0 if task.ranges is None else len(task.ranges))
        self.classes, self.width = classes, width
        self.roster = Roster()
        self._sums: Ints = np.zeros((0, classes * width), np.int64)
        self._counts: Ints = np.zeros((0, classes), np.int64)
        self._records: Ints = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self.roster)

    def add(self, cells: Cells) -> None:
        """Add the cells of a block."""
        rows = self.roster.rows(cells.ids)
        if len(self.roster) > len(self._records):
            self._grow(max(len(self.roster), 2 * len(self._records)))
        kernels_for().add_rows(cells.sums, rows, self._sums)
        self._records[rows] += cells.records
        if self.labelled:
            self._counts[rows] += cells.counts

    def _grow(self, count: int) -> None:
        self._sums = _enlarged(self._sums, count)
        if self.labelled:
            self._counts = _enlarged(self._counts, count)
        self._records = _enlarged(self._records, count)

    def rows(self, most: int | None = None, merged: bool = False) -> Iterator[Rows]:
        """Persons as rows for queries: one each, or one in each class they are in.

        With ``most``, a person counts min(m, most)/most for m records. With ``merged``,
        a person is one row, of the records of all classes; a person without a record in
        any class has no row.
        """
        for start in range(0, max(len(self), 1), ROWS_AT_ONCE):
            stop = min(start + ROWS_AT_ONCE, len(self))
            yield self._rows(slice(start, stop), most, merged)

    def _rows(self, some: slice, most: int | None, merged: bool) -> Rows:
        records = self._records[some]
        counts = self._counts[some] if self.labelled else records[:, None]
        sums = self._sums[some].reshape(len(records), self.classes, self.width)
        labelled = self.labelled and not merged
        if merged:
            counts, sums = counts.sum(axis=1, keepdims=True), sums.sum(axis=1, keepdims=True)
        person, label = np.nonzero(counts)
        m = counts[person, label]
        mean = toward_zero(sums[person, label], m[:, None])
        d = len(self.region.center)
        Y = self.region.center + mean[:, :d] * (self.region.radius / RECORD_NORM)
        share = None
        if labelled or most is not None:
            share = _share(m, records[person], most)
        x = mean[:, d:] / RECORD_NORM if self.width > d else None
        return Rows(Y, label if labelled else None, share, x)


def _share(m: Ints, records: Ints, most: int | None) -> Ints:
    """m of a person's records, in units of 1/:data:`WHOLE` of a person, rounded down.

    Shares of one person add up to at most :data:`WHOLE`.
    """
    share = m * WHOLE // records
    return share if most is None else share * np.minimum(records, most) // most


def _enlarged(table: Ints, count: int) -> Ints:
    """A longer copy, in memory or, where it would be large, in an unnamed file."""
    shape = (count, *table.shape[1:])
    size = 8 * int(np.prod(shape))
    if size > SPILL_BYTES:
        with tempfile.TemporaryFile() as file:  # gone when the table is
            larger: Ints = np.memmap(file, np.int64, "w+", shape=shape)
    else:
        larger = np.zeros(shape, np.int64)
    larger[: len(table)] = table
    return larger


# reads records again: the table of persons in the chart at the point with this map W
Read = Callable[[Array], Persons]


class PersonStore(VectorStore):
    """Vectors of persons, made from their table whenever they are asked for."""

    def __init__(
        self,
        persons: Persons,
        kernels: str | None,
        most: int | None = None,
        merged: bool = False,
        read: "Read | None" = None,
    ) -> None:
        self.persons, self._kernels, self._most, self._merged = persons, kernels, most, merged
        self._read, self._at = read, np.eye(0)  # reads persons anew, seen from another point
        self._axes: Array | None = None
        self.n = self.m = len(persons)
        self.d = len(persons.region.center)

    def rotated(self, axes: Array) -> "PersonStore":
        other = copy(self)
        other._axes = axes if self._axes is None else self._axes @ axes
        return other

    def carried(self, W: Array) -> "PersonStore":
        """A person's vector is the mean of their records' vectors, seen from there.

        It does not follow from their mean seen from here: records are read again.
        """
        assert self._read is not None
        at = W @ self._at if self._at.size else W
        other = PersonStore(self._read(at), self._kernels, self._most, self._merged, self._read)
        other._at = at
        return other

    def pooled(self) -> "PersonStore":
        other = copy(self)
        other._merged = True
        return other

    @store.quiet
    def total(self, query: Query[Any], subsampled: bool = False) -> Ints:
        total: Any = 0
        for rows in self.persons.rows(self._most, self._merged):  # one block of none, at least
            if self._axes is not None:
                rows = store.rotate(rows, self._axes, self._kernels)
            total = total + query.total(rows, kernels_for(wanted=self._kernels))
        return np.asarray(total)
