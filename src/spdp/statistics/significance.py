r"""Contrasts of class means, their confidence region, and a test that they are zero.

A search (:mod:`spdp.adaptive`) finds the ball of all records, without looking at
classes; a *histogram* of the distances to its centre, class by class, tells whether the
classes are equally wide; one query (``MomentSum``) with the rest of the budget then
gives, for every class, noisy counts, sums and second moments of the records clipped to
a ball about that centre. With the class means z_c of the clipped records, a contrast is
Σ_c A_rc·z_c for a matrix A whose rows add up to 0; A may depend on the noisy counts,
which are released.

*Radii.* Clipping pulls each class mean toward the centre, and pulls classes of one law
alike, which cancels in a contrast. It does not cancel where one class is wider or more
skewed than another: contrasts are then not zero although the means agree. So, where the
histograms differ, each class has a radius of its own, chosen such that the bias that is
left is small beside the noise (:func:`spdp.adaptive.clipping_radius.fitted_radius`);
where they agree, all have one radius, which balances the two.

*Confidence region.* Let S_c be the sum of the n_c clipped records of a class, less the
centre, N_c ~ N(0, σ_c²I) and e_c the noise of sum and count, z_c the ratio that is
released. Then z_c = (S_c + N_c)/(n_c + e_c), so that

    z_c − S_c/n_c = (N_c − e_c·z_c)/n_c,   n_c = n̂_c − e_c.

With |e_c| ≤ E for all classes, but for a probability of 2·10⁻⁵ in all, the contrasts
together are off by at most ‖A·(N_c/n_c)‖ + Σ ‖A_c‖·E‖z_c‖/(n̂_c − E), A_c the column of
a class; the first term's square has the law of weights the eigenvalues of
A·diag(σ_c²/n_c²)·Aᵀ, each d times, with n_c ≥ n̂_c − E. Nothing is assumed of the
records. For records that are clipped to the domain only, what the balls take away is
added: their total clipping bias, measured as in :mod:`spdp.error.bound`, times the
largest ‖A_c‖/(n̂_c − E).

*Test.* The null hypothesis is that the contrasts of the clipped records' expectations
are zero: that class means agree, records beyond the stated radii counted at that
distance. Then T = Σ_r q_r·‖contrast r‖² has the mean Σ H_cc·tr V_c and nearly the
variance 2·Σ H_cb²·tr V_c·V_b, for H = Aᵀ·diag(q)·A and V_c = Σ_c/n_c + noise; the
traces are estimated from the released second moments, whose noise is known. Where n·μ
is below 2d that noise would hide the products, and beyond 4,096 coordinates d² numbers
are hopeless: then tr Σ_c alone is asked for, and tr Σ_c·tr Σ_b, which is no smaller,
stands for tr Σ_c·Σ_b. The variance is then too large, which errs on the safe side, and
by little where the noise of the means outweighs their sampling, as it does below
n·μ² = 4d. The p-value is that of the scaled χ² with these two moments (Bai and
Saranadasa 1996, for two classes). Its level is approximate: a normal limit, and two
moments; a very small p-value is no more than an order of magnitude. The law's tail is
positive everywhere: where it is smaller than the smallest normal double, that number is
given, which is above it, and never 0.

*Withheld.* No p-value is given where the histogram of the smallest class does not stand
out from its noise, so that unequal spreads would not be seen; nor where the bias that
clipping is expected to leave is not small. Both rules look at released numbers alone.
What no histogram of distances shows remains: classes that are equally far from the
centre but skewed in different ways have clipped means that differ; so have classes of
which one has a longer tail than the noise shows; and two of many classes that lie far
from the centre of all records are clipped unequally where their spreads differ. The
level is then not held (docs/statistics.md has figures).

*Enforced*, *assumed*, *therefore*: as in :mod:`spdp.statistics.base`; ``classes`` are
public, and a record whose label is not among them adds nothing.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import nan, sqrt
from sys import float_info
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from scipy import special

from spdp.adaptive import TUNING, Search
from spdp.adaptive.clipping_radius import CLASS_EDGES, TailPrior, fitted_radius
from spdp.adaptive.shrinkage import shrink
from spdp.adaptive.steps import (
    BALL,
    ROUNDS_ORDER,
    START_ORDER,
    Kinds,
    Label,
    Length,
    Queries,
    asked_of,
    ball_queries,
)
from spdp.error.bound import SURE_SHARE, Bound
from spdp.error.class_means import count_margin
from spdp.error.laws import chi2_tail, weighted_chi2
from spdp.errors import ParameterError, named
from spdp.kernels.arrays import Array
from spdp.kernels.base import RECORD_NORM
from spdp.privacy.account import NOTHING, Step
from spdp.queries import WHOLE
from spdp.queries.moments import OFF_NOISE, HistogramByClass, Moments, MomentSum
from spdp.queries.sums import ClassClippingBias, Frame
from spdp.release.certificate import Facts
from spdp.release.declaration import MUST, Check, Values
from spdp.release.verify import CLOSE, Arrays, at_edge, at_least, close, equal, same
from spdp.statistics.base import Context, Outcome, whole_records
from spdp.statistics.class_means import (
    ClassStatistic,
    check_classes,
    check_total,
    class_means,
    classes_option,
    possible_classes,
    seen_from,
    shape_seen,
)

LEVEL = 0.05  # of a test, above which contrasts may be noise
# Shares of μ², and what follows from the histogram, chosen on Gaussian and exponential
# laws of d = 6 and 21; benchmarks/statistics/significance.py measures other laws.
CENTER_SHARE, CENTER_BALL = 0.03, 1.3  # one more centre, in a ball over the distance
HISTOGRAM_SHARE, BIAS_SHARE = 0.08, 0.03
SEEN = 38.0  # noise of a cell times this: the smallest class whose spread can be compared
DIFFER = 0.03  # level at which histograms differ
ALIKE = TailPrior(body=0.4, scale=0.4, log_sd=1.0, weight=0.01)
UNLIKE = TailPrior(body=0.12, scale=0.9, log_sd=0.45, weight=100.0)
MOST_BIAS = 0.3  # left by clipping, over the root of E T, up to which a p-value is given
NULL = (
    "The test is of the hypothesis that the classes' means are equal, {unit}s beyond the stated "
    "radii from the stated centre being counted at that distance; its level is approximate"
)
TOO_FEW = "the smallest class is too small at this budget to compare the spreads of the classes"
BIASED = "clipping may leave a bias that is not small beside noise and sampling"


class ContrastTest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Squared length of contrasts, and its law where they are zero but for chance.

    ``withheld`` is why there is no p-value, or empty.
    """

    statistic: float
    scale: float
    df: float
    p_value: float | None
    withheld: str = ""

    @classmethod
    def of(cls, statistic: float, scale: float, df: float, withheld: str = "") -> "ContrastTest":
        """With the probability of so large a length, or a bound on a tiny one."""
        p = None if withheld else chi2_tail(statistic / scale, df)
        return cls(statistic, scale, df, p, withheld)


