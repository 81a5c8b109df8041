"""The radius that balances noise against clipping, from a histogram of distances."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from spdp.frame import Frame

__all__ = ["Tail", "tail_edges"]

Array = NDArray[np.float64]

# Edges over the typical distance: fine where radii are chosen, then growing.
EDGES = np.array([0.45, 0.55, 0.65, 0.75, 0.85, 0.95, 1.1, 1.25, 1.45, 1.7, 2.1, 2.7])
GROWTH = 1.5
FINER = 8  # radii considered per interval
# Standard deviations by which a tail must stand out from noise: few near the bulk, many
# far out, where believing in noise costs most; far outliers are the guard's task.
CAUTION, CAUTION_SLOPE, CAUTION_LEAST, CAUTION_MOST = 1.0, 2.0, 0.5, 4.5


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
        """From noisy counts of all intervals, whose true sum m is public.

        The noise of the sum is taken off evenly, so that of K intervals the j outermost
        carry noise·√(j(1 − j/K)).
        """
        even = counts + (m - float(counts.sum())) / len(counts)
        beyond = np.cumsum(even[::-1])[::-1][1:]
        outer = np.arange(len(edges), 0, -1)
        return Tail(edges, beyond, noise * np.sqrt(outer * (1.0 - outer / len(counts))))

    def radius(self, frame: Frame, distance: float, m: int, noise: float) -> tuple[float, float]:
        """Best radius in ``frame`` and its loss, for a mean with noise·radius a
        coordinate.

        The bias of clipping at r is at most ∫_r^∞ (share of records beyond x) dx,
        counted as far as the histogram stands out from noise.
        """
        caution = CAUTION + CAUTION_SLOPE * np.log(self.edges / distance)
        sure = self.beyond - np.clip(caution, CAUTION_LEAST, CAUTION_MOST) * self.error
        seen = np.maximum.accumulate(np.clip(sure, 0.0, m)[::-1])[::-1]
        fine = [np.linspace(a, b, FINER, endpoint=False) for a, b in pairwise(self.edges)]
        x = np.append(np.concatenate(fine), self.edges[-1])
        share = np.interp(x, self.edges, seen) / m
        pieces = 0.5 * (share[1:] + share[:-1]) * np.diff(x)
        bias = np.append(np.cumsum(pieces[::-1])[::-1], 0.0)
        square = float(frame.width @ frame.width)
        # a bias lies mostly along wide axes: halfway between mean and largest square
        along = 0.5 * (float(frame.width.max()) ** 2 + square / len(frame.width))
        loss = square * (noise * x) ** 2 + along * bias**2
        best = int(np.argmin(loss))
        return float(x[best]), float(loss[best])
