"""Which records are looked at where not all need be: coins decide, one for each record.

*Enforced.* The coins come from a secret key, drawn like noise and published nowhere,
and from the number of records alone. *Therefore* what leaves has a law that does not
depend on the order of the records, even of records that are kept sorted by what they
hold; and in an order in which two neighbouring datasets differ in one place, a query
over the chosen ones is no more sensitive than one over all.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["chosen", "chosen_in_blocks"]

SPARE = 6.0  # standard deviations of the number of chosen places that are drawn at once


def chosen(seed: tuple[int, ...], m: int, one_in: int) -> NDArray[np.intp]:
    """Ascending places below m, each with probability 1/one_in on its own.

    The gaps between them are geometric: the whole parts of exponential numbers.
    """
    if one_in == 1:
        return np.arange(m)
    rng, last, rate = np.random.default_rng(seed), -1, -np.log1p(-1.0 / one_in)
    parts: list[NDArray[np.intp]] = []
    while last < m:
        expected = (m - last) / one_in
        count = int(expected + SPARE * np.sqrt(expected)) + 1
        gaps = 1 + (rng.standard_exponential(count) / rate).astype(np.intp)
        parts.append(last + np.cumsum(gaps))
        last = int(parts[-1][-1])
    places = np.concatenate(parts)
    return places[: np.searchsorted(places, m)]


@lru_cache(maxsize=4)  # a search goes back to what it looked at before
def chosen_in_blocks(
    key: int, sizes: tuple[int, ...], one_in: int
) -> list[NDArray[np.intp]] | None:
    """Places chosen in blocks of these sizes; None where all are looked at."""
    if one_in == 1:
        return None
    return [chosen((key, one_in, i), m, one_in) for i, m in enumerate(sizes)]
