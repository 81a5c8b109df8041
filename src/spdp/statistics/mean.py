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
from math import sqrt
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np

from spdp import options as choices
from spdp.adaptive import TUNING, MeanSearch, PureMeanSearch, TwoMeans, steps
from spdp.adaptive.mean import clipped_bound, last_reach
from spdp.adaptive.pure import check_pure_budget
from spdp.adaptive.search import sure_of
from spdp.adaptive.steps import (
    NEAR_ORDER,
    ROUNDS_ORDER,
    SHAPE_ORDER,
    START_ORDER,
    Kinds,
    Queries,
    asked_of,
)
from spdp.charts.riemann import Point
from spdp.domain.base import check_between
from spdp.engines import VectorStore
from spdp.error.bound import Bound, Count
from spdp.error.curvature import carried_rounding, held_to
from spdp.error.laws import AnyLaw, mean_law
from spdp.errors import DataError, ParameterError, named
from spdp.geometry import distance_riemann, mean_riemann
from spdp.options import METHOD_HELP, Adjacency, Mechanism, Method, Noise, Unit, Weights
from spdp.privacy.account import Step
from spdp.queries import Estimate
from spdp.queries.sums import VectorSum, count_weight, share_sum, whole_domain_sum
from spdp.release import Release, verify
from spdp.release.certificate import Facts
from spdp.release.declaration import LAW, MATRIX, MAY, MOVED, PARTS, Check, Values
from spdp.release.verify import Arrays
from spdp.rendering.panels import Panel, matrix_panels, stacked
from spdp.statistics import base
from spdp.statistics.base import Context, Outcome, Records, Settled
from spdp.statistics.class_means import UNLIKELY
from spdp.statistics.clipped_mean import (
    check_ball,
    check_clipping_bias,
    check_count,
    check_counts,
    check_search,
    check_shrinkage,
    check_step,
    check_units,
    grain_of,
    looks_of,
)
from spdp.statistics.method import OneShot, Rule, plan_one_shot
from spdp.statistics.options import Options, option, public
from spdp.statistics.reference import Reference, check_reference

UPPER_LAW = (
    "the whole error; the stated law is the law of the noise, an upper bound, since projecting the "
    "value to the domain never increases the error"
)
COUNT = {"kind": int, "metavar": "M", "min": 1}
LARGEST_CURVED = 200.0  # radius of a domain whose points float64 holds, seen from each other
WHOLE_ERROR = (
    "the whole error (noise, clipping and shrinkage), with at least the stated probability "
    "over the noise, whatever the records are"
)
CURVED_ERROR = WHOLE_ERROR.replace("clipping and shrinkage", "clipping, shrinkage and curvature")
WITHIN = "the mean of the records clipped to within {reach:.4g} of a released centre"


class OneShotStep(Step):
    """The only answer, and the number of records (or weights) if it is released."""

    n_estimate: steps.Number | None = None


