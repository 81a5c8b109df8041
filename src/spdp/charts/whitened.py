r"""The log-Euclidean metric seen from a public reference point C.

Records are whitened, X ↦ C^-½·X·C^-½, and what is released is mapped back: the vector
of X is vecd Logm(C^-½·X·C^-½), that of pyRiemann's ``TangentSpace`` at C. The
affine-invariant distance ‖Logm(X^-½·Y·X^-½)‖_F equals this one from C itself, exactly;
between two other matrices it does not, except where they commute after whitening.

*Enforced.* Whitening is a function of one record and of C. *Assumed.* C is public.
Domains are about whitened records: EigenvalueBounds(low, high) bounds the eigenvalues
of C⁻¹X, and a ball without a centre is one around C.
"""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.charts.logeuclid import LogEuclidean
from spdp.errors import ParameterError, named
from spdp.geometry import expm, logm, vecd
from spdp.kernels import Kernels, Region, Status
from spdp.kernels.base import Array, Codes, Ints, invvecd, symmetric
from spdp.kernels.reference import prepare

__all__ = ["Whitened"]


class Whitened(LogEuclidean):
    """The log-Euclidean chart at a public SPD matrix ``point``."""

    distance = "log-Euclidean (seen from a public reference point)"

    def __init__(self, point: Any) -> None:
        L = logm(point)
        if L.ndim != 2:
            raise ParameterError(
                f"{named('reference_point')} has shape {L.shape}; expected one (k, k)"
            )
        self.point = np.array(point, dtype=np.float64)
        self.root, self.inverse_root = expm(0.5 * L), expm(-0.5 * L)

    @property
    def key(self) -> str:
        digest = hashlib.sha256(np.ascontiguousarray(self.point, "<f8").tobytes()).hexdigest()
        return f"{self.name} seen from {digest[:16]}"

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "reference_point": self.point.tolist()}

    def whiten(self, X: NDArray[Any]) -> tuple[NDArray[Any], Codes]:
        """Whitened matrices in the dtype of X, and what is wrong with those of X.

        Symmetry is judged, and established, before: whitening would magnify rounding.
        """
        self._check(X.shape[-1])
        A, exponent, _, status = prepare(X)
        with np.errstate(over="ignore"):  # what leaves the range of its dtype is not finite
            B = self.inverse_root @ A @ self.inverse_root
            B = np.ldexp(symmetric(B), exponent[:, None, None])
            B[status != Status.OK] = np.nan
            return B.astype(X.dtype), status

    def _check(self, k: int) -> None:
        if k != len(self.point):
            size = len(self.point)
            raise ParameterError(f"the reference point is {size}×{size}, the records are {k}×{k}")

    def vectors(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Array, Codes]:
        B, before = self.whiten(X)
        Y, status = super().vectors(B, region, kernels)
        return Y, np.where(before, before, status)

    def coordinates(self, X: NDArray[Any], kernels: Kernels) -> tuple[Array, Codes]:
        B, before = self.whiten(X)
        Y, status = super().coordinates(B, kernels)
        return Y, np.where(before, before, status)

    def encode(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Ints, Codes]:
        B, before = self.whiten(X)
        q, status = super().encode(B, region, kernels)
        return q, np.where(before, before, status)

    def lattice_sum(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Ints, Codes]:
        B, before = self.whiten(X)
        total, status = super().lattice_sum(B, region, kernels)
        return total, np.where(before, before, status)

    def vector(self, M: Any) -> Array:
        logm(M)  # raises, naming the matrix, for what is not SPD
        self._check(np.shape(M)[-1])
        B = self.inverse_root @ np.asarray(M, dtype=np.float64) @ self.inverse_root
        return vecd(logm(symmetric(B)))

    def representable(self, v: Array) -> Array:
        """As without a point; then eigenvalues that float64 resolves, mapped back.

        Where there are smaller ones, 8k·2⁻⁵² of the largest is added to the diagonal.
        """
        z = super().representable(v)
        X = self._back(z)
        w = np.linalg.eigvalsh(X)
        fine = w.shape[-1] * float(np.finfo(np.float64).eps) * w[..., -1]
        poor = w[..., 0] < 4.0 * fine
        if not poor.any():
            return z
        z = np.array(z)
        z[poor] = self.vector(X[poor] + 8.0 * fine[poor][..., None, None] * np.eye(w.shape[-1]))
        return z

    def matrices(self, v: Array) -> Array:
        """C^½·Expm(invvecd v)·C^½."""
        return self._back(self.representable(v))

    def _back(self, v: Array) -> Array:
        return np.asarray(symmetric(self.root @ expm(invvecd(v)) @ self.root))

    def log_jacobian(self, M: Any) -> Any:
        """That of the whitened matrix, and (k + 1)/2·ln det C⁻¹ for whitening."""
        B = self.inverse_root @ np.asarray(M, dtype=np.float64) @ self.inverse_root
        k = len(self.point)
        whitening = -0.5 * (k + 1) * float(np.trace(logm(self.point)))
        return super().log_jacobian(symmetric(B)) + whitening
