r"""Contrasts of class means, their confidence region, and a test that they are zero.

A search (:mod:`spdp.adaptive`) finds the ball of all records, without looking at
classes; one query (``MomentSum``) with the rest of the budget then gives, for every
class, noisy counts, sums and second moments of the records clipped to that ball. With
the class means z_c of the clipped records, a contrast is Σ_c A_rc·z_c for a matrix A
whose rows add up to 0; A may depend on the noisy counts, which are released.

*Confidence region.* Let S_c be the sum of the n_c clipped records of a class, less the
ball's centre, N_c ~ N(0, σ²I) and e_c the noise of sum and count, z_c the ratio that is
released. Then z_c = (S_c + N_c)/(n_c + e_c), so that

    z_c − S_c/n_c = (N_c − e_c·z_c)/n_c,   n_c = n̂_c − e_c.

With |e_c| ≤ E for all classes, but for a probability of 10⁻⁵ each, the contrasts
together are off by at most ‖A·(N_c/n_c)‖ + Σ ‖A_c‖·E‖z_c‖/(n̂_c − E), A_c the column of
a class; the first term's square has the law of weights the eigenvalues of
A·diag(σ²/n_c²)·Aᵀ, each d times, with n_c ≥ n̂_c − E. Nothing is assumed of the records.
For records that are clipped to the domain only, what the ball takes away is added:
their total clipping bias, measured as in :mod:`spdp.error.bound`, times the largest
‖A_c‖/(n̂_c − E).

*Test.* Where all classes have one distribution, T = Σ_r q_r·‖contrast r‖² has the mean
Σ H_cc·tr V_c and nearly the variance 2·Σ H_cb²·tr V_c·V_b, for H = Aᵀ·diag(q)·A and
V_c = Σ_c/n_c + noise; the traces are estimated from the released second moments, whose
noise is known. The p-value is that of the scaled χ² with these two moments (Bai and
Saranadasa 1996, for two classes). Its level is approximate: a normal limit, and two
moments; a very small p-value is no more than an order of magnitude. The law's tail is
positive everywhere: where it is smaller than the smallest normal double, that number is
given, which is above it, and never 0.

*Enforced*, *assumed*, *therefore*: as in :mod:`spdp.statistics.base`; ``classes`` are
public, and a record whose label is not among them adds nothing.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from sys import float_info
from typing import Any, ClassVar

import msgspec
import numpy as np

from spdp.adaptive.steps import BALL, Kinds, Label, Length, Queries, ball_queries
from spdp.error.bound import SURE_SHARE, Bound
from spdp.error.class_means import count_margin
from spdp.error.laws import chi2_tail, weighted_chi2
from spdp.errors import ParameterError, named
from spdp.kernels.arrays import Array
from spdp.kernels.base import RECORD_NORM
from spdp.privacy.account import Step
from spdp.queries.moments import OFF_NOISE, Moments, MomentSum
from spdp.queries.sums import ClassClippingBias, Frame
from spdp.release.certificate import Facts
from spdp.release.declaration import MUST, Check, Values
from spdp.release.verify import at_edge, at_least, close, equal, same, tolerance, vectors
from spdp.statistics.base import Context, Outcome
from spdp.statistics.class_means import (
    ClassStatistic,
    check_classes,
    check_total,
    class_means,
    classes_option,
    seen_from,
)

ROUNDS = 8  # of the search, at most
RADIUS = 1.3  # of the ball, over the typical distance; chosen like spdp.adaptive.tuning
BIAS_SHARE = 0.05  # of μ²
LEVEL = 0.05  # of a test, above which contrasts may be noise


class ContrastTest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Squared length of contrasts, and its law where they are zero but for chance."""

    statistic: float
    scale: float
    df: float
    p_value: float

    @classmethod
    def of(cls, statistic: float, scale: float, df: float) -> "ContrastTest":
        """With the probability of so large a length, or a bound on a tiny one."""
        return cls(statistic, scale, df, chi2_tail(statistic / scale, df))


class ClassBiasStep(Step):
    """Sum of the records' clipping bias, as far as ``cap``."""

    bias: float
    cap: float


class ClassMomentsStep(Step):
    """The last answer: the ball, the public list of classes, and the test."""

    center: list[float]
    radius: Length
    classes: list[Label]
    test: ContrastTest


