"""A stated summary: all but its sensitivity follows from that, and from the budget."""

from collections.abc import Iterator

from spdp.charts import CHARTS
from spdp.choices import Noise
from spdp.kernels.base import dimension as full_dimension
from spdp.privacy.account import NAMES, noise_scale
from spdp.privacy.laws import mean_law
from spdp.queries import Stated, stated_step
from spdp.verification.base import (
    Check,
    Fields,
    budget_of,
    close,
    dimension,
    equal,
    same,
)

__all__ = ["EUCLID", "summary"]

EUCLID = ("euclid", "Frobenius")


def summary(c: Fields) -> Iterator[Check]:
    """Lattice, σ and the law of a summary's error follow from Δ and the budget."""
    if c["method"] is not None:
        return
    ((step,), allowed), flat = (c["steps"], budget_of(c)), c["metric"] == EUCLID[0]
    kind = "extrinsic-gaussian" if flat else NAMES[allowed.noise]
    yield equal("mechanism", c["mechanism"], kind)
    name = EUCLID[1] if flat else CHARTS[c["metric"]].distance
    yield equal("distance", c["distance"], name)
    d = full_dimension(c["k"]) if flat else dimension(c)
    unit = stated_step(c["sensitivity"], 0.0) if flat else stated_step(c["sensitivity"])
    query = Stated.of(c["sensitivity"], unit, d)
    yield equal("lattice step", c["lattice_step"], unit)
    yield equal("sensitivity of the summary", step["sensitivity"], query.bound)
    sigma = noise_scale(allowed, query.bound) * unit
    yield same("sigma", c["sigma"], sigma, "scale of the noise")
    law = mean_law(allowed.noise is Noise.LAPLACE, d, sigma**2, 0.0)
    stated = c["squared_error_law"] or c["error_bound_parts"]["noise"]
    yield Check("law of the error", close(stated, law), law["family"])
