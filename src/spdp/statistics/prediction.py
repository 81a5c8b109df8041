"""How accurate a release will be, told in advance from public numbers alone.

One shot has an exact law. What the adaptive method reaches depends on how wide the data
are, so it is simulated on made-up data of a stated spread
(:mod:`spdp.statistics.simulation`).
"""

from dataclasses import dataclass, replace
from typing import Any

from spdp.choices import Method
from spdp.domain import Domain
from spdp.errors import ParameterError, named
from spdp.statistics import plan_words
from spdp.statistics.needed import Needed, needed, with_needed_epsilon, with_needed_n
from spdp.statistics.planner import RUNS, Planner
from spdp.statistics.reference import Reference
from spdp.statistics.simulation import Prediction

__all__ = ["Plan", "plan", "plan_of"]

START_N, START_EPSILON = 1000, 1.0  # where the search for a needed number starts


@dataclass(frozen=True, repr=False)
class Plan:
    """What a release is predicted to reach; see :func:`plan`.

    Attributes
    ----------
    method : "oneshot" or "adaptive"
        What ``private_mean`` will do.
    noise : "gaussian" or "laplace"
        The better noise in one shot.
    one_shot : dict
        Exact errors of one shot, for each noise that the budget allows.
    adaptive : tuple of Prediction
        Simulated errors of the adaptive method, for each spread; empty where it cannot
        run.
    predictions : tuple of Prediction
        Those of the method that will run.
    hopeless : bool
        Whether that method, for all spreads, is no better than the domain's centre.
    compared : str
        What it is compared with, in words.
    known : str
        How the distance of the data's mean from the domain's centre is known.
    reference : str or None
        Digest of the reference that the release would be given.
    unit : "record", "voxel" or "person"
        What n is a number of.
    wanted_error : float or None
        The rms error that was asked for.
    needed : tuple of Needed
        What would reach it, for each spread: ``n`` at this ε, or ``epsilon`` at this n.
        Empty where the plan itself is made to reach it.
    """

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
    adaptive: tuple[Prediction, ...]
    known: str
    reference: str | None
    unit: str = "record"
    wanted_error: float | None = None
    needed: tuple[Needed, ...] = ()

    @property
    def predictions(self) -> tuple[Prediction, ...]:
        if self.method == Method.ADAPTIVE:
            return self.adaptive
        return (self.one_shot[self.noise],)

    @property
    def hopeless(self) -> bool:
        return all(prediction.hopeless for prediction in self.predictions)

    @property
    def compared(self) -> str:
        away = max(prediction.offset for prediction in self.predictions)
        return (
            f"returning the domain's centre, which costs no privacy, errs by {away:.4g}: the "
            f"distance of the data's mean from the centre, {self.known}"
        )

    def describe(self) -> dict[str, Any]:
        """All of it, JSON-ready."""
        hidden = ("one_shot", "adaptive", "wanted_error", "needed")
        plain = {name: value for name, value in vars(self).items() if name not in hidden}
        return {
            **plain,
            "one_shot": {name: row.describe() for name, row in self.one_shot.items()},
            "adaptive": [row.describe() for row in self.adaptive],
            "predictions": [row.describe() for row in self.predictions],
            "hopeless": self.hopeless,
            "compared": self.compared,
            "wanted_error": self.wanted_error,
            "needed": [answer._asdict() for answer in self.needed],
        }

    def _repr_html_(self) -> str:
        return plan_words.html_of(self)

    def __repr__(self) -> str:
        lines = [
            f"<Plan n={self.n} {self.unit}s, k={self.k}, epsilon={self.epsilon:g}, "
            f"delta={self.delta:g}, domain radius {self.radius:.4g} ({self.distance}): "
            f"{self.method} will run"
        ]
        rows = {f"one shot, {noise}": row for noise, row in self.one_shot.items()}
        rows |= {f"adaptive, spread {row.spread:.4g}": row for row in self.adaptive}
        for name, row in rows.items():
            verdict = " (hopeless)" if row.hopeless else ""
            lines.append(f"{name}: rms {row.rms:.4g}, 95 % below {row.bound:.4g}{verdict}")
        if self.hopeless:
            lines.append(f"hopeless: {self.compared}")
        lines += plan_words.answers(self)
        return "\n  ".join(lines) + ">"


