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
from dataclasses import dataclass, field
from fractions import Fraction
from math import isqrt

import numpy as np

from spdp.charts import LOGEUCLID
from spdp.plain import plain
from spdp.privacy import account as accounts
from spdp.queries import describe

TAU_SQUARE = 16


class Caught(AssertionError):
    """The audit found a leak."""


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
    measure, noise = accounts.Account.measure, accounts.noise

    def noted(self, query, exact, *args, **released):
        facts = json.dumps(describe(query), sort_keys=True)
        sampler.asked = facts, query.sensitivity(self.adjacency)
        sampler.transcript.budget = self.budget
        return measure(self, query, exact, *args, **released)

    accounts.Account.measure, accounts.noise = noted, sampler
    try:
        yield
    finally:
        accounts.Account.measure, accounts.noise = measure, noise


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
    one end to the other, far outside, or becomes unusable.
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
