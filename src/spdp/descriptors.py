r"""Images to SPD matrices: region covariance descriptors with provable bounds.

At each pixel (Tuzel, Porikli, Meer 2006)

    φ = [x, y, I (one entry per channel), |I_x|, |I_y|, |I_xx|, |I_yy|,
         √(I_x² + I_y²), arctan(|I_x|/|I_y|)]         with x, y, I in [0, 1];

the descriptor is R = cov(φ) + η·Id, with 1/|S| normalisation: 9×9 for gray images,
11×11 for RGB.

Bounds. I_x is the 3×3 kernel (1 2 1)ᵀ(1 0 −1)/4, I_xx the 5×5 kernel
(1 4 6 4 1)ᵀ(1 0 −2 0 1)/32. Their positive weights sum to 1 and so do their negative
ones, hence all four derivatives lie in [−1, 1], provided the border replicates pixels
(it does). So feature i lies in [0, c_i] with c = (1, 1, 1 per channel, 1, 1, 1, 1, √2,
π/2), and λ_min(R) ≥ η because a covariance is positive semidefinite.

* trace: a variable in [0, c] has variance at most c²/4 (Popoviciu), and a covariance's
  trace is the sum of its variances: trace R ≤ Σ c_i²/4 + k·η, 2.867 (gray) and 3.367
  (RGB) without η. The radius is 20.10 and 22.16 at η = 1e-6.
* tight: λ_max(cov) ≤ trace(cov), so λ_max ≤ Σ c_i²/4 + η: radius 22.30 and 24.92.
* paper (theorem 5 as its appendix proves it; the main text prints 14 and 16):
  |φ_i − mean| ≤ c_i, so λ_max ≤ Σ c_i² + η ≤ 12 + η (gray), 14 + η (RGB).
"""

from importlib import import_module
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spdp.domain.sets import EigenvalueBounds, TraceBounds
from spdp.errors import DataError, ParameterError
from spdp.kernels.arrays import Array
from spdp.kernels.vecd import symmetric
from spdp.options import positive

__all__ = [
    "CovarianceDescriptors",  # noqa: F822, loaded below
    "covariance_descriptors",
    "descriptor_bounds",
    "paper_radius",
]


def __getattr__(name: str) -> Any:
    if name == "CovarianceDescriptors":  # scikit-learn is imported where it is asked for
        return import_module("spdp.learn.images").CovarianceDescriptors
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


SMALLEST = 5  # pixels per side: the second derivative's kernel
CHUNK_PIXELS = 1 << 16  # pixels worked on at once, so that features stay in cache
# bounds of all features but the channels
COMMON = (1.0, 1.0, 1.0, 1.0, 1.0, 1.0, np.sqrt(2.0), np.pi / 2)
PAPER_TOP = {1: 12.0, 3: 14.0}  # the paper's λ_max, by channels


def _check_channels(channels: int) -> int:
    if channels not in (1, 3):
        raise ParameterError(f"channels must be 1 (gray) or 3 (RGB), got {channels!r}")
    return channels


@overload
def descriptor_bounds(
    channels: int, eta: float = 1e-6, bound: Literal["trace"] = "trace"
) -> TraceBounds: ...
@overload
def descriptor_bounds(
    channels: int, eta: float = 1e-6, *, bound: Literal["tight", "paper"]
) -> EigenvalueBounds: ...
def descriptor_bounds(
    channels: int, eta: float = 1e-6, bound: str = "trace"
) -> TraceBounds | EigenvalueBounds:
    """Public bounds that hold for the descriptor of every image.

    The module's text has the proofs; a relative 1e-9 is added for rounding.

    Parameters
    ----------
    channels : 1 or 3
    eta : float
        The regularisation of the descriptors.
    bound : "trace", "tight" or "paper"
        Bounds on trace and smallest eigenvalue; or wider ones, on eigenvalues alone.

    Examples
    --------
    >>> from spdp.descriptors import descriptor_bounds
    >>> round(descriptor_bounds(channels=1).radius_for(9), 2)
    20.1
    """
    e = positive("eta", eta)
    squares = _check_channels(channels) + sum(c * c for c in COMMON)
    if bound == "trace":
        return TraceBounds(e, (squares / 4 + (8 + channels) * e) * (1 + 1e-9))
    if bound == "tight":
        top = squares / 4
    elif bound == "paper":
        top = PAPER_TOP[channels]
    else:
        raise ParameterError(f"bound must be 'trace', 'tight' or 'paper', got {bound!r}")
    return EigenvalueBounds(e, (top + e) * (1 + 1e-9))


def paper_radius(channels: int, eta: float = 1e-6) -> float:
    """The paper's geodesic radius around the identity (theorem 5).

    √k·max(|ln η|, ln(12 + η)), with 14 in place of 12 for RGB.
    """
    top = PAPER_TOP[_check_channels(channels)] + positive("eta", eta)
    return float(np.sqrt(8 + channels) * max(abs(np.log(eta)), np.log(top)))


