"""spdp's statistics as OpenDP measurements, to be composed with OpenDP's own.

>>> import numpy as np, opendp.prelude as dp, spdp
>>> from spdp.opendp import make_private
>>> dp.enable_features("contrib", "honest-but-curious")
>>> mean = make_private(
...     spdp.private_mean, k=3, epsilon=1.0, delta=1e-6, domain=spdp.Ball(2.0)
... )
>>> release = mean(np.tile(np.eye(3), (500, 1, 1)))
>>> np.asarray(release).shape
(3, 3)
>>> mean.map(2) == 4 * mean.map(1)
True

What is enforced: a measurement's function is the statistic itself, which pays out of a
budget μ at most, for records of any kind (``on_invalid="center"``). Its map is
d_in ↦ (d_in·μ)²/2, in zero-concentrated divergence: each step adds a discrete Gaussian
of scale s with s² ≥ (Δ/μᵢ)², which is μᵢ²/2-zCDP (Canonne, Kamath and Steinke 2020),
steps add up also where later ones are chosen by earlier answers, and d_in records are
d_in steps from one neighbour to the next. Assumed: what the statistic assumes, and what
OpenDP calls honest-but-curious: that this module is what it says.
"""

from collections.abc import Callable
from fractions import Fraction
from inspect import signature
from math import inf, nextafter
from typing import Any

import numpy as np

from spdp.choices import Adjacency
from spdp.errors import ParameterError
from spdp.privacy.costs import Budget
from spdp.release import Release

__all__ = ["make_private"]

# what the measurement itself decides
OWN = ("ledger", "random_state", "on_invalid", "groups", "mechanism", "calibration")


def make_private(
    statistic: Callable[..., Release],
    *,
    k: int,
    epsilon: float,
    delta: float,
    adjacency: str = "replace-one",
    **options: Any,
) -> Any:
    """A statistic of arrays (n, k, k) as an OpenDP ``Measurement``.

    OpenDP's features ``contrib`` and ``honest-but-curious`` must be enabled.

    Parameters
    ----------
    statistic : function
        ``private_mean``, ``private_median``, ``private_dispersion`` or ``private_pca``.
    k : int
        Size of the matrices, public.
    epsilon, delta : float
        Fix the cost μ; the measurement's map then speaks of zero-concentrated
        divergence.
    adjacency : {"replace-one", "add-remove"}
        Gives OpenDP's change-one or symmetric distance, which know no order of records:
        nor does a release (:mod:`spdp.engines.coins`).
    **options
        Of the statistic: ``domain``, ``method``, ``metric``, …

    Returns
    -------
    opendp.mod.Measurement
        Takes arrays, gives a :class:`spdp.Release`.
    """
    import opendp.prelude as dp

    for name in OWN:
        if name in options:
            raise ParameterError(f"{name} is not to be chosen for a measurement")
    neighbours = Adjacency(adjacency)
    distance = {
        Adjacency.REPLACE_ONE: dp.change_one_distance,
        Adjacency.ADD_REMOVE: dp.symmetric_distance,
    }[neighbours]()
    mu = Budget.gaussian(epsilon, delta).mu
    assert mu is not None
    budget = {"epsilon": epsilon, "delta": delta, "adjacency": neighbours.value}
    if "mechanism" in signature(statistic).parameters:
        budget["mechanism"] = "gaussian"
    return dp.m.make_user_measurement(
        input_domain=dp.user_domain(f"records ({k}, {k})", lambda X: _is_stack(X, k)),
        input_metric=distance,
        output_measure=dp.zero_concentrated_divergence(),
        function=lambda X: statistic(X, on_invalid="center", **budget, **options),
        privacy_map=lambda d_in: _rho(mu, d_in),
    )


def _is_stack(X: Any, k: int) -> bool:
    return isinstance(X, np.ndarray) and X.shape[1:] == (k, k)


def _rho(mu: float, d_in: int) -> float:
    """(d_in·μ)²/2, rounded up."""
    return nextafter(float(Fraction(mu) ** 2 * d_in**2 / 2), inf)
