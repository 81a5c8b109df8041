r"""Second moments, at about the sensitivity of a sum.

*Packing.* A symmetric matrix of integers is its diagonal and its upper triangle, row by
row, weighted: 5·C_ii and 7·C_ij for i < j. A matrix has the latter twice, so that the
length of such a vector is at most 5·‖C‖_F, for 7² ≤ 2·5². Noise in an entry off the
diagonal is then 5/7 of that in one on it.

*Counts, sums and second moments, class by class* (:class:`MomentSum`).
A record y of class c, of a public list of C, in a frame whose centre may depend on c,
becomes e_c ⊗ (w, v, b·S(vvᵀ)) for its vector v in the unit ball; S takes a symmetric
matrix to its diagonal and √2 times its upper triangle. Second moments may also be
added up over all classes, or only their diagonal or their trace |v|² be asked for.

*Lemma.* If w² + b² ≤ 1 and b² ≤ ½, two such vectors are at most 2 apart, as v and v'
alone may be. In one class, with s = |v|, u = |v'| and t = v·v', their squared distance
s² + u² − 2t + b²(s⁴ + u⁴ − 2t²) is convex along the ray of v: its second derivative
there is at least 2 + b²(12s² − 4u²) ≥ 2 − 4b² ≥ 0. So it is largest at s = u = 1, or
where one vector is 0, and then at most 1 + b². At s = u = 1 it is
2 − 2t + 2b²(1 − t²), falling in t for b² ≤ ½: at most 4. In two classes it is at most
s² + u² + 2w² + b²(s⁴ + u⁴) ≤ 2 + 2w² + 2b² ≤ 4, pooled or not, for
|vvᵀ − v'v'ᵀ|² = s⁴ + u⁴ − 2t². Diagonals are no farther apart than these matrices, nor
are traces: (s² − u²)² ≤ s⁴ + u⁴ − 2t², as t² ≤ s²u².

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

A row of no class (label −1) adds nothing, like a share of 0. Centre and radius of the
ball may be released for each class: the lemma needs v in the unit ball only.

*Pooled* (:class:`ClassDistance` and others). Rows of all classes are added up together,
each around the released centre of its own class. A row of share a counts a·(its
integers), toward zero; those of one person are then, but for rounding, a convex
combination of what records may add and of 0, and no further apart than these. A row of
no class (label −1) adds nothing. What becomes of a row depends on that row and on
released numbers alone.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.error.bound import Count
from spdp.kernels.arrays import Array, Ints
from spdp.kernels.base import PRODUCT_NORM, RECORD_NORM, Kernels
from spdp.kernels.vecd import upper_triangle
from spdp.options import Adjacency
from spdp.queries import REPLACE, WHOLE, Estimate, Query, Rows, root_upward, toward_zero
from spdp.queries.sums import Distances, Frame, Scaled, in_units

# --- packing

ON_DIAGONAL, OFF_DIAGONAL = 5, 7
OFF_NOISE = ON_DIAGONAL / OFF_DIAGONAL  # of an entry off the diagonal, over one on it


def packed(C: NDArray[np.int64]) -> Ints:
    """Weighted entries (d(d+1)/2,) of a symmetric matrix (d, d) of integers."""
    upper = C[upper_triangle(len(C))]
    return np.concatenate([ON_DIAGONAL * np.diagonal(C), OFF_DIAGONAL * upper])


def unpacked(values: Array, d: int) -> Array:
    """Matrices (..., d, d) that weighted entries (..., d(d+1)/2) stand for."""
    C = np.zeros((*values.shape[:-1], d, d))
    i, j = upper_triangle(d)
    C[..., i, j] = C[..., j, i] = values[..., d:] / OFF_DIAGONAL
    C[..., np.arange(d), np.arange(d)] = values[..., :d] / ON_DIAGONAL
    return C


# --- correlations

# Rows multiplied at once: with vectors of norm 2¹⁴, QᵀQ is exact even in floating point
# (2¹²·2²⁸ < 2⁵³), in whatever order.
DIVISOR = RECORD_NORM // PRODUCT_NORM
PRODUCT_ROWS = 1 << 12
DEVICE_ROWS = 1 << 20  # with a fused kernel, whose rows need no cache; 2²⁰·2²⁸ < 2⁵³ as well


@dataclass(frozen=True, eq=False)
class CorrelationSum(Query[Estimate]):
    """Σ of the products q_i·q_j of z clipped to ``radius``, on a lattice of norm 2¹⁴.

    The total holds 5·Σ q_i² for every i, then 7·Σ q_i·q_j for i < j, row by row. A
    lattice point p of norm ≤ 2³⁰, divided by 2¹⁶ toward zero, has norm ≤ 2¹⁴.
    Sensitivity √2·5·2²⁸ (5·2²⁸ for one record alone): with M = qqᵀ − ppᵀ the total
    moves by v, ‖v‖² = 25·Σ M_ii² + 49·Σ_{i<j} M_ij² ≤ 25·‖M‖_F², and
    ‖M‖_F² = ‖q‖⁴ + ‖p‖⁴ − 2(q·p)² ≤ 2·(2¹⁴)⁴. No entry exceeds 5·2²⁸, so 2³² records
    fit into 64 bits.
    """

    works_on_device = True

    frame: Frame
    radius: float

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        d = len(self.frame.center)
        products = np.zeros((d, d), np.int64)
        whole = kernels.FUSED.get("products")
        step = PRODUCT_ROWS if whole is None else DEVICE_ROWS
        for start in range(0, len(rows.Y), step):
            Z, origin = self.frame.turned(rows.Y[start : start + step], kernels)
            if whole is not None:
                part = whole(Z, origin, self.frame.width, self.radius, DIVISOR)
            else:
                z = (Z - origin) / self.frame.width
                q = np.trunc(kernels.encode_vectors(z, np.zeros(d), self.radius) / DIVISOR)
                part = q.T @ q
            products += part.astype(np.int64)
        return packed(products)

    def sensitivity(self, adjacency: Adjacency) -> int:
        one = ON_DIAGONAL * PRODUCT_NORM**2
        return root_upward(2 * one**2) if adjacency is REPLACE else one

    def estimate(self, answer: Array, sd: float, n: float) -> Estimate:
        """The mean of zzᵀ; ``sd`` is that of an entry on the diagonal."""
        unit = (self.radius / PRODUCT_NORM) ** 2 / n
        C = unpacked(answer, len(self.frame.center)) * unit
        return Estimate(C, sd / ON_DIAGONAL * unit, Count(n))


# --- squared lengths

COUNTED = RECORD_NORM // 2  # weight of a count: 1 + b² + ¼ < 4
WEIGHT, OF = 53, 32  # b = 53/32: b² < 2.744 < γ
SQUARED_ROWS = 1 << 14  # at once


class SquaredNorms(NamedTuple):
    """Means of y − c and of ‖y − c‖², and the standard deviations of their noise."""

    mean: Array
    square: float
    mean_sd: float
    square_sd: float
    count: Count  # type: ignore[assignment]


@dataclass(frozen=True, eq=False)
class SquaredNormSum(Query[SquaredNorms]):
    r"""Σ of y − c in the ball of ``radius``, and of its squared length, on one lattice.

    A vector y of the unit ball becomes φ(y) = (y, b·‖y‖²), as sensitive as y alone.

    *Lemma.* If b² ≤ γ = (11 + 5√5)/8 ≈ 2.7725, two such vectors are at most 2 apart, as
    y and y' alone may be. With s = ‖y‖ ≥ u = ‖y'‖ their squared distance is at most
    (s + u)² + b²(s² − u²)² = (s + u)²·(1 + b²(s − u)²), which grows with s, up to
    s = 1. There, with v = 1 − u, it is (2 − v)²(1 + b²v²), at most 4 iff
    b² ≤ (4 − v)/(v(2 − v)²), whose minimum over 0 < v ≤ 1 is γ, at v = 3 − √5.

    For a record's lattice point q, of norm ≤ N = 2³⁰, the total holds Σ q, and
    Σ ⌊53·⌊‖q‖²/N⌋/32⌋. By the lemma N·φ(q/N) moves by at most 2N; rounding
    takes less than b + 1 < 3 off a record's square, so a record replaced moves the
    total by at most 2N + 3, and one added or removed by at most √(1 + b²)·N. No entry
    exceeds 53N/32, so 2³² records fit into 64 bits.

    With ``weight`` w one more number counts the records, w for each, and one added or
    removed moves the total by at most √((1 + b²)·N² + w²): for w = N/2 still less than
    2N. A record replaced leaves the count as it is.
    """

    frame: Frame  # without axes, its units 1
    radius: float
    weight: int = 0

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        Y = rows.Y
        total = np.zeros(len(self.frame.center) + 1, np.int64)
        for start in range(0, len(Y), SQUARED_ROWS):
            some = np.ascontiguousarray(Y[start : start + SQUARED_ROWS])
            q = kernels.encode_vectors(some, self.frame.center, self.radius)
            squares = (q * q).sum(axis=1) // RECORD_NORM
            total += np.append(q.sum(axis=0), (WEIGHT * squares // OF).sum())
        return np.append(total, len(Y) * self.weight) if self.weight else total

    def sensitivity(self, adjacency: Adjacency) -> int:
        alone = root_upward((OF**2 + WEIGHT**2) * (RECORD_NORM // OF) ** 2 + self.weight**2)
        return 2 * RECORD_NORM + 3 if adjacency is REPLACE else alone

    def estimate(self, answer: Array, sd: float, n: float) -> SquaredNorms:
        """Means over n records, or over the noisy count."""
        d, count = len(self.frame.center), Count(n)
        if self.weight:
            count = Count.noisy(float(answer[-1]) / self.weight, sd / self.weight)
        one, square = self.units(count.value)
        mean, squares = answer[:d] * one, float(answer[d] * square)
        return SquaredNorms(mean, squares, sd * one, sd * square, count)

    def units(self, n: float) -> tuple[float, float]:
        """What one unit of the total is in each of the two means."""
        unit = self.radius / RECORD_NORM / n
        return unit, unit * self.radius * OF / WEIGHT


# --- moments of classes

FACTOR_NORM = isqrt(isqrt(RECORD_NORM**2 // (2 * ON_DIAGONAL**2)))  # P: 50·P⁴ ≤ N²
# Rows multiplied at once: products are below 2²⁸, and their sums exact below 2⁵³.
EXACT_ROWS, SHARED_ROWS = 1 << 14, 1 << 9

SECOND = ("none", "trace", "diagonal", "full")


class Moments(NamedTuple):
    """Sums by class that (noisy) totals stand for, in units of the frame, and sds.

    ``second`` is (C, …) or, pooled, (1, …): matrices (d, d), their diagonals (d,) or
    their traces (1,); of size 0 where none were asked. ``second_sd`` is the noise of a
    diagonal entry, or of a trace; the noise of other entries is 5/7 of it.
    """

    counts: Array  # (C,)
    sums: Array  # (C, d)
    second: Array
    count_sd: float
    sum_sd: Any  # a number, or (C,) where radii differ
    second_sd: Any

    def over(self, n: float) -> "Moments":
        """Means over n records, and their noise."""
        return Moments(*(part / n for part in self))  # type: ignore[arg-type]


def centred(rows: Rows, frame: Frame, centers: Array | None, kernels: Kernels) -> Array:
    """z = Vᵀ(y − c)/w of rows; c is the centre of each row's class, where given.

    What becomes of a row depends on that row and on released numbers alone.
    """
    Y, base = rows.Y, frame
    if centers is not None:
        Y, base = Y - centers[rows.label], frame.moved(np.zeros(len(frame.center)))
    Z, origin = base.turned(Y, kernels)
    return np.asarray((Z - origin) / base.width)


@dataclass(frozen=True, eq=False)
class MomentSum(Query[Moments]):
    """Counts, sums and second moments of z in the ball ‖z‖ ≤ radius, by class.

    The total holds, for each class in turn, its count and its sum; then the second
    moments, pooled or class by class: diagonal, then upper triangle row by row. This
    module's docstring says why it moves by no more than :meth:`sensitivity`.

    Parameters
    ----------
    frame : Frame
        Where the ball is.
    radius : float, or array (classes,)
        Of the ball, or of one for each class; for all of them if moments are pooled.
    classes : int
        Their number; rows carry labels 0 to classes − 1, or −1, unless it is 1.
    second : "none", "trace", "diagonal" or "full"
        Second moments to add up.
    pooled : bool
        Whether second moments of all classes are added up together.
    centers : array (classes, d), optional
        Released centres of the classes, in place of the frame's.
    """

    frame: Frame
    radius: Any
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
        """Number of sets of second moments."""
        return 1 if self.pooled else self.classes

    @property
    def products(self) -> int:
        """Numbers in one set of second moments."""
        return (0, 1, self.d, self.d * (self.d + 1) // 2)[SECOND.index(self.second)]

    @property
    def size(self) -> int:
        """Numbers in the total."""
        return self.classes * (1 + self.d) + self.groups * self.products

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
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
        Z, radius = centred(rows, self.frame, self.centers, kernels), self.radius
        if isinstance(radius, np.ndarray):
            Z, radius = Z / radius[rows.label][:, None], 1.0
        q = kernels.encode_vectors(Z, np.zeros(self.d), radius)
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
        if self.second != "full":
            squares = np.einsum("ij,ij->j", p, p).astype(np.int64)
            return np.asarray(
                ON_DIAGONAL * (squares if self.second == "diagonal" else squares.sum())
            )
        return packed((p.T @ p).astype(np.int64))

    def _each(self, p: Array) -> Ints:
        """Second moments of each row, weighted."""
        squares = ON_DIAGONAL * (p * p).astype(np.int64)
        if self.second != "full":
            whole = self.second == "diagonal"
            return squares if whole else squares.sum(axis=1, keepdims=True)
        i, j = np.triu_indices(self.d, 1)
        return np.hstack([squares, OFF_DIAGONAL * (p[:, i] * p[:, j]).astype(np.int64)])

    def sensitivity(self, adjacency: Adjacency) -> int:
        apart, square = 2 * RECORD_NORM, RECORD_NORM**2 + self.weight**2
        if self.products:
            apart += 2 * ON_DIAGONAL * (FACTOR_NORM**2 - self.factor**2)
            square += (ON_DIAGONAL * FACTOR_NORM**2) ** 2
        return (apart if adjacency is REPLACE else root_upward(square)) + self.rounding

    @property
    def rounding(self) -> int:
        """What rounding rows that count in part may add."""
        shared, own = (self.products, 0) if self.pooled else (0, self.groups * self.products)
        own += self.classes * (1 + self.d)
        return 2 * (root_upward(own) + self.classes * root_upward(shared))

    def estimate(self, answer: Array, sd: float, n: float) -> Moments:
        """Sums, not means: each class is divided by its own count."""
        split = self.classes * (1 + self.d)
        own = answer[:split].reshape(self.classes, 1 + self.d)
        unit, square = self.radius / RECORD_NORM, (self.radius / self.factor) ** 2
        second = answer[split:].reshape(self.groups, self.products)
        return Moments(
            own[:, 0] / self.weight,
            own[:, 1:] * np.reshape(unit, (-1, 1)),
            self._matrices(second * np.reshape(square, (-1, 1))),
            sd / self.weight,
            sd * unit,
            sd * square / ON_DIAGONAL,
        )

    def _matrices(self, values: Array) -> Array:
        return unpacked(values, self.d) if self.second == "full" else values / ON_DIAGONAL


def in_part(integers: Ints, share: Ints | None) -> Ints:
    """Rows' integers, or the part of each that counts, toward zero."""
    if share is None:
        return integers
    return toward_zero(integers * share[:, None], WHOLE)


