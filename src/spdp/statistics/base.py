"""What all statistics share: the way from records to a release.

*Enforced.* Options are checked, and whether a ledger is bound to these data, before any
budget is spent. A query's records are read, and invalid ones refused, before it is paid
for. Every answer comes from the account, and what is published is computed from these
answers and from public numbers alone.

*Assumed.* The domain is public; each person owns at most one record, or ``groups``
gives the subject ID of each record (:mod:`spdp.engines.grouping`); and under
replace-one the number of records, or of persons, is public.

*Therefore* all answers together are (ε, δ)-DP, or ε-DP with Laplace noise, and so is
the release, which is computed from them and from public numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import lru_cache, partial
from math import ceil, sqrt
from typing import Any, ClassVar, NamedTuple, Unpack

from spdp.adaptive import TUNING, MovingSearch, Search, counted
from spdp.adaptive.search import RADII
from spdp.charts import chart_of
from spdp.data.columns import with_columns
from spdp.data.progress import working
from spdp.data.source import Source, as_source
from spdp.domain.base import Space, check_between
from spdp.engines import VectorStore, engine_for
from spdp.engines.store import MAX_RECORDS, Task
from spdp.error.bound import Bound, Count, population_bound
from spdp.errors import ParameterError, named
from spdp.kernels.arrays import Array
from spdp.ledger import check_ledger
from spdp.options import Adjacency, OnInvalid, Unit, check_choices, real, truth
from spdp.privacy.account import Account
from spdp.privacy.budget import Budget
from spdp.release import Release
from spdp.release.declaration import Declaration
from spdp.release.publishing import publish
from spdp.statistics import find
from spdp.statistics.options import DEFAULTS, Options
from spdp.statistics.refusal import refuse_uninformative

# Name of the error that is a distance from a released matrix to its estimand.
DISTANCE = "rms error"


class Records:
    """Records, their space, and the engine that reads them.

    Exact vectors stay in the stores that are made here.
    """

    def __init__(
        self,
        X: Any,
        options: Options,
        labels: Any = None,
        covariates: Any = None,
        curved: bool = False,
    ) -> None:
        groups = options["groups"]
        source = as_source(X)
        if not (groups is labels is covariates is None):
            source = with_columns(source, person=groups, label=labels, x=covariates)
        self.source: Source = source
        self.unit: Unit = source.unit
        metric, point = options["metric"], options["reference_point"]
        chart = chart_of(metric, point, source.parts, curved)
        self.space = Space.of(chart, options["domain"], source.k)
        self.engine = engine_for(source, options["engine"])
        self.policy = OnInvalid(options["on_invalid"])
        # if the number of records is private, so is whether there are any
        self.allow_none = options["adjacency"] == Adjacency.ADD_REMOVE
        self.classes: Sequence[Any] | None = None
        self.ranges: Array | None = None
        self.max_records: int | None = None  # that count of one person
        self._persons: VectorStore | None = None

    @property
    def grouped(self) -> bool:
        """Whether records have subject IDs."""
        return "person" in self.source.columns

    @property
    def rereadable(self) -> bool:
        """Whether records can be read more than once; persons are kept."""
        return self.source.rereadable or self.grouped

    def task(self, key: int = 0) -> Task:
        """The task for each block of records; ``key`` is for secret subsampling."""
        chart, region = self.space.chart, self.space.region
        more = self.classes, self.ranges, self.allow_none
        task = self.engine.task(self.source, chart, region, self.policy, *more)
        return task._replace(key=key) if key else task

    def stream(self) -> VectorStore:
        """Records for a single query, read once."""
        return self.gather() if self.grouped else self.engine.stream(self.source, self.task())

    def gather(self, key: int = 0) -> VectorStore:
        """Vectors of all records, or persons, with their class or covariates."""
        if not self.grouped:
            return self.engine.gather(self.source, self.task(key))
        if self._persons is None:  # read once, as settle() may need n
            self._persons = self.engine.gather(self.source, self.task(), self.max_records)
        return self._persons

    @property
    def n(self) -> int | None:
        """Number of records, or persons; None if it is not known before reading."""
        return self.gather().n if self.grouped else self.source.n


class Settled(NamedTuple):
    """Budget and method, settled from public numbers before the first query."""

    budget: Budget
    method: str = "adaptive"
    one_shot: Any = None  # its query, noise and law
    reason: str = ""  # why this method, in words
    two_step: bool = False  # one shot in a curved metric: at most two means over the domain
    has_reference: bool = False  # a search from public data


class Context(NamedTuple):
    """What a statistic runs on: space, account and records."""

    space: Space
    account: Account
    records: Any  # Records, or the SyntheticRecords of a simulation
    settled: Settled

    @property
    def public(self) -> bool:
        """Whether the number of records is public."""
        return self.account.adjacency is Adjacency.REPLACE_ONE

    def gather(self) -> VectorStore:
        """The store of all vectors, for several queries."""
        store: VectorStore = self.records.gather(self.account.key)
        return store

    def counted(self) -> VectorStore:
        """The store of all vectors; counted first, if their number is private."""
        return counted(self.gather(), self.account)

    def search(self, store: VectorStore, enough: float = TUNING.sharp_enough) -> Search:
        """A search over a store; it first counts records if their number is private.

        Above a resolution that is ``enough`` it looks at a subsample.
        """
        kind = Search if self.space.chart.flat else MovingSearch
        return kind(counted(store, self.account), self.account, self.space, enough)


@dataclass(eq=False)
class Outcome:
    """What a statistic's answers say, before vectors are mapped to matrices.

    Attributes
    ----------
    n : float
        Number of records, for replace-one.
    vectors : dict
        In the chart: (d,), or (C, d) for several, of each matrix released.
    numbers : dict
        All other arrays.
    bound, within : Bound, optional
        On the error, before vectors are brought into the domain.
    sampling : tuple, optional
        Variances of noise and sampling, a distance that no record exceeds, and the
        count, for the bound on the distance to the population's mean.
    facts : dict
        Further facts of the certificate.
    warning : tuple, optional
        Text and class of a warning.
    """

    n: float
    vectors: dict[str, Array] = field(default_factory=dict)
    numbers: dict[str, Any] = field(default_factory=dict)
    bound: Bound | None = None
    within: Bound | None = None
    sampling: tuple[Array, float, Count] | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    warning: tuple[str, type[Warning]] | None = None


class Statistic(Declaration):
    """A statistic: what it declares, and how it is computed from noisy answers.

    A subclass is a frozen dataclass whose fields are its own options. ``private_NAME``,
    its certificate, verification, plan, command and pages are made of it.

    Attributes
    ----------
    columns : tuple
        What it needs beside the records: "label", "x", or nothing.
    curved : bool
        Whether it takes metrics that are not flat.
    over_sites : tuple, optional
        Of its own options, those that a study over sites may set; None for a statistic
        that studies cannot have.
    command : str
        Help of its command.
    aliases : tuple
        Older names of its command, which still work.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    curved: ClassVar[bool] = False
    over_sites: ClassVar[tuple[str, ...] | None] = None
    command: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()

    def arrays(self) -> tuple[str, ...]:
        """Names of what will be released."""
        return tuple(self.releases)

    def check_options(self, options: Options) -> None:
        """Refuse values that are not among the choices of their option."""
        given: dict[str, Any] = {**options}
        asked = [(kind, given[name], name) for name, kind in CHOICES if name in given]
        for f in _choices(type(self)):  # type: ignore[arg-type]
            value = getattr(self, f.name)
            if value is not None or f.default is not None:
                asked.append((f.metadata["kind"], value, f.name))
        check_choices(*asked)
        truth("anyway", options.get("anyway", False))

    # --- written by each statistic

    def prepare(self, records: Any) -> None:
        """Check the statistic's own options, and set the records' classes or ranges.

        Of :class:`Records`, or of those of a plan.
        """

    def settle(self, records: Records, epsilon: float, delta: float, **options: Any) -> Settled:
        """Budget and method, from public numbers: Gaussian noise, and a search."""
        if not real("delta", delta) > 0:
            raise ParameterError(
                f"{named('delta')} must be above 0: {self.name} has Gaussian noise only"
            )
        return Settled(Budget.gaussian(epsilon, delta))

    def run(self, context: Context) -> Outcome:
        """Ask the queries, and return what their answers say."""
        raise NotImplementedError

    # --- planning

    shares: ClassVar[tuple[str, ...]] = ()  # names in errors() that are shares, such as power

    @classmethod
    def planned(cls, asked: Any) -> "Statistic":
        """The statistic that a :class:`~spdp.planning.model.Planner` asks for."""
        return cls()

    def errors(self, outcome: Outcome, records: Any) -> dict[str, float]:
        """Errors of an outcome on synthetic records, by name, the main one first."""
        raise NotImplementedError

    def thresholds(self, d: int, mu: float) -> dict[str, int | None]:
        """Numbers of records below which it refuses, warns or finds nothing."""
        return {"to locate the data": whole_records(TUNING.rounds_from * sqrt(d) / mu)}

    # --- the way from records to a release

    def release(
        self, X: Any, *, labels: Any = None, covariates: Any = None, **given: Unpack[Options]
    ) -> Release:
        """Check, read, ask, publish."""
        options: Options = DEFAULTS | given  # type: ignore[assignment]
        self.check_options(options)
        records = Records(X, options, labels, covariates, self.curved)
        for name, option in (("label", "y"), ("x", "covariates")):
            if name in self.columns and name not in records.source.columns:
                raise ParameterError(f"each record needs {MISSING[name]}", ask=option)
        self.prepare(records)
        if options["ledger"] is not None:
            check_ledger(options["ledger"])
            records.engine.check_data(records.source, options["ledger"])
        return self.answer(records, options).with_row_names(records.source.rows)

    def answer(self, records: Any, options: Options) -> Release:
        """Settle from public numbers, pay, run and publish."""
        epsilon, delta, ledger = options["epsilon"], options["delta"], options["ledger"]
        neighbours = Adjacency(options["adjacency"])
        settled = self.settle(records, epsilon, delta, adjacency=neighbours, ledger=ledger)
        seed, label = options["random_state"], options["label"]
        paid: Any = {"ledger": ledger, "label": label, "random_state": seed}
        paid["unit"] = records.unit
        account = Account(settled.budget, neighbours, **paid)
        if neighbours is Adjacency.REPLACE_ONE and not options["anyway"]:
            check_enough = partial(refuse_uninformative, self, records, options, settled)
            if records.n is None:  # told by reading: checked just before payment
                account.before_payment = check_enough
            else:
                check_enough(records.n)
        context = Context(records.space, account, records, settled)
        return self.run_and_publish(context)

    def run_and_publish(self, context: Context) -> Release:
        """Run on an account and publish; what no search can do is refused first."""
        if context.settled.method == "adaptive":
            check_between(context.space.region.radius, *RADII)
        steps = context.account.steps
        with working(lambda: f"{self.name}: {len(steps)} noisy answers so far"):
            return self.publish(context, self.run(context))

    def publish(self, context: Context, outcome: Outcome) -> Release:
        """Map vectors to matrices in the domain, and derive the certificate."""
        space, account = context.space, context.account
        landed = {name: space.land(v) for name, v in outcome.vectors.items()}
        first = next(iter(landed.values()))
        shift, off = (first.moved, first.off) if self.counts_moves else (0.0, 0.0)
        arrays = {name: one.matrix for name, one in landed.items()} | outcome.numbers
        values = {name: arrays[name] for name in self.releases if name in arrays}
        sampling = outcome.sampling
        return publish(
            account,
            find(self.name),  # what verification will ask, without this one's options
            values,
            space=space,
            vector=first.vector,
            method=context.settled.method,
            n=int(outcome.n) if context.public else None,
            error_bound_parts=None if outcome.bound is None else outcome.bound.moved(shift),
            within=None if outcome.within is None else outcome.within.moved(off),
            population=sampling and (lambda bound: population_bound(bound, *sampling)),
            shift=shift,
            warning=outcome.warning,
            **outcome.facts,
        )


@lru_cache(maxsize=32)
def _choices(kind: Any) -> list[Any]:
    """Options of a statistic whose values are those of an enum."""
    enums = [f for f in fields(kind) if isinstance(f.metadata.get("kind"), type)]
    return [f for f in enums if issubclass(f.metadata["kind"], StrEnum)]


def whole_records(n: float) -> int | None:
    """A whole number of records; None for more than can be added up exactly."""
    return None if n > MAX_RECORDS else ceil(n)


MISSING = {"label": "a class", "x": "covariates"}
CHOICES: tuple[tuple[Any, Any], ...] = (("adjacency", Adjacency), ("on_invalid", OnInvalid))
