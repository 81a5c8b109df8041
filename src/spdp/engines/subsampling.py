"""Secret random subsampling, for queries that steer a search and need not see all.

It also decides which records are kept where their vectors do not fit into memory.

*Enforced.* Which records are drawn comes from a secret key, drawn like noise and
published nowhere, and from the number of records alone; each place is drawn
independently of the others. *Therefore* the law of the answers does not depend on the
order of the records, even if they are kept sorted by what they hold. So two
neighbouring datasets may be put into an order in which they differ in one place, or one
of them has one more at the end. For every key their subsamples then differ in that
record at most, and a query over the subsample is no more sensitive than one over all.
"""

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]

SPARE = 6.0  # standard deviations of the number of chosen places that are drawn at once
LOOK, KEEP = range(2)  # purposes of a draw, each with random numbers of its own


class Subsample:
    """The subsamples of one search, from a secret key."""

    def __init__(self, key: int) -> None:
        self._key, self._drawn = key, 0
        self._known: dict[tuple[int, tuple[int, ...]], list[Places]] = {}

    def to_keep(self, m: int, one_in: int) -> Places:
        """Places to keep of m records, drawn anew at each call."""
        self._drawn += 1
        return chosen(self._generator(KEEP, self._drawn, 0), m, one_in)

    def places(self, sizes: tuple[int, ...], one_in: int) -> list[Places]:
        """Places of the subsample in blocks of these sizes, the same at each call."""
        if (one_in, sizes) not in self._known:  # a search returns to an earlier subsample
            self._known[one_in, sizes] = [
                chosen(self._generator(LOOK, one_in, i), m, one_in) for i, m in enumerate(sizes)
            ]
        return self._known[one_in, sizes]

    def _generator(self, *use: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self._key, spawn_key=use))


def chosen(rng: np.random.Generator, m: int, one_in: int) -> Places:
    """Ascending places below m, each drawn independently with probability 1/one_in.

    The gaps between them are geometric: the whole parts of exponential numbers.
    """
    if one_in == 1:
        return np.arange(m)
    last, rate = -1, -np.log1p(-1.0 / one_in)
    parts: list[Places] = []
    while last < m:
        expected = (m - last) / one_in
        count = int(expected + SPARE * np.sqrt(expected)) + 1
        gaps = 1 + (rng.standard_exponential(count) / rate).astype(np.intp)
        parts.append(last + np.cumsum(gaps))
        last = int(parts[-1][-1])
    places = np.concatenate(parts)
    return places[: np.searchsorted(places, m)]
