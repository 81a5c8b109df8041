"""The replay audit: any statistic, two neighbouring datasets, the same noisy answers.

A statistic is run on a dataset D while every query's exact integers, its noise scale
and its noisy answer are recorded. It is run again on a neighbour D' with a sampler that
returns the SAME noisy answers. Then

1. the queries asked, their scales and all that is published must be identical:
   otherwise something other than a noisy answer steered the run or was published;
2. each exact answer moves by no more than its stated sensitivity, and all of them so
   that Σ ‖S − S'‖²/(s² − 16) ≤ μ², in exact arithmetic (Σ ‖S − S'‖/s ≤ ε for Laplace
   noise): what the two runs really cost;
3. so must the stated sensitivities: Σ Δ²/(s² − 16) ≤ μ², whatever the neighbours.
"""

import json
import warnings
from contextlib import contextmanager
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from fractions import Fraction
from functools import partial
from math import isqrt

import numpy as np

from spdp import Ball
from spdp.charts import LOGEUCLID
from spdp.kernels.arrays import plain
from spdp.privacy import account as accounts
from spdp.statistics import every
from spdp.statistics.regression import check_ranges

TAU_SQUARE = 16


class Caught(AssertionError):
    """The audit found a leak."""


class Uncovered(AssertionError):
    """A statistic that the audit cannot run by what it declares."""


@dataclass
class Step:
    query: str
    sensitivity: int
    scale: object
    exact: np.ndarray
    noisy: np.ndarray


@dataclass
class Transcript:
    steps: list = field(default_factory=list)
    budget: object = None
    published: str = ""


class _Sampler:
    """Stands where the samplers stand.

    Draws and records, or repeats what was recorded.
    """

    def __init__(self, transcript, script=None, seed=0):
        self.transcript, self.script = transcript, script
        self.rng = np.random.default_rng(seed)
        self.asked = None

    check_scale = staticmethod(accounts.noise.check_scale)
    sampler = staticmethod(accounts.noise.sampler)

    @staticmethod
    def key(rng):
        return 7  # neighbours differ in one place, and the same places are looked at

    def gaussian(self, total, scale, rng):
        return self.answer(total, scale, self.rng.standard_normal(len(total)) * scale)

    def laplace(self, total, scale, rng):
        direction = self.rng.standard_normal(len(total))
        radius = self.rng.gamma(len(total), float(scale)) / np.sqrt(direction @ direction)
        return self.answer(total, scale, direction * radius)

    def answer(self, total, scale, noise):
        place = len(self.transcript.steps)
        noisy = total + np.rint(noise).astype(np.int64)
        if self.script is not None:
            if place >= len(self.script.steps) or len(self.script.steps[place].noisy) != len(total):
                raise Caught("the neighbour asked a question that the first run did not ask")
            noisy = self.script.steps[place].noisy
        query, sensitivity = self.asked
        self.transcript.steps.append(Step(query, sensitivity, scale, total.copy(), noisy))
        return noisy


@contextmanager
def _listening(sampler):
    """Put ``sampler`` behind the one door to noise, and note what is asked there."""
    ask, noise = accounts.Account.ask, accounts.noise

    def noted(self, query, *args, **options):
        own, asked = query.sensitivity(self.adjacency), len(sampler.transcript.steps)
        sampler.asked = json.dumps(describe(query), sort_keys=True), own
        sampler.transcript.budget = self.budget
        answer = ask(self, query, *args, **options)
        if len(sampler.transcript.steps) != asked + 1:
            raise Caught("a question was not answered with one draw of noise")
        if (stated := self.steps[-1].sensitivity) != own:
            raise Caught(f"noise for {stated}, not for the query's sensitivity {own}")
        return answer

    accounts.Account.ask, accounts.noise = noted, sampler
    try:
        yield
    finally:
        accounts.Account.ask, accounts.noise = ask, noise


def run(statistic, data, script=None, seed=0):
    """The transcript of a statistic on a dataset."""
    transcript = Transcript()
    with _listening(_Sampler(transcript, script, seed)), warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")
        release = statistic(data)
    certificate = release.certificate
    certificate.pop("created")
    values = {name: plain(value) for name, value in release.values.items()}
    told = [str(warning.message) for warning in w]  # a warning is published, too
    transcript.published = json.dumps([values, certificate, told])
    return transcript


