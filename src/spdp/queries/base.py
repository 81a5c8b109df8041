r"""Queries: sums of one integer vector of bounded norm per record.

A query turns vectors (m, d) of records, each in the public domain, into the sum of one
integer vector per record. *Enforced* in every ``total``: the norm of each record's
integer vector is bounded in integer arithmetic, whatever the vector, and depends on
that record alone. *Therefore* the sum moves by at most ``sensitivity(adjacency)`` in ℓ2
norm between adjacent datasets; each class says why. Parameters (frames, radii, edges)
are public or released. Queries are values: they travel to where the records are.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, frexp, isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.choices import Adjacency
from spdp.kernels import RECORD_NORM, Kernels

__all__ = [
    "WHOLE",
    "Query",
    "Rows",
    "Stated",
    "describe",
    "either",
    "in_units",
    "root_upward",
    "stated_step",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

WHOLE = 1 << 20  # the share of a row that counts fully
FINEST_STEP = 2.0**-50  # logarithms of float64 numbers stay within int64


class Rows(NamedTuple):
    """What queries sum over: vectors, and what stands beside each of them.

    A row is a record, or a person, or what a person has in one class; ``share`` is then
    the part of the person that lies there, in units of 1/WHOLE, and a person's shares
    add up to at most WHOLE.
    """

    Y: Array  # (m, d)
    label: NDArray[np.intp] | None = None  # place in the public list of classes, or -1
    share: Ints | None = None  # 0 to WHOLE; WHOLE where None
    x: Array | None = None  # (m, p), covariates in [-1, 1]

    def take(self, some: Any) -> "Rows":
        """Some of the rows, by an index of arrays."""
        columns: Any = (None if column is None else column[some] for column in self)
        return Rows(*columns)


@lru_cache(maxsize=1024)
def root_upward(square: int) -> int:
    """⌈√square⌉."""
    root = isqrt(square)
    return root + (root * root < square)


def in_units(share: Array, whole: int = RECORD_NORM) -> Ints:
    """⌊share·whole⌋, in integers between 0 and ``whole`` whatever the share; 0 for NaN.

    *Enforced* in integer arithmetic: floating point only says where in between.
    """
    kept = np.clip(np.nan_to_num(share, nan=0.0), 0.0, 1.0)
    return np.clip((kept * whole).astype(np.int64), 0, whole)


def either(adjacency: Adjacency, replaced: int, added: int) -> int:
    """The bound for a record replaced, or for one added or removed."""
    return replaced if adjacency is Adjacency.REPLACE_ONE else added


@dataclass(frozen=True, eq=False)
class Query(ABC):
    """A sum over records. ``name`` is what the certificate's list of steps calls it."""

    name: str

    @abstractmethod
    def total(self, Y: Array, kernels: Kernels) -> Ints:
        """Sum over the rows of ``Y`` (m, d), exact in int64."""

    @abstractmethod
    def sensitivity(self, adjacency: Adjacency) -> int:
        """Bound on the ℓ2 change of the total between adjacent datasets."""

    def stated(self) -> dict[str, Any]:
        """Numbers besides the kind of query that its sensitivity depends on."""
        return {}

    def over(self, rows: Rows, kernels: Kernels) -> Ints:
        """Sum over rows; a query that looks at more than vectors overrides this."""
        return self.total(rows.Y, kernels)


@dataclass(frozen=True, eq=False)
class Stated(Query):
    """A summary computed elsewhere: its sensitivity is stated, not enforced."""

    bound: int

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        raise TypeError("a stated summary is not computed from records")

    def sensitivity(self, adjacency: Adjacency) -> int:
        return self.bound

    @classmethod
    def of(cls, sensitivity: float, step: float, d: int) -> "Stated":
        """A summary of d coordinates on a lattice: Δ/step + √d, rounded up."""
        return cls("summary", ceil(Fraction(sensitivity) / Fraction(step)) + isqrt(d) + 1)


def stated_step(sensitivity: float, finest: float = FINEST_STEP) -> float:
    """Lattice step of a stated summary: the largest power of two up to Δ/2³⁰.

    Dividing by it is exact. Never finer than what logarithms can use.
    """
    return max(2.0 ** (frexp(sensitivity / RECORD_NORM)[1] - 1), finest)


def describe(query: Any) -> dict[str, Any]:
    """What was asked, in plain numbers: for audits that compare two runs."""
    facts: dict[str, Any] = {"kind": type(query).__name__}
    for field in fields(query):
        facts[field.name] = _plain(getattr(query, field.name))
    return facts


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return describe(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if isinstance(value, int | float | str | None) else value.key
