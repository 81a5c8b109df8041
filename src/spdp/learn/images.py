"""Covariance descriptors of images as a step of scikit-learn's pipelines."""

from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin

from spdp.descriptors import covariance_descriptors, descriptor_bounds, image_stack
from spdp.domain.sets import TraceBounds
from spdp.kernels.arrays import Array


class CovarianceDescriptors(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """scikit-learn transformer from images to their covariance descriptors; stateless.

    Parameters
    ----------
    eta : float
        Regularisation added to the diagonal.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp.descriptors import CovarianceDescriptors
    >>> images = np.random.default_rng(0).random((5, 28, 28))
    >>> CovarianceDescriptors().fit_transform(images).shape
    (5, 9, 9)
    """

    def __init__(self, eta: float = 1e-6) -> None:
        self.eta = eta

    def fit(self, X: ArrayLike, y: Any = None) -> "CovarianceDescriptors":
        """Check the images; there is nothing to learn."""
        self.n_channels_ = image_stack(X).shape[3]
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Descriptors (n, k, k)."""
        return covariance_descriptors(X, self.eta)

    def bounds(self) -> TraceBounds:
        """The public domain of the descriptors of images like those seen in ``fit``."""
        return descriptor_bounds(self.n_channels_, self.eta)

    def __sklearn_is_fitted__(self) -> bool:
        return True
