"""The clipping radius that balances noise and bias, by a histogram of distances."""

from dataclasses import dataclass

import numpy as np

from spdp.kernels.arrays import Array
from spdp.queries.sums import Frame

# Edges over the typical distance: fine where radii are chosen, then growing.
EDGES = np.array([0.45, 0.55, 0.65, 0.75, 0.85, 0.95, 1.1, 1.25, 1.45, 1.7, 2.1, 2.7])
GROWTH = 1.5
FINER = 8  # radii considered per interval
# Standard deviations by which a tail must stand out from noise: few near the bulk, many
# far out, where believing in noise costs most; far outliers are the guard's task.
CAUTION, CAUTION_SLOPE, CAUTION_LEAST, CAUTION_MOST = 1.0, 2.0, 0.5, 4.5
# What clipping at x takes off squares of real data, over the squared distance, is about
# 2·exp(−1.5·x/distance), for image descriptors (MNIST, FashionMNIST, PathMNIST).
COMMON, COMMON_RATE = 2.0, 1.5


def tail_edges(distance: float, farthest: float) -> Array:
    """Edges of the histogram from below the typical distance to the farthest record."""
    edges = np.concatenate([EDGES, EDGES[-1] * GROWTH ** np.arange(1, 60)]) * distance
    last = max(farthest, float(edges[len(EDGES)]))
    return np.append(edges[edges < last], last)


@dataclass(frozen=True, eq=False)
class Tail:
    """Edges, noisy numbers of records beyond each, and the noise of those numbers."""

    edges: Array
    beyond: Array
    error: Array

    @staticmethod
    def of(edges: Array, counts: Array, noise: float, m: int) -> "Tail":
        """From noisy counts of all intervals, whose sum m is public or released.

        The noise of the sum is taken off evenly, so that of K intervals the j outermost
        carry noise·√(j(1 − j/K)).
        """
        even = counts + (m - float(counts.sum())) / len(counts)
        beyond = np.cumsum(even[::-1])[::-1][1:]
        outer = np.arange(len(edges), 0, -1)
        return Tail(edges, beyond, noise * np.sqrt(outer * (1.0 - outer / len(counts))))

    def radius(self, frame: Frame, distance: float, m: int, noise: float) -> tuple[float, float]:
        """Best radius in ``frame`` and its loss.

        A mean clipped at r has noise of standard deviation noise·r in each coordinate.
        Its clipping bias is at most ∫_r^∞ (share of records beyond x) dx,
        counted as far as the histogram stands out from noise.
        """
        x, share = self.seen(distance, m)
        bias = _from(x, share)
        square = float(frame.width @ frame.width)
        # a bias lies mostly along wide axes: halfway between mean and largest square
        along = 0.5 * (float(frame.width.max()) ** 2 + square / len(frame.width))
        loss = square * (noise * x) ** 2 + along * bias**2
        best = int(np.argmin(loss))
        return float(x[best]), float(loss[best])

    @np.errstate(under="ignore")  # exp underflows far out
    def square_radius(self, distance: float, m: int, noise: float) -> float:
        """Best radius for a mean of squared distances with a noise of noise·radius².

        Clipping at r takes off ∫_r^∞ 2x·(share of records beyond x) dx, as far as the
        histogram stands out from noise, and at least as much as of common image data.
        """
        x, share = self.seen(distance, m)
        common = COMMON * distance**2 * np.exp(-COMMON_RATE * x / distance)
        bias = np.maximum(_from(x, 2.0 * x * share), common)
        return float(x[np.argmin((noise * x**2) ** 2 + bias**2)])

    def seen(self, distance: float, m: int) -> tuple[Array, Array]:
        """Radii to choose from, and a cautious share of the records beyond each."""
        caution = CAUTION + CAUTION_SLOPE * np.log(self.edges / distance)
        seen = self._falling(np.clip(caution, CAUTION_LEAST, CAUTION_MOST), m)
        fine = np.linspace(self.edges[:-1], self.edges[1:], FINER, endpoint=False, axis=1)
        x = np.append(fine, self.edges[-1])
        return x, np.interp(x, self.edges, seen) / m

    def quantiles(self, levels: Array, distance: float, m: int) -> Array:
        """Distances below which these shares of the records lie.

        Far out, numbers of records count as far as they stand out from noise; inside an
        interval records are taken to be spread evenly.
        """
        caution = CAUTION_SLOPE * np.log(self.edges / distance)
        beyond = self._falling(np.clip(caution, 0.0, CAUTION_MOST), m)
        share = np.concatenate([[0.0], 1.0 - beyond / m, [1.0]])
        edges = np.concatenate([[0.0], self.edges, self.edges[-1:]])
        first = np.maximum(np.searchsorted(share, levels), 1)  # the first to reach the level
        a, b = share[first - 1], share[first]
        part = (levels - a) / np.maximum(b - a, 1e-300)
        return np.asarray(edges[first - 1] + part * (edges[first] - edges[first - 1]))

    def _falling(self, caution: Array, m: int) -> Array:
        """Numbers beyond each edge, less ``caution`` standard deviations; falling."""
        sure = np.clip(self.beyond - caution * self.error, 0.0, m)
        return np.asarray(np.maximum.accumulate(sure[::-1])[::-1])


def _from(x: Array, y: Array) -> Array:
    """∫ y from each x to the last."""
    pieces = 0.5 * (y[1:] + y[:-1]) * np.diff(x)
    return np.append(np.cumsum(pieces[::-1])[::-1], 0.0)
