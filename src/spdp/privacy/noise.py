"""The samplers. Only :meth:`spdp.privacy.account.Account.measure` may call them."""

from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.privacy.exact_laplace import check_scale, laplace_vector

__all__ = ["check_scale", "gaussian", "laplace"]

Ints = NDArray[np.int64]
Generator = np.random.Generator | None

LIMIT = (1 << 63) - 1


def gaussian(total: Ints, scale: float, rng: Generator) -> Ints:
    """``total`` plus discrete Gaussian noise, P(N = q) ∝ exp(−‖q‖²/2·scale²).

    OpenDP's exact sampler on operating-system entropy, or a seeded simulation that is
    not private. The sum itself goes through OpenDP, which saturates at the ends of
    int64 after adding noise: post-processing.
    """
    if rng is not None:
        return _simulated(total, rng.standard_normal(total.shape) * scale)
    return np.array(_opendp_gaussian(scale)(total.tolist()), np.int64)


@lru_cache(maxsize=64)
def _opendp_gaussian(scale: float) -> Any:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), l2_distance(T="f64")
    return make_gaussian(*space, scale=scale)


def laplace(total: Ints, scale: Fraction, rng: Generator) -> Ints:
    """``total`` plus discrete ℓ2 Laplace noise, P(N = q) ∝ exp(−‖q‖/scale).

    Exact (:mod:`spdp.privacy.exact_laplace`) on operating-system entropy, or a seeded
    simulation that is not private. Saturates at the ends of int64 after adding noise.
    """
    if rng is not None:
        direction = rng.standard_normal(len(total))
        radius = float(rng.gamma(len(total), float(scale)))
        return _simulated(total, direction * (radius / np.sqrt(direction @ direction)))
    noise = laplace_vector(len(total), scale)
    sums = [int(t) + q for t, q in zip(total, noise, strict=True)]
    return np.array([min(max(s, -LIMIT), LIMIT) for s in sums], np.int64)


def _simulated(total: Ints, noise: NDArray[np.float64]) -> Ints:
    return np.clip(total + np.rint(noise), -(2.0**62), 2.0**62).astype(np.int64)