# --- around the centres of classes, pooled


@dataclass(frozen=True, eq=False)
class _Centred(Query[Estimate]):
    """A sum of integers of each row's coordinates around its class's centre."""

    frame: Frame  # its axes and units; its centre is not used
    centers: Array  # (C, d)

    @abstractmethod
    def units(self, Z: Array, kernels: Kernels) -> Ints:
        """Integers (m, D) of rows."""

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        known = rows.take(rows.label >= 0)
        Z = centred(known, self.frame, self.centers, kernels)
        return np.asarray(in_part(self.units(Z, kernels), known.share).sum(axis=0))


@dataclass(frozen=True, eq=False)
class ClassDistance(Distances, _Centred):
    """Σ of min(‖z‖, cap), in units of cap/2³⁰: what one adds lies in [0, 2³⁰]."""

    cap: float

    def units(self, Z: Array, kernels: Kernels) -> Ints:
        return in_units(norms(Z) / self.cap)[:, None]


@dataclass(frozen=True, eq=False)
class ClassDeviation(Scaled, _Centred):
    """Σ of |z| coordinate by coordinate, for z clipped to ``radius``.

    As for :class:`spdp.queries.sums.AbsoluteSum`, two records are √2·2³⁰ apart at most.
    Rounding adds less than C to each of d numbers of a person.
    """

    radius: float

    def units(self, Z: Array, kernels: Kernels) -> Ints:
        return np.abs(kernels.encode_vectors(Z, np.zeros(Z.shape[1]), self.radius))

    def sensitivity(self, adjacency: Adjacency) -> int:
        C, d = (int(size) for size in self.centers.shape)
        apart = root_upward(2 * RECORD_NORM**2) if adjacency is REPLACE else RECORD_NORM
        return apart + 2 * C * root_upward(d)

    def unit(self, n: float) -> float:
        return self.radius / RECORD_NORM / n


