"""What a statistic declares of its releases, and the certificate derived from it.

What it releases, in which steps, what it estimates and what is known of its error.
Certificates are derived from it (:func:`derive`), verified by deriving them again
(:mod:`.verify`), summarised in words (:mod:`.summary`) and drawn. Statistics are
declared in :mod:`spdp.statistics`, which imports this package and is found by name.
"""

from collections.abc import Callable, Iterator, Mapping
from math import sqrt
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from spdp.error.bound import Bound, Count
from spdp.error.informative import informative_from
from spdp.error.laws import STATED, AnyLaw, quantiles
from spdp.errors import DataError, NotReleased
from spdp.options import Noise, Unit
from spdp.privacy.account import DISTRIBUTED, NAMES, Step, root_of_squares, share_scale
from spdp.privacy.budget import Budget
from spdp.privacy.calibration import gaussian_epsilon, next_below
from spdp.queries import Query
from spdp.release.certificate import (
    COMPUTATIONAL,
    Certificate,
    Facts,
    OtherBound,
    Outside,
    Trust,
    registry,
)
from spdp.rendering.panels import Panel, everything

if TYPE_CHECKING:
    from spdp.release.verify import Arrays

Values = Mapping[str, NDArray[Any]]

# Forms of an error: the law of its square, a bound made of parts, or nothing.
LAW, PARTS, NONE = "law", "parts", "none"
NEVER, MAY, MUST = "never", "may", "must"  # whether a further bound is stated

# Kinds of arrays: one or several matrices (k, k) or (parts, k, k); other arrays by the
# lengths of their axes, such as "d", "classes" or 3.
MATRIX, MATRICES = "matrix", "matrices"
Kind = str | tuple[str | int, ...]

UNITS: dict[str, str] = {
    Unit.RECORD: "the records",
    Unit.VOXEL: "the voxels",
    Unit.PERSON: "the persons, each represented by the mean of their records",
}
# Where the metric is curved, a person's mean is none of its own, but part of the sum.
CURVED_PERSONS = "the records, each person weighing the same, however many records are theirs"
WEIGHTED = "the records, at most {most} of a person's counted"
CLASS_PERSONS = (
    "the persons, each represented by the mean of their records there, and counting in each class "
    "by the share of their records that lie in it"
)


MOVED = (
    "the noise, and how far the value was moved to be a positive definite matrix of float64 numbers"
)

POPULATION = (
    "the {distance} Fréchet mean of the population, each {unit} clipped to the domain; assumed: "
    "{unit}s drawn independently, and enough of them for the normal limit"
)
NOT_COUNTED = "What clipping to the domain did to {unit}s outside it is not counted"


class Check(NamedTuple):
    """One thing that was verified."""

    name: str
    ok: bool
    detail: str