@dataclass(frozen=True, eq=False)
class Mean(base.Statistic):
    """The Fréchet mean."""

    name: ClassVar = "mean"
    title: ClassVar = "mean"
    plain: ClassVar = "Mean: the centre of all matrices."
    target: ClassVar = "the {distance} Fréchet mean of {units}, each clipped to the domain"
    releases: ClassVar = {"mean": MATRIX}
    order: ClassVar = (
        f"{START_ORDER}((distance;)?({ROUNDS_ORDER}{SHAPE_ORDER}(tail;)?)?|{ROUNDS_ORDER}{NEAR_ORDER})"
        "(clipping bias;){0,2}(center;)?mean;"
    )
    forms: ClassVar = {"oneshot": (LAW, PARTS), "adaptive": (PARTS,)}
    within: ClassVar = MAY
    counts_moves: ClassVar = True
    shrinks: ClassVar = (Method.ADAPTIVE,)
    stated: ClassVar = ("max_records", "reference")
    bounds_means: ClassVar = True
    curved: ClassVar = True
    over_sites: ClassVar = ()
    command: ClassVar = """Release the private Fréchet mean of the matrices in files.

    Each record is one person, unless --per-file, --groups, --groups-column or a
    manifest gives subject IDs: a person then counts once, with all records protected.
    """

    mechanism: str = option("Distribution of the noise.", None, "auto", kind=Mechanism)
    method: str = option(METHOD_HELP, None, "auto", kind=Method)
    weights: str | None = field(default=None, metadata={"kind": Weights})  # or by max_records
    max_records: int | None = option(
        "Weight persons by their records, up to this public number.", None, **COUNT
    )
    reference: Reference | None = option(
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
        if not records.space.chart.flat:
            self.check_curved(records)
        if self.reference is not None:
            check_reference(self.reference, records.space.k, records.space.chart.key)

    def check_curved(self, records: Any) -> None:
        """Refuse what a curved metric does not have, before anything is read."""
        metric = named("metric", records.space.chart.name)
        if records.space.chart.parts is not None:
            raise ParameterError(f"{metric} takes records of one matrix each")
        check_between(records.space.region.radius, 0.0, LARGEST_CURVED)
        for flat in ("max_records", "reference"):
            if getattr(self, flat) is not None:
                raise ParameterError(f"{named(flat)} needs a flat metric, not {metric}")
        source = getattr(records, "source", None)
        if source is not None and records.grouped and not source.rereadable:
            raise ParameterError(
                f"{metric} with {named('groups')} reads the records at each step, and "
                f"{source.name} can be read only once: save it to a file"
            )

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
        given: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "domain": space.domain}
        given |= {"adjacency": options["adjacency"], "max_records": self.max_records}
        given |= {"chart": space.chart}
        shot = plan_one_shot(space.k, mechanism=mechanism, **given)
        public = options["adjacency"] is Adjacency.REPLACE_ONE
        once = not records.rereadable
        rule = Rule(shot, epsilon, delta, mechanism, self.reference, once)
        method, budget, reason = rule.choose(records.n if public else None, self.method)
        if method is Method.ONESHOT:
            if not space.chart.flat:  # its second step depends on the first
                return Settled(budget, Method.ADAPTIVE, None, reason, two_step=True)
            return Settled(budget, method, shot, reason)
        if budget.noise is Noise.LAPLACE:
            check_pure_budget(epsilon, len(space.region.center))
        return Settled(budget, method, shot, reason, has_reference=self.reference is not None)

    def run(self, context: Context) -> Outcome:
        one_shot = context.settled.method == Method.ONESHOT
        outcome = self.one_shot(context) if one_shot else self.search(context)
        outcome.facts["reference"] = None if self.reference is None else self.reference.digest
        return outcome

    def search(self, context: Context) -> Outcome:
        """Find where the records are, then take their mean there."""
        store = context.gather()
        if context.settled.two_step:
            search = context.search(store)
            found = TwoMeans(search).run()
        elif context.account.budget.mu is None:
            search = context.search(store)
            found = PureMeanSearch(search).run()
        else:
            search = context.search(store, TUNING.clear_enough)
            found = MeanSearch(search, self.reference).run()
        return Outcome(search.n, {"mean": found.y}, bound=found.bound, within=found.within)

    def one_shot(self, context: Context) -> Outcome:
        """Ask the only query of a one-shot release."""
        shot: OneShot = context.settled.one_shot
        store: VectorStore = context.records.stream()
        answer = context.account.ask(shot.query, store)
        estimate: Estimate = answer.estimate
        if shot.query.weight:
            answer.note(OneShotStep, n_estimate=estimate.count.value)
        y = context.space.region.center + estimate.value
        return Outcome(store.n, {"mean": y}, facts={"max_records": shot.max_records})

    def errors(self, outcome: Outcome, records: Any) -> dict[str, float]:
        chart, region = records.space.chart, records.space.region
        y = chart.project(outcome.vectors["mean"], region)
        if not chart.flat:
            exact = records.once("mean", lambda rows: mean_riemann(chart.matrices(rows.Y)))
            return {base.DISTANCE: float(distance_riemann(chart.matrices(y), exact))}
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
        d = len(region.center)
        if not facts.searched:
            return {"mean": whole_domain_sum(region, 0 if facts.public else count_weight(d))}
        weight = 0 if facts.public else facts.last.weight(d)
        mean: Queries = {"mean": whole_domain_sum(region, weight)}
        return steps.ball_queries(facts.space) | steps.shape_queries(facts.space) | mean

    def count(self, facts: Facts) -> Count:
        """The public number, or the noisy one of the last answer."""
        if not facts.searched or facts.last.n_estimate is None:
            return super().count(facts)
        last, d, pure = facts.last, facts.d, facts.budget.mu is None
        sd = last.scale * (sqrt(d + 2.0) if pure else 1.0) / last.weight(d)
        return Count.noisy(float(last.n_estimate), sd, sure_of(facts.budget, d))

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
            return WHOLE_ERROR if facts.chart.flat else CURVED_ERROR
        return UPPER_LAW if facts.bound is None else MOVED

    def within_target(self, facts: Facts) -> tuple[str, float | None]:
        reach = looks_of(facts).reach(facts.last)
        if reach is None:
            raise DataError("no bound within a reach can be stated")
        return WITHIN.format(reach=reach), reach

    # --- verification

    def expected_bound(self, facts: Facts) -> Bound | None:
        stated = facts.bound
        assert stated is not None
        law = self.law(facts)
        if law is not None:
            return Bound.shifted(law, stated.shift)
        return self.searched(facts, stated, within=False)

    def searched(self, facts: Facts, stated: Bound, within: bool) -> Bound:
        """The bound of a search, given the parts that do not follow from steps."""
        f, (bias, risk) = facts, looks_of(facts).of(facts.last, within)
        n = asked_of(f)
        rest = f.count, risk, stated.free, grain_of(f)
        return clipped_bound(f.last, f.d, f.noise_scale, bias, n, *rest)

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
        counted = (f.step("count") is None) == f.public == (f.last.n_estimate is None)
        yield Check("number of records", counted, "counted first and last where private")
        if not f.public:
            yield check_counts(f)
        yield from check_clipping_bias(f, f.last.width is not None)
        yield from check_search(f)
        if f.last.width is None:
            region = f.space.region
            yield verify.same("radius", f.last.radius, float(region.radius), "the whole domain's")
            yield Check("center", verify.close(f.last.center, list(region.center)), "the domain's")
        else:
            yield Check("clipping bias", f.step("clipping bias") is not None, "measured")
            yield from check_units(f, f.last.width)
        yield from self.check_curvature(f)
        if f.within is not None:
            ok = verify.close(f.within, self.searched(f, f.within, within=True))
            yield Check("bound, within", ok, "as for all records, but for the bias")
            least = own_bound.max_distance - own_bound.shift
            yield verify.at_least(
                "max distance, within", f.within.max_distance, least, "before moves"
            )

    def check_curvature(self, f: Facts) -> Iterator[Check]:
        """What a curved metric adds follows from the last step, but for its lengths."""
        assert f.bound is not None
        found, last = f.bound.curvature, f.last
        yield Check("curvature", (found is None) == f.chart.flat, "of a curved metric, and of none")
        twice = len(f.answers) > 1 and f.answers[-2].step == "center"
        moved = last.point is not None
        yield Check("steps", f.chart.flat <= (not (twice or moved)), "those of this metric")
        if found is None:
            return
        point = list(f.space.region.center) if last.point is None else last.point
        yield verify.equal("point", len(point), f.d)
        if len(point) != f.d:
            return
        away = np.subtract(point, last.center)
        reach = last_reach(last, f.space.region, f.unit == Unit.PERSON.value)
        yield verify.same("reach", found.reach, reach, "of the last step, from its point")
        if moved:
            start = Point.start(f.d)
            there = start.moved(np.asarray(point)).factor
            least = (1.0 - 1e-6) * carried_rounding(f.space.region, start.factor, there)
            least -= held_to(there)
            yield verify.at_least("rounding", found.rounding, least, "what the last move adds")
        if last.width is not None and moved:
            yield Check("point", not away.any(), "the last centre")
        slack = 1e-9 * (1.0 + found.length) ** 2
        yield verify.at_least("length", found.length + slack, found.step, "a Newton step's")
        inner = found.step**2 - slack <= found.along <= found.step * found.length + slack
        yield Check("along", inner, "between the step's square and its product with the length")
        if f.within is not None:
            yield Check("curvature, within", f.within.curvature == found, "as for all records")

    def check_values(self, facts: Facts, values: Arrays) -> Iterator[Check]:
        if facts.searched:
            yield verify.farthest(facts, values)
            yield from check_shrinkage(facts, values)
            yield from check_step(facts, values)
        if facts.searched and not facts.public:
            yield check_count(facts, values)
        if facts.searched and facts.chart.flat and facts.last.width is not None:
            yield check_ball(facts, values)

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


@public
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
