"""An engine: where the records are, and where work on them runs.

Work is a function of one block of records, sent to where the block is; what comes back
is integers, a count and at most one fault. Both engines run the very same functions.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.blocks import invalid_matrix, record_marks, split
from spdp.charts import Chart
from spdp.choices import OnInvalid
from spdp.data.source import Source
from spdp.errors import DataError
from spdp.kernels import Region, kernels_for
from spdp.kernels.place import beside
from spdp.lattice import MAX_RECORDS, Fault, fault_of, first_fault, sum_block
from spdp.privacy.ledger import Ledger, fingerprint_text
from spdp.progress import track
from spdp.queries import Query, VectorSum

__all__ = ["Engine", "Held"]

Ints = NDArray[np.int64]
Array = NDArray[np.float64]


class Task(NamedTuple):
    """What to do with each block of a source: all that a worker needs to know."""

    chart: Chart
    region: Region
    k: int
    name: str
    kernels: str | None = None
    explain: bool = True  # whether to say what is wrong with an unusable record


class Vectors(NamedTuple):
    """The vectors of one block, its number of records, and its first unusable one."""

    Y: Array
    m: int
    fault: Fault


class Totals(NamedTuple):
    """Exact totals of one block, its number of records, and its first unusable one."""

    totals: list[Ints]
    m: int
    fault: Fault


def vectors_of(block: Any, task: Task) -> Vectors:
    """Vectors of one block, unusable records at the region's centre."""
    pieces, m, fault = [], 0, None
    places: list[Any] = []
    for part in split(block, task.k, task.name):
        Y, status = task.chart.vectors(
            part.stack, task.region, kernels_for(part.stack, task.kernels)
        )
        pieces.append(Y)
        places.append(part.places)
        m += len(Y)
        fault = first_fault(fault, fault_of(part, status, task.explain))
    if len(pieces) == 1:
        return Vectors(pieces[0], m, fault)
    together = np.concatenate(pieces)
    order = beside(np.argsort(np.concatenate(places)), together)
    return Vectors(together[order], m, fault)


def totals_of(block: Any, task: Task, queries: Sequence[Query]) -> Totals:
    """Exact totals of queries over one block of records."""
    only = queries[0]
    if len(queries) == 1 and isinstance(only, VectorSum) and only.is_whole(task.region):
        kernels = kernels_for(wanted=task.kernels) if task.kernels else None
        total, m, fault = sum_block(
            block, task.chart, task.region, task.k, task.name, kernels, task.explain
        )
        return Totals([only.counted(total, m)], m, fault)
    vectors = vectors_of(block, task)
    totals = [totals_of_vectors(vectors, query, task.kernels) for query in queries]
    return Totals(totals, vectors.m, vectors.fault)


def totals_of_vectors(vectors: Vectors, query: Query, kernels: str | None) -> Ints:
    """Exact total of a query over vectors that were kept."""
    return query.total(vectors.Y, kernels_for(vectors.Y, kernels))


def turn(vectors: Vectors, axes: Array, kernels: str | None) -> Vectors:
    """Vectors in coordinates along other axes."""
    chosen = kernels_for(vectors.Y, kernels)
    return vectors._replace(Y=chosen.rotate(vectors.Y, np.zeros(len(axes)), axes))


def thinned(vectors: Vectors, stride: int) -> Vectors:
    """Every so many-th of a block's vectors."""
    Y = vectors.Y[::stride].copy()
    return Vectors(Y, len(Y), None)


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
    def look_at(self, stride: int) -> None:
        """Let queries with ``whole=False`` look at every so many-th record only."""

    @abstractmethod
    def total(self, query: Query, whole: bool = False) -> Ints:
        """Exact total of a query over the part that is kept, or over all."""

    @abstractmethod
    def turned(self, axes: Array) -> "Held":
        """Vectors in coordinates along other axes, yᵀ·axes, to use in place of these.

        Turning once costs as much as asking one query along those axes.
        """


class Engine(ABC):
    """Runs work on the blocks of a source, in order."""

    kernels: str | None = None

    @abstractmethod
    def each(self, source: Source, work: Any, *args: Any) -> Iterator[Any]:
        """``work(block, *args)`` for every block, in order."""

    @abstractmethod
    def hold(
        self,
        source: Source,
        chart: Chart,
        region: Region,
        on_invalid: OnInvalid,
        keep_bytes: int,
    ) -> Held:
        """Read a source once and keep its vectors where they are, if they fit."""

    def task(self, source: Source, chart: Chart, region: Region, on_invalid: OnInvalid) -> Task:
        """What to do with the blocks of a source."""
        explain = on_invalid is OnInvalid.RAISE
        return Task(chart, region, source.k, source.name, self.kernels, explain)

    def total(
        self,
        source: Source,
        chart: Chart,
        region: Region,
        queries: Sequence[Query],
        on_invalid: OnInvalid,
        allow_none: bool = False,
    ) -> tuple[list[Ints], int]:
        """Exact totals of queries over all records, and their number: one pass.

        With ``allow_none`` no records at all are a dataset too.
        """
        task = self.task(source, chart, region, on_invalid)
        results = self.each(source, totals_of, task, list(queries))
        sums, n = collect(source, results, allow_none)
        if not sums:
            nobody = np.empty((0, source.k, source.k))
            sums = totals_of(nobody, task, queries).totals
        return sums, n

    def check_data(self, source: Source, ledger: Ledger) -> None:
        """Refuse data that are not those a ledger is bound to."""
        if not ledger.is_bound:
            return
        if not source.rereadable:
            raise DataError(
                f"{ledger.path}: bound to its data, but {source.name} can be read only once "
                "and cannot be checked first"
            )
        ledger.check_mark(self.fingerprint(source, ledger.key), source.name)

    def fingerprint(self, source: Source, key: bytes) -> str:
        """Keyed fingerprint of a source's records, the same for any blocks."""
        total, n = 0, 0
        for part, m in self.each(source, record_marks, source.k, source.name, key):
            total, n = total + part, n + m
        return fingerprint_text(total, n, source.k)


def collect(
    source: Source, results: Iterable[Totals], allow_none: bool = False
) -> tuple[list[Ints], int]:
    """Add up results block by block.

    Raise for an unusable record unless it is centred.
    """
    sums: list[Ints] = []
    n = 0
    with track("reading records", source.n) as advance:
        for totals, m, fault in results:
            if fault is not None:  # only where the policy is to raise
                raise invalid_matrix(fault[1], (n + fault[0],))
            n += m
            if n > MAX_RECORDS:
                raise DataError(
                    f"{source.name} has more than 2**32 records; sums would not be exact"
                )
            sums = [a + b for a, b in zip(sums, totals, strict=True)] if sums else totals
            advance(m)
    if n == 0 and not allow_none:
        raise DataError(f"{source.name} holds no records")
    return sums, n
