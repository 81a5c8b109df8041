"""Records of a mean: added up in one pass, or held for a search.

What is exact stays here and goes nowhere but into the account's answers.
"""

import numpy as np
from numpy.typing import NDArray

from spdp.choices import OnInvalid
from spdp.data.source import Source
from spdp.engines import Engine, Held
from spdp.engines.task import Task
from spdp.statistics.plan import OneShot

__all__ = ["Records"]


class Records:
    """Records that a mean is taken of, where they are.

    Those of persons are read at once, and put together.
    """

    def __init__(self, source: Source, engine: Engine, shot: OneShot, policy: OnInvalid) -> None:
        self.source, self.engine, self.shot, self.policy = source, engine, shot, policy
        self.region = shot.domain.region(source.k, shot.chart)
        # where the number of records is private, whether there are any is private too
        self.may_be_none = shot.query.weight > 0
        self.people = None
        if "person" in source.columns:
            self.people = engine.people(source, self.task(), self.may_be_none, shot.max_records)

    @property
    def n(self) -> int | None:
        """How many count, where that is known before they are read."""
        return self.source.n if self.people is None else self.people.n

    def task(self) -> Task:
        """What to do with each block of them."""
        return self.engine.task(self.source, self.shot.chart, self.region, self.policy)

    def held(self, key: int) -> Held:
        """Their vectors, for a search; ``key`` is that of its coins."""
        return self.people or self.engine.gather(self.source, self.task()._replace(key=key))

    def total(self) -> tuple[NDArray[np.int64], int]:
        """Exact answer to the query of one shot, and how many count in it."""
        if self.people is not None:
            return self.people.total(self.shot.query, whole=True), self.people.n
        (exact,), n = self.engine.total(
            self.source,
            self.shot.chart,
            self.region,
            [self.shot.query],
            self.policy,
            self.may_be_none,
        )
        return exact, n