def plan(
    *,
    n: int | None = None,
    k: int,
    epsilon: float | None = None,
    delta: float,
    domain: Domain,
    error: float | None = None,
    spread: float | str | Reference | None = None,
    offset: float | str | None = None,
    reference: Reference | None = None,
    metric: str = "logeuclid",
    adjacency: str = "replace-one",
    mechanism: str = "auto",
    method: str = "auto",
    unit: str = "record",
    runs: int = RUNS,
    random_state: int = 0,
) -> Plan:
    """Predict the error of ``private_mean``; no data are needed, no budget is spent.

    Parameters
    ----------
    n, k : int
        Number and size of the records. Without ``n`` the plan is for the fewest records
        that reach ``error``.
    epsilon, delta, domain, metric, adjacency, mechanism, method
        As in :func:`spdp.private_mean`. Without ``epsilon`` the plan is for the
        smallest ε that reaches ``error``.
    error : float, optional
        Wanted rms error of the method that will run: the plan's ``needed`` says what
        would reach it. Where ``n`` or ``epsilon`` is left out, it is chosen to reach it
        for every spread: to half a percent, or some 5 % where errors are simulated.
    spread : float, str or Reference, optional
        Root mean square distance of the records from their mean: a number, or a share
        of the domain's radius such as ``"10%"``; the made-up data are then Gaussian and
        equally wide in all directions. Or a :class:`Reference`: the made-up data are
        then its public records, with their spread, shape and place. None: a range of
        spreads.
    offset : float or str, optional
        Distance of the data's mean from the domain's centre, likewise: that of the
        reference, or else 30 % of the radius. Matters where few records are at hand.
    reference : Reference, optional
        As in :func:`spdp.private_mean`; the data are taken to lie as it does, with
        ``spread`` in place of its own if that is a number.
    unit : "record", "voxel" or "person"
        What n is a number of, for the words of the plan: with ``groups`` a person
        counts as one record does.
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
    >>> p.method, p.hopeless, p.adaptive[0].rms < p.one_shot["gaussian"].rms
    ('adaptive', False, True)

    How many records would err by 0.1?

    >>> p = plan(error=0.1, k=4, epsilon=1.0, delta=0.0, domain=Ball(5.0))
    >>> p.n, round(p.predictions[0].rms, 3)
    (1050, 0.1)
    """
    if (n is None) + (epsilon is None) > (error is not None):
        raise ParameterError(
            f"pass {named('n')} and {named('epsilon')}, or {named('error')} and one of them"
        )
    planner = Planner(
        n=START_N if n is None else n,
        k=k,
        epsilon=START_EPSILON if epsilon is None else epsilon,
        delta=delta,
        domain=domain,
        spread=spread,
        offset=offset,
        reference=reference,
        metric=metric,
        adjacency=adjacency,
        mechanism=mechanism,
        method=method,
        unit=unit,
        random_state=random_state,
    )
    if error is None or (n is not None and epsilon is not None):
        return plan_of(planner, runs, error)
    chosen = with_needed_n if n is None else with_needed_epsilon
    return replace(plan_of(chosen(planner, error), runs), wanted_error=error)


def plan_of(planner: Planner, runs: int = RUNS, error: float | None = None) -> Plan:
    """The plan for a planner's own number of records and budget.

    With what would reach an ``error``, if one is wanted.
    """
    p = planner
    answers = () if error is None else tuple(needed(p, error))
    return Plan(
        n=p.n,
        k=p.k,
        epsilon=p.epsilon,
        delta=p.delta,
        domain=p.domain.describe(),
        radius=p.radius,
        metric=p.chart.name,
        distance=p.chart.distance,
        adjacency=str(p.adjacency),
        method=str(p.will_run(p.n, p.epsilon)),
        noise=str(p.shot(p.epsilon).noise),
        one_shot=p.exact(),
        adaptive=p.simulated(runs),
        known=p.away[1],
        reference=None if p.reference is None else p.reference.digest,
        unit=str(p.unit),
        wanted_error=error,
        needed=answers,
    )
