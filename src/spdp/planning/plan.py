"""How accurate a release will be, predicted from public numbers alone.

One shot has an exact law. The error of a search depends on the spread of the data, so
the statistic itself is run on synthetic records of a stated spread
(:mod:`spdp.planning.population`). Predictions guarantee nothing for data that were not
read; the certificate of a release states what is known of its error.
"""

from dataclasses import dataclass, replace
from inspect import Signature, signature
from typing import Any

from spdp.errors import ParameterError, named
from spdp.options import Adjacency, Method, counted
from spdp.planning import text
from spdp.planning.model import RUNS, Planner, Prediction
from spdp.planning.sample_size import Needed, needed, with_needed
from spdp.release.summary import cautions

START_N, START_EPSILON = 1000, 1.0  # where the search for a needed number starts


@dataclass(frozen=True, repr=False)
class Plan:
    """What a release is predicted to reach; see :func:`plan`.

    Attributes
    ----------
    statistic : str
    method : "oneshot" or "adaptive"
        The method that the statistic's function will use.
    noise : "gaussian" or "laplace"
        The noise that it will use.
    reason : str
        Why this method, in words.
    one_shot : dict
        Exact errors of one shot, for each noise that the budget allows; for a mean
        only.
    adaptive : tuple of Prediction
        Simulated errors for each spread; for a mean, those of the adaptive method with
        the noise that it would use. Empty where it cannot run.
    searches : dict
        The same by noise: the one that would run first, then the other where the
        adaptive method could have it.
    predictions : tuple of Prediction
        Those of the method that will run.
    uninformative : bool
        Whether that method, for all spreads, is no better than the domain's centre.
    compared : str
        What it is compared with, in words.
    known : str
        How the distance of the data's mean from the domain's centre is known.
    reference : str or None
        Digest of the reference that the release would be given.
    unit : "record", "voxel" or "person"
        What n counts.
    refused : bool
        Whether it is refused unless asked for ``anyway``: the domain's centre is about
        as good wherever the data lie, not only where the plan assumes them to be.
    thresholds : dict
        Numbers of records below which the statistic refuses, warns or finds nothing.
    verdict : str
        Whether n is above them, in words.
    cautions : list of str
        What is weak about the guarantee: ε above 10, or δ above 1/n.
    wanted_error, wanted_power : float or None
        The rms error, or the power of a test, that was asked for.
    needed : tuple of Needed
        What would reach it, for each spread: ``n`` at this ε, or ``epsilon`` at this n.
        Empty where the plan itself is made to reach it.
    """

    statistic: str
    n: int
    k: int
    epsilon: float
    delta: float
    domain: dict[str, Any]
    radius: float
    metric: str
    distance: str
    adjacency: str
    method: str
    noise: str
    one_shot: dict[str, Prediction]
    searches: dict[str, tuple[Prediction, ...]]
    known: str
    reference: str | None
    unit: str = "record"
    refused: bool = False
    thresholds: dict[str, int | None] | None = None
    wanted_error: float | None = None
    wanted_power: float | None = None
    needed: tuple[Needed, ...] = ()
    reason: str = ""

    @property
    def adaptive(self) -> tuple[Prediction, ...]:
        return next(iter(self.searches.values()), ())

    @property
    def predictions(self) -> tuple[Prediction, ...]:
        if self.method == Method.ADAPTIVE or not self.one_shot:
            return self.adaptive
        return (self.one_shot[self.noise],)

    @property
    def uninformative(self) -> bool:
        return all(prediction.uninformative for prediction in self.predictions)

    hopeless = uninformative  # as it was called in version 0.2

    @property
    def compared(self) -> str:
        away = max((prediction.offset for prediction in self.predictions), default=0.0)
        return (
            f"returning the domain's centre, which costs no privacy, errs by {away:.4g}: the "
            f"distance of the data's mean from the centre, {self.known}"
        )

    @property
    def cautions(self) -> list[str]:
        """What is weak about the guarantee, a sentence each."""
        public = self.adjacency == Adjacency.REPLACE_ONE
        return cautions(self.epsilon, self.delta, self.n if public else None, self.unit)

    @property
    def verdict(self) -> str:
        for what, number in (self.thresholds or {}).items():
            if number is None or self.n < number:
                least = "more than 2**32" if number is None else f"{number:,}"
                return f"too few {counted(self.unit)} {what}: {least} are needed"
        return f"enough {counted(self.unit)}"

    def describe(self) -> dict[str, Any]:
        """All of it, JSON-ready."""
        return {
            **vars(self),
            "one_shot": {name: row.describe() for name, row in self.one_shot.items()},
            "adaptive": [row.describe() for row in self.adaptive],
            "searches": {
                name: [row.describe() for row in rows] for name, rows in self.searches.items()
            },
            "predictions": [row.describe() for row in self.predictions],
            "uninformative": self.uninformative,
            "compared": self.compared,
            "verdict": self.verdict,
            "cautions": self.cautions,
            "needed": [answer._asdict() for answer in self.needed],
        }

    def _repr_html_(self) -> str:
        return text.card_of(self)

    def __repr__(self) -> str:
        return text.brief(self)