def audit(statistic, data, neighbour, seed=0):
    """Replay ``statistic``; gives the cost of the pair as a share of the budget."""
    first = run(statistic, data, seed=seed)
    second = run(statistic, neighbour, script=first)
    asked = [(s.query, s.sensitivity, s.scale) for s in first.steps]
    if asked != [(s.query, s.sensitivity, s.scale) for s in second.steps]:
        raise Caught("something other than a noisy answer steered the run")
    if first.published != second.published:
        raise Caught("something other than noisy answers was published")
    real = [_distance(a.exact, b.exact) for a, b in zip(first.steps, second.steps, strict=True)]
    stated = [s.sensitivity**2 for s in first.steps]
    for step, moved, bound in zip(first.steps, real, stated, strict=True):
        if moved > bound:
            raise Caught(f"moved by more than its stated sensitivity: {step.query}")
    scales = [s.scale for s in first.steps]
    if _cost(stated, scales, first.budget) > 1:
        raise Caught("the steps' stated sensitivities cost more than the budget")
    share = _cost(real, scales, first.budget)
    if share > 1:
        raise Caught(f"the neighbours cost {float(share):.6g} times the budget")
    return float(share)


def describe(query):
    """What was asked, in plain numbers: two runs are compared by it."""
    facts = {"kind": type(query).__name__}
    for one in fields(query):
        facts[one.name] = _plain(getattr(query, one.name))
    return facts


def _plain(value):
    if is_dataclass(value):
        return describe(value)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return value if isinstance(value, int | float | str | None) else value.key


def _distance(a, b):
    return sum((int(x) - int(y)) ** 2 for x, y in zip(a, b, strict=True))


def _cost(squares, scales, budget):
    """Σ square/(s² − 16) over μ², or Σ distance/s over ε, exactly."""
    if budget.mu is None:
        roots = [isqrt(square) for square in squares]
        total = sum((Fraction(r) / s for r, s in zip(roots, scales, strict=True)), Fraction(0))
        return total / Fraction(budget.epsilon)
    variances = [Fraction(scale) ** 2 - TAU_SQUARE for scale in scales]
    total = sum((Fraction(q) / v for q, v in zip(squares, variances, strict=True)), Fraction(0))
    return total / Fraction(budget.mu) ** 2


def datasets(rng, k, radius, chart=LOGEUCLID):
    """A dataset and a neighbour with one record replaced, both as wild as the domain
    allows.

    Records cluster, fill the domain or sit at its edge; the replaced record goes from
    one end to the other, far outside, or becomes invalid.
    """
    d = chart.dimension(k)
    n = int(rng.integers(2, 60))
    spread = radius * 10.0 ** rng.uniform(-3, 0.3)
    offset = rng.standard_normal(d)
    offset *= radius * rng.choice([0.0, 0.5, 1.0]) / np.linalg.norm(offset)
    Y = offset + rng.standard_normal((n, d)) * spread / np.sqrt(d)
    direction = rng.standard_normal(d)
    direction *= radius * rng.choice([0.1, 1.0, 3.0]) / np.linalg.norm(direction)
    Y[0] = direction if rng.random() < 0.7 else Y[0]
    X = chart.matrices(np.clip(Y, -200.0, 200.0))
    other = X.copy()
    fate = rng.integers(0, 4)
    if fate == 0:
        other[0] = np.nan
    else:
        far = (
            -direction if fate == 1 else rng.standard_normal(d) * radius * 10 ** rng.uniform(-2, 1)
        )
        other[0] = chart.matrices(np.clip(far, -200.0, 200.0))
    return X, other


# --- records with labels, covariates and persons

COMMON = {"delta": 1e-6, "domain": Ball(2.0), "on_invalid": "center", "anyway": True}


