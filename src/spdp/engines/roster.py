"""Row numbers of persons, and of labels: by ids that are spelt in one way."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError

__all__ = ["Roster", "distinct"]

DENSE = 1 << 23  # ids from 0 to here are looked up in an array
GAPS = 4  # a range of ids up to so many times their number is counted out, not sorted


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