class HistogramStep(Step):
    """Noisy numbers of records by distance from ``center``, for each class.

    Between edges at CLASS_EDGES times ``distance``, and beyond.
    """

    center: list[float]
    distance: Length
    counts: list[list[float]]


class ClassBiasStep(Step):
    """Sum of the records' clipping bias, as far as ``cap``."""

    bias: float
    cap: float


class ClassMomentsStep(Step):
    """The last answer: the balls, the public list of classes, and the test."""

    center: list[float]
    radii: list[Length]
    classes: list[Label]
    test: ContrastTest


class Balls(NamedTuple):
    """Radii of the classes, and what they are made of.

    ``bias`` is the root mean square distance by which clipping is expected to move the
    mean of each class apart from the others'; ``few`` is whether a class is too small.
    """

    radii: Array
    bias: Array
    few: bool


def class_balls(H: Array, sd: float, distance: float, noise: float, d: int) -> Balls:
    """Radii from the histograms (C, K) of the classes and the noise ``sd`` of a cell.

    A mean of m records clipped at r has noise of noise·r/m in each of d coordinates.
    """
    sizes = H.sum(axis=1)
    few, least = bool(sizes.min() < SEEN * sd), np.maximum(sizes, 2.0 * sd)
    loss = noise * sqrt(d) / least
    if few or not differ(H, least, sd):
        total = float(least.sum())
        both = float(np.sqrt((loss**2).sum()))
        radius, _ = fitted_radius(H.sum(axis=0), sd * sqrt(len(H)), total, both, ALIKE)
        return Balls(np.full(len(H), radius * distance), np.zeros(len(H)), few)
    found = [
        fitted_radius(h, sd, float(n), float(v), UNLIKE)
        for h, n, v in zip(H, least, loss, strict=True)
    ]
    radii, bias = np.array(found).T * distance
    return Balls(radii, bias, few)


