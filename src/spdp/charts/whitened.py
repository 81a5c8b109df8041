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
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.charts.logeuclid import EPS, LARGEST_LOG, LogEuclidean, clamped, spread_of
from spdp.errors import ParameterError, named
from spdp.geometry import expm, logm
from spdp.kernels.arrays import Array, Ints, Statuses
from spdp.kernels.base import Kernels, Region, Status
from spdp.kernels.reference import LN2, prepare
from spdp.kernels.vecd import compose, invvecd, symmetric, vecd

FAR = 4.0 * LARGEST_LOG  # log-eigenvalues beyond this lie out of range from any point


class Whitened(LogEuclidean):
    """The log-Euclidean chart at a public SPD matrix ``point``."""

    works_on_device = False
    distance = "log-Euclidean (seen from a public reference point)"

    def __init__(self, point: Any) -> None:
        L = logm(point)
        if L.ndim != 2:
            raise ParameterError(f"{named('reference_point')} has shape {L.shape}; expected (k, k)")
        w = np.asarray(np.linalg.eigvalsh(L), dtype=np.float64)
        if (clamped(w) != w).any():
            low, high = (f"1e{x / log(10.0):.0f}" for x in (w[0], w[-1]))
            raise ParameterError(
                f"{named('reference_point')} has eigenvalues from about {low} to {high}, which "
                "float64 numbers hardly hold: scale point and records alike, or add to the "
                "point's diagonal"
            )
        self.point = np.array(point, dtype=np.float64)
        self.reference_point = self.point.tolist()
        digest = hashlib.sha256(np.ascontiguousarray(self.point, "<f8").tobytes()).hexdigest()
        self.key = f"{self.name} seen from {digest[:16]}"
        self.log_size = float(w[-1])  # ln ‖C‖
        self.log_ratio = float(w[0] - w[-1])  # ln of the smallest eigenvalue over ‖C‖
        # of C/‖C‖: no product of these leaves float64
        half = 0.5 * (L - self.log_size * np.eye(len(L)))
        self.root, self.inverse_root = expm(half), expm(-half)

    def whiten(self, X: NDArray[Any]) -> tuple[NDArray[Any], Statuses]:
        """Whitened matrices in the dtype of X, and the status of the matrices of X.

        Matrices are checked and made symmetric before whitening, which would magnify
        the rounding of their entries.
        """
        self._check(X.shape[-1])
        A, exponent, _, status = prepare(X)
        size, power = np.frexp(np.exp2(-self.log_size / LN2))  # powers of two stay exact
        with np.errstate(over="ignore"):  # what leaves the range of its dtype is not finite
            B = size * (self.inverse_root @ A @ self.inverse_root)
            B = np.ldexp(symmetric(B), (exponent + power)[:, None, None])
            B[status != Status.OK] = np.nan
            return B.astype(X.dtype), status

    def _check(self, k: int) -> None:
        if k != len(self.point):
            size = len(self.point)
            raise ParameterError(f"the reference point is {size}×{size}, the records are {k}×{k}")

    def _of_whitened(self, work: Any, X: NDArray[Any], *more: Any) -> tuple[Any, Statuses]:
        B, before = self.whiten(X)
        result, status = work(B, *more)
        return result, np.where(before, before, status)

    def vectors(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Array, Statuses]:
        return self._of_whitened(super().vectors, X, region, kernels)

    def coordinates(self, X: NDArray[Any], kernels: Kernels) -> tuple[Array, Statuses]:
        return self._of_whitened(super().coordinates, X, kernels)

    def encode(self, X: NDArray[Any], region: Region, kernels: Kernels) -> tuple[Ints, Statuses]:
        return self._of_whitened(super().encode, X, region, kernels)

    def lattice_sum(
        self, X: NDArray[Any], region: Region, kernels: Kernels
    ) -> tuple[Ints, Statuses]:
        return self._of_whitened(super().lattice_sum, X, region, kernels)

    def vector(self, M: Any) -> Array:
        logm(M)  # raises, naming the matrix, for what is not SPD
        return vecd(self._logarithms(M))

    def _logarithms(self, M: Any) -> Array:
        """Logm(C^-½·M·C^-½), the sizes of both put in as logarithms."""
        A = np.asarray(M, dtype=np.float64)
        self._check(A.shape[-1])
        stack, exponent, _, _ = prepare(A.reshape(-1, *A.shape[-2:]))
        L = logm(symmetric(self.inverse_root @ stack @ self.inverse_root))
        sizes = exponent * LN2 - self.log_size
        return np.asarray((L + sizes[:, None, None] * np.eye(A.shape[-1])).reshape(A.shape))

    def representable(self, v: Array) -> Array:
        r"""Log-eigenvalues that float64 resolves, and holds, also when mapped back.

        With E = Expm(invvecd v) and X = C^½·E·C^½, rounding of X moves C^-½·X·C^-½ by
        about k·2⁻⁵²·‖X‖/λ, λ the smallest eigenvalue of C. Where E has a smaller one
        than four times that, eight times that is added to its diagonal. Then X is
        scaled into the range of float64. Most vectors are far from all limits and are
        returned as they are: ‖X‖ is at most e^‖v‖·‖C‖.
        """
        spread = spread_of(len(self.point))
        room = min(LARGEST_LOG - abs(self.log_size) - spread, spread + self.log_ratio)
        if np.vdot(v, v) <= max(0.0, 0.5 * room) ** 2:
            return v
        w, V = np.linalg.eigh(invvecd(v))
        fit = self._in_range(self._resolved(np.clip(w, -FAR, FAR), V), V)
        return v if (fit == w).all() else vecd(compose(V, fit))

    def _resolved(self, w: Array, V: Array) -> Array:
        """Log-eigenvalues w of E, raised to what rounding of X leaves visible."""
        k = len(self.point)
        w = np.maximum(w, w[..., -1:] - spread_of(k))
        least = self._log_norm(w, V) - self.log_ratio + log(4.0 * k * EPS)
        poor = w[..., 0] < least
        return np.where(poor[..., None], np.logaddexp(w, least[..., None] + LN2), w)

    def _in_range(self, w: Array, V: Array) -> Array:
        """w, shifted so that ln ‖X‖ lies in the range of float64."""
        size = self._log_norm(w, V) + self.log_size
        held = np.clip(size, spread_of(len(self.point)) - LARGEST_LOG, LARGEST_LOG)
        return np.asarray(w + (held - size)[..., None])

    def _log_norm(self, w: Array, V: Array) -> Array:
        """ln ‖C^½·E·C^½‖ − ln ‖C‖, E of log-eigenvalues w and eigenvectors V."""
        X, top = self._shape(w, V)
        return np.asarray(np.log(np.linalg.eigvalsh(X)[..., -1]) + top)

    def _shape(self, w: Array, V: Array) -> tuple[Array, Array]:
        """C^½·E·C^½ over the largest eigenvalues of C and E, and ln of the latter."""
        E = compose(V, np.exp(w - w[..., -1:]))
        return np.asarray(symmetric(self.root @ E @ self.root)), w[..., -1]

    def matrices(self, v: Array) -> Array:
        """C^½·Expm(invvecd v)·C^½, positive definite in float64 whatever v is."""
        self._check(self.size(v.shape[-1]))
        X, top = self._shape(*np.linalg.eigh(invvecd(self.representable(v))))
        big = np.abs(X).max(axis=(-2, -1))
        size = np.exp(np.log(big) + top + self.log_size)  # one factor alone may overflow
        return np.asarray(X / big[..., None, None] * size[..., None, None])

    def log_jacobian(self, M: Any) -> Any:
        """That of the whitened matrix, and (k + 1)/2·ln det C⁻¹ for whitening."""
        k = len(self.point)
        whitening = -0.5 * (k + 1) * float(np.trace(logm(self.point)))
        return self.log_jacobian_at(self._logarithms(M)) + whitening
