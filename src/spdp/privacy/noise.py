"""The samplers. Only :mod:`spdp.privacy.account` may call them.

Gaussian noise is drawn by :mod:`spdp.privacy.discrete_gaussian`, or with
``SPDP_SAMPLER=opendp`` by OpenDP (extra ``opendp``). The law is the same, and a
certificate says who drew.
"""

import os
import secrets
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from spdp.errors import ParameterError, need
from spdp.kernels.arrays import Ints
from spdp.options import Noise
from spdp.privacy import discrete_gaussian, laplace_mixture, laplace_rounding
from spdp.privacy.laplace_rounding import check_scale as check_scale

Generator = np.random.Generator | None

SAMPLERS = ("strips", "opendp")
MIXTURE_FROM = 32  # dimension from which the mixture is the faster Laplace sampler
SIMULATION = "simulation"


def sampler(law: Noise, rng: Generator) -> str:
    """What draws the noise, as certificates name it.

    A choice that cannot be had is an error here, before anything is paid.
    """
    if rng is not None:
        return SIMULATION
    if law is Noise.LAPLACE:
        return "laplace-1"
    if _chosen() == "opendp":
        need("opendp", "opendp", "SPDP_SAMPLER=opendp", "OpenDP")
        _check_opendp()
        return f"opendp-{version('opendp')}"
    return discrete_gaussian.NAME


@lru_cache(maxsize=1)  # one choice for a process: certificates state it
def _chosen() -> str:
    choice = os.environ.get("SPDP_SAMPLER") or SAMPLERS[0]
    if choice not in SAMPLERS:
        raise ParameterError(f"SPDP_SAMPLER must be 'strips' or 'opendp', got {choice!r}")
    return choice


def gaussian(total: Ints, scale: float, rng: Generator) -> Ints:
    """``total`` plus discrete Gaussian noise, P(N = q) ∝ exp(−‖q‖²/2·scale²).

    Exact, on operating-system entropy, or a seeded simulation that is not private. The
    sum saturates at the ends of int64 after noise is added: post-processing.
    """
    if rng is not None:
        return _simulated(total, rng.standard_normal(total.shape) * scale)
    if _chosen() == "opendp":
        return _opendp_gaussian(scale)(total)
    return discrete_gaussian.gaussian(total, scale)


@lru_cache(maxsize=1)
def _check_opendp() -> None:
    """Draw once: an OpenDP that is broken or too old is one error, before payment."""
    try:
        _opendp_gaussian(1.0)(np.zeros(1, np.int64))
    except Exception as error:
        raise ParameterError(
            f"SPDP_SAMPLER=opendp: OpenDP does not draw ({type(error).__name__}: {error}); install "
            "a newer one with: pip install 'spdp[opendp]'"
        ) from None


@lru_cache(maxsize=64)
def _opendp_gaussian(scale: float) -> Callable[[Ints], Ints]:
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian
    from opendp.metrics import l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    space = vector_domain(atom_domain(T="i64")), l2_distance(T="f64")
    measurement = make_gaussian(*space, scale=scale)
    return lambda total: np.array(measurement(total.tolist()), np.int64)


def laplace(total: Ints, scale: Fraction, rng: Generator) -> Ints:
    """``total`` plus discrete ℓ2 Laplace noise, P(N = q) ∝ exp(−‖q‖/scale).

    Exact, on operating-system entropy (:mod:`spdp.privacy.laplace_rounding` in few
    dimensions, :mod:`spdp.privacy.laplace_mixture` in many), or a seeded simulation
    that is not private. Saturates at the ends of int64 after adding noise.
    """
    check_scale(len(total), scale)
    if rng is not None:
        direction = rng.standard_normal(len(total))
        radius = float(rng.gamma(len(total), float(scale)))
        return _simulated(total, direction * (radius / np.sqrt(direction @ direction)))
    draw = laplace_rounding.laplace if len(total) < MIXTURE_FROM else laplace_mixture.laplace
    return draw(total, scale)


def key(rng: Generator) -> int:
    """A random key from operating-system entropy, unless seeded."""
    return secrets.randbits(64) if rng is None else int(rng.spawn(1)[0].integers(1 << 63))


def _simulated(total: Ints, noise: NDArray[np.float64]) -> Ints:
    return np.clip(total + np.rint(noise), -(2.0**62), 2.0**62).astype(np.int64)