def columns(rng, n):
    """Labels, covariates (some out of their range) and ids of records."""
    y = rng.integers(0, 2, n)
    x = rng.uniform(-1.5, 1.5, (n, 2))
    return {"y": y, "x": x, "person": rng.integers(0, max(2, n // 3), n)}


def neighbours(rng, grouped, removed=False, smallest=1):
    """A dataset and one in which a record, or a person with all records, differs.

    Its label may then be that of no class, its covariates no numbers.
    """
    k = int(rng.integers(smallest, 4))
    X, other = datasets(rng, k, 2.0)
    many = [X] * 24  # enough for a trend, at a large budget
    X, other = np.concatenate([X, *many]), np.concatenate([other, *many])
    first = columns(rng, len(X))
    second = {name: column.copy() for name, column in first.items()}
    changed = np.zeros(len(X), bool)
    changed[0] = True
    if grouped:
        changed = first["person"] == first["person"][0]
        other = X.copy()
        other[changed] = datasets(rng, k, 2.0)[1][:1]
    second["y"][changed] = rng.choice([0, 1, 7])
    second["x"][changed] = rng.choice([-1.0, 1.0, np.nan, 40.0])
    if removed:
        kept = ~changed
        return (X, first), (X[kept], {name: column[kept] for name, column in first.items()})
    return (X, first), (other, second)


def replays(statistic, count, seed, grouped=False, adjacency="replace-one"):
    """Costs of replayed pairs of ``statistic(X, columns, **options)``."""
    rng, smallest = np.random.default_rng(seed), getattr(statistic, "smallest", 1)
    shares = []
    for i in range(count):
        data, other = neighbours(rng, grouped, adjacency == "add-remove", smallest)
        asked = partial(ask, statistic, rng.choice([20.0, 60.0]), grouped, adjacency)
        shares.append(audit(asked, data, other, seed=i))
    return np.array(shares)


def ask(statistic, epsilon, grouped, adjacency, data):
    """A release of data with columns, for records or persons."""
    X, beside = data
    options = {**COMMON, "epsilon": epsilon, "adjacency": adjacency}
    return statistic(X, beside, groups=beside["person"] if grouped else None, **options)


# --- every statistic that is registered


def covered():
    """All statistics of the registry, by name, to be replayed as they are declared."""
    return {statistic.name: declared(statistic) for statistic in every()}


def declared(statistic):
    """``statistic(X, columns, **options)``, its own options being those of its example.

    Labels are of the classes that it declares, or of none; covariates fill its ranges,
    and leave them.
    """
    own = {option.name: _given(statistic, option) for option in fields(statistic)}
    made = type(statistic)(**own)
    if unknown := set(statistic.columns) - set(BESIDE):
        raise Uncovered(f"{statistic.name}: no records with {sorted(unknown)} are replayed")

    def release(X, beside, **options):
        given = dict(BESIDE[name](made, beside) for name in made.columns)
        return made.release(X, **given, **options)

    release.smallest = max(SMALLEST.get(name, 1) for name in ["", *own])
    for name in made.columns:  # what they are made of is declared, or it fails here
        BESIDE[name](made, columns(np.random.default_rng(0), 2))
    return release


def _given(statistic, option):
    """What an option is by default; its example where it must be given."""
    told = option.metadata
    if not told.get("required") and option.default is not MISSING:
        return option.default
    if told.get("example") is None:
        raise Uncovered(f"{statistic.name}: {option.name} must be given, and has no example")
    return told.get("parse", lambda given: given)(told["example"])


def _labels(made, beside):
    names = [*_told(made, "classes"), "none of them"]
    return "labels", [names[min(place, len(names) - 1)] for place in beside["y"]]


def _covariates(made, beside):
    low, high = check_ranges(_told(made, "ranges")).T
    x = beside["x"][:, np.arange(len(low)) % 2]  # [−1, 1] is the range
    return "covariates", low + (x + 1.0) / 2.0 * (high - low)


def _told(made, option):
    if not hasattr(made, option):
        raise Uncovered(f"{made.name} does not declare {option}, which its columns need")
    return getattr(made, option)


BESIDE = {"label": _labels, "x": _covariates}
SMALLEST = {"n_components": 2}  # matrices for which the example of an option is allowed