class Declaration:
    """What a statistic declares of its releases, and the certificate derived from it.

    Attributes
    ----------
    name : str
        What certificates, plans and the command line call it.
    title : str
        For a heading that goes on: "Private {title} of 3×3 matrices".
    plain : str
        What it is, for those who do not program; the wizard offers those that say it.
    bound_on : str
        What the bound is on, in words, where it is not the error that a plan shows.
    measured_from : str
        What the error is measured from, in words.
    target : str
        Template of what it estimates, with {distance} and {units}.
    releases : dict
        Names of the arrays and their kinds, the value first.
    steps : dict
        Class of each step, by the step's name: what is released of its answer.
    order : str
        Regular expression of the steps' names, each followed by a semicolon.
    forms : dict
        How the error may be stated, by method.
    within, population : "never", "may" or "must"
        Whether a bound for another target, or for the population's mean, is stated.
    averaged : int
        Number of last answers that are averaged.
    by_class : bool
        Whether a person may count in several classes.
    counts_moves : bool
        Whether its bound counts how far float64 numbers moved the value.
    bounds_means : bool
        Whether its bound is on a mean, or several.
    shrinks : tuple
        Methods whose means are shrunk toward the domain's centre.
    stated : tuple
        Fields of certificates that it may fill and others may not.
    missing : tuple
        Names of arrays that are NaN where nothing can be said.
    samples : bool
        Whether synthetic records can be drawn from what it releases.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    plain: ClassVar[str] = ""
    bound_on: ClassVar[str] = ""
    measured_from: ClassVar[str] = "this matrix"
    target: ClassVar[str]
    releases: ClassVar[dict[str, Kind]]
    steps: ClassVar[dict[str, type[Step]]] = {}
    order: ClassVar[str]
    forms: ClassVar[dict[str | None, tuple[str, ...]]] = {"adaptive": (PARTS,)}
    within: ClassVar[str] = NEVER
    population: ClassVar[str] = NEVER
    averaged: ClassVar[int] = 1
    by_class: ClassVar[bool] = False
    counts_moves: ClassVar[bool] = False
    bounds_means: ClassVar[bool] = False
    samples: ClassVar[bool] = False
    missing: ClassVar[tuple[str, ...]] = ()
    shrinks: ClassVar[tuple[str, ...]] = ()
    stated: ClassVar[tuple[str, ...]] = ()

    def informative_from(self, d: int, budget: Budget, shrunk: bool) -> float:
        """The least public number of records that may give an informative release.

        See :mod:`spdp.error.informative`.
        """
        price, laplace = budget.mu or budget.epsilon, budget.noise is Noise.LAPLACE
        return informative_from(d, price, laplace, shrunk)

    def known_uninformative(self, f: Facts) -> bool:
        """Whether public numbers alone say that the domain's centre is about as good.

        Where the number of records is private, where nothing bounds the records, or
        where a search was offered a public reference, they do not.
        """
        if f.n is None or f.domain is None or not f.public:
            return False
        if f.searched and f.reference is not None:
            return False
        return f.n < self.informative_from(f.d, f.budget, f.method in self.shrinks)

    def free_distance(self, f: Facts) -> float | None:
        """Largest distance of the domain's centre from any mean in the domain.

        For several classes, the root of the sum of their squares.
        """
        if f.domain is None or not self.bounds_means:
            return None
        return sqrt(self.bounded_means(f)) * float(f.space.region.radius)

    # --- derived fields

    def kinds(self, method: str | None) -> dict[str, type[Step]]:
        """Classes of the steps of a method: what they release of their answers."""
        return self.steps

    def queries(self, facts: Facts) -> dict[str, Query[Any]]:
        """A query of each kind that a step may ask, for its sensitivity."""
        raise NotImplementedError

    def units(self, facts: Facts) -> str:
        """The records or persons that count, in words."""
        if facts.max_records is not None:
            return WEIGHTED.format(most=facts.max_records)
        if self.by_class and facts.unit == "person":
            return CLASS_PERSONS
        if not facts.chart.flat and facts.unit == "person":
            return CURVED_PERSONS
        return UNITS.get(facts.unit or "", UNITS[Unit.RECORD])

    def estimand(self, facts: Facts) -> str:
        """What is estimated, in words."""
        return self.target.format(distance=facts.chart.distance, units=self.units(facts))

    def bounded(self, facts: Facts) -> str:
        """What the error bound is a distance to, in words."""
        return self.estimand(facts)

    def statement(self, facts: Facts) -> str:
        """What is known of the error, in words."""
        raise NotImplementedError

    def noise_name(self, facts: Facts) -> str:
        """Name of the noise."""
        return NAMES[facts.budget.noise]

    def distance(self, facts: Facts) -> str:
        """Name of the distance that errors are measured in."""
        return facts.chart.distance

    def axes(self, facts: Facts) -> dict[str, int]:
        """Lengths of further axes, by their names in ``releases``."""
        return {}

    def shapes(self, facts: Facts) -> dict[str, list[int]]:
        """Names and shapes of what is released."""
        record = [*([] if facts.parts is None else [facts.parts]), facts.k, facts.k]
        axes = {"d": facts.d, **self.axes(facts)}
        shapes: dict[str, list[int]] = {}
        for name, kind in self.releases.items():
            if kind == MATRIX:
                shapes[name] = record
            elif kind == MATRICES:
                shapes[name] = [axes["classes"], *record]
            else:
                shapes[name] = [axes[a] if isinstance(a, str) else a for a in kind]
        return shapes

    def last_radius(self, facts: Facts) -> float:
        """The radius that the last answer clips to, which is 2³⁰ lattice steps."""
        told = getattr(facts.last, "radius", None)
        return float(facts.space.region.radius if told is None else told)

    def count(self, facts: Facts) -> Count:
        """The number that sums are divided by: the last noisy, or the public one."""
        noisy = facts.noisy_count
        if noisy is not None:
            return Count(float(noisy.n_estimate), getattr(noisy, "count_sd", None) or 0.0)
        if facts.n is None:
            raise DataError("no number of records is stated, public or noisy")
        return Count(float(facts.n))

    def sigma(self, facts: Facts) -> float:
        """Scale of the noise in what is released."""
        root = sqrt(self.averaged)
        return float(facts.last.scale * facts.unit_step / facts.count.value / root)

    def sensitivity(self, facts: Facts) -> float:
        """How far one record can move the last answer."""
        return float(facts.last.sensitivity * facts.unit_step / facts.count.value)

    def law(self, facts: Facts) -> AnyLaw | None:
        """The law of the squared error, where it is known."""
        return None

    def within_target(self, facts: Facts) -> tuple[str, float | None]:
        """Target, and reach, of the bound for another target."""
        raise NotImplementedError

    # --- verification

    def expected_bound(self, facts: Facts) -> Bound | None:
        """The bound that follows from steps, given the parts that do not."""
        return facts.bound

    def check(self, facts: Facts) -> Iterator[Check]:
        """Checks of inequalities, and of fields that do not follow from others."""
        yield from ()

    def check_values(self, facts: Facts, values: "Arrays") -> Iterator[Check]:
        """Checks of the released numbers."""
        yield from ()

    # --- words and pictures, from what was released alone

    any_mean: ClassVar[str] = "any mean"  # what the domain's centre is compared with

    def heading(self, facts: Facts) -> str:
        """What a release is, and of what size its matrices are."""
        return f"{self.title} of {facts.k}×{facts.k} matrices"

    def rows(self, facts: Facts) -> dict[str, str]:
        """Further facts of this statistic, for tables."""
        return {}

    def meaning(self, facts: Facts) -> str | None:
        """What the bound is worth, in other terms than the domain's radius."""
        return None

    def bounded_means(self, facts: Facts) -> int:
        """Number of means that the bound covers together."""
        return 1

    def panels(self, facts: Facts, values: Values) -> list[Panel]:
        """The pictures of a release, the main one first."""
        return everything(values)

    def sampled(self, facts: Facts, values: Values) -> "Sampled":
        """What synthetic records are drawn from; an error if it was not released."""
        names = functions(lambda other: other.samples)
        raise NotReleased(f"synthetic records need a released covariance: use {names}")

    @property
    def function(self) -> str:
        """Name of its function."""
        return f"private_{self.name.replace('-', '_')}"

    @property
    def matrices(self) -> str:
        """Name of the matrices released."""
        return next(name for name, kind in self.releases.items() if kind in (MATRIX, MATRICES))


