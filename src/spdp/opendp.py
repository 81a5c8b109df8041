"""spdp's statistics as OpenDP measurements, to be composed with OpenDP's own.

Needs the extra ``opendp``.

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

*Enforced.* A measurement's function is the statistic itself, which spends at most the
budget μ, and does not fail on invalid records (``on_invalid="center"``).

*Assumed.* What the statistic assumes, and what OpenDP calls honest-but-curious: that
this module does what it says.

*Therefore* its map is d_in ↦ (d_in·μ)²/2, in zero-concentrated divergence. Each step
adds a discrete Gaussian of scale s with s² ≥ (Δ/μᵢ)², which is μᵢ²/2-zCDP (Canonne,
Kamath and Steinke 2020); adaptive composition adds these up; and d_in steps between
neighbours link datasets that differ in d_in records.
"""

from collections.abc import Callable
from fractions import Fraction
from inspect import signature
from math import inf, nextafter
from typing import Any

import numpy as np

from spdp.errors import ParameterError, need
from spdp.options import Adjacency
from spdp.privacy.budget import Budget
from spdp.release import Release

__all__ = ["make_private"]

# options that the measurement sets itself
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
        One that needs records only: ``private_mean``, or another ``private_…`` of
        :mod:`spdp.statistics` without labels and covariates.
    k : int
        Size of the matrices, public.
    epsilon, delta : float
        They fix the cost μ; the measurement's map is in zero-concentrated divergence.
    adjacency : {"replace-one", "add-remove"}
        Gives OpenDP's change-one or symmetric distance. Both ignore the order of
        records, and so does a release (:mod:`spdp.engines.store`).
    **options
        Of the statistic: ``domain``, ``method``, ``metric``, …

    Returns
    -------
    opendp.mod.Measurement
        Takes arrays, gives a :class:`spdp.Release`.
    """
    dp = need("opendp.prelude", "opendp", "spdp.opendp", "OpenDP")
    for name in OWN:
        if name in options:
            raise ParameterError(f"{name} cannot be chosen for a measurement")
    neighbours = Adjacency(adjacency)
    replaces = neighbours is Adjacency.REPLACE_ONE
    distance = dp.change_one_distance() if replaces else dp.symmetric_distance()
    mu = Budget.gaussian(epsilon, delta).mu
    assert mu is not None
    budget = {"epsilon": epsilon, "delta": delta, "adjacency": neighbours.value}
    if "mechanism" in signature(statistic).parameters:
        budget["mechanism"] = "gaussian"
    shape = (k, k)
    return dp.m.make_user_measurement(
        input_domain=dp.user_domain(f"records {shape}", lambda X: np.shape(X)[1:] == shape),
        input_metric=distance,
        output_measure=dp.zero_concentrated_divergence(),
        function=lambda X: statistic(X, on_invalid="center", **budget, **options),
        privacy_map=lambda d_in: _rho(mu, d_in),
    )


def _rho(mu: float, d_in: int) -> float:
    """(d_in·μ)²/2, rounded up."""
    return nextafter(float(Fraction(mu) ** 2 * d_in**2 / 2), inf)
