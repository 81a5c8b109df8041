r"""Synthetic records of a stated spread, and releases simulated on them.

The statistic itself runs, with seeded noise, on vectors of a stated centre and spread:
Gaussian ones, or those of public data.

*Fewer records.* Every query is a sum over records, and noise does not depend on them: n
records in which every value occurs t times are answered like n' = n/t distinct records
at t times the budget μ. A million records are therefore simulated by 10,000, each
counted a hundred times. Errors are distances to the exact statistic of these same
records, so that the repetition does not change them. A test of classes does depend on
sampling: its class means are drawn again for every run, with the variance that n
records have.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from spdp.charts import clip_to_ball
from spdp.domain.base import Space
from spdp.engines.store import ArrayStore, VectorStore
from spdp.kernels.arrays import Array, Ints
from spdp.queries import Query, Rows
from spdp.statistics.class_means import class_means
from spdp.statistics.reference import Reference

# Most simulated records, most numbers in them, and most records of rough predictions.
LARGEST_SAMPLE, SAMPLE_NUMBERS, COARSE_SAMPLE = 10_000, 1_500_000, 4_000
COVARIATE_SD = 0.3  # of normal covariates, over half of their public range


class RepeatedStore(VectorStore):
    """Rows that each stand for several equal records."""

    def __init__(self, store: ArrayStore, times: int) -> None:
        self._store, self._times = store, times
        self.n = self.m = store.n * times
        self.d = store.d

    def total(self, query: Query[Any], subsampled: bool = False) -> Ints:
        return self._store.total(query) * self._times

    def rotated(self, axes: Array) -> "RepeatedStore":
        return RepeatedStore(self._store.rotated(axes), self._times)

    def carried(self, W: Array) -> "RepeatedStore":
        return RepeatedStore(self._store.carried(W), self._times)

    def pooled(self) -> "RepeatedStore":
        return RepeatedStore(self._store.pooled(), self._times)


@dataclass(frozen=True, eq=False)
class Population:
    """Synthetic records: random vectors, clipped to the domain as real ones would be.

    Attributes
    ----------
    Y : array (m, d)
        The vectors.
    space : Space
        Chart and domain.
    spread : float
        Root mean square distance from their mean (of their class), before clipping.
    offset : float
        Distance of their mean from the domain's centre: the error of returning that
        centre.
    label : array (m,)
        Places of their classes in the list of classes.
    x : array (m, p)
        Covariates in [−1, 1].
    """

    Y: Array
    space: Space
    spread: float
    offset: float
    label: NDArray[np.intp]
    x: Array

    @staticmethod
    def drawn(
        space: Space,
        spread: float,
        *,
        offset: float,
        shape: Reference | None = None,
        classes: int = 1,
        effect: float = 0.0,
        covariates: int = 1,
        seed: int = 0,
    ) -> "Population":
        """Records of a spread, as many as are worth simulating.

        Their mean is at distance ``offset`` from the domain's centre. They are the
        public records of ``shape``, moved and scaled, in its direction from the centre;
        or Gaussian, equally wide in all directions, in a random direction. Class means
        are ``effect`` away from their common mean or, if there are two, from each
        other.
        """
        chart, region = space.chart, space.region
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
        label = np.arange(many) % max(classes, 1)
        if classes > 1:  # all classes hold the same offsets from their means
            Z = np.repeat(Z[: many // classes + 1], classes, axis=0)[:many]
            moved = _centers(rng, classes, d, effect) - class_means(Rows(Z, label), classes)
            Z = Z + moved[label]
        with threadpool_limits(1, "blas"):  # threads only slow many small matrices down
            Y = chart.project(region.center + step + Z, region)
        away = float(np.linalg.norm(Y.mean(axis=0) - region.center))
        x = np.clip(COVARIATE_SD * rng.standard_normal((many, covariates)), -1.0, 1.0)
        return Population(Y, space, spread, away, label, x)

    def records(self, n: int, most: int, seed: list[int], resampled: bool) -> "SyntheticRecords":
        """n records, at most ``most`` of them distinct."""
        times = -(-n // min(most, len(self.Y)))
        m = max(1, round(n / times))
        rows = Rows(self.Y[:m], self.label[:m], None, self.x[:m])
        if resampled:
            rows = rows._replace(Y=self._resampled(rows, m * times, seed))
        return SyntheticRecords(self.space, rows, times)

    def _resampled(self, rows: Rows, n: int, seed: list[int]) -> Array:
        """Rows whose class means vary like those of n sampled records."""
        rng = np.random.default_rng([*seed, 1])
        classes = int(rows.label.max()) + 1
        own = class_means(Rows(self.Y, self.label), classes)
        d = self.Y.shape[1]
        sd = self.spread / np.sqrt(d * n / classes)
        wanted = own + sd * rng.standard_normal((classes, d))
        moved = wanted - class_means(rows, classes)
        region = self.space.region
        return clip_to_ball(rows.Y + moved[rows.label], region.center, region.radius)


def _centers(rng: np.random.Generator, classes: int, d: int, effect: float) -> Array:
    """Class means whose common mean is 0, ``effect`` apart."""
    C = rng.standard_normal((classes, d))
    C -= C.mean(axis=0)
    length = np.linalg.norm(C, axis=1).mean()
    return np.asarray(C * (effect / (2.0 if classes == 2 else 1.0) / max(length, 1e-300)))


class SyntheticRecords:
    """Synthetic records for a simulation, and their exact statistics."""

    def __init__(self, space: Space, rows: Rows, times: int) -> None:
        self.space, self.rows, self.times = space, rows, times
        self.n, self.rereadable = len(rows.Y) * times, True
        self._known: dict[str, Any] = {}

    def gather(self, key: int = 0) -> VectorStore:
        return RepeatedStore(ArrayStore(self.rows), self.times)

    stream = gather

    def once(self, name: str, compute: Callable[[Rows], Any]) -> Any:
        """An exact statistic of the rows, computed once."""
        if name not in self._known:
            self._known[name] = compute(self.rows)
        return self._known[name]
