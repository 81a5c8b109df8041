"""An engine: where the records are, and where work on them runs.

Work is a function of one block of records, sent to where the block is; what comes back
is integers, a count and at most one fault. All engines run the very same functions.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from spdp.charts import Chart
from spdp.data.batching import Block, check_kind, record_marks
from spdp.data.progress import track
from spdp.data.source import Source
from spdp.engines import store
from spdp.engines.grouping import Persons, PersonStore, cells_of
from spdp.engines.store import Task, VectorStore
from spdp.errors import DataError, InvalidMatrixError, ParameterError, named
from spdp.kernels.arrays import Array, Ints
from spdp.kernels.base import Region
from spdp.ledger import Ledger
from spdp.ledger.identity import fingerprint_text
from spdp.options import OnInvalid
from spdp.queries import Query

# Memory for vectors kept for a search; where they do not fit, a random one in 2, 4, …
# records is kept. Vectors of records in memory may take as much as the records, up to
# so many times this.
KEEP_BYTES, IN_MEMORY = 160 << 20, 4
CENTRED = f"{named('on_invalid', 'center')} replaces such records with the domain's centre"


class Engine(ABC):
    """Runs work on the blocks of a source, in order."""

    kernels: str | None = None

    @property
    def kernels_here(self) -> str | None:
        """Kernels for arrays in this process's memory; records may be elsewhere."""
        return self.kernels

    @abstractmethod
    def each(self, source: Source, work: Any, *args: Any) -> Iterator[Any]:
        """``work(block, *args)`` for every block, in order."""

    @abstractmethod
    def hold(self, source: Source, task: Task, keep_bytes: int) -> VectorStore:
        """Read a source and keep its vectors, or a subsample where they do not fit."""

    def task(
        self,
        source: Source,
        chart: Chart,
        region: Region,
        on_invalid: OnInvalid,
        classes: Sequence[Any] | None = None,
        ranges: Array | None = None,
        allow_none: bool = False,
    ) -> Task:
        """What to do with the blocks of a source.

        A source whose dtype the chart does not accept is an error, whatever
        ``on_invalid`` is: the dtype as a whole is public. So is what its matrices are,
        where that is stated.
        """
        if source.dtype is not None:
            check_kind(source.dtype, chart.kinds, source.name)
        if source.kind is not None and source.kind in chart.refuses:
            raise ParameterError(
                f"{source.name} holds {source.kind} matrices: {chart.refuses[source.kind]}"
            )
        labels = None if classes is None else tuple(classes)
        told = self.kernels, on_invalid is OnInvalid.RAISE, labels, ranges, allow_none
        files = tuple(source.origins.items())
        return Task(chart, region, source.shape, source.name, *told, files=files)

    def gather(self, source: Source, task: Task, max_records: int | None = None) -> VectorStore:
        """Vectors to ask queries of: one for each record, or for each person.

        Where the task allows it, a dataset may have no records. With ``max_records``, a
        person is weighted by the number of their records, up to that number.
        """
        if "person" in source.columns:
            return self._persons(source, task, max_records)
        most = max(KEEP_BYTES, min(source.memory, IN_MEMORY * KEEP_BYTES))
        return self.hold(source, task, most)

    def stream(self, source: Source, task: Task) -> VectorStore:
        """Records for a single query, which is answered in one pass."""
        return StreamStore(self, source, task)

    def _persons(self, source: Source, task: Task, max_records: int | None) -> PersonStore:
        """Read a source whose records have subject ids: a vector for each person."""

        def read(W: Array | None = None) -> Persons:
            there = task if W is None else task.seen(W)
            persons = Persons(there)

            def added() -> Iterator[store.Totals]:
                for cells in self.each(source, cells_of, there):
                    persons.add(cells)
                    yield store.Totals(None, cells.m, cells.fault)

            collect(source, added(), task.allow_none)
            return persons

        return PersonStore(read(), self.kernels_here, max_records, read=read)

    def check_data(self, source: Source, ledger: Ledger) -> None:
        """Refuse data other than those a ledger is bound to."""
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
        marks = self.each(source, record_marks, source.shape, source.name, key)
        return fingerprint_text(sum(part for part, _ in marks), source.k)


class StreamStore(VectorStore):
    """Records that are read when their single query is asked; n is known after that."""

    def __init__(self, engine: Engine, source: Source, task: Task) -> None:
        self._engine, self._source, self._task = engine, source, task
        self.d = len(task.region.center)
        self.n = self.m = source.n or 0

    def total(self, query: Query[Any], subsampled: bool = False) -> Ints:
        source, task = self._source, self._task
        results = self._engine.each(source, store.totals_of, task, query)
        total, self.n = collect(source, results, task.allow_none)
        self.m = self.n
        if total is None:
            columns = {name: np.empty(0) for name in source.columns}
            nobody = Block(np.empty((0, *source.shape)), columns)
            return np.asarray(store.totals_of(nobody, task, query).total)
        return total

    def rotated(self, axes: Array) -> VectorStore:
        raise TypeError("records that are streamed are not kept to be rotated")


def invalid_record(
    source: Source, i: int, fault: store.Unusable, remedy: str = CENTRED
) -> InvalidMatrixError:
    """The error for record i: the file it is in, its place there, and what may help."""
    text, ask, instead, of = source.advise(i)
    name, place = of or (source.name, i)
    advice = [fault.remedy] if fault.remedy else [text] if ask or instead else [remedy, text]
    message = "; ".join(filter(None, [f"{name}: matrix {place} {fault.why}", *advice]))
    return InvalidMatrixError(message, (i,), ask=() if fault.remedy else ask)


def collect(
    source: Source, results: Iterable[store.Totals], allow_none: bool = False
) -> tuple[Ints | None, int]:
    """Add up results block by block.

    Raise an error for an invalid record, unless the policy is to centre it.
    """
    total: Ints | None = None
    n, advance = 0, None
    with ExitStack() as stack:
        for part, m, fault in results:
            if fault is not None:  # only where the policy is to raise
                raise invalid_record(source, n + fault.place, fault)
            n += m
            if n > store.MAX_RECORDS:
                raise DataError(f"{source.name} has more than 2**32 records; sums would overflow")
            total = part if total is None else total + part
            if n != source.n:  # more is to come
                advance = advance or stack.enter_context(track("reading records", source.n))
                advance(m)
    if n == 0 and not allow_none:
        raise DataError(f"{source.name} holds no records")
    return total, n
