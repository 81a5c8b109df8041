r"""How far the affine-invariant metric is from flat: Hessians of squared distances.

Curvature lies between −½ and 0. With S = Log_C X and its eigenvalues λ_i, the Hessian
of ½d²(·, X) at C multiplies the (i, j) entry, in the eigenbasis of S, by

    φ(|λ_i − λ_j|/2),   φ(x) = x·coth x

(a symmetric space: R(·, S)S = −¼ad_S², solved along the geodesic). As |λ_i − λ_j| is at
most √2·‖S‖,

    1 ≤ ∇²½d² ≤ 1 + h(d(C, X)),   h(r) = φ(r/√2) − 1 ≤ min(r²/6, r/√2).

h increases and is 1/√2-Lipschitz, as 0 ≤ φ' < 1. By Rauch's comparison, Exp_C stretches
distances by at most S(x) = sinh(x)/x, x the larger of both lengths over √2.
"""

from math import sqrt
from typing import Any

import numpy as np

from spdp.kernels.arrays import Array
from spdp.kernels.vecd import invvecd, size_of, vecd

ROOT2 = sqrt(2.0)
SMALL = 1e-4  # below, φ is 1 + x²/3 to float64's last digit
FAR = 300.0  # beyond, sinh(x)/x is as good as infinite
STEPS = 12  # of conjugate gradients: H is at least 1 and well conditioned


def xcothx(x: Array) -> Array:
    """φ(x) = x·coth x."""
    y = np.abs(np.asarray(x, dtype=np.float64))
    large = np.where(y < SMALL, 1.0, y)
    return np.where(y < SMALL, 1.0 + y * y / 3.0, large / np.tanh(large))


def excess(r: Any) -> Any:
    """h(r) = φ(r/√2) − 1, by which a Hessian at distance r may exceed 1."""
    x = np.asarray(r, dtype=np.float64) / ROOT2
    y = np.minimum(x, 1e-2)
    return np.where(x < 1e-2, y * y / 3.0 - y**4 / 45.0, xcothx(x) - 1.0)


def stretch(x: float) -> float:
    """S(x) = sinh(x)/x."""
    if x < SMALL:
        return 1.0 + x * x / 6.0
    return float(np.sinh(x) / x) if x < FAR else np.inf


class Hessian:
    """Mean Hessian of ½d² of tangent vectors (m, d), as a map of tangent vectors."""

    def __init__(self, Y: Array) -> None:
        values, self._V = np.linalg.eigh(invvecd(Y))
        self._phi = xcothx(0.5 * (values[:, :, None] - values[:, None, :]))

    @classmethod
    def of_normal(cls, sd: Array, axes: Array | None, stand_ins: int, seed: int = 0) -> "Hessian":
        """Of normal vectors with these standard deviations along axes.

        They stand in for records; the seed is fixed, so that the map is a function of
        the shape alone.
        """
        Z = np.random.default_rng(seed).standard_normal((stand_ins, len(sd))) * sd
        return cls(Z if axes is None else Z @ axes.T)

    def __call__(self, w: Array) -> Array:
        V = self._V
        A = V.transpose(0, 2, 1) @ invvecd(w) @ V
        return vecd((V @ (self._phi * A) @ V.transpose(0, 2, 1)).mean(axis=0))

    def solve(self, v: Array) -> Array:
        """H⁻¹·v, by conjugate gradients."""
        x, r = np.zeros_like(v), v.copy()
        p, square = r.copy(), float(r @ r)
        least = 1e-24 * square
        for _ in range(STEPS):
            if square <= least:
                break
            Hp = self(p)
            a = square / float(p @ Hp)
            x, r = x + a * p, r - a * Hp
            before, square = square, float(r @ r)
            p = r + (square / before) * p
        return x


def commutator_gap(mean: Array, Y: Array) -> float:
    r"""Distance of the log-Euclidean mean from the affine-invariant one, predicted.

    (1/12)·‖mean [D_i, [D_i, Ȳ]]‖ to leading order, Ȳ the logarithm of the mean less its
    trace part and D_i = Logm X_i − Ȳ, both as vectors (d,) and (m, d).
    """
    M, D = invvecd(mean), invvecd(Y)
    M = M - np.eye(size_of(len(mean))) * (np.trace(M) / len(M))
    inner = D @ M - M @ D
    outer = D @ inner - inner @ D
    return float(np.linalg.norm(outer.mean(axis=0)) / 12.0)
