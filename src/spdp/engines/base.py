"""An engine: where the records are, and where work on them runs.

Work is a function of one block of records, sent to where the block is; what comes back
is integers, a count and at most one fault. Both engines run the very same functions.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from spdp.blocks import record_marks
from spdp.charts import Chart
from spdp.choices import OnInvalid
from spdp.data.source import Source
from spdp.engines.people import HeldPeople, People, cells_of
from spdp.engines.task import Array, Held, Ints, Task, Totals, totals_of
from spdp.errors import DataError, InvalidMatrixError, named
from spdp.kernels import Region
from spdp.lattice import MAX_RECORDS, Unusable
from spdp.privacy.ledger import Ledger, fingerprint_text
from spdp.progress import track
from spdp.queries import Query
from spdp.stacks import Block, check_kind

__all__ = ["KEEP_BYTES", "Engine", "Held", "collect", "unusable_record"]

# Vectors kept for a search; of more records it looks at every 2nd, 4th, … block. Where
# records lie in memory their vectors may take as much, up to so many times this.
KEEP_BYTES, IN_MEMORY = 160 << 20, 4
CENTRED = f"{named('on_invalid', 'center')} counts such records as the domain's centre"


class Engine(ABC):
    """Runs work on the blocks of a source, in order."""

    kernels: str | None = None

    @property
    def kernels_here(self) -> str | None:
        """Kernels for arrays in this process's memory, wherever the records are."""
        return self.kernels

    @abstractmethod
    def each(self, source: Source, work: Any, *args: Any) -> Iterator[Any]:
        """``work(block, *args)`` for every block, in order."""

    @abstractmethod
    def hold(self, source: Source, task: Task, keep_bytes: int) -> Held:
        """Read a source once and keep its vectors where they are, if they fit."""

    def task(
        self,
        source: Source,
        chart: Chart,
        region: Region,
        on_invalid: OnInvalid,
        classes: Sequence[Any] | None = None,
        ranges: Array | None = None,
    ) -> Task:
        """What to do with the blocks of a source.

        One whose dtype as a whole the chart does not take is an error, whatever
        ``on_invalid``: that dtype is public.
        """
        if source.dtype is not None:
            check_kind(source.dtype, chart.kinds, source.name)
        explain = on_invalid is OnInvalid.RAISE
        labels = None if classes is None else tuple(classes)
        return Task(
            chart,
            region,
            source.shape,
            source.name,
            self.kernels,
            explain,
            labels,
            ranges,
            files=tuple(source.origins.items()),
        )

    def gather(self, source: Source, task: Task, allow_none: bool = False) -> Held:
        """Vectors to ask queries of: one for each record, or for each person.

        With ``allow_none`` no records at all are a dataset too.
        """
        if "person" in source.columns:
            return self.people(source, task, allow_none)
        most = max(KEEP_BYTES, min(source.memory, IN_MEMORY * KEEP_BYTES))
        return self.hold(source, task._replace(allow_none=allow_none), most)

    def total(
        self,
        source: Source,
        chart: Chart,
        region: Region,
        queries: Sequence[Query],
        on_invalid: OnInvalid,
        allow_none: bool = False,
        classes: Sequence[Any] | None = None,
    ) -> tuple[list[Ints], int]:
        """Exact totals of queries over all records, and their number: one pass.

        With ``allow_none`` no records at all are a dataset too.
        """
        task = self.task(source, chart, region, on_invalid, classes)
        results = self.each(source, totals_of, task, list(queries))
        sums, n = collect(source, results, allow_none)
        if not sums:
            sums = totals_of(_nobody(source), task, queries).totals
        return sums, n

    def people(
        self, source: Source, task: Task, allow_none: bool = False, most: int | None = None
    ) -> HeldPeople:
        """Read a source whose records say whose they are: a vector for each person.

        With ``most``, a person counts by the number of their records up to that.
        """
        people = People(task)

        def added() -> Iterator[Totals]:
            for cells in self.each(source, cells_of, task):
                people.add(cells)
                yield Totals([], cells.m, cells.fault)

        collect(source, added(), allow_none)
        return HeldPeople(people, self.kernels_here, most)

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
        for part, m in self.each(source, record_marks, source.shape, source.name, key):
            total, n = total + part, n + m
        return fingerprint_text(total, n, source.k)


def _nobody(source: Source) -> Block:
    """A block of no records."""
    return Block(np.empty((0, *source.shape)), {name: np.empty(0) for name in source.columns})


def unusable_record(
    source: Source, i: int, fault: Unusable, remedy: str = CENTRED
) -> InvalidMatrixError:
    """The error for record i: the file it is in, its place there, and what may help."""
    text, ask, of = source.advise(i)
    name, place = of or (source.name, i)
    advice = [fault.remedy] if fault.remedy else [text] if ask else [remedy, text]
    message = "; ".join(filter(None, [f"{name}: matrix {place} {fault.why}", *advice]))
    return InvalidMatrixError(message, (i,), ask=() if fault.remedy else ask)


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
                raise unusable_record(source, n + fault.place, fault)
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