def differ(H: Array, sizes: Array, sd: float) -> bool:
    """Whether the classes' distances have different laws: a χ² test of homogeneity."""
    n = sizes[:, None]
    pooled = np.maximum(H.sum(axis=0), 0.0) / n.sum()
    weight = 1.0 / ((sd / n) ** 2 + pooled / n)
    common = (weight * H / n).sum(axis=0) / weight.sum(axis=0)
    statistic = float((weight * (H / n - common) ** 2).sum())
    return bool(special.chdtrc((len(H) - 1) * H.shape[1], statistic) < DIFFER)


@dataclass(frozen=True, eq=False)
class Found:
    """What the answers say of the classes in their balls, less the centre."""

    counts: Array  # (C,)
    z: Array  # (C, d), means
    scale: float  # of the noise, in lattice units
    radii: Array  # (C,)
    weight: int  # of a count

    @property
    def sum_sd(self) -> Array:
        """Noise of a coordinate of each class's sum."""
        return np.asarray(self.scale * self.radii / RECORD_NORM)

    @property
    def least(self) -> Array:
        """n̂_c − E: what the counts are not below, but for a small risk."""
        return self.counts - count_margin(len(self.counts), self.scale / self.weight)


@dataclass(frozen=True, eq=False)
class Contrast(ClassStatistic):
    """Contrasts of class means, and a test that they are zero."""

    measured_from: ClassVar = "what was released"
    steps: ClassVar[Kinds] = BALL | {
        "class histogram": HistogramStep,
        "class clipping bias": ClassBiasStep,
        "class moments": ClassMomentsStep,
    }
    order: ClassVar = (
        f"{START_ORDER}{ROUNDS_ORDER}center;class histogram;(class clipping bias;)?class moments;"
    )
    within: ClassVar = MUST
    by_class: ClassVar = True
    columns: ClassVar = ("label",)
    shares: ClassVar = ("power", "p-value given")
    missing: ClassVar = ("p_value",)
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

    @abstractmethod
    def check_contrasts(self, f: Facts, values: Values, Y: Array, limit: float) -> Iterator[Check]:
        """Contrasts are those of the released means, as far as these were not moved."""

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
        search.find_ball(TUNING.max_rounds, search.reserve())
        self.recenter(search)
        names, center, reach = (
            check_classes(self.classes),
            search.frame.center,
            search.max_distance(),
        )
        balls = self.find_balls(search, store, len(names))
        radii, bias = np.minimum(balls.radii, reach), (0.0, 0.0)
        if reach > radii.min():
            cap = reach - float(radii.min())
            asked = ClassClippingBias("class clipping bias", center, radii, cap)
            look = account.ask(asked, store, BIAS_SHARE)
            bias = float(look.estimate.value[0]), look.estimate.sd
            look.note(ClassBiasStep, bias=bias[0], cap=cap)
        second = second_moments(search.d, search.n, search.mu)
        query = MomentSum("class moments", search.frame, radii, len(names), second, pooled=False)
        answer = account.ask(query, store)
        moments = answer.estimate
        counts = np.maximum(moments.counts, 1.0)
        z = moments.sums / counts[:, None]
        found = Found(counts, z, moments.count_sd * query.weight, radii, query.weight)
        A = self.contrast(counts)
        test = contrast_test(moments, counts, z, A, self.weights(counts), balls)
        where = {"center": center.tolist(), "radii": radii.tolist()}
        answer.note(ClassMomentsStep, **where, classes=names, test=test)
        E, p_value = A @ z, np.array(nan if test.p_value is None else test.p_value)
        told = E[0] if len(E) == 1 else E
        numbers = {self.contrasts: told, "counts": counts, "p_value": p_value}
        n, far = search.n, search.domain_radius
        whole, clipped = (class_bound(found, A, E, n, far, b) for b in (bias, (0.0, 0.0)))
        return Outcome(n, {"means": center + z}, numbers, whole, clipped)

    def recenter(self, search: Search) -> None:
        """One more mean moves the centre: clipping about a poor one is biased."""
        z, sigma, _ = search.ask_center(CENTER_BALL * search.distance, CENTER_SHARE)
        offset, _ = shrink(z, sigma)
        search.frame = search.frame.moved(search.inside(search.frame.center + offset))

    def find_balls(self, search: Search, store: Any, classes: int) -> Balls:
        """Radii of the classes, from histograms of their distances to the centre."""
        distance, left = search.distance, search.account.left
        edges = CLASS_EDGES * distance
        query = HistogramByClass("class histogram", search.frame, edges, classes)
        answer = search.account.ask(query, store, HISTOGRAM_SHARE)
        H = answer.estimate.value.reshape(classes, -1)
        where = {"center": search.frame.center.tolist(), "distance": distance}
        answer.note(HistogramStep, **where, counts=H.tolist())
        last = moments_noise(search.mu, left)
        return class_balls(H, answer.estimate.sd, distance, last, search.d)

    def errors(self, outcome: Outcome, records: Any) -> dict[str, float]:
        truth = records.once("means", lambda rows: class_means(rows, len(self.classes)))
        off = outcome.numbers[self.contrasts] - self.contrast(outcome.numbers["counts"]) @ truth
        p = float(outcome.numbers["p_value"])
        return {
            f"rms error of the {self.contrasts}": float(np.linalg.norm(off)),
            "power": float(p < LEVEL),
            "p-value given": float(p == p),
        }

    def thresholds(self, d: int, mu: float) -> dict[str, int | None]:
        classes = len(self.classes)
        cell = sqrt(2.0 / HISTOGRAM_SHARE) / mu
        given = {"for a p-value": whole_records(classes * SEEN * cell)}
        return super().thresholds(d, mu) | seen_from(classes, d, mu, "full") | given

    # --- what the certificate says

    def queries(self, facts: Facts) -> Queries:
        center, classes = facts.space.region.center, len(facts.last.classes)
        frame, ones = Frame.plain(center), np.ones(classes)
        assert facts.budget.mu is not None
        second = second_moments(facts.d, asked_of(facts), facts.budget.mu)
        return ball_queries(facts.space) | {
            "class histogram": HistogramByClass("", frame, CLASS_EDGES, classes),
            "class clipping bias": ClassClippingBias("", center, ones, 1.0),
            "class moments": MomentSum("", frame, ones, classes, second, pooled=False),
        }

    def axes(self, facts: Facts) -> dict[str, int]:
        return {"classes": len(facts.last.classes)}

    def last_radius(self, facts: Facts) -> float:
        return float(max(facts.last.radii))

    # --- verification

    def check(self, facts: Facts) -> Iterator[Check]:
        f, last, many = facts, facts.last, len(facts.last.classes)
        yield equal("last step", last.step, "class moments")
        yield Check("classes", self.allows(many), f"{many} of them")
        yield possible_classes(last.classes)
        assert f.bound is not None
        assert f.within is not None
        near = f.bound.replace(clipping_bias=0.0, clipping_bias_sd=0.0)
        yield Check("bound, within", close(f.within, near), "that for all, but for its bias")
        region = f.space.region
        away = float(np.linalg.norm(np.asarray(last.center) - region.center))
        inside = away <= region.radius * (1.0 + CLOSE)
        yield Check("center", inside, "in the domain's ball")
        yield from self.check_balls(f, f.chart.farthest(np.asarray(last.center), region))

    def check_balls(self, f: Facts, reach: float) -> Iterator[Check]:
        """Radii, and the cap of the bias, follow from the histogram."""
        last, seen, look = f.last, f.step("class histogram"), f.step("class clipping bias")
        yield Check("class histogram", seen is not None, "asked")
        H = np.array(seen.counts)
        shape = (len(last.classes), len(CLASS_EDGES) + 1)
        yield equal("class histogram", H.shape, shape)
        yield Check("center", seen.center == last.center, "of the histogram, too")
        balls = self.stated_balls(f, H)
        radii = np.minimum(balls.radii, reach)
        yield Check("radii", close(last.radii, radii.tolist()), "from the histogram")
        if look is None:
            yield Check("radii", min(last.radii) >= reach * (1.0 - CLOSE), "nothing was clipped")
        else:
            yield same("reach of the bias", look.cap, reach - float(radii.min()), "the domain's")

    def stated_balls(self, f: Facts, H: Array) -> Balls:
        """The radii that follow from a stated histogram."""
        seen, mu = f.step("class histogram"), f.budget.mu
        assert mu is not None
        before = f.answers[: f.answers.index(seen)]
        left = 1.0 - sum((step.mu / mu) ** 2 for step in before)
        noise = moments_noise(mu, left)
        return class_balls(H, seen.scale / WHOLE, seen.distance, noise, f.d)

    def check_values(self, facts: Facts, values: Arrays) -> Iterator[Check]:
        f, last, counts = facts, facts.last, values["counts"]
        yield Check("counts", bool((counts >= 1.0).all()), "at least 1")
        yield from check_total(f, counts)
        yield from self.check_test(f, values)
        Y, center, room = values.vectors, np.asarray(last.center), values.tolerance
        weight = f.queries[last.step].weight
        found = Found(counts, Y - center, last.scale, np.asarray(last.radii), weight)
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
        counts, p = values["counts"], float(values["p_value"])
        length = float(self.weights(counts) @ (E * E).sum(axis=1))
        yield same("test", test.statistic, length, "the squared length")
        balls = self.stated_balls(f, np.array(f.step("class histogram").counts))
        H = (self.contrast(counts).T * self.weights(counts)) @ self.contrast(counts)
        why = withheld(balls, H, test.scale * test.df)
        expected = ContrastTest.of(test.statistic, test.scale, test.df, why)
        yield equal("p-value withheld", test.withheld, why)
        yield same("p-value", test.p_value, expected.p_value, "of the test's own numbers")
        told = None if p != p else p
        yield same("p-value", told, expected.p_value, "as in the last step")

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
        if p is None:
            return f"no p-value: {facts.last.test.withheld}"
        shown = f"p < {least:.2g}" if p < least else f"p = {p:.3g}"
        return f"{'not ' if p > LEVEL else ''}significant at the 5 % level: {shown}"

    def rows(self, facts: Facts) -> dict[str, str]:
        law = f"scaled χ² of {facts.last.test.df:.3g} degrees of freedom"
        return {self.contrasts: self.length(facts), "test": f"{self.verdict(facts)}, {law}"}


