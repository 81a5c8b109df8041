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

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from math import ceil, sqrt
from typing import Any, ClassVar, NamedTuple, TypedDict, TypeVar, Unpack

from spdp.adaptive import TUNING, Search, counted
from spdp.adaptive.search import check_radius
from spdp.charts import chart_of
from spdp.data.columns import with_columns
from spdp.data.source import Source, as_source
from spdp.domain.base import Domain, Space, check_domain
from spdp.engines import Engine, VectorStore, engine_for
from spdp.engines.store import MAX_RECORDS, Task
from spdp.error.bound import Bound, Count, population_bound
from spdp.errors import ParameterError, named
from spdp.kernels.arrays import Array
from spdp.ledger import Ledger, check_ledger
from spdp.options import Adjacency, OnInvalid, Unit, check_choices, real
from spdp.privacy.account import Account, Seed
from spdp.privacy.budget import Budget
from spdp.release import Release
from spdp.release.declaration import Declaration
from spdp.release.publishing import publish
from spdp.statistics import find

F = TypeVar("F", bound=Callable[..., Release])

# What an error is called that is the distance of a released matrix to its estimand.
DISTANCE = "rms error"


class Options(TypedDict, total=False):
    """Options of every statistic; :func:`public` tells of them in its function's help.

    Attributes
    ----------
    epsilon, delta : float
        The guarantee. ``delta=0`` means pure differential privacy; statistics that have
        Gaussian noise only refuse it.
    domain : Ball, EigenvalueBounds, TraceBounds or CorrelationBounds
        Public set that every record is clipped to. It must not be computed from the
        data.
    metric : str
        A flat metric, one of ``spdp.charts.CHARTS``. Distances of two metrics cannot be
        compared.
    reference_point : array (k, k), optional
        A public SPD matrix C: records are whitened, C^-½·X·C^-½, and the result is
        mapped back (:mod:`spdp.charts.whitened`). The domain is about whitened records.
    adjacency : "replace-one" or "add-remove"
        Neighbouring datasets: replace one record (n is public), or add or remove one
        (n is protected, too).
    groups : array, list or Dask array (n,), optional
        Subject ID of each record, a number or text. A person then counts once, as the
        mean of their clipped records, and all of them are protected together, however
        many they are.
    on_invalid : "raise" or "center"
        How to handle invalid records: stop with an error that names one (for the
        curator's eyes), or replace them with the domain's centre, so that no
        data-dependent error escapes. Arrays of a wrong shape always raise. When a call
        fails, nothing has been released.
    ledger : Ledger, optional
        Account of the dataset's budget: the cost is committed to it before any noise is
        drawn, or the release is refused.
    label : str, optional
        Name of the release in the ledger.
    random_state : None, int or Generator
        None: operating-system entropy, a private result. A seed means simulation: the
        certificate says ``private: false``.
    engine : Engine, "local" or "gpu", optional
        Where to compute. By default where the data are: on this machine, on the cluster
        of a Dask array, or on the GPU of a CuPy array or torch tensor.
    """

    epsilon: float
    delta: float
    domain: Domain
    metric: str
    reference_point: Any
    adjacency: str
    groups: Any
    on_invalid: str
    ledger: Ledger | None
    label: str | None
    random_state: Seed
    engine: Engine | str | None


DEFAULTS: dict[str, Any] = {
    "metric": "logeuclid",
    "reference_point": None,
    "adjacency": "replace-one",
    "groups": None,
    "on_invalid": "raise",
    "ledger": None,
    "label": None,
    "random_state": None,
    "engine": None,
}


def public(function: F) -> F:
    """A statistic's function whose signature and help name every option it takes.

    In its docstring, ``{options}`` stands for the options of every statistic.
    """
    signature = inspect.signature(function)
    mine = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    kind, required = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    shared = [
        inspect.Parameter(name, kind, default=DEFAULTS.get(name, required), annotation=annotation)
        for name, annotation in Options.__annotations__.items()
    ]
    budget = [p for p in shared if p.default is required]
    choices = [p for p in shared if p.default is not required]
    first = [p for p in mine if p.kind is not kind]
    rest = [p for p in mine if p.kind is kind]
    whole = signature.replace(parameters=[*first, *budget, *rest, *choices])
    known = set(whole.parameters)
    needed = {p.name for p in [*shared, *rest] if p.default is required}

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Release:
        if not needed <= options.keys() <= known:
            if needed - options.keys() == {"domain"} and options.keys() <= known:
                check_domain(None)  # says what a domain is
            try:
                whole.bind(*args, **options)
            except TypeError as error:
                raise TypeError(f"{function.__name__}(): {error}") from None
        return function(*args, **options)

    told = inspect.cleandoc(Options.__doc__ or "").partition("----------\n")[2]
    call.__doc__ = inspect.cleandoc(function.__doc__ or "").replace("{options}", told)
    call.__signature__ = whole  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]


