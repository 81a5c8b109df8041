r"""Queries: sums of one integer vector of bounded norm per record.

A query turns rows (vectors of records, each in the public domain, and their columns)
into the sum of one integer vector per record. *Enforced* in every
``total``: the norm of each record's integer vector is bounded in integer arithmetic,
whatever the vector, and depends on that record alone. *Therefore* the sum moves by at
most ``sensitivity(adjacency)`` in ℓ2 norm between neighbouring datasets; each class
says why. Parameters (frames, radii, edges) are public or released. Queries are
immutable values: they are sent to where the records are.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import isqrt
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from spdp.error.bound import Count
from spdp.kernels.arrays import Array, Ints
from spdp.kernels.base import Kernels
from spdp.options import Adjacency

T = TypeVar("T")

WHOLE = 1 << 20  # the share of a row that counts fully
REPLACE = Adjacency.REPLACE_ONE


class Rows(NamedTuple):
    """What queries sum over: vectors and their columns.

    A row is a record, or a person, or a person's records in one class; ``share`` is
    then the weight of that row, in units of 1/WHOLE, and a person's shares add up to at
    most WHOLE.
    """

    Y: Array  # (m, d)
    label: Any = None  # (m,), place in the public list of classes, or -1
    share: Ints | None = None  # 0 to WHOLE; WHOLE where None
    x: Any = None  # (m, p), covariates in [-1, 1]

    def take(self, some: Any) -> "Rows":
        """Some of the rows, by a slice, mask or array of indices."""
        columns: Any = (None if column is None else column[some] for column in self)
        return Rows(*columns)


class Estimate(NamedTuple):
    """What a noisy answer estimates, in real units, and its noise.

    ``sd`` is the standard deviation of the noise in each number of ``value``; ``count``
    is the number of records that sums were divided by.
    """

    value: Array
    sd: Any  # a number, or one for each number of ``value``
    count: Count  # type: ignore[assignment]


@lru_cache(maxsize=1024)
def root_upward(square: int) -> int:
    """⌈√square⌉."""
    root = isqrt(square)
    return root + (root * root < square)


def toward_zero(a: Ints, b: Any) -> Ints:
    """a/b for b > 0, rounded toward zero."""
    return np.asarray(np.sign(a) * (np.abs(a) // b))


@dataclass(frozen=True, eq=False)
class Query(ABC, Generic[T]):
    """A sum over records. ``name`` is what the certificate's list of steps calls it.

    Where it ``works_on_device`` rows may lie on a GPU; for others they are fetched.
    """

    works_on_device: ClassVar[bool] = False

    name: str

    @abstractmethod
    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        """Sum over rows, exact in int64."""

    @abstractmethod
    def sensitivity(self, adjacency: Adjacency) -> int:
        """Bound on the ℓ2 change of the total between neighbouring datasets."""

    @abstractmethod
    def estimate(self, answer: Array, sd: float, n: float) -> T:
        """The estimate from an answer: a total over n records plus noise of this sd."""