@dataclass(frozen=True, eq=False)
class Found:
    """What the answers say of the classes in the ball, less its centre."""

    counts: Array  # (C,)
    z: Array  # (C, d), means
    scale: float  # of the noise, in lattice units
    radius: float  # of the ball
    weight: int  # of a count

    @property
    def sum_sd(self) -> float:
        """Noise of a coordinate of a sum."""
        return self.scale * self.radius / RECORD_NORM

    @property
    def least(self) -> Array:
        """n̂_c − E: what the counts are not below, but for a small risk."""
        return self.counts - count_margin(len(self.counts), self.scale / self.weight)


@dataclass(frozen=True, eq=False)
class Contrast(ClassStatistic):
    """Contrasts of class means, and a test that they are zero."""

    measured_from: ClassVar = "what was released"
    steps: ClassVar[Kinds] = BALL | {
        "class clipping bias": ClassBiasStep,
        "class moments": ClassMomentsStep,
    }
    within: ClassVar = MUST
    by_class: ClassVar = True
    columns: ClassVar = ("label",)
    shares: ClassVar = ("power",)
    contrasts: ClassVar[str]  # the name that they are released under
    max_classes: ClassVar[int | None] = None  # classes

    classes: Sequence[Any] = classes_option()

    # --- to be written by each

    @abstractmethod
    def contrast(self, counts: Array) -> Array:
        """The contrast matrix (r, C): each row weighs class means, with sum 0."""

    def weights(self, counts: Array) -> Array:
        """Weight of each contrast's squared length in the test statistic, (r,)."""
        return np.ones(len(self.contrast(counts)))

    # --- asking

    def prepare(self, records: Any) -> None:
        records.classes = check_classes(self.classes)
        if not self.allows(len(records.classes)):
            wanted = "two labels" + ("" if self.max_classes else " or more")
            raise ParameterError(f"{named('classes')} must be {wanted}, got {self.classes!r}")

    def allows(self, classes: int) -> bool:
        """Whether so many classes can be compared."""
        return 2 <= classes <= (self.max_classes or classes)

    def run(self, context: Context) -> Outcome:
        store, account = context.gather(), context.account
        search = context.search(store.pooled())
        search.ask_edge()
        search.find_ball(ROUNDS, search.reserve())
        center, reach = search.frame.center, search.max_distance()
        radius, bias = min(RADIUS * search.distance, reach), (0.0, 0.0)
        if reach > radius:
            cap = reach - radius
            asked = ClassClippingBias("class clipping bias", center, radius, cap)
            look = account.ask(asked, store, BIAS_SHARE)
            bias = float(look.estimate.value[0]), look.estimate.sd
            look.note(ClassBiasStep, bias=bias[0], cap=cap)
        names = check_classes(self.classes)
        query = MomentSum("class moments", search.frame, radius, len(names), "full", pooled=False)
        answer = account.ask(query, store)
        moments = answer.estimate
        counts = np.maximum(moments.counts, 1.0)
        z = moments.sums / counts[:, None]
        found = Found(counts, z, moments.count_sd * query.weight, radius, query.weight)
        A = self.contrast(counts)
        test = contrast_test(moments, counts, z, A, self.weights(counts))
        ball = {"center": center.tolist(), "radius": radius}
        answer.note(ClassMomentsStep, **ball, classes=names, test=test)
        E, p_value = A @ z, np.array(test.p_value)
        told = E[0] if len(E) == 1 else E
        numbers = {self.contrasts: told, "counts": counts, "p_value": p_value}
        n, far = search.n, search.domain_radius
        whole, clipped = (class_bound(found, A, E, n, far, b) for b in (bias, (0.0, 0.0)))
        return Outcome(n, {"means": center + z}, numbers, whole, clipped)

    def errors(self, outcome: Outcome, records: Any) -> dict[str, float]:
        truth = records.once("means", lambda rows: class_means(rows, len(self.classes)))
        off = outcome.numbers[self.contrasts] - self.contrast(outcome.numbers["counts"]) @ truth
        power = float(outcome.numbers["p_value"] < LEVEL)
        return {f"rms error of the {self.contrasts}": float(np.linalg.norm(off)), "power": power}

    def thresholds(self, d: int, mu: float) -> dict[str, int | None]:
        return super().thresholds(d, mu) | seen_from(len(self.classes), d, mu, "full")

    # --- what the certificate says

    def queries(self, facts: Facts) -> Queries:
        center, classes = facts.space.region.center, len(facts.last.classes)
        frame = Frame.plain(center)
        return ball_queries(facts.space) | {
            "class clipping bias": ClassClippingBias("", center, 1.0, 1.0),
            "class moments": MomentSum("", frame, 1.0, classes, "full", pooled=False),
        }

    def axes(self, facts: Facts) -> dict[str, int]:
        return {"classes": len(facts.last.classes)}

    # --- verification

    def check(self, facts: Facts) -> Iterator[Check]:
        f, last, many = facts, facts.last, len(facts.last.classes)
        yield equal("last step", last.step, "class moments")
        yield Check("classes", self.allows(many), f"{many} of them")
        assert f.bound is not None
        assert f.within is not None
        near = f.bound.replace(clipping_bias=0.0, clipping_bias_sd=0.0)
        yield Check("bound, within", close(f.within, near), "that for all, but for its bias")
        look, radius = f.step("class clipping bias"), f.space.region.radius
        if look is None:
            yield at_least("radius", last.radius, radius, "nothing was clipped")
        else:
            yield at_least("reach of the bias", look.cap, radius - last.radius, "the domain's")

    def check_values(self, facts: Facts, values: Values) -> Iterator[Check]:
        f, last, counts = facts, facts.last, values["counts"]
        yield Check("counts", bool((counts >= 1.0).all()), "at least 1")
        yield from check_total(f, counts)
        yield from self.check_test(f, values)
        Y, center, room = vectors(f, values), np.asarray(last.center), tolerance(f, values)
        weight = f.queries[last.step].weight
        found = Found(counts, Y - center, last.scale, last.radius, weight)
        test, A = last.test, self.contrast(counts)
        most = f.d * min(len(A), len(counts) - 1)
        added = float(self.weights(counts) @ A**2 @ (found.sum_sd / counts) ** 2)
        yield at_least("law of the test", test.scale * test.df, f.d * added, "noise alone")
        # noise of the counts is one more axis
        ok = test.df <= most + 1.0 + 1e-6
        yield Check("law of the test", ok, f"at most {most + 1} axes")
        yield from self.check_contrasts(f, values, Y, 4.0 * room)
        yield from self.check_bound(f, found, values[self.contrasts], room, Y)

    def check_test(self, f: Facts, values: Values) -> Iterator[Check]:
        """The test's numbers follow from one another, and from the contrasts."""
        test, E = f.last.test, np.atleast_2d(values[self.contrasts])
        length = float(self.weights(values["counts"]) @ (E * E).sum(axis=1))
        yield same("test", test.statistic, length, "the squared length")
        expected = ContrastTest.of(test.statistic, test.scale, test.df)
        yield same("p-value", test.p_value, expected.p_value, "of the test's own numbers")
        yield same("p-value", float(values["p_value"]), expected.p_value, "as in the last step")

    def check_contrasts(self, f: Facts, values: Values, Y: Array, limit: float) -> Iterator[Check]:
        """Contrasts are those of the released means, where none of these was moved."""
        if not any(at_edge(f, y) for y in Y):
            off = np.abs(
                np.atleast_2d(values[self.contrasts]) - self.contrast(values["counts"]) @ Y
            )
            detail = f"of the means: off by {off.max():.3g}"
            yield Check(self.contrasts, bool(off.max() <= limit), detail)

    def check_bound(
        self, f: Facts, found: Found, E: Array, room: float, Y: Array
    ) -> Iterator[Check]:
        """The bound follows from counts, means and measured bias."""
        last, look, region = f.last, f.step("class clipping bias"), f.space.region
        assert f.bound is not None
        bias = (0.0, 0.0)
        if look is not None:
            bias = look.bias, look.scale * look.cap / RECORD_NORM
        A, n = self.contrast(found.counts), f.count.value
        bound = class_bound(found, A, E, n, region.radius, bias)
        alike = close(f.bound.replace(shift=0.0), bound.replace(shift=0.0))
        yield Check("error bound", alike, "from counts, σ and bias")
        if (least := found.least).min() < 1.0:
            return
        moved, noisy = (
            f.bound.shift,
            float((column_norms(A) * (found.counts - least) / least).sum()),
        )
        room = noisy * room + 1e-9 * bound.shift
        # a centre outside the domain: a mean brought into it may get farther away
        center = np.asarray(last.center)
        outside = float(np.linalg.norm(f.chart.project(center, region) - center))
        edge = any(at_edge(f, y) for y in Y)
        ok = moved >= bound.shift - room - 2.0 * noisy * outside
        ok = ok and (edge or moved <= bound.shift + room)
        yield Check("noise of the counts", ok, f"adds {moved:.9g}, expected {bound.shift:.9g}")

    # --- words

    def length(self, facts: Facts) -> str:
        """How long the contrasts are, beside what chance and noise make of none."""
        test, law = facts.last.test, facts.within
        assert law is not None
        sizes = self.measured(test.statistic), self.measured(test.scale * test.df)
        many = len(self.contrast(np.ones(len(facts.last.classes))))
        noise = sqrt(law.noise.mean() / (many * facts.d))
        entry = f"; noise of each coordinate about {noise:.3g} rms" if noise else ""
        found, chance = (f"{size:.4g}" for size in sizes)
        told = f"{self.measure} {found} ({self.power}{facts.chart.distance})"
        return f"{told}, about {chance} by chance alone{entry}"

    measure: ClassVar = "length"  # of the contrasts, in words
    power: ClassVar = ""  # of the distance that it is measured in

    def measured(self, statistic: float) -> float:
        """That measure of a squared length."""
        return sqrt(statistic)

    def verdict(self, facts: Facts) -> str:
        """Whether the contrasts are more than sampling and noise make of none."""
        p, least = facts.last.test.p_value, float_info.epsilon  # what rounding leaves
        shown = f"p < {least:.2g}" if p < least else f"p = {p:.3g}"
        return f"{'not ' if p > LEVEL else ''}significant at the 5 % level: {shown}"

    def rows(self, facts: Facts) -> dict[str, str]:
        law = f"scaled χ² of {facts.last.test.df:.3g} degrees of freedom"
        return {self.contrasts: self.length(facts), "test": f"{self.verdict(facts)}, {law}"}


