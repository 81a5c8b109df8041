"""Laws of squared errors as frozen SciPy distributions, for whoever asks for one.

A module of its own because importing scipy.stats takes longer than a release.
"""

from typing import Any

import numpy as np
from scipy import stats

from spdp.error.laws import Frozen, Inverted
from spdp.kernels.arrays import Array


def frozen(law: Inverted, name: str, scale: float) -> Frozen:
    """``law`` times ``scale``, with the methods of a SciPy distribution."""
    return _Continuous(law, name)(scale=scale)


class _Continuous(stats.rv_continuous):  # type: ignore[misc]
    def __init__(self, law: Inverted, name: str) -> None:
        super().__init__(a=0.0, name=name)
        self._law = law

    def _updated_ctor_param(self) -> dict[str, Any]:
        return {"law": self._law, "name": self.name}  # what SciPy needs to freeze a copy

    def _cdf(self, x: Array) -> Array:
        return self._law.below(np.minimum(x, self._law.reach).ravel()).reshape(np.shape(x))

    def _ppf(self, p: Array) -> Array:
        return self._law.quantile(p)

    def _stats(self) -> tuple[float, float | None, None, None]:
        return (*self._law.moments(), None, None)

    def _rvs(self, size: Any = None, random_state: Any = None) -> Array:
        shape = () if size is None else tuple(np.atleast_1d(size))
        return self._law.draw(shape, random_state)
