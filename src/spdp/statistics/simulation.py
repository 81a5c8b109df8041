r"""Releases simulated on made-up data, to say in advance how accurate they will be.

Vectors of a stated centre and spread stand in for the records (Gaussian ones, or those
of public data), and :class:`spdp.statistics.search.Search` itself runs on them, with
seeded noise.

*Fewer records.* Every query is a sum over records whose noise is a constant over μ, so
what a search sees, means over records, has noise that depends on n·μ alone. A million
records are therefore simulated by n' = 10,000 of them with μ' = μ·n/n'. What is lost is
the difference between means over n and over n' records, which no error contains: errors
are distances to the mean of the very records that were seen.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from spdp.charts import Chart
from spdp.engines.local import HeldArray
from spdp.kernels import Region
from spdp.privacy.account import Account
from spdp.privacy.costs import Budget
from spdp.statistics.reference import Reference
from spdp.statistics.search import Search

__all__ = ["COARSE_SAMPLE", "LARGEST_SAMPLE", "Population", "Prediction", "simulate"]

Array = NDArray[np.float64]

# Simulated records at most, and numbers in them; fewer for predictions that need not be
# good.
LARGEST_SAMPLE, SAMPLE_NUMBERS, COARSE_SAMPLE = 10_000, 1_500_000, 4_000
HOPELESS = 0.9  # of the centre's error: saving less than a tenth is not worth a budget


@dataclass(frozen=True)
class Prediction:
    """What a method is predicted to reach on data of one spread.

    Attributes
    ----------
    spread : float or None
        Root mean square distance of records from their mean; None where the error does
        not depend on it (one shot).
    offset : float
        Distance of that mean from the domain's centre, which returning the centre would
        err by.
    rms : float
        Root mean square error.
    bound : float
        The 95 % bound on the error that a certificate will state; of simulated releases
        the median, since a few that retreat to the whole domain state far more.
    """

    spread: float | None
    offset: float
    rms: float
    bound: float

    @property
    def hopeless(self) -> bool:
        """Whether the domain's centre, which costs no privacy, is about as good."""
        return self.rms >= HOPELESS * self.offset

    def describe(self) -> dict[str, Any]:
        """JSON-ready."""
        return {**asdict(self), "hopeless": self.hopeless}


@dataclass(frozen=True, eq=False)
class Population:
    """Made-up records: random vectors, clipped to the domain as real ones would be.

    Attributes
    ----------
    Y : array (m, d)
        The vectors.
    region : Region
        The domain they are in.
    spread : float
        Root mean square distance from their mean, before they were clipped.
    offset : float
        Distance of their mean from the domain's centre: what returning that centre
        would err by.
    """

    Y: Array
    region: Region
    spread: float
    offset: float

    @staticmethod
    def drawn(
        region: Region,
        chart: Chart,
        spread: float,
        *,
        offset: float,
        shape: Reference | None = None,
        seed: int = 0,
    ) -> "Population":
        """Records of a spread, as many as are worth simulating.

        Their mean is ``offset`` from the domain's centre. They are public records of
        ``shape``, moved and stretched, in its direction from the centre; or Gaussian,
        equally wide in all directions, in some direction.
        """
        d = len(region.center)
        rng = np.random.default_rng([seed, d])
        step, many = rng.standard_normal(d), min(LARGEST_SAMPLE, SAMPLE_NUMBERS // d + 1)
        if shape is None:
            Z = rng.standard_normal((many, d)) * (spread / np.sqrt(d))
        else:
            m = len(shape.sample)
            rows = np.concatenate([rng.permutation(m) for _ in range(-(-many // m))])
            Z = shape.sample[rows[:many]] - shape.frame.center
            Z *= spread / max(shape.spread, 1e-300)
            if np.any(shape.frame.center != region.center):
                step = shape.frame.center - region.center
        step = step * (offset / np.linalg.norm(step))
        with threadpool_limits(1, "blas"):  # threads only slow many small matrices down
            Y = chart.project(region.center + step + Z, region)
        away = float(np.linalg.norm(Y.mean(axis=0) - region.center))
        return Population(Y, region, spread, away)


def simulate(
    population: Population,
    chart: Chart,
    budget: Budget,
    n: int,
    runs: int,
    *,
    reference: Reference | None = None,
    most: int = LARGEST_SAMPLE,
    seed: int = 0,
    advance: Callable[[float], None] = lambda amount: None,
) -> Prediction:
    """What adaptive releases of n such records reach.

    At most ``most`` records are simulated; ``advance`` is told of every run.
    """
    Y = population.Y[: min(n, most)]
    assert budget.mu is not None
    scaled = replace(budget, mu=budget.mu * (n / len(Y)))
    held, region, truth = HeldArray(Y), population.region, Y.mean(axis=0)
    squares, bounds = [], []
    for run in range(runs):
        account = Account(scaled, random_state=np.random.default_rng([seed, run]))
        found = Search(held, account, region, chart, reference).run()
        error = chart.project(found.y, region) - truth
        squares.append(float(error @ error))
        bounds.append(found.bound.at(0.95))
        advance(1)
    rms, bound = float(np.sqrt(np.mean(squares))), float(np.median(bounds))
    return Prediction(population.spread, population.offset, rms, bound)