def second_moments(d: int, n: float, mu: float) -> str:
    """Which second moments are asked for: by public numbers, or a released n."""
    return "full" if shape_seen(d, n, mu) else "trace"


def column_norms(A: Array) -> Array:
    """‖A_c‖ of each class."""
    return np.asarray(np.linalg.norm(A, axis=0))


def moments_noise(mu: float, left: float) -> float:
    """Noise of a coordinate of a sum in a unit ball, of the last answer.

    ``left`` is the share of μ² before the histogram is asked.
    """
    return 2.0 / (mu * sqrt(max(left - HISTOGRAM_SHARE - BIAS_SHARE, NOTHING)))


def withheld(balls: Balls, H: Array, mean: float) -> str:
    """Why no p-value is given; empty where it is. ``mean`` is that of T."""
    if balls.few:
        return TOO_FEW
    return BIASED if float(np.diagonal(H) @ balls.bias**2) > MOST_BIAS**2 * mean else ""


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
    step, largest = float(found.radii.max()) / RECORD_NORM, float((size / least).max())
    rounding = sqrt(d) * step * float(size.sum()) * max(1.0, n * largest)
    variances = np.linalg.eigvalsh((A * (found.sum_sd / least) ** 2) @ A.T)
    noise = weighted_chi2(np.repeat(variances[variances > 1e-12 * variances.max()], d))
    mean, sd = (part * largest for part in bias)
    return Bound(noise, mean, sd, off, rounding, far, SURE_SHARE)


