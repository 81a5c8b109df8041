"""Coordinates in which queries look at records: a centre, axes, a unit along each."""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from spdp.kernels import Kernels

__all__ = ["Frame"]

Array = NDArray[np.float64]


@lru_cache(maxsize=64)
def _ones(d: int) -> Array:
    units = np.ones(d)
    units.flags.writeable = False
    return units


@dataclass(frozen=True, eq=False)
class Frame:
    """Coordinates z = Vᵀ(y − c)/w of a vector y; without axes, V is the identity.

    A frame is public or released, so what a record looks like in it depends on that
    record and on released numbers only.
    """

    center: Array
    width: Array
    axes: Array | None = field(default=None, repr=False)

    @staticmethod
    def plain(center: Array) -> "Frame":
        """Differences to ``center``, as they are."""
        return Frame(center, _ones(len(center)))

    @property
    def is_plain(self) -> bool:
        """Whether coordinates are differences to the centre, as they are."""
        if self.axes is not None:
            return False
        return self.width is _ones(len(self.width)) or bool((self.width == 1.0).all())

    def moved(self, center: Array) -> "Frame":
        """The same axes and units around another centre."""
        return Frame(center, self.width, self.axes)

    def back(self, z: Array) -> Array:
        """The vector y of coordinates z."""
        step = self.width * z
        return np.asarray(self.center + (step if self.axes is None else self.axes @ step))

    def turned(self, Y: Array, kernels: Kernels) -> tuple[Array, Array]:
        """Rows Vᵀ(y − c), or y itself where there are no axes; and what to subtract."""
        if self.axes is None:
            return Y, self.center
        return kernels.rotate(Y, self.center, self.axes), np.zeros(len(self.center))

    def norms(self, Y: Array, kernels: Kernels) -> Array:
        """‖z‖ of each row."""
        Z, origin = self.turned(Y, kernels)
        return kernels.vector_norms(Z, origin, self.width)