class Sampled(NamedTuple):
    """Mean(s) and covariance that synthetic records are drawn from.

    ``root`` is L with LLᵀ the covariance; ``classes`` and ``counts`` where there is a
    mean for each class.
    """

    means: NDArray[Any]
    root: NDArray[np.float64]
    classes: list[Any] | None = None
    counts: NDArray[np.float64] | None = None


def functions(having: Callable[[Declaration], bool]) -> str:
    """Names of the functions of statistics that meet a condition, for a message."""
    return " or ".join(s.function for s in registry().every() if having(s))


# --- deriving a certificate


def derive(facts: Facts) -> Certificate:
    """The certificate of facts, with every field that follows from them."""
    own = {name: getattr(facts, name) for name in Facts.__struct_fields__}
    return Certificate(**own | derived_fields(facts))


def derived_fields(facts: Facts) -> dict[str, Any]:
    """The fields that follow from others."""
    f, declaration = facts, facts.declaration
    private, error = f.seed is None, _error(f)
    statement = declaration.statement(f)
    if error["error_bound"] is not None and f.domain is not None:
        statement = f"{statement.rstrip('.')}. {NOT_COUNTED.format(unit=f.unit)}"
    return {
        "epsilon": f.budget.epsilon,
        "delta": f.budget.delta,
        "private": private,
        "float_safe": private,
        "mechanism": DISTRIBUTED if f.trust else declaration.noise_name(f),
        "mu": mu_spent(f),
        "estimand": declaration.estimand(f),
        "distance": declaration.distance(f),
        "error_statement": statement,
        "error_bound_within": _within(f),
        "error_bound_population": _population(f),
        "n_estimate": _n_estimate(f),
        "arrays": declaration.shapes(f),
        "sensitivity": declaration.sensitivity(f),
        "sigma": f.noise_scale,
        "lattice_step": f.unit_step,
        "outside": _outside(f),
        **error,
        **({"trust": _trust(f, f.trust)} if f.trust else {}),
    }