def column_norms(A: Array) -> Array:
    """‖A_c‖ of each class."""
    return np.asarray(np.linalg.norm(A, axis=0))


def class_bound(
    found: Found, A: Array, E: Array, n: float, domain_radius: float, bias: tuple[float, float]
) -> Bound:
    """The confidence region's bound, with a clipping bias summed over the records."""
    d, size = found.z.shape[1], column_norms(A)
    far = float(np.linalg.norm(E)) + float(size.sum()) * domain_radius
    least = found.least
    if least.min() < 1.0:  # a class too small to be seen
        return Bound.certain(d * len(A), far)
    lengths = np.linalg.norm(found.z, axis=1)
    off = float((size * (found.counts - least) * lengths / least).sum())
    step, largest = found.radius / RECORD_NORM, float((size / least).max())
    rounding = sqrt(d) * step * float(size.sum()) * max(1.0, n * largest)
    variances = np.linalg.eigvalsh((A * (found.sum_sd / least) ** 2) @ A.T)
    noise = weighted_chi2(np.repeat(variances[variances > 1e-12 * variances.max()], d))
    mean, sd = (part * largest for part in bias)
    return Bound(noise, mean, sd, off, rounding, far, SURE_SHARE)


def contrast_test(m: Moments, counts: Array, z: Array, A: Array, q: Array) -> ContrastTest:
    """The scaled-χ² test that all contrasts are zero.

    Traces of the sampling parts S_c = Σ_c/n_c and of their products are estimated
    without the bias that noise in the second moments brings.
    """
    (C, d), E = z.shape, A @ z
    noise = (m.sum_sd / counts) ** 2  # of a coordinate of each mean
    inner = z[:, :, None] * z[:, None, :] - noise[:, None, None] * np.eye(d)
    S = (m.second / counts[:, None, None] - inner) / counts[:, None, None]
    H = (A.T * q) @ A
    unit, own = (m.second_sd / counts**2) ** 2, np.diagonal(H)
    traces = np.einsum("cii->c", S)
    trace = max(float(own @ traces), 0.0)
    spread = float(own**2 @ unit) * d * (1.0 + (d - 1) * OFF_NOISE**2)
    products = float(np.einsum("cb,cij,bij->", H**2, S, S)) - spread
    square = max(products, trace**2 / (d * min(len(A), C - 1)))
    counted = float(own @ ((m.count_sd / counts) ** 2 * (z**2).sum(axis=1)))
    mean = trace + d * float(own @ noise) + counted
    both = 2.0 * max(float(noise @ H**2 @ traces), 0.0) + d * float(noise @ H**2 @ noise)
    variance = 2.0 * (square + both) + d * float(own**2 @ unit) + 2.0 * counted**2
    statistic = float(q @ (E * E).sum(axis=1))
    return ContrastTest.of(statistic, variance / (2.0 * mean), 2.0 * mean**2 / variance)
