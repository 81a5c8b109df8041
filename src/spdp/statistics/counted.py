r"""Records whose number is private, for steps that need a number.

Where records may be added or removed, their number is not public. It is asked first,
like everything else, and whatever follows uses the answer. *Enforced.* All records are
looked at, always: with one more of them, another part would be looked at. *Therefore*
what a search does depends on the number of records through its noisy answer alone.

The last query of a statistic counts once more, with most of the budget: what is
released is divided by that number (:class:`spdp.privacy.bounds.Number`).
"""

import numpy as np
from numpy.typing import NDArray

from spdp.choices import Adjacency
from spdp.engines import Held
from spdp.kernels import Region
from spdp.privacy.account import Account
from spdp.queries import RECORD_NORM, Query, whole_domain_sum

__all__ = ["Counted", "countable"]

COUNT_SHARE = 0.01  # of μ²


class Counted(Held):
    """Vectors of all records, and a released estimate of their number."""

    def __init__(self, held: Held, n: int) -> None:
        self.held = held
        self.n = self.m = n
        self.d = held.d

    def look_at(self, one_in: int) -> None:
        """All records are looked at, always (see this module's text)."""

    def total(self, query: Query, whole: bool = False) -> NDArray[np.int64]:
        return self.held.total(query, True)

    def turned(self, axes: NDArray[np.float64]) -> "Counted":
        return Counted(self.held.turned(axes), self.n)


def countable(held: Held, account: Account, region: Region) -> Held:
    """``held`` itself, or with its noisy number where the number is private."""
    if account.adjacency is Adjacency.REPLACE_ONE:
        return held
    query = whole_domain_sum(region, RECORD_NORM, "count")
    answer = account.measure(query, held.total(query, True), COUNT_SHARE)
    n = max(1, round(float(answer.values[-1]) / RECORD_NORM))
    account.note(n_estimate=n)
    return Counted(held, n)