def mu_spent(facts: Facts) -> float | None:
    """√Σ μᵢ² of all steps, rounded up; None for Laplace noise."""
    if facts.budget.mu is None:
        return None
    mus = [step.mu for step in facts.answers]
    if None in mus:
        raise DataError("a step of Gaussian noise has no price")
    if len(mus) == 1:
        return float(mus[0])
    return root_of_squares(mus)


def _trust(f: Facts, trust: Trust) -> Trust:
    """What follows from the number of sites, and of those that may collude."""
    if not trust.colluding < trust.sites:
        raise DataError("not all sites may collude")
    if f.budget.mu is None:
        raise DataError("noise of several sites is Gaussian")
    alone = f.budget.mu * sqrt(trust.honest) * (1 + 1e-15)
    return msgspec.structs.replace(
        trust,
        computational=COMPUTATIONAL,
        noise_per_site=share_scale(f.last.sensitivity, f.last.mu, trust.honest),
        noise_factor=sqrt(trust.sites / trust.honest),
        epsilon_if_all_others_collude=gaussian_epsilon(next_below(f.budget.delta), alone),
    )


def _error(f: Facts) -> dict[str, Any]:
    """What is stated of the error: a law or a bound made of parts, never both."""
    law = None if f.bound is not None else f.declaration.law(f)
    squares = None if law is None else quantiles(law)
    bound = None if f.bound is None else f.bound.stated()
    if squares is not None:
        bound = {level: sqrt(squares[level]) for level in STATED}
    return {
        "error_bound": bound,
        "expected_squared_error": None if law is None else law.mean(),
        "squared_error_quantiles": squares,
        "squared_error_law": law,
    }


def _within(f: Facts) -> OtherBound | None:
    if f.within is None:
        return None
    return OtherBound.of(f.within, *f.declaration.within_target(f))


def _population(f: Facts) -> OtherBound | None:
    if f.population is None:
        return None
    return OtherBound.of(
        f.population, POPULATION.format(distance=f.declaration.distance(f), unit=f.unit)
    )


def _n_estimate(f: Facts) -> float | None:
    """The noisy number that sums were divided by, if it was not the public one."""
    noisy = not f.public or f.noisy_count is not None
    return f.count.value if f.method is not None and noisy else None


def _outside(f: Facts) -> Outside | None:
    edge = f.step("edge") if f.searched else None
    return None if edge is None else Outside(edge.share, edge.sd)