def sampling_parts(
    m: Moments, counts: Array, z: Array, noise: Array, H: Array
) -> tuple[Array, float, float]:
    """Traces of S_c = Σ_c/n_c, Σ H_cb²·tr S_c·S_b, and the noise of Σ H_cc·tr S_c.

    Estimated without the bias that noise in the second moments brings. Where traces
    alone were asked, that of a product is bounded by the product of the traces.
    """
    d, own = z.shape[1], np.diagonal(H)
    unit = own**2 @ (m.second_sd / counts**2) ** 2  # variance of one entry of them
    if m.second.ndim == 2:
        inner = (z * z).sum(axis=1) - d * noise
        traces = (m.second[:, 0] / counts - inner) / counts
        seen = np.maximum(traces, 0.0)
        return traces, float(seen @ H**2 @ seen), float(unit)
    S = m.second / counts[:, None, None] - z[:, :, None] * z[:, None, :]
    S[:, np.arange(d), np.arange(d)] += noise[:, None]
    S /= counts[:, None, None]
    spread = float(unit) * d * (1.0 + (d - 1) * OFF_NOISE**2)
    flat = S.reshape(len(S), -1)
    products = float((H**2 * (flat @ flat.T)).sum()) - spread
    return np.einsum("cii->c", S), products, d * float(unit)


def contrast_test(
    m: Moments, counts: Array, z: Array, A: Array, q: Array, balls: Balls
) -> ContrastTest:
    """The scaled-χ² test that all contrasts are zero."""
    (C, d), E = z.shape, A @ z
    noise = (m.sum_sd / counts) ** 2  # of a coordinate of each mean
    H = (A.T * q) @ A
    own = np.diagonal(H)
    traces, products, trace_variance = sampling_parts(m, counts, z, noise, H)
    trace = max(float(own @ traces), 0.0)
    square = max(products, trace**2 / (d * min(len(A), C - 1)))
    counted = float(own @ ((m.count_sd / counts) ** 2 * (z**2).sum(axis=1)))
    mean = trace + d * float(own @ noise) + counted
    both = 2.0 * max(float(noise @ H**2 @ traces), 0.0) + d * float(noise @ H**2 @ noise)
    variance = 2.0 * (square + both) + trace_variance + 2.0 * counted**2
    statistic = float(q @ (E * E).sum(axis=1))
    why = withheld(balls, H, mean)
    return ContrastTest.of(statistic, variance / (2.0 * mean), 2.0 * mean**2 / variance, why)
