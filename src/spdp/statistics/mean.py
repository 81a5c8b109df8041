r"""The private Fréchet mean of a dataset: clip, encode, add up exactly, add noise.

One shot asks one query over the whole public domain; a search (:mod:`spdp.adaptive`)
finds a smaller ball first. ``method="auto"`` chooses from public numbers.

*Enforced.* Every record is clipped to the public domain and rounded to the integer
lattice (:mod:`spdp.lattice`), so that each query (:mod:`spdp.queries`) has a known
sensitivity; every number that leaves is answered by the account
(:mod:`spdp.privacy.account`).
*Assumed*, *therefore*: as in :mod:`spdp.statistics.base`; the matrix, its certificate
and its error law are computed from noisy integers and from public numbers alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isclose, sqrt
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np

from spdp import options as choices
from spdp.adaptive import MeanSearch, Search, steps
from spdp.adaptive.mean import searched_bound
from spdp.adaptive.steps import ROUNDS_ORDER, SHAPE_ORDER, START_ORDER, Kinds, Queries
from spdp.engines import VectorStore
from spdp.error.bound import Bound
from spdp.error.laws import AnyLaw, Chi2, mean_law
from spdp.errors import ParameterError, named
from spdp.ledger import Ledger, check_ledger
from spdp.options import METHOD_HELP, Adjacency, Mechanism, Method, Noise, Unit, Weights
from spdp.privacy.account import Seed, Step
from spdp.privacy.budget import Budget
from spdp.queries import Estimate
from spdp.queries.sums import VectorSum, count_weight, share_sum, whole_domain_sum
from spdp.release import Release, verify
from spdp.release.certificate import Facts
from spdp.release.declaration import LAW, MATRIX, MAY, MOVED, PARTS, Check, Values
from spdp.rendering.panels import Panel, matrix_panels, stacked
from spdp.statistics import base
from spdp.statistics.base import Context, Options, Outcome, Records, Settled
from spdp.statistics.class_means import UNLIKELY
from spdp.statistics.clipped_mean import check_clipping_bias, check_units
from spdp.statistics.oneshot import OneShot, choose_method, plan_one_shot
from spdp.statistics.partial_sums import LatticeSum
from spdp.statistics.reference import Reference, check_reference

UPPER_LAW = (
    "the whole error; the stated law is the law of the noise, an upper bound, since projecting the "
    "value to the domain never increases the error"
)
COUNT = {"kind": int, "metavar": "M", "min": 1}
WHOLE_ERROR = (
    "the whole error (noise, clipping and shrinkage), with at least the stated probability "
    "over the noise, whatever the records are"
)
WITHIN = "the mean of the records clipped to within {reach:.4g} of a released centre"


class OneShotStep(Step):
    """The only answer, and the number of records (or weights) if it is released."""

    n_estimate: steps.Number | None = None


@dataclass(frozen=True, eq=False)
class Mean(base.Statistic):
    """The Fréchet mean."""

    name: ClassVar = "mean"
    title: ClassVar = "mean"
    target: ClassVar = "the {distance} Fréchet mean of {units}, each clipped to the domain"
    releases: ClassVar = {"mean": MATRIX}
    order: ClassVar = (
        f"{START_ORDER}(distance;)?({ROUNDS_ORDER}{SHAPE_ORDER}(tail;)?)?"
        "(clipping bias;){0,2}mean;"
    )
    forms: ClassVar = {"oneshot": (LAW, PARTS), "adaptive": (PARTS,)}
    within: ClassVar = MAY
    counts_moves: ClassVar = True
    stated: ClassVar = ("max_records", "reference")
    bounds_means: ClassVar = True
    command: ClassVar = """Release the private Fréchet mean of the matrices in files.

    Each record is one person, unless --per-file, --groups, --groups-column or a
    manifest gives subject IDs: a person then counts once, with all records protected.
    """

    mechanism: str = base.option("Distribution of the noise.", None, "auto", kind=Mechanism)
    method: str = base.option(METHOD_HELP, None, "auto", kind=Method)
    weights: str | None = field(default=None, metadata={"kind": Weights})  # or by max_records
    max_records: int | None = base.option(
        "Weight persons by their records, up to this public number.", None, **COUNT
    )
    reference: Reference | None = base.option(
        "Public reference, .npz, from spdp reference.", None, kind=Path, parse=Reference.load
    )

    # --- asking

    def prepare(self, records: Any) -> None:
        weighted = self.max_records is not None
        if self.weights is not None and (self.weights == Weights.RECORDS) != weighted:
            raise ParameterError(
                f"{named('weights', 'records')} and {named('max_records')} go together"
            )
        if weighted and not records.grouped:
            raise ParameterError(f"{named('max_records')} needs {named('groups')}")
        if weighted:
            records.max_records = choices.positive_int("max_records", self.max_records)
        if self.reference is not None:
            check_reference(self.reference, records.space.k, records.space.chart.key)

    def settle(self, records: Records, epsilon: float, delta: float, **options: Any) -> Settled:
        """One shot or a search, and the noise of the better one.

        With a ledger of δ > 0, "auto" means Gaussian noise. Composition there charges a
        pure release its Gaussian equivalent: at ε = 1, δ = 1e-6 its μ is five times the
        μ of a Gaussian release.
        """
        space, ledger, mechanism = records.space, options["ledger"], str(self.mechanism)
        shared = ledger is not None and ledger.delta > 0
        if mechanism == Mechanism.AUTO and choices.real("delta", delta) > 0 and shared:
            mechanism = Mechanism.GAUSSIAN
        given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "mechanism": mechanism}
        given |= {"adjacency": options["adjacency"], "max_records": self.max_records}
        shot = plan_one_shot(space.k, domain=space.domain, chart=space.chart, **given)
        asked = records.n, epsilon, delta, mechanism, self.method, self.reference
        method = choose_method(shot, *asked)
        adapts = method is Method.ADAPTIVE
        return Settled(Budget.gaussian(epsilon, delta) if adapts else shot.budget, method, shot)

    def run(self, context: Context) -> Outcome:
        if context.settled.method == Method.ONESHOT:
            return self.one_shot(context, context.settled.shot)
        store = context.gather()
        found = MeanSearch(Search(store, context.account, context.space), self.reference).run()
        within = found.within
        if within is not None and within.at() >= found.bound.at():
            within = None
        return Outcome(
            store.n, {"mean": found.y}, bound=found.bound, within=within, facts=self.offered
        )

    def one_shot(self, context: Context, shot: OneShot) -> Outcome:
        """Ask the only query of a one-shot release."""
        store: VectorStore = context.records.stream()
        answer = context.account.ask(shot.query, store)
        estimate: Estimate = answer.estimate
        if shot.query.weight:
            answer.note(OneShotStep, n_estimate=estimate.count.value)
        y = context.space.region.center + estimate.value
        facts = {**self.offered, "max_records": shot.max_records}
        return Outcome(store.n, {"mean": y}, facts=facts)

    @property
    def offered(self) -> dict[str, Any]:
        """Digest of the reference that was passed, whether it was used or not."""
        return {"reference": None if self.reference is None else self.reference.digest}

    def errors(self, outcome: Outcome, records: Any) -> dict[str, float]:
        y = records.space.chart.project(outcome.vectors["mean"], records.space.region)
        truth = records.once("mean", lambda rows: rows.Y.mean(axis=0))
        return {base.DISTANCE: float(np.linalg.norm(y - truth))}

    def thresholds(self, d: int, mu: float) -> dict[str, int | None]:
        return {}

    # --- what the certificate says

    def kinds(self, method: str | None) -> Kinds:
        if method == Method.ONESHOT:
            return {"mean": OneShotStep}
        return steps.BALL | steps.SHAPE | {"mean": steps.MeanStep}

    def queries(self, facts: Facts) -> Queries:
        region = facts.space.region
        if facts.max_records is not None:
            return {"mean": share_sum(region, Adjacency(facts.adjacency))}
        weight = 0 if facts.public else count_weight(len(region.center))
        mean: Queries = {"mean": whole_domain_sum(region, weight)}
        if not facts.searched:
            return mean
        return steps.ball_queries(facts.space) | steps.shape_queries(facts.space) | mean

    def law(self, facts: Facts) -> AnyLaw | None:
        if facts.searched:
            return None
        stretch = 0.0
        if facts.noisy_count is not None:
            query = facts.queries["mean"]
            assert isinstance(query, VectorSum)
            stretch = query.stretch
        laplace = facts.budget.noise is Noise.LAPLACE
        return mean_law(laplace, facts.d, facts.noise_scale**2, stretch)

    def statement(self, facts: Facts) -> str:
        if facts.searched:
            return WHOLE_ERROR
        return UPPER_LAW if facts.bound is None else MOVED

    def within_target(self, facts: Facts) -> tuple[str, float | None]:
        reach = facts.step("clipping bias").reach[1]
        return WITHIN.format(reach=reach), reach

    # --- verification

    def expected_bound(self, facts: Facts) -> Bound | None:
        stated = facts.bound
        assert stated is not None
        law = self.law(facts)
        return self.searched(facts, stated, 0) if law is None else Bound.shifted(law, stated.shift)

    def searched(self, facts: Facts, stated: Bound, reach: int) -> Bound:
        """The bound of a search, given the parts that do not follow from steps."""
        looks = [step for step in facts.answers if step.step == "clipping bias"]
        n = facts.count.value
        return searched_bound(facts.last, facts.d, n, looks, reach, stated.free)

    def check(self, facts: Facts) -> Iterator[Check]:
        if not facts.searched:
            noisy = not facts.public or facts.max_records is not None
            yield Check("count", noisy == (facts.noisy_count is not None), "noisy unless public")
            if facts.public and facts.max_records is not None:
                weight, found = facts.queries["mean"].weight, facts.count.value
                most = float(facts.n or 0) + UNLIKELY * facts.last.scale / weight
                yield Check("sum of the weights", found <= most, f"{found:.9g}, below {most:.9g}")
            return
        f, own_bound = facts, facts.bound
        assert own_bound is not None
        yield Check("adjacency", f.public, f.adjacency)
        yield from check_clipping_bias(f)
        if f.last.width is None:
            region = f.space.region
            yield verify.same("radius", f.last.radius, float(region.radius), "the whole domain's")
            yield Check("center", verify.close(f.last.center, list(region.center)), "the domain's")
        else:
            yield Check("clipping bias", f.step("clipping bias") is not None, "measured")
            yield from check_units(f, f.last.width)
        if f.within is not None:
            ok = verify.close(f.within, self.searched(f, f.within, 1))
            yield Check("bound, within", ok, "as for all records, but for the bias")
            least = own_bound.max_distance - own_bound.shift
            yield verify.at_least(
                "max distance, within", f.within.max_distance, least, "before moves"
            )

    def check_values(self, facts: Facts, values: Values) -> Iterator[Check]:
        if facts.searched:
            yield verify.farthest(facts, values)
            yield from self.check_shrinkage(facts, values)

    def check_shrinkage(self, f: Facts, values: Values) -> Iterator[Check]:
        """The shrinkage of a mean follows from σ, its dimension and its length."""
        assert f.bound is not None
        shrunk, own_law = f.bound.shrinkage, f.bound.noise
        if shrunk is None:
            return
        dimensions = shrunk.unshrunk in (0, 1) and shrunk.dimension + shrunk.unshrunk == f.d
        yield Check("shrinkage", dimensions, "dimensions")
        yield Check("shrinkage", isinstance(own_law, Chi2), "where all units are equal")
        yield verify.same("noise of what was shrunk", shrunk.sigma, sqrt(own_law.mean() / f.d), "σ")
        p, square = shrunk.dimension, shrunk.length**2
        factor = max(0.0, 1.0 - (p - 2) * shrunk.sigma**2 / square) if square else 1.0
        ok = isclose(shrunk.factor, factor, rel_tol=1e-6, abs_tol=1e-9)
        yield Check("factor of the shrinkage", ok, "James and Stein's")
        whole = f.last.width is None
        if whole and (f.step("center") is not None or f.reference is not None):
            return  # shrunk to a centre that no step states
        (y,) = verify.vectors(f, values)
        if verify.at_edge(f, y):
            return  # brought back into the domain, it is shorter or longer
        rest = y - np.asarray(f.last.center)
        if shrunk.unshrunk:
            rest = rest - f.chart.components(rest)[0].v
        most = shrunk.factor * shrunk.length + verify.tolerance(f, values)
        length = float(np.linalg.norm(rest))
        yield Check("length of the shrinkage", length <= most, f"{length:.9g}, at most {most:.9g}")

    # --- words and pictures

    def heading(self, facts: Facts) -> str:
        if facts.parts:
            return f"means of records, each of {facts.parts} {facts.k}×{facts.k} matrices"
        return super().heading(facts)

    def rows(self, facts: Facts) -> dict[str, str]:
        """Whether a public reference was used: a search checks it by a distance."""
        if facts.reference is None:
            return {}
        asked = [step.step for step in facts.answers if step.step != "edge"]
        use = "checked privately, and started from if the data lie there"
        if not facts.searched:
            use = "not used: one shot was predicted to err less"
        elif asked[0] != "distance":
            use = "not used: with this many records the search finds the data by itself"
        return {"reference": f"{use} (SHA-256 {facts.reference[:12]}…)"}

    def panels(self, facts: Facts, values: Values) -> list[Panel]:
        return matrix_panels(*stacked(values["mean"], "Mean"))


STATISTIC = Mean()


@base.public
def private_mean(
    X: Any,
    *,
    mechanism: str = "auto",
    method: str = "auto",
    weights: str | None = None,
    max_records: int | None = None,
    reference: Reference | None = None,
    **options: Unpack[Options],
) -> Release:
    """Release the Fréchet mean of matrices with differential privacy.

    Parameters
    ----------
    X : array (n, k, k), or anything :func:`spdp.data.source.as_source` takes
        One record per person, unless ``groups`` gives subject IDs. Records may hold p
        matrices each, (n, p, k, k): their p means are released together, for one
        budget.
    mechanism : "auto", "gaussian" or "laplace"
        "auto" takes the noise with the smaller expected error, from public numbers
        only; with a ledger of δ > 0 it takes Gaussian noise, because pure-DP releases
        cost more under GDP composition.
    method : "auto", "oneshot" or "adaptive"
        One noisy sum over the whole domain, whose error law is exact; or a private
        search for the data's centre and shape first (:mod:`spdp.adaptive`), usually
        far more accurate. "auto" takes the latter where public numbers predict
        a gain.
    weights : "persons" or "records", optional
        With ``groups``: whether a person counts once, or by the number m of their
        records, as min(m, ``max_records``)/``max_records``; the latter in one shot. By
        default "records" if ``max_records`` is given.
    max_records : int, optional
        Public number of records from which on a person's weight grows no more.
    reference : Reference, optional
        Centre and shape of public data that may resemble these. With few records the
        adaptive method starts there, after a private check. Method "auto" is then
        adaptive, unless one shot is predicted to err less for data with the spread of
        the reference. Refused where no search can run, as with ``delta=0``.
    {options}

    Returns
    -------
    Release

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, private_mean
    >>> X = np.stack([np.diag([1.0, 1.5 + i / 1000]) for i in range(1000)])
    >>> domain = EigenvalueBounds(0.1, 10.0)
    >>> release = private_mean(X, epsilon=1.0, delta=1e-6, domain=domain)
    >>> release.value.shape, release.certificate["private"]
    ((2, 2), True)
    """
    mean = Mean(mechanism, method, weights, max_records, reference)
    return mean.release(X, **options)


def release_sum(
    total: LatticeSum,
    *,
    epsilon: float,
    delta: float,
    mechanism: str = "auto",
    adjacency: str = "replace-one",
    ledger: Ledger | None = None,
    label: str | None = None,
    random_state: Seed = None,
) -> Release:
    """Release the mean of records in one shot, from their exact sum.

    The options are those of :func:`private_mean`.
    """
    mean = Mean(mechanism, Method.ONESHOT)
    mean.check_choices((Adjacency, adjacency, "adjacency"))
    options: Options = {"epsilon": epsilon, "delta": delta, "adjacency": adjacency}
    options |= {"ledger": check_ledger(ledger), "label": label, "random_state": random_state}
    return mean.answer(total, options, Unit(total.unit))