@dataclass(frozen=True, eq=False)
class ClassHistogram(Scaled, _Centred):
    """The number of rows by ‖z‖, between ascending edges and beyond, in 1/WHOLE.

    A record adds WHOLE to one of the counts, a person at most as much to several
    together, without rounding: two of them are at most √2·WHOLE apart.
    """

    edges: Array

    def units(self, Z: Array, kernels: Kernels) -> Ints:
        place = np.searchsorted(self.edges, norms(Z), side="right")
        counts = np.arange(len(self.edges) + 1)
        return np.asarray(WHOLE * (place[:, None] == counts).astype(np.int64))

    def sensitivity(self, adjacency: Adjacency) -> int:
        return root_upward(2 * WHOLE**2) if adjacency is REPLACE else WHOLE

    def unit(self, n: float) -> float:
        return 1.0 / WHOLE


@dataclass(frozen=True, eq=False)
class HistogramByClass(Scaled):
    """The number of rows of each class by ‖z‖, between ascending edges and beyond.

    In 1/WHOLE, class by class. A record adds WHOLE to one of all the counts, a person
    at most as much to several together, without rounding: vectors a, b ≥ 0 whose
    entries add up to at most WHOLE, so that ‖a − b‖² ≤ ‖a‖² + ‖b‖² ≤ 2·WHOLE². A row
    of no class (label −1) adds nothing.
    """

    frame: Frame
    edges: Array
    classes: int

    def total(self, rows: Rows, kernels: Kernels) -> Ints:
        known, cells = rows.take(rows.label >= 0), len(self.edges) + 1
        place = np.searchsorted(self.edges, self.frame.norms(known.Y, kernels), side="right")
        counts = np.zeros(self.classes * cells, np.int64)
        share = np.full(len(place), WHOLE) if known.share is None else known.share
        np.add.at(counts, known.label * cells + place, share)
        return counts

    def sensitivity(self, adjacency: Adjacency) -> int:
        return root_upward(2 * WHOLE**2) if adjacency is REPLACE else WHOLE

    def unit(self, n: float) -> float:
        return 1.0 / WHOLE


def norms(Z: Array) -> Array:
    """‖z‖ of each row."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", Z, Z)))