def covariance_descriptors(images: ArrayLike, eta: float = 1e-6) -> Array:
    """Covariance descriptors (n, k, k) of images.

    k = 9 for gray images (n, H, W), 11 for RGB (n, H, W, 3). Images are uint8, or float
    in [0, 1], of at least 5×5 pixels. Derivatives of RGB images are those of the
    channels' mean, which keeps the bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp.descriptors import covariance_descriptors
    >>> covariance_descriptors(np.random.default_rng(0).random((5, 28, 28))).shape
    (5, 9, 9)
    """
    A = image_stack(images)
    n, height, width, channels = A.shape
    k = 8 + channels
    features = _Features(height, width, channels, positive("eta", eta))
    R = np.empty((n, k, k))
    step = max(1, CHUNK_PIXELS // (height * width))
    for start in range(0, n, step):
        chunk = slice(start, start + step)
        R[chunk] = features.covariance(_intensities(A[chunk], start))
    return R


def image_stack(images: ArrayLike) -> NDArray[Any]:
    """Images as an array (n, H, W, channels) of uint8 or float, or an error."""
    A = np.asarray(images)
    if A.ndim == 3:
        A = A[..., None]
    if A.ndim != 4 or A.shape[3] not in (1, 3) or 0 in A.shape:
        raise DataError(f"images have shape {np.shape(images)}; expected (n, H, W) or (n, H, W, 3)")
    height, width = A.shape[1:3]
    if min(height, width) < SMALLEST:
        raise DataError(f"images are {height}×{width}; need at least {SMALLEST}×{SMALLEST} pixels")
    if A.dtype != np.uint8 and A.dtype.kind != "f":
        raise DataError(f"images have dtype {A.dtype}; expected uint8, or float in [0, 1]")
    return A


def _intensities(A: NDArray[Any], offset: int) -> Array:
    """Channels first, in [0, 1]; ``offset`` is the first image's index."""
    B = np.moveaxis(A, 3, 1).astype(np.float64)
    if A.dtype == np.uint8:
        return np.asarray(B / 255.0)
    outside = ~((B >= 0) & (B <= 1)).all(axis=(1, 2, 3))
    if outside.any():
        i = offset + int(np.argmax(outside))
        raise DataError(f"image {i} has values outside [0, 1]; scale float images first")
    return np.asarray(B)


class _Features:
    """Covariances of the features of images of one size."""

    def __init__(self, height: int, width: int, channels: int, eta: float) -> None:
        self.height, self.width, self.channels, self.eta = height, width, channels, eta
        y, x = np.mgrid[0:height, 0:width] / np.array([height - 1, width - 1])[:, None, None]
        self.position = np.stack([x - x.mean(), y - y.mean()])

    def covariance(self, I: Array) -> Array:
        """Descriptors (m, k, k) of images (m, channels, H, W)."""
        m, k, pixels = len(I), 8 + self.channels, self.height * self.width
        F = np.empty((m, k, self.height, self.width))
        F[:, :2] = self.position
        F[:, 2:-6] = I
        self._derivatives(I[:, 0] if self.channels == 1 else I.mean(axis=1), F[:, -6:])
        G = F.reshape(m, k, pixels)
        G[:, 2:] -= G[:, 2:].mean(axis=2, keepdims=True)
        R = symmetric(G @ G.transpose(0, 2, 1) / pixels)
        R[:, range(k), range(k)] += self.eta
        return np.asarray(R)

    @staticmethod
    def _derivatives(gray: Array, out: Array) -> None:
        """Fill in the six features that come from derivatives."""
        P = np.pad(gray, ((0, 0), (2, 2), (2, 2)), mode="edge")
        turned = P.transpose(0, 2, 1)
        ix, iy = out[:, 0], out[:, 1]
        np.abs(_first(P), out=ix)
        np.abs(_first(turned).transpose(0, 2, 1), out=iy)
        np.abs(_second(P), out=out[:, 2])
        np.abs(_second(turned).transpose(0, 2, 1), out=out[:, 3])
        np.sqrt(ix * ix + iy * iy, out=out[:, 4])
        np.arctan2(ix, iy, out=out[:, 5])


def _first(P: Array) -> Array:
    """I_x of images padded by two pixels: (1 2 1)ᵀ(1 0 −1)/4."""
    A = P[:, 1:-1, 1:-1]
    smooth = A[:, :-2] + 2.0 * A[:, 1:-1] + A[:, 2:]
    return (smooth[:, :, :-2] - smooth[:, :, 2:]) * 0.25


def _second(P: Array) -> Array:
    """I_xx of images padded by two pixels: (1 4 6 4 1)ᵀ(1 0 −2 0 1)/32."""
    smooth = (P[:, :-4] + P[:, 4:]) + 4.0 * (P[:, 1:-3] + P[:, 3:-1]) + 6.0 * P[:, 2:-2]
    return (smooth[:, :, :-4] + smooth[:, :, 4:] - 2.0 * smooth[:, :, 2:-2]) / 32.0