def option(help_: str, example: Any, default: Any = None, **options: Any) -> Any:
    """A statistic's own option, with its help and an example for the command line.

    ``options`` are for the command line, too: ``flag``, ``metavar``, ``min``,
    ``required``, ``kind`` (a type), ``parse`` (from text).
    """
    return field(default=default, metadata={"help": help_, "example": example, **options})


class Records:
    """Records, their space, and the engine that reads them.

    Exact vectors stay in the stores that are made here.
    """

    def __init__(
        self, X: Any, options: Options, labels: Any = None, covariates: Any = None
    ) -> None:
        groups = options["groups"]
        source = as_source(X)
        if not (groups is labels is covariates is None):
            source = with_columns(source, person=groups, label=labels, x=covariates)
        self.source: Source = source
        chart = chart_of(options["metric"], options["reference_point"], source.parts)
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
    shot: Any = None  # the query of one shot


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

    def search(self, store: VectorStore) -> Search:
        """A search over a store; it first counts records if their number is private."""
        return Search(counted(store, self.account, self.space.region), self.account, self.space)


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
    command : str
        Help of its command.
    aliases : tuple
        Older names of its command, which still work.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    command: ClassVar[str]
    aliases: ClassVar[tuple[str, ...]] = ()

    def arrays(self) -> tuple[str, ...]:
        """Names of what will be released."""
        return tuple(self.releases)

    def check_choices(self, *more: tuple[type[StrEnum], Any, str]) -> None:
        """Refuse values that are not among the choices of their option."""
        mine = _choices(type(self))  # type: ignore[arg-type]
        own = [(f.metadata["kind"], getattr(self, f.name), f.name) for f in mine]
        left_out = {f.name for f in mine if getattr(self, f.name) is f.default is None}
        check_choices(*more, *(choice for choice in own if choice[2] not in left_out))

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
        return {"to find where they lie": enough(TUNING.rounds_from * sqrt(d) / mu)}

    # --- the way from records to a release

    def release(
        self, X: Any, *, labels: Any = None, covariates: Any = None, **given: Unpack[Options]
    ) -> Release:
        """Check, read, ask, publish."""
        options: Options = DEFAULTS | given  # type: ignore[assignment]
        self.check_choices(
            (Adjacency, options["adjacency"], "adjacency"),
            (OnInvalid, options["on_invalid"], "on_invalid"),
        )
        records = Records(X, options, labels, covariates)
        for name, option in (("label", "y"), ("x", "covariates")):
            if name in self.columns and name not in records.source.columns:
                raise ParameterError(f"each record needs {MISSING[name]}", ask=option)
        self.prepare(records)
        if options["ledger"] is not None:
            check_ledger(options["ledger"])
            records.engine.check_data(records.source, options["ledger"])
        return self.answer(records, options, records.source.unit)

    def answer(self, records: Any, options: Options, unit: Unit) -> Release:
        """Settle from public numbers, pay, run and publish."""
        epsilon, delta, ledger = options["epsilon"], options["delta"], options["ledger"]
        neighbours = Adjacency(options["adjacency"])
        settled = self.settle(records, epsilon, delta, adjacency=neighbours, ledger=ledger)
        seed, label = options["random_state"], options["label"]
        paid: Any = {"ledger": ledger, "label": label, "random_state": seed, "unit": unit}
        account = Account(settled.budget, neighbours, **paid)
        context = Context(records.space, account, records, settled)
        if settled.method == "adaptive":
            check_radius(context.space.region)
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


@functools.lru_cache(maxsize=32)
def _choices(kind: Any) -> list[Any]:
    """Options of a statistic whose values are those of an enum."""
    enums = [f for f in fields(kind) if isinstance(f.metadata.get("kind"), type)]
    return [f for f in enums if issubclass(f.metadata["kind"], StrEnum)]


def enough(n: float) -> int | None:
    """A whole number of records; None for more than can be added up exactly."""
    return None if n > MAX_RECORDS else ceil(n)


MISSING = {"label": "a class", "x": "covariates"}
