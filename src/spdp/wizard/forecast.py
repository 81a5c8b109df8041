"""The predicted error of a recipe, fast enough for a slider.

One shot has an exact law. A search is simulated, which takes seconds, but noise does
not depend on records: n records at a price μ are answered like n' at μ' with n·μ =
n'·μ' (:mod:`spdp.planning.population`). So a search's error is one curve over n·μ, or
n·ε with Laplace noise, and every other n, ε and δ is read off it. The curve is
simulated once for each domain, metric, statistic and spread.

*Enforced.* Nothing but public numbers goes in: no records are read.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import exp, log, sqrt
from typing import Any

import numpy as np
from msgspec import json

from spdp.error.laws import quantiles
from spdp.errors import ParameterError
from spdp.kernels.arrays import Array
from spdp.options import Adjacency, Mechanism, Method, Noise
from spdp.planning.model import Planner
from spdp.privacy.budget import Budget
from spdp.statistics.base import DISTANCE
from spdp.statistics.refusal import fewest_records
from spdp.wizard.recipe import Recipe

LEAST, MOST = 0.02, 30.0  # ε that a forecast looks at
FARTHEST = 30.0  # times n, and n over it
POINTS, RUNS, SAMPLE = 11, 6, 1500  # of the simulated curve
MANY = 1_000_000  # records, enough for every statistic
STEPS = 14  # halvings of the range in which ε is sought: to 0.1 %


@dataclass(frozen=True)
class Predicted:
    """What one n, ε and δ are predicted to give.

    Attributes
    ----------
    error : float or None
        rms error; None where nothing would be released.
    method, noise : str
    refused : bool
        Whether the release is refused before payment: public numbers say that it would
        be uninformative.
    budget : Budget or None
        What the release will cost; None where nothing would be released.
    bound : float or None
        The 95 % bound that a certificate will typically state; None where none is.
    """

    error: float | None
    method: str
    noise: str
    refused: bool
    budget: Budget | None = None
    bound: float | None = None


@dataclass(frozen=True, eq=False)
class Forecast:
    """Predicted errors for one kind of records."""

    planner: Planner

    @property
    def radius(self) -> float:
        """Radius of the domain."""
        return self.planner.radius

    @property
    def offset(self) -> float:
        """Error of returning the domain's centre, which needs no data."""
        return self.planner.away[0]

    @lru_cache(maxsize=8)  # noqa: B019 - forecasts are few, and kept
    def _at(self, delta: float) -> Planner:
        """The planner at another δ."""
        return Planner(**_numbers(self.planner) | {"delta": delta})

    @lru_cache(maxsize=4096)  # noqa: B019 - forecasts are few, and kept
    def predict(self, n: int, epsilon: float, delta: float) -> Predicted:
        """Error of the method that will run."""
        p = self._at(delta)
        try:
            settled = p.settled(n, epsilon)
        except ParameterError:
            return Predicted(None, "", "", True)
        noise = settled.budget.noise
        public = p.adjacency == Adjacency.REPLACE_ONE
        refused = public and n < fewest_records(p.planned, p, settled)
        error: float | None
        bound: float | None
        if p.is_mean and not p.curved and settled.method == Method.ONESHOT:
            law = p.shot(epsilon).law(n)
            error, bound = sqrt(law.mean()), sqrt(quantiles(law)["95%"])
        else:
            error, bound = self._searched(noise, n * _price(noise, epsilon, delta))
        how = str(settled.method), str(noise)
        return Predicted(error, *how, refused, settled.budget, bound)

    @cached_property
    def measure(self) -> str:
        """What the error is an error of, in words."""
        p = self.planner
        if p.is_mean:
            return DISTANCE
        for n in (p.n, MANY):
            with suppress(ParameterError):  # too few records
                return p.simulate(self._population, n, p.epsilon, 1, SAMPLE).measure
        return DISTANCE

    @property
    def is_distance(self) -> bool:
        """Whether it is a distance of matrices, which terms can be made of."""
        return self.measure.startswith(DISTANCE)

    def needed(self, error: float, n: int, delta: float) -> float | None:
        """The least ε that reaches an error, rounded up; None if none does."""
        low, high = log(LEAST), log(MOST)

        def enough(x: float) -> bool:
            found = self.predict(n, exp(x), delta)
            return found.error is not None and found.error <= error and not found.refused

        if not enough(high):
            return None
        if enough(low):
            return LEAST
        for _ in range(STEPS):
            middle = 0.5 * (low + high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        return float(np.ceil(exp(high) * 1000.0) / 1000.0)

    # --- the curve of a search

    def _searched(self, noise: Noise, x: float) -> tuple[float | None, float | None]:
        """Error and 95 % bound."""
        grid, errors, bounds = self._curve(noise)
        if not len(grid) or x < grid[0] / 2.0:
            return None, None
        error = exp(np.interp(log(x), np.log(grid), np.log(errors)))
        if not len(bounds):
            return error, None
        return error, exp(np.interp(log(x), np.log(grid), np.log(bounds)))

    @lru_cache(maxsize=2)  # noqa: B019 - forecasts are few, and kept
    def _curve(self, noise: Noise) -> tuple[Array, Array, Array]:
        """Simulated errors over n times the price, where it does not refuse.

        Beside them the bounds that are stated; empty where one states none.
        """
        p = self._simulating(noise)
        low = _price(noise, LEAST, p.delta) * p.n / FARTHEST
        high = _price(noise, MOST, p.delta) * p.n * FARTHEST
        grid, errors, bounds = [], [], []
        for x in np.geomspace(max(low, 1.0), max(high, 10.0), POINTS):
            # n changes, and not ε: queries are shaped by ε in the ranges that are used
            n = int(np.clip(x / _price(noise, p.epsilon, p.delta), 1, 1 << 32))
            try:
                found = p.simulate(self._population, n, p.epsilon, RUNS, SAMPLE)
            except ParameterError:  # too few records
                continue
            grid.append(n * _price(noise, p.epsilon, p.delta))
            errors.append(found.rms)
            bounds.append(found.bound)
        if not errors:
            return np.empty(0), np.empty(0), np.empty(0)
        known = [bound for bound in bounds if bound is not None]
        stated = _falling(known) if len(known) == len(bounds) else np.empty(0)
        return np.array(grid), _falling(errors), stated

    @cached_property
    def _population(self) -> Any:
        return self.planner.populations[0]

    def _simulating(self, noise: Noise) -> Planner:
        numbers = _numbers(self.planner)
        if self.planner.is_mean:
            method = Method.ONESHOT if self.planner.method == Method.ONESHOT else Method.ADAPTIVE
            numbers |= {"mechanism": str(noise), "method": str(method)}
        return Planner(**numbers)

    def warm(self) -> "Forecast":
        """The same, with its curves simulated."""
        for noise in self.planner.search_noises:
            self._curve(noise)
        self.predict(self.planner.n, self.planner.epsilon, self.planner.delta)
        return self


def _falling(values: list[float]) -> Array:
    """The same without rises: more records, or a larger price, err less."""
    logs = np.log(np.maximum(values, 1e-300))
    lower, upper = np.minimum.accumulate(logs), np.maximum.accumulate(logs[::-1])[::-1]
    return np.asarray(np.exp(0.5 * (lower + upper)))


def _price(noise: Noise, epsilon: float, delta: float) -> float:
    """What noise is inversely proportional to."""
    if noise is Noise.LAPLACE or delta == 0:
        return epsilon
    mu = Budget.gaussian(epsilon, delta).mu
    assert mu is not None
    return mu


def _numbers(planner: Planner) -> dict[str, Any]:
    return {name: getattr(planner, name) for name in planner.__dataclass_fields__}


def planner_of(recipe: Recipe) -> Planner:
    """The planner of a recipe's public numbers."""
    given: dict[str, Any] = {"mechanism": "auto", "method": "auto"}
    taken = ("mechanism", "method", "covariance", "n_components")
    own = {name: value for name, value in recipe.options.items() if name in taken}
    if recipe.classes is not None:
        own["classes"] = len(recipe.classes)
    if recipe.statistic == "mean":
        own = given | own
        if recipe.ledger and recipe.delta > 0 and own["mechanism"] == Mechanism.AUTO:
            own["mechanism"] = Mechanism.GAUSSIAN  # pure releases cost a ledger more
        if "reference" in recipe.options:
            from spdp.statistics.reference import Reference

            own["reference"] = Reference.load(recipe.options["reference"])
    return Planner(
        statistic=recipe.statistic,
        n=recipe.n,
        k=recipe.k,
        epsilon=recipe.epsilon,
        delta=recipe.delta,
        domain=recipe.instrument.domain(recipe.k),
        metric=recipe.metric,
        adjacency=str(recipe.adjacency),
        unit=str(recipe.unit),
        spread=recipe.spread,
        **own,
    )


def forecast_of(recipe: Recipe) -> Forecast:
    """The forecast of a recipe; recipes that differ in n, ε or δ alone share it."""
    rough = 10 ** round(log(max(recipe.n, 1), 10))
    asks = ("k", "instrument", "statistic", "options", "adjacency", "spread", "whose")
    public = {name: getattr(recipe, name) for name in asks}
    ledger = "one" if recipe.ledger else None
    delta = 0.0 if recipe.delta == 0 else 1e-6
    return _made(json.encode(Recipe(**public, n=rough, ledger=ledger, delta=delta)))


@lru_cache(maxsize=32)
def _made(recipe: bytes) -> Forecast:
    return Forecast(planner_of(json.decode(recipe, type=Recipe)))
