"""Which records are looked at where not all need be: coins decide, one for each record.

*Enforced.* The coins come from a secret key, drawn like noise and published nowhere,
and from the number of records alone. *Therefore* what leaves has a law that does not
depend on the order of the records, even of records that are kept sorted by what they
hold; and in an order in which two neighbouring datasets differ in one place, a query
over the chosen ones is no more sensitive than one over all.
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["chosen"]

SPARE = 6.0  # standard deviations of the number of chosen places that are drawn at once


def chosen(seed: tuple[int, ...], m: int, one_in: int) -> NDArray[np.intp]:
    """Ascending places below m, each with probability 1/one_in on its own.

    The gaps between them are geometric.
    """
    if one_in == 1:
        return np.arange(m)
    rng, last = np.random.default_rng(seed), -1
    parts: list[NDArray[np.intp]] = []
    while last < m:
        expected = (m - last) / one_in
        count = int(expected + SPARE * np.sqrt(expected)) + 1
        parts.append(last + np.cumsum(rng.geometric(1.0 / one_in, count)))
        last = int(parts[-1][-1])
    places = np.concatenate(parts)
    return places[: np.searchsorted(places, m)]
