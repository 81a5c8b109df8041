r"""Where a record may lie. A domain is public: chosen before the data is seen, or from knowledge of the instrument.

Records are FORCED into the domain one by one, so the sensitivity of their mean is enforced, not assumed: with all log-vectors
in a ball of radius r, replacing one of n records moves the mean by at most 2r/n (theorem 3). A radius or bounds computed from the
data themselves leak the data; no function here offers that.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spdp import kernels
from spdp.errors import ParameterError
from spdp.geometry import complain, expm, invvecd, logm, matrix_stack, problem, vecd
from spdp.kernels import Region
from spdp.privacy import check_positive

__all__ = ["Ball", "Domain", "EigenvalueBounds", "check_domain", "domain_of"]

Array = NDArray[np.float64]

LOOSE = 1e-9  # relative slack with which `contains` forgives the rounding of a logarithm


class Domain(ABC):
    """What :class:`Ball` and :class:`EigenvalueBounds` share; see there."""

    @abstractmethod
    def region(self, k: int) -> Region:
        """The domain for k×k matrices, as the kernels take it."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Public description for certificates, JSON-ready."""

    def radius_for(self, k: int) -> float:
        """Radius r of a log-Euclidean ball that contains the domain."""
        return self.region(k).radius

    def sensitivity(self, n: int, k: int) -> float:
        """2r/n: how far replacing one of n records can move the Fréchet mean of clipped records (theorem 3)."""
        if n < 1:
            raise ParameterError(f"n must be at least 1, got {n}")
        return 2.0 * self.radius_for(k) / n

    def clip(self, X: ArrayLike) -> Array:
        """Each record forced into the domain; records inside it are returned as they are up to rounding."""
        A = matrix_stack(X)
        region = self.region(A.shape[-1])
        Y = clip_to_ball(self._log_vectors(A, region), region.center, region.radius)
        return expm(invvecd(Y)).reshape(A.shape)

    def contains(self, X: ArrayLike) -> Any:
        """Whether each matrix lies in the domain, up to the rounding of a logarithm."""
        A = matrix_stack(X)
        region = self.region(A.shape[-1])
        L = logm(A)
        w = np.linalg.eigvalsh(L)
        slack = LOOSE * max(1.0, region.radius)
        near = np.sqrt(((vecd(L) - region.center) ** 2).sum(axis=-1)) <= region.radius + slack
        return near & (w[..., 0] >= region.log_low - slack) & (w[..., -1] <= region.log_high + slack)

    def _log_vectors(self, A: NDArray[Any], region: Region) -> Array:
        F = A.reshape(-1, *A.shape[-2:])
        Y, status = kernels.log_vectors(F, region.log_low, region.log_high)
        bad = np.flatnonzero(status)
        if bad.size:
            index = tuple(int(i) for i in np.unravel_index(bad[0], A.shape[:-2])) if A.ndim > 2 else ()
            raise complain(problem(int(status[bad[0]]), F[bad[0]]), index)
        return np.asarray(Y)


def clip_to_ball(Y: Array, center: Array, radius: float) -> Array:
    """Radial clip y ← c + (y − c)·min(1, r/‖y − c‖)."""
    Z = Y - center
    norm = np.sqrt((Z * Z).sum(axis=-1, keepdims=True))
    return np.asarray(center + Z * np.minimum(1.0, radius / np.maximum(norm, radius)))


@dataclass(frozen=True)
class Ball(Domain):
    """Log-Euclidean ball of a given radius around a public centre (the identity by default).

    Parameters
    ----------
    radius : float
        r > 0, in log-Euclidean distance.
    center : array (k, k), optional
        SPD matrix.
    """

    radius: float
    center: Any = None

    def __post_init__(self) -> None:
        r = check_positive("radius", self.radius)
        if not 1e-100 <= r <= 1e100:
            raise ParameterError(f"radius must lie between 1e-100 and 1e100, got {r!r}")
        object.__setattr__(self, "radius", r)
        if self.center is not None:
            C = np.array(matrix_stack(self.center, "center"), dtype=np.float64)
            if C.ndim != 2:
                raise ParameterError(f"center has shape {C.shape}; expected one matrix (k, k)")
            C.setflags(write=False)
            object.__setattr__(self, "center", C)
            self._center_vector  # noqa: B018 - raises now if the centre is not SPD

    @cached_property
    def _center_vector(self) -> Array:
        return vecd(logm(self.center))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ball) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(self.radius)

    def region(self, k: int) -> Region:
        if self.center is None:
            return Region(-np.inf, np.inf, np.zeros(k * (k + 1) // 2), self.radius)
        if len(self.center) != k:
            raise ParameterError(f"the domain's centre is {self.center.shape}, the records are ({k}, {k})")
        return Region(-np.inf, np.inf, self._center_vector, self.radius)

    def describe(self) -> dict[str, Any]:
        return {
            "type": "Ball",
            "radius": self.radius,
            "center": None if self.center is None else self.center.tolist(),
        }


@dataclass(frozen=True)
class EigenvalueBounds(Domain):
    """Matrices whose eigenvalues lie in [low, high]; records have their eigenvalues clipped.

    Log-eigenvalues then lie within ln(high/low)/2 of ln√(low·high), so the ball around √(low·high)·I of radius
    r = (√k/2)·ln(high/low) contains every record. (The paper centres at I, which is never better.)

    Parameters
    ----------
    low, high : float
        0 < low < high, finite.
    """

    low: float
    high: float
    _cache: dict[int, Region] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        low, high = check_positive("low", self.low), check_positive("high", self.high)
        if not np.log(low) < np.log(high):
            raise ParameterError(f"low must be smaller than high, got {low!r} and {high!r}")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def region(self, k: int) -> Region:
        if k not in self._cache:
            log_low, log_high = float(np.log(self.low)), float(np.log(self.high))
            center = np.zeros(k * (k + 1) // 2)
            center[:k] = 0.5 * (log_low + log_high)
            self._cache[k] = Region(log_low, log_high, center, 0.5 * float(np.sqrt(k)) * (log_high - log_low))
        return self._cache[k]

    def describe(self) -> dict[str, Any]:
        return {"type": "EigenvalueBounds", "low": self.low, "high": self.high}


def domain_of(description: dict[str, Any]) -> Domain:
    """The domain that :meth:`Domain.describe` described."""
    kinds = {"Ball": Ball, "EigenvalueBounds": EigenvalueBounds}
    options = {name: value for name, value in description.items() if name != "type"}
    if description.get("type") not in kinds:
        raise ParameterError(f"unknown kind of domain {description.get('type')!r}")
    domain: Domain = kinds[description["type"]](**options)
    return domain


def check_domain(domain: object) -> Domain:
    """``domain`` if it is one; otherwise an explanation of why it cannot be left out or taken from the data."""
    if isinstance(domain, Domain):
        return domain
    if domain is None:
        raise ParameterError(
            "a domain is required: pass Ball(radius) or EigenvalueBounds(low, high), chosen from public knowledge. "
            "Bounds computed from the data would leak the data."
        )
    raise ParameterError(
        f"domain must be a Ball or EigenvalueBounds, got {type(domain).__name__}. "
        "It cannot be taken from the data: bounds computed from the data would leak the data."
    )
