r"""Counts, sums and second moments, class by class, for the price of one sum.

A record y of class c, of a public list of C, in a frame whose centre may depend on c,
becomes e_c ⊗ (w, v, b·S(vvᵀ)) for its vector v in the unit ball; S takes a symmetric
matrix to its diagonal and √2 times its upper triangle. Second moments may also be
added up over all classes.

*Lemma.* If w² + b² ≤ 1 and b² ≤ ½, two such vectors are at most 2 apart, as v and v'
alone may be. In one class, with s = |v|, u = |v'| and t = v·v', their squared distance
s² + u² − 2t + b²(s⁴ + u⁴ − 2t²) is convex along the ray of v: its second derivative
there is at least 2 + b²(12s² − 4u²) ≥ 2 − 4b² ≥ 0. So it is largest at s = u = 1, or
where one vector is 0, and then at most 1 + b². At s = u = 1 it is
2 − 2t + 2b²(1 − t²), falling in t for b² ≤ ½: at most 4. In two classes it is at most
s² + u² + 2w² + b²(s⁴ + u⁴) ≤ 2 + 2w² + 2b² ≤ 4, pooled or not, for
|vvᵀ − v'v'ᵀ|² = s⁴ + u⁴ − 2t².

*On the lattice.* v is q/N, a lattice point over N = 2³⁰. Products are those of
p = round(q·P'/N), whose norm is at most P' + √d/2 ≤ P; 5·p_i² and 7·p_i·p_j stand for
b·S, as 7² ≤ 2·5², with 5·P² ≤ N/√2. The count is W, W² + 25·P⁴ ≤ N². Everything is
then an integer, exact in any order. Since |ppᵀ − (P'/N)²qqᵀ| ≤ P² − P'², *therefore*

- a record replaced moves the total by at most 2N + 10·(P² − P'²), by the lemma with
  b = 5P'²/N for records of one class, and directly for those of two;
- one added or removed by at most √(W² + N² + 25·P⁴) ≤ √2·N.

*Rows in part.* A row of share a counts a·(its integers), toward zero. A person's rows,
one in each class and of shares that add up to at most 1, are a convex combination of
those vectors and 0, and such combinations are no further apart. Rounding takes less
than 1 off each number of a row: in all, two persons' rows move the total by less than
2·√(numbers of the classes) + 2·C·√(numbers that classes share) more, which is added.

A row of no class (label −1) adds nothing, like a share of 0.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.choices import Adjacency
from spdp.frame import Frame
from spdp.kernels import RECORD_NORM, Kernels
from spdp.queries.base import WHOLE, Array, Ints, Query, Rows, either, root_upward
from spdp.queries.triangle import OFF_DIAGONAL, ON_DIAGONAL, packed, unpacked

__all__ = ["MomentSum", "Moments", "centred", "in_part"]

FACTOR_NORM = isqrt(isqrt(RECORD_NORM**2 // (2 * ON_DIAGONAL**2)))  # P: 50·P⁴ ≤ N²
# Rows multiplied at once: products are below 2²⁸, and their sums exact below 2⁵³.
EXACT_ROWS, SHARED_ROWS = 1 << 14, 1 << 9

SECOND = ("none", "diagonal", "full")


class Moments(NamedTuple):
    """Sums by class that (noisy) totals stand for, in units of the frame, and noise.

    ``second`` is (C, …) or, pooled, (1, …): matrices (d, d), or (d,) their diagonals;
    of size 0 where none were asked. ``second_sd`` is the noise of a diagonal entry;
    that of others is 5/7 of it.
    """

    counts: Array  # (C,)
    sums: Array  # (C, d)
    second: Array
    count_sd: float
    sum_sd: float
    second_sd: float


def centred(rows: Rows, frame: Frame, centers: Array | None, kernels: Kernels) -> Array:
    """z = Vᵀ(y − c)/w of rows, with the centre of each row's class, if there are such.

    What becomes of a row depends on that row and on released numbers alone.
    """
    Y, base = rows.Y, frame
    if centers is not None:
        assert rows.label is not None
        Y, base = Y - centers[rows.label], frame.moved(np.zeros(len(frame.center)))
    Z, origin = base.turned(Y, kernels)
    return np.asarray((Z - origin) / base.width)


@dataclass(frozen=True, eq=False)
class MomentSum(Query):
    """Counts, sums and second moments of z in the ball ‖z‖ ≤ radius, by class.

    The total holds, for each class in turn, its count and its sum; then the second
    moments, pooled or class by class: diagonal, then upper triangle row by row. This
    module's text says why it moves by no more than :meth:`sensitivity`.

    Parameters
    ----------
    frame : Frame
        Where the ball is.
    radius : float
    classes : int
        Their number; rows carry labels 0 to classes − 1, or −1, unless it is 1.
    second : "none", "diagonal" or "full"
        Second moments to add up.
    pooled : bool
        Whether second moments of all classes are added up together.
    centers : array (classes, d), optional
        Released centres of the classes, in place of the frame's.
    """

    frame: Frame
    radius: float
    classes: int = 1
    second: str = "none"
    pooled: bool = True
    centers: Array | None = None

    @property
    def d(self) -> int:
        return len(self.frame.center)

    @property
    def weight(self) -> int:
        """W, what a record adds to its class's count."""
        return RECORD_NORM if self.second == "none" else isqrt(RECORD_NORM**2 // 2)

    @property
    def factor(self) -> int:
        """P', so that products are those of round(q·P'/N), of norm at most P."""
        return FACTOR_NORM - (root_upward(self.d) + 1) // 2

    @property
    def groups(self) -> int:
        """How often second moments are there."""
        return 1 if self.pooled else self.classes

    @property
    def products(self) -> int:
        """Numbers in one set of second moments."""
        return (0, self.d, self.d * (self.d + 1) // 2)[SECOND.index(self.second)]

    @property
    def size(self) -> int:
        """Numbers in the total."""
        return self.classes * (1 + self.d) + self.groups * self.products

    def total(self, Y: Array, kernels: Kernels) -> Ints:
        return self.over(Rows(Y), kernels)

    def over(self, rows: Rows, kernels: Kernels) -> Ints:
        label = np.zeros(len(rows.Y), np.intp) if rows.label is None else rows.label
        known = rows._replace(label=label)
        if (label < 0).any():
            known = known.take(label >= 0)
        own = np.zeros((self.classes, 1 + self.d), np.int64)
        second = np.zeros((self.groups, self.products), np.int64)
        step = EXACT_ROWS if rows.share is None else SHARED_ROWS
        for start in range(0, len(known.Y), step):
            self._add(known.take(slice(start, start + step)), kernels, own, second)
        return np.concatenate([own.ravel(), second.ravel()])

    def _add(self, rows: Rows, kernels: Kernels, own: Ints, second: Ints) -> None:
        """Add some rows to the sums of classes, and to the second moments."""
        assert rows.label is not None
        Z = centred(rows, self.frame, self.centers, kernels)
        q = kernels.encode_vectors(Z, np.zeros(self.d), self.radius)
        counted = np.column_stack([np.full(len(q), self.weight), q])
        kernels.add_rows(in_part(counted, rows.share), rows.label, own)
        if not self.products:
            return
        p = np.rint(q * (self.factor / RECORD_NORM))  # exact: q·P' < 2⁵³
        if rows.share is None:
            for group, part in enumerate(self._parts(p, rows.label)):
                second[group] += self._sums(part)
        else:
            place = np.zeros_like(rows.label) if self.pooled else rows.label
            kernels.add_rows(in_part(self._each(p), rows.share), place, second)

    def _parts(self, p: Array, label: NDArray[np.intp]) -> Iterator[Array]:
        """Rows whose second moments are added up together."""
        if self.pooled:
            yield p
        else:
            yield from (p[label == c] for c in range(self.classes))

    def _sums(self, p: Array) -> Ints:
        """Second moments of rows, weighted: sums of integers below 2⁵³, exact."""
        if self.second == "diagonal":
            return np.asarray(ON_DIAGONAL * np.einsum("ij,ij->j", p, p).astype(np.int64))
        return packed((p.T @ p).astype(np.int64))

    def _each(self, p: Array) -> Ints:
        """Second moments of each row, weighted."""
        squares = ON_DIAGONAL * (p * p).astype(np.int64)
        if self.second == "diagonal":
            return squares
        i, j = np.triu_indices(self.d, 1)
        return np.hstack([squares, OFF_DIAGONAL * (p[:, i] * p[:, j]).astype(np.int64)])

    def sensitivity(self, adjacency: Adjacency) -> int:
        apart, square = 2 * RECORD_NORM, RECORD_NORM**2 + self.weight**2
        if self.products:
            apart += 2 * ON_DIAGONAL * (FACTOR_NORM**2 - self.factor**2)
            square += (ON_DIAGONAL * FACTOR_NORM**2) ** 2
        return either(adjacency, apart, root_upward(square)) + self.rounding

    @property
    def rounding(self) -> int:
        """What rounding rows that count in part may add."""
        shared, own = (self.products, 0) if self.pooled else (0, self.groups * self.products)
        own += self.classes * (1 + self.d)
        return 2 * (root_upward(own) + self.classes * root_upward(shared))

    def stated(self) -> dict[str, Any]:
        return {"classes": self.classes, "second": self.second, "pooled": self.pooled}

    def moments(self, values: Array, scale: float) -> Moments:
        """What (noisy) totals stand for, and the standard deviations of noise."""
        split = self.classes * (1 + self.d)
        own = values[:split].reshape(self.classes, 1 + self.d)
        unit, square = self.radius / RECORD_NORM, (self.radius / self.factor) ** 2
        return Moments(
            own[:, 0] / self.weight,
            own[:, 1:] * unit,
            self._matrices(values[split:].reshape(self.groups, self.products) * square),
            scale / self.weight,
            scale * unit,
            scale * square / ON_DIAGONAL,
        )

    def _matrices(self, values: Array) -> Array:
        return unpacked(values, self.d) if self.second == "full" else values / ON_DIAGONAL


def in_part(integers: Ints, share: Ints | None) -> Ints:
    """Rows' integers, or the part of each that counts, toward zero."""
    if share is None:
        return integers
    return np.asarray(np.sign(integers) * (np.abs(integers) * share[:, None] // WHOLE))
