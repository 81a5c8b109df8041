"""The clipping radius that balances noise and bias, by a histogram of distances."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from spdp.kernels.arrays import Array
from spdp.queries.sums import Frame

# Edges over the typical distance: fine where radii are chosen, then growing.
EDGES = np.array([0.45, 0.55, 0.65, 0.75, 0.85, 0.95, 1.1, 1.25, 1.45, 1.7, 2.1, 2.7])
GROWTH = 1.5
FINER = np.arange(8) / 8.0  # radii considered in each interval
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
        fine = self.edges[:-1, None] + np.diff(self.edges)[:, None] * FINER
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


# --- radii of classes


@dataclass(frozen=True)
class TailPrior:
    """What is taken to be known of a tail before it is seen, and what its bias costs.

    Beyond some x0 the share of records beyond x is taken to fall like
    A·exp(−((x − x0)/s)^p); distances are over the typical one.
    """

    body: float  # share of the records beyond x0
    scale: float  # of s
    log_sd: float  # of ln s about that
    weight: float  # of the squared clipping bias against the squared noise


# Edges of the histogram over the typical distance, and of the tails that are fitted.
CLASS_EDGES = np.append(0.16 * 1.25 ** np.arange(17), 7.5)
POWERS = np.repeat([1.0, 1.5, 2.0, 3.0], 30)
SCALES = np.tile(np.geomspace(0.04, 2.5, 30), 4)
MISFIT = 0.15  # relative sd by which a tail's counts differ from the fitted law's
RADII = np.geomspace(0.02, 12.0, 100)  # to choose from, beyond x0
# mean of (x − r)₊ beyond r = x0 + RADII, over A, for each tail
_POWER = (RADII / SCALES[:, None]) ** POWERS[:, None]
LEFT = (SCALES * special.gamma(1.0 / POWERS) / POWERS)[:, None]
LEFT = LEFT * special.gammaincc(1.0 / POWERS[:, None], _POWER)


def fitted_radius(
    counts: Array, sd: float, size: float, noise: float, prior: TailPrior
) -> tuple[float, float]:
    """Radius of a class over the typical distance, and the rms bias that it leaves.

    ``counts`` are noisy numbers of records between CLASS_EDGES and beyond, of ``size``
    records in all; a mean clipped at r has noise of root mean square noise·r. The bias
    is averaged over the laws of the tail by their likelihood.
    """
    beyond = np.cumsum(counts[::-1])[::-1][1:]
    far = np.flatnonzero(beyond >= prior.body * size)
    first = min(int(far[-1]) if len(far) else 0, len(CLASS_EDGES) - 4)
    x0, seen = CLASS_EDGES[first], counts[first + 1 :]
    T = np.exp(-(((CLASS_EDGES[first:] - x0) / SCALES[:, None]) ** POWERS[:, None]))
    t = np.column_stack([T[:, :-1] - T[:, 1:], T[:, -1]])
    expected = max(float(seen.sum()), prior.body * size) * t
    variance = sd**2 + expected + (MISFIT * expected) ** 2
    A = (t * seen / variance).sum(axis=1) / (t * t / variance).sum(axis=1)
    A = np.clip(A, 0.5 * prior.body * size, 1.2 * size)
    fit = -0.5 * ((seen - A[:, None] * t) ** 2 / variance + np.log(variance)).sum(axis=1)
    fit -= 0.5 * (np.log(SCALES / prior.scale) / prior.log_sd) ** 2
    likely = special.softmax(fit)
    bias = likely @ (np.minimum(A / size, 1.0)[:, None] * LEFT) ** 2
    best = int(np.argmin((noise * (x0 + RADII)) ** 2 + prior.weight * bias))
    return float(x0 + RADII[best]), float(np.sqrt(bias[best]))
