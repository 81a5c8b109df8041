r"""Private Fréchet means of classes, their sizes, and the covariance within them.

All classes share one budget: a record is in one class, so that counts, sums and second
moments of all classes are one query with the sensitivity of a plain sum
(:mod:`spdp.queries.moments`), even if the neighbouring record has another class.

*Enforced.* Every record is clipped to the public domain and rounded to the integer
lattice; a record whose label is not in the public list of classes adds nothing; every
number that leaves is answered by the account. *Assumed.* As in
:mod:`spdp.statistics.base`; the list of classes is public, their sizes are not.
*Therefore* means, counts, covariance and certificate are together (ε, δ)-DP, where the
neighbouring record may have any other class.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar, Unpack

import msgspec
import numpy as np
from threadpoolctl import threadpool_limits

from spdp.adaptive.classes import (
    CLASS_STEPS,
    TALLIED,
    ClassSearch,
    FoundClasses,
    class_queries,
    whole_domain,
)
from spdp.adaptive.preconditioner import units
from spdp.adaptive.steps import (
    ROUNDS_ORDER,
    START_ORDER,
    Kinds,
    Queries,
    asked_of,
    most_records,
)
from spdp.data.columns import label_of
from spdp.error.bound import Bound, Count
from spdp.error.class_means import clipped_bound, joint_bound, joint_law, least_count
from spdp.errors import NotReleased, ParameterError, TooNoisy, named
from spdp.kernels.arrays import Array
from spdp.kernels.base import RECORD_NORM
from spdp.options import METHOD_HELP, Adjacency, Covariance, Method, positive_int
from spdp.queries import Rows
from spdp.queries.moments import MomentSum
from spdp.queries.sums import Frame
from spdp.release import Release
from spdp.release.certificate import Facts
from spdp.release.declaration import MATRICES, MAY, NONE, PARTS, Check, Sampled, Values
from spdp.release.synthetic import covariance_root
from spdp.release.verify import CLOSE, Arrays, at_least, close, covariance, equal, same
from spdp.rendering.panels import Panel, matrix_panels
from spdp.statistics import base
from spdp.statistics.base import Context, Outcome, Records, Statistic
from spdp.statistics.options import Options, option, public

JOINT = (
    "the whole error of all class means together, the root of the sum of their squared "
    "distances, with at least the stated probability over the noise, whatever the records are; "
    "a class too small to be seen under the noise was given the overall mean, and adds the "
    "largest distance there is in the domain. It does not cover the covariance"
)
CLIPPED = (
    "no bound on the whole error: records were clipped to a released ellipsoid about their class's "
    "centre, and how far that moved the mean of a class was not measured. For the means of the "
    "clipped records there is a bound (error_bound_within): all class means together, with at "
    "least the stated probability over the noise, whatever the records are"
)
TOO_FEW = (
    "nothing: records were clipped to a released ellipsoid, and a class is so small beside the "
    "noise of its count that no bound is left"
)
UNSEEN = (
    "nothing: a class too small to be seen under the noise was given the overall mean, whose "
    "distance to its own is not known"
)
CLIPPED_MEANS = (
    "the means of the classes' {unit}s clipped to the released ellipsoid about the released centre "
    "of each class: all classes together, the root of the sum of their squared distances"
)
CLASS_ORDER = "class centers;class distance;class deviation;(class shape;)?class tail;"
SEEN_ABOVE = 2.0  # standard deviations by which a class that is seen exceeds the least count
UNLIKELY = 7.0  # standard deviations of noise by which honest numbers do not disagree
# Second moments off the diagonal are asked for from this n·μ/d on, where the noise of
# all of them together is as large as an isotropic covariance; below, none is seen.
SHAPE_FROM = 2.0
SHAPE_UP_TO = 4096  # coordinates; beyond, one covariance takes gigabytes and minutes
HIDDEN = (
    "n·μ = {have:.4g} is less than {least:g}·d = {want:.4g}: noise hides the covariance of {d} "
    "coordinates, of which variances alone are released"
)
TOO_LARGE = (
    "the covariance of {d} coordinates has {entries:,} entries, too many to release: variances "
    "alone are released"
)


def check_classes(classes: Sequence[Any]) -> list[Any]:
    """The public list of classes as plain values, each of them once."""
    if not isinstance(classes, Iterable):
        raise ParameterError(f"{named('classes')} must be a public list, got {classes!r}")
    names = [name.item() if isinstance(name, np.generic) else name for name in classes]
    if not names:
        raise ParameterError(f"{named('classes')} is empty: pass the public list of classes")
    if not all(isinstance(name, bool | int | float | str) and _is_written(name) for name in names):
        raise ParameterError(f"{named('classes')} must be finite numbers or texts")
    if None in map(label_of, names):
        raise ParameterError(f"{named('classes')} has an empty text, which means no label: {names}")
    if len({label_of(name) for name in names}) < len(names):
        raise ParameterError(f"{named('classes')} names a class twice: {names}")
    return names


def possible_classes(names: list[Any]) -> Check:
    """Whether a release may state these classes."""
    try:
        return equal("classes", names, check_classes(names))
    except ParameterError as error:
        return Check("classes", False, str(error))


def shape_seen(d: int, n: float, mu: float) -> bool:
    """Whether second moments off the diagonal are asked for; by public numbers."""
    return d <= SHAPE_UP_TO and n * mu >= SHAPE_FROM * d


class ClassStatistic(Statistic):
    """Base of statistics of classes: their public list is read once."""

    classes: Sequence[Any]

    def __post_init__(self) -> None:
        if isinstance(self.classes, Iterator):
            object.__setattr__(self, "classes", list(self.classes))


def _is_written(name: Any) -> bool:
    """Whether JSON can hold it: a certificate must not fail after payment."""
    try:
        return bool(msgspec.json.encode(name) != b"null")
    except (OverflowError, ValueError):
        return False


def parse_classes(text: str) -> list[Any]:
    """The classes of an option, as labels are written."""
    return [label_of(name) for name in text.split(",")]


def classes_option() -> Any:
    """The public list of classes, as an option."""
    more = {"kind": str, "metavar": "A,B,...", "required": True, "parse": parse_classes}
    return option("The public list of classes, never from the data.", "a,b", (), **more)


@dataclass(frozen=True, eq=False)
class ClassMeans(ClassStatistic):
    """Means and sizes of classes, and the covariance within them."""

    name: ClassVar = "class-means"
    title: ClassVar = "means"
    plain: ClassVar = "Class means: a mean, and the number of records, for each class."
    measured_from: ClassVar = "what was released"
    bound_on: ClassVar = " on all class means together"
    target: ClassVar = (
        "the {distance} Fréchet mean of each class of {units}, each clipped to the domain"
    )
    any_mean: ClassVar = "all class means together"
    releases: ClassVar = {"means": MATRICES, "counts": ("classes",), "covariance": ("d", "d")}
    steps: ClassVar[Kinds] = CLASS_STEPS
    order: ClassVar = f"{START_ORDER}({ROUNDS_ORDER}({CLASS_ORDER})?)?moments;"
    forms: ClassVar = {"oneshot": (PARTS,), "adaptive": (PARTS, NONE)}
    within: ClassVar = MAY
    by_class: ClassVar = True
    counts_moves: ClassVar = True
    bounds_means: ClassVar = True
    samples: ClassVar = True
    columns: ClassVar = ("label",)
    command: ClassVar = "Release the mean and the size of every class of matrices."
    aliases: ClassVar = ("classes",)

    classes: Sequence[Any] = classes_option()
    covariance: str = option("Covariance within classes, if any.", None, "none", kind=Covariance)
    method: str = option(METHOD_HELP, None, "auto", kind=Method)

    def arrays(self) -> tuple[str, ...]:
        return tuple(self.releases)[: 2 if self.covariance == Covariance.NONE else 3]

    # --- asking

    def prepare(self, records: Any) -> None:
        records.classes = check_classes(self.classes)

    def settle(
        self, records: Records, epsilon: float, delta: float, **options: Any
    ) -> base.Settled:
        budget = super().settle(records, epsilon, delta).budget
        if self.method == Method.AUTO:
            large = len(records.space.region.center) >= 3
            # an iterator too large to keep would show its size
            kept = records.rereadable or options["adjacency"] is Adjacency.REPLACE_ONE
            return base.Settled(budget, Method.ADAPTIVE if large and kept else Method.ONESHOT)
        return base.Settled(budget, Method(self.method))

    def run(self, context: Context) -> Outcome:
        names, records = check_classes(self.classes), context.records
        search = context.settled.method == Method.ADAPTIVE
        store = context.counted() if search else records.stream()
        n = store.n if search else records.n if context.public else None
        second, warning = self.second_moments(store.d, n, context.account.mu)
        asked = context.account, context.space, names, second
        with threadpool_limits(1, "blas"):  # threads only slow small matrices down
            found: FoundClasses = (
                ClassSearch(store, *asked).run() if search else whole_domain(store, *asked)
            )
        numbers = {"counts": found.counts}
        if found.covariance is not None:
            numbers["covariance"] = found.covariance
        outcome = Outcome(store.n, {"means": found.means}, numbers, found.bound, found.clipped)
        outcome.warning = warning
        return outcome

    def second_moments(
        self, d: int, n: float | None, mu: float
    ) -> tuple[str, tuple[str, type[Warning]] | None]:
        """What is asked for, and a warning where it is less than what is wanted.

        ``n`` is public or released; None where it is neither, before the only query.
        """
        if self.covariance != Covariance.FULL or shape_seen(d, np.inf if n is None else n, mu):
            return str(self.covariance), None
        if d > SHAPE_UP_TO:
            return "diagonal", (TOO_LARGE.format(d=d, entries=d * d), TooNoisy)
        facts = {"have": float(n or 0) * mu, "least": SHAPE_FROM, "want": SHAPE_FROM * d, "d": d}
        return "diagonal", (HIDDEN.format(**facts), TooNoisy)

    @classmethod
    def planned(cls, asked: Any) -> "ClassMeans":
        return cls(
            list(range(positive_int("classes", asked.classes))), asked.covariance, asked.method
        )

    def errors(self, outcome: Outcome, records: Any) -> dict[str, float]:
        truth = records.once("means", lambda rows: class_means(rows, len(self.classes)))
        off = np.linalg.norm(outcome.vectors["means"] - truth) / sqrt(len(truth))
        return {"rms error of a class mean": float(off)}

    def thresholds(self, d: int, mu: float) -> dict[str, int | None]:
        return seen_from(len(self.classes), d, mu, str(self.covariance))

    # --- what the certificate says

    def queries(self, facts: Facts) -> Queries:
        second = ("none", "diagonal", "full")[len(facts.arrays.get("covariance", ()))]
        return class_queries(facts.space, len(facts.last.classes), second)

    def axes(self, facts: Facts) -> dict[str, int]:
        return {"classes": len(facts.last.classes)}

    def shapes(self, facts: Facts) -> dict[str, list[int]]:
        shapes = super().shapes(facts)
        second = shapes.pop("covariance")
        if "covariance" in facts.arrays:
            shapes["covariance"] = second[: len(facts.arrays["covariance"])]
        return shapes

    def count(self, facts: Facts) -> Count:
        return super().count(facts) if facts.public else Count(float(sum(facts.last.counts)))

    def statement(self, facts: Facts) -> str:
        if facts.bound is not None:
            return JOINT
        if facts.last.unseen:
            return UNSEEN
        return TOO_FEW if facts.within is None else CLIPPED

    def within_target(self, facts: Facts) -> tuple[str, float | None]:
        return CLIPPED_MEANS.format(unit=facts.unit), None

    # --- verification

    def tally_sd(self, f: Facts) -> float:
        """Noise of the class counts, combined over all steps that count."""
        counted = [step for step in f.answers if step.step in TALLIED]
        if f.last.width is None:
            counted = counted[-1:]  # over the whole domain only the last step counts
        sds = [step.scale / f.queries[step.step].weight for step in counted]
        return 1.0 / sqrt(sum(sd**-2.0 for sd in sds))

    def expected_bound(self, facts: Facts) -> Bound | None:
        f, stated, region = facts, facts.bound, facts.space.region
        assert stated is not None
        if f.last.width is not None:
            return None
        counts, step = np.asarray(f.last.counts, float), region.radius / RECORD_NORM
        weight = f.queries["moments"].weight
        sum_sd, count_sd = f.last.scale * step, f.last.scale / weight
        law = joint_law(counts, f.d, sum_sd, count_sd, region.radius)
        return joint_bound(law, counts, f.d, step, stated.shift, stated.max_distance)

    def check(self, facts: Facts) -> Iterator[Check]:
        f, last = facts, facts.last
        yield equal("last step", last.step, "moments")
        least = least_count(self.tally_sd(f))
        yield equal("counts", len(last.counts), len(last.classes))
        yield possible_classes(last.classes)
        ok = all(count >= least * (1.0 - CLOSE) for count in last.counts)
        yield Check("counts", ok, f"at least {least:.9g}")
        pairs = zip(last.classes, last.counts, strict=True)
        hidden = [name for name, count in pairs if close(count, least)]
        yield Check("classes not seen", last.unseen == hidden, f"those counted as {least:.9g}")
        if last.width is None:
            yield same("radius", last.radius, float(f.space.region.radius), "the whole domain's")
        if f.bound is not None:
            shift = sqrt(len(last.unseen)) * f.space.region.radius
            yield at_least("classes not seen", f.bound.shift, shift, "each a radius, or more")
        if f.within is not None:
            yield from self.check_clipped(f, f.within)

    def check_clipped(self, f: Facts, stated: Bound) -> Iterator[Check]:
        """The bound for means of clipped records follows from σ, counts and units."""
        last, width = f.last, np.asarray(f.last.width, float)
        yield equal("units", len(width), f.d)
        counts, step = np.asarray(last.counts, float), last.radius / RECORD_NORM
        sd, most = self.tally_sd(f), most_records(f.answers[0], asked_of(f))
        expected = clipped_bound(width, step, last.scale * step, counts, sd, most, stated.shift)
        seen = expected is not None and not last.unseen
        yield Check("classes", seen, "all of them seen")
        if expected is not None:
            expected = expected.replace(max_distance=stated.max_distance)
            yield Check("bound, within", close(stated, expected), "from σ, counts and units")
        found = f.step("class deviation")
        if found is not None and f.step("class shape") is None:
            deviation = np.asarray(found.deviation)
            own_units = deviation if "covariance" in f.arrays else units(deviation)
            yield Check("units", close(last.width, own_units.tolist()), "from the deviations")

    def check_values(self, facts: Facts, values: Arrays) -> Iterator[Check]:
        f, last = facts, facts.last
        same_counts = last.counts == values["counts"].tolist()
        yield Check("counts", same_counts, "of the classes, as in the last step")
        if "covariance" in values:
            yield covariance(values["covariance"])
        if f.public:
            yield from check_total(f, values["counts"])
        if f.bound is None:
            return
        region = f.space.region
        far = np.linalg.norm(values.vectors - region.center, axis=1) + region.radius
        hidden = np.array([name in last.unseen for name in last.classes])
        room = sqrt(len(far)) * values.tolerance
        least = float(np.linalg.norm(far[hidden])) - room
        yield at_least("classes not seen", f.bound.shift, least, "the domain's other side")
        least = float(np.linalg.norm(far)) - room
        yield at_least("max distance", f.bound.max_distance, least, "the same")

    # --- words and pictures

    def heading(self, facts: Facts) -> str:
        classes = len(facts.last.classes)
        return f"means of {classes} classes of {facts.k}×{facts.k} matrices"

    def bounded_means(self, facts: Facts) -> int:
        return len(facts.last.classes)

    def panels(self, facts: Facts, values: Values) -> list[Panel]:
        pairs = zip(facts.last.classes, values["counts"], strict=True)
        titles = [f"Mean of class {name} (about {count:,.0f})" for name, count in pairs]
        return matrix_panels(values["means"], titles)

    def sampled(self, facts: Facts, values: Values) -> Sampled:
        if "covariance" not in values:
            raise NotReleased(
                "synthetic records need a released covariance: pass covariance='diagonal' or "
                "'full' to private_class_means"
            )
        root = covariance_root(values["covariance"])
        return Sampled(values["means"], root, facts.last.classes, values["counts"])


def seen_from(C: int, d: int, mu: float, second: str) -> dict[str, int | None]:
    """The number of records from which every class of C equal ones is seen."""
    query = MomentSum("", Frame.plain(np.zeros(d)), 1.0, C, second)
    sd = query.sensitivity(Adjacency.REPLACE_ONE) / mu / query.weight
    return {"to see every class": base.whole_records(C * (least_count(sd) + SEEN_ABOVE * sd))}


def class_means(rows: Rows, classes: int) -> Array:
    """Exact means (C, d) of rows by class, for plans."""
    return np.array([rows.Y[rows.label == c].mean(axis=0) for c in range(classes)])


def check_total(f: Facts, counts: Array) -> Iterator[Check]:
    """Classes do not hold more records than there are, noise aside."""
    last, first = f.last, f.step("count")
    sd = last.scale / f.queries[last.step].weight
    noise = sd * sqrt(len(counts)) + (0.0 if first is None else first.scale / RECORD_NORM)
    most = f.count.value + UNLIKELY * noise + len(counts) * least_count(sd)
    total = float(counts.sum())
    yield Check("counts", total <= most, f"{total:.9g} in all, at most {most:.9g}")


STATISTIC = ClassMeans()


@public
def private_class_means(
    X: Any,
    y: Any = None,
    *,
    classes: Sequence[Any],
    covariance: str = "none",
    method: str = "auto",
    **options: Unpack[Options],
) -> Release:
    r"""Release the Fréchet mean and the size of every class with differential privacy.

    With the vectors v_i = φ(X_i) of the metric's chart, M_c = φ⁻¹((1/n_c)·Σ_{y_i = c}
    v_i). If asked for, the covariance of v_i − v̄_c, pooled over classes, is released,
    too.

    Parameters
    ----------
    X : array (n, k, k), or anything :func:`spdp.data.source.as_source` takes
    y : array (n,), optional
        The class of each record; needed unless the source holds labels.
    classes : sequence
        The public list of classes. It must not be computed from the data: which classes
        occur would reveal something of the records.
    covariance : "none", "diagonal" or "full"
        Second moments within the classes to release as well. In one shot they raise the
        noise of the counts by a factor of √2, and leave the noise of the sums as it is.
        Where noise would hide all that is off the diagonal (n·μ < 2·d), or d > 4,096,
        "full" releases the diagonal, and a warning says so.
    method : "auto", "oneshot" or "adaptive"
        One query over the whole domain, whose error has a bound; or a private search
        for the classes first (:mod:`spdp.adaptive.classes`), with a bound for means of
        clipped records (:mod:`spdp.error.class_means`). "auto" takes the latter where
        the number of records is public and d ≥ 3.
    {options}

    A label that is none of the classes makes a record invalid: with
    ``on_invalid="center"`` it counts in no class. With ``groups``, a person counts in
    each class by the share of their records in it.

    Returns
    -------
    Release
        ``values``: "means" (C, k, k), "counts" (C,), estimates that are never below the
        least count that noise can show, and "covariance", (d, d) or its diagonal (d,),
        in the coordinates of the metric's chart (for "logeuclid" those of ``vecd``). A
        class too small to be seen has the overall mean, and the last step of the
        certificate lists it as ``unseen``.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, private_class_means
    >>> X = np.stack([np.diag([1.0, 2.0 + (i % 2)]) for i in range(1000)])
    >>> y = ["low" if i % 2 == 0 else "high" for i in range(1000)]
    >>> release = private_class_means(
    ...     X, y, classes=["low", "high"], epsilon=1.0, delta=1e-6,
    ...     domain=EigenvalueBounds(0.1, 10.0),
    ... )
    >>> release.values["means"].shape, release.values["counts"].shape
    ((2, 2, 2), (2,))
    """
    return ClassMeans(classes, covariance, method).release(X, labels=y, **options)