def plan(
    statistic: str = "mean",
    *,
    n: int | None = None,
    epsilon: float | None = None,
    error: float | None = None,
    power: float | None = None,
    runs: int = RUNS,
    **options: Any,
) -> Plan:
    """Predict the error of a release; no data are needed, no budget is spent.

    Parameters
    ----------
    statistic : str
        Any of ``spdp.statistics.STATISTICS``, as certificates call it.
    n, k : int
        Number and size of the records. Without ``n`` the plan is for the fewest records
        that reach ``error`` or ``power``.
    epsilon, delta, domain, metric, adjacency, mechanism, method
        As in :func:`spdp.private_mean`. Without ``epsilon`` the plan is for the
        smallest ε that reaches ``error`` or ``power``.
    error : float, optional
        Wanted rms error of the method that will run: the plan's ``needed`` says what
        would reach it. Where ``n`` or ``epsilon`` is left out, it is chosen to reach it
        for every spread: to half a percent, or some 5 % where errors are simulated.
    power : float, optional
        Wanted power of a test of class means, likewise.
    effect : float, optional
        Distance of two class means from each other, or mean distance of several from
        their common mean; half of the spread unless given.
    spread : float, str or Reference, optional
        Root mean square distance of the records from their (class's) mean: a number, or
        a share of the domain's radius such as ``"10%"``; synthetic records are then
        Gaussian and equally wide in all directions. Or a :class:`Reference`: they are
        then its public records, with their spread, shape and place. None: a range of
        spreads.
    offset : float or str, optional
        Distance of the data's mean from the domain's centre: a number, or a share of
        the radius. By default as in the reference, or else 30 % of the radius. It
        matters if there are few records.
    reference : Reference, optional
        As in :func:`spdp.private_mean`; the data are assumed to have its centre and
        shape, and its spread unless ``spread`` is a number.
    unit : "record", "voxel" or "person"
        What n counts, for the words of the plan: with ``groups`` a person counts like
        one record.
    classes, covariance, covariates, n_components
        Number of classes, all of one size, and the covariance to release with their
        means; number of covariates, assumed to be normal; number of components.
    runs : int
        Releases to simulate, for each spread.
    random_state : int
        Seed of the simulation.

    Returns
    -------
    Plan

    Examples
    --------
    >>> from spdp import Ball, plan
    >>> p = plan(n=2000, k=4, epsilon=1.0, delta=1e-6, domain=Ball(5.0), spread="10%")
    >>> p.method, p.uninformative, p.adaptive[0].rms < p.one_shot["gaussian"].rms
    ('adaptive', False, True)

    How many records reach an rms error of 0.1?

    >>> budget = {"epsilon": 1.0, "delta": 0.0, "domain": Ball(5.0)}
    >>> p = plan(error=0.1, k=4, method="oneshot", **budget)
    >>> p.n, round(p.predictions[0].rms, 3)
    (1050, 0.1)

    Are 50 records enough for a dispersion?

    >>> p = plan("dispersion", n=50, k=9, epsilon=1.0, delta=1e-6, domain=Ball(5.0))
    >>> p.verdict
    'too few records to locate the data: 114 are needed'
    """
    if error is not None and power is not None:
        raise ParameterError(f"pass {named('error')} or {named('power')}, not both")
    wanted = error is not None or power is not None
    if (n is None) + (epsilon is None) > wanted:
        raise ParameterError(
            f"pass {named('n')} and {named('epsilon')}, or one of them with {named('error')} or "
            f"{named('power')}"
        )
    records, loss = START_N if n is None else n, START_EPSILON if epsilon is None else epsilon
    try:
        planner = Planner(statistic=statistic, n=records, epsilon=loss, **options)
    except TypeError as wrong:
        raise TypeError(str(wrong).replace("Planner.__init__", "plan")) from None
    if not wanted or (n is not None and epsilon is not None):
        return plan_of(planner, runs, error, power)
    chosen = with_needed(planner, "n" if n is None else "epsilon", error, power)
    made = plan_of(chosen, runs)
    return replace(made, wanted_error=error, wanted_power=power)


def _signature() -> Signature:
    """What :func:`plan` takes: its own parameters, and a planner's."""
    own = signature(plan).parameters
    given = signature(Planner).parameters | own
    names = [name for name in given if name not in ("statistic", "options")]
    return signature(plan).replace(parameters=[own["statistic"], *(given[x] for x in names)])


plan.__signature__ = _signature()  # type: ignore[attr-defined]


def plan_statistic(statistic: str, **options: Any) -> Plan:
    """:func:`plan` of a statistic, as it was called in version 0.2.

    Examples
    --------
    >>> from spdp import Ball, plan_statistic
    >>> options = {"n": 500, "k": 2, "epsilon": 1.0, "delta": 1e-6, "runs": 1}
    >>> plan_statistic("median", domain=Ball(5.0), **options).verdict
    'enough records'
    """
    return plan(statistic, **options)


def plan_of(
    planner: Planner, runs: int = RUNS, error: float | None = None, power: float | None = None
) -> Plan:
    """The plan for a planner's own number of records and budget.

    If an ``error`` or a ``power`` is given, it includes what would reach it.
    """
    p, space = planner, planner.space
    wanted = error is not None or power is not None
    settled = p.settled(p.n, p.epsilon)
    same = ("statistic", "n", "k", "epsilon", "delta", "radius", "metric")
    return Plan(
        **{name: getattr(p, name) for name in same},
        domain=p.domain.describe(),
        distance=space.chart.distance,
        adjacency=str(p.adjacency),
        method=str(settled.method),
        noise=str(settled.budget.noise),
        reason=settled.reason,
        one_shot=p.exact(),
        searches={str(noise): p.simulated(runs, noise) for noise in p.search_noises},
        known=p.away[1],
        reference=None if p.reference is None else p.reference.digest,
        unit=str(p.unit),
        refused=p.refused,
        thresholds=p.thresholds,
        wanted_error=error,
        wanted_power=power,
        needed=tuple(needed(p, error, power)) if wanted else (),
    )
