r"""A person with many records counts once: the table of what each person contributes.

A person's contribution is the mean of the person's own clipped vectors. Codes of all
records are added up person by person, exactly, and divided by the number of the
person's records, toward zero.

*Enforced.* A record's code has norm at most 2³⁰, so the sum of m of them has norm at
most m·2³⁰, and divided toward zero by m at most 2³⁰: whatever a person's records are
and however many, the person is one point of the ball. Queries see that point alone, and
check its norm in integers once more. All persons are looked at: which of them were, if
it were a part, could depend on how they are ordered. *Assumed.* Ids are complete: all
records of one person carry one id, here and at every site. *Therefore* replacing a
person with all their records, or adding or removing one, changes one row, and every
query's sensitivity holds with persons in place of records.

Sums are integers: the table is the same for any order of records, blocks and workers.
"""

import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.engines.roster import Roster, distinct
from spdp.engines.task import Array, Fault, Held, Ints, Task, beside_of
from spdp.kernels import RECORD_NORM, kernels_for
from spdp.kernels.place import home
from spdp.lattice import fault_of, first_fault, quiet
from spdp.queries import WHOLE, Query, Rows
from spdp.stacks import records_of, split

__all__ = ["Cells", "HeldPeople", "People", "cells_of"]

SPILL_BYTES = 256 << 20  # a larger table lies in a file
ROWS_AT_ONCE = 1 << 16  # persons turned into vectors at a time


class Cells(NamedTuple):
    """Sums of one block's codes, by person (and class)."""

    ids: NDArray[Any]  # (u,), distinct persons
    sums: Ints  # (u, C·D)
    counts: Ints  # (u, C)
    records: Ints  # (u,), those of no class among them
    m: int
    fault: Fault


@quiet
def cells_of(block: Any, task: Task) -> Cells:
    """Add up the codes of one block's records person by person."""
    columns, fault = beside_of(block, task)
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
        fault = first_fault(fault, _add_codes(records_of(block), task, cells, sums))
    else:
        Q, unusable = _codes(records_of(block), task)
        Q = np.hstack([Q, np.rint(columns.x * RECORD_NORM).astype(np.int64)])
        _add(Q, cells, sums)
        fault = first_fault(fault, unusable)
    counts = records[:, None]
    if columns.label is not None:
        counts = np.bincount(cells[cells >= 0], minlength=len(sums)).reshape(len(ids), classes)
    return Cells(ids, sums.reshape(len(ids), classes * (d + p)), counts, records, m, fault)


def _add(Q: Ints, cells: NDArray[np.intp], sums: Ints) -> None:
    """Add codes to their cells; those of no class, -1, to none."""
    if cells.min(initial=0) < 0:
        Q, cells = Q[cells >= 0], cells[cells >= 0]
    kernels_for(Q).add_rows(Q, cells, sums)


def _add_codes(records: Any, task: Task, cells: NDArray[np.intp], sums: Ints) -> Fault:
    """Add the codes of records to their cells; gives the first unusable one."""
    fault: Fault = None
    for part in split(records, task.shape, task.name, task.chart.kinds):
        kernels = kernels_for(part.stack, task.kernels)
        rows = cells if part.places is None else cells[part.places]
        status = task.chart.add_codes(part.stack, task.region, kernels, rows, sums)
        fault = first_fault(fault, fault_of(part, status, task.explain))
    return fault


def _codes(records: Any, task: Task) -> tuple[Ints, Fault]:
    """Lattice points (m, d) of records, and the first unusable one."""
    pieces: list[Ints] = []
    places: list[Any] = []
    fault: Fault = None
    for part in split(records, task.shape, task.name, task.chart.kinds):
        kernels = kernels_for(part.stack, task.kernels)
        codes, status = task.chart.encode(part.stack, task.region, kernels)
        pieces.append(home(codes))
        places.append(part.places)
        fault = first_fault(fault, fault_of(part, status, task.explain))
    if len(pieces) == 1:
        return pieces[0], fault
    return np.concatenate(pieces)[np.argsort(np.concatenate(places))], fault


class People:
    """What every person contributes; grows as blocks come in.

    A person has a cell in each class (one without classes), whose coordinates are those
    of a vector, and the covariates.
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

        With ``most``, a person counts min(m, most)/most for m records. ``merged``
        persons are one row each, of the records of all classes; one whose records have
        no class is none.
        """
        for start in range(0, max(len(self), 1), ROWS_AT_ONCE):
            stop = min(start + ROWS_AT_ONCE, len(self))
            yield self._rows(slice(start, stop), most, merged)

    def nobody(self) -> Rows:
        """No rows at all."""
        return self._rows(slice(0, 0), None, False)

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


def toward_zero(a: Ints, b: Ints) -> Ints:
    """a/b for b > 0, rounded toward zero."""
    return np.asarray(np.sign(a) * (np.abs(a) // b))


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


class HeldPeople(Held):
    """Vectors of persons, made from their table whenever they are asked for."""

    def __init__(
        self,
        people: People,
        kernels: str | None,
        most: int | None = None,
        merged: bool = False,
    ) -> None:
        self.people, self._kernels, self._most, self._merged = people, kernels, most, merged
        self._axes: Array | None = None
        self.n = self.m = len(people)
        self.d = len(people.region.center)

    def look_at(self, one_in: int) -> None:
        """All persons are looked at, always (see this module's text)."""

    def turned(self, axes: Array) -> "HeldPeople":
        other = HeldPeople(self.people, self._kernels, self._most, self._merged)
        other._axes = axes if self._axes is None else self._axes @ axes
        return other

    def unlabelled(self) -> "HeldPeople":
        other = HeldPeople(self.people, self._kernels, self._most, merged=True)
        other._axes = self._axes
        return other

    @quiet
    def total(self, query: Query, whole: bool = False) -> Ints:
        nobody = query.over(self._seen(self.people.nobody()), kernels_for(wanted=self._kernels))
        return np.asarray(sum(self._totals(query), start=nobody))

    def _totals(self, query: Query) -> Iterator[Ints]:
        kernels = kernels_for(wanted=self._kernels)
        for rows in self.people.rows(self._most, self._merged):
            yield query.over(self._seen(rows), kernels)

    def _seen(self, rows: Rows) -> Rows:
        """Rows in coordinates along the axes."""
        if self._axes is None:
            return rows
        kernels = kernels_for(wanted=self._kernels)
        return rows._replace(Y=kernels.rotate(rows.Y, np.zeros(self.d), self._axes))
