"""scikit-learn classes: the private mean inside pipelines of pyRiemann and scikit-learn."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from spdp.domain import Domain, check_domain
from spdp.errors import InvalidMatrixError
from spdp.geometry import logm, matrix_stack, vecd
from spdp.ledger import Ledger
from spdp.mean import private_mean, release_sum
from spdp.release import Release
from spdp.sums import LatticeSum

__all__ = ["PrivateFrechetMean"]


class PrivateFrechetMean(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Private log-Euclidean Fréchet mean of a set of SPD matrices.

    Only what ``fit`` learns is private: ``mean_`` and ``certificate_`` may be published. ``transform`` maps matrices to their
    log-vectors relative to that mean; its output is as sensitive as its input.

    Parameters
    ----------
    epsilon, delta, domain, mechanism, method, adjacency, on_invalid, ledger, label, random_state
        As in :func:`spdp.mean.private_mean`.

    Attributes
    ----------
    mean_ : array (k, k)
        The released mean.
    certificate_ : dict
        Statement of the guarantee.
    release_ : Release
        Both, with the law of the error.
    n_features_in_ : int
        k.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        domain: Domain | None = None,
        mechanism: str = "auto",
        method: str = "auto",
        adjacency: str = "replace-one",
        on_invalid: str = "raise",
        ledger: Ledger | None = None,
        label: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.mechanism = mechanism
        self.method = method
        self.adjacency = adjacency
        self.on_invalid = on_invalid
        self.ledger = ledger
        self.label = label
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> "PrivateFrechetMean":
        """Release the mean of ``X`` (n, k, k); ``y`` is ignored."""
        return self._publish(private_mean(X, **self.get_params(deep=False)))

    def partial_fit(self, X: Any, y: Any = None) -> "PrivateFrechetMean":
        """Add records to an exact sum; nothing is released before :meth:`release`. The estimator is as sensitive as the data meanwhile."""
        part = LatticeSum.of(X, check_domain(self.domain), self.on_invalid)
        self.sum_: LatticeSum = self.sum_ + part if hasattr(self, "sum_") else part
        self.n_features_in_ = self.sum_.k
        return self

    def merge(self, other: "PrivateFrechetMean") -> "PrivateFrechetMean":
        """Add the records another estimator of the same domain has seen."""
        check_is_fitted(other, "sum_")
        self.sum_ = self.sum_ + other.sum_ if hasattr(self, "sum_") else other.sum_
        self.n_features_in_ = self.sum_.k
        return self

    def release(self) -> "PrivateFrechetMean":
        """Release the mean of all records added by :meth:`partial_fit`, once, and forget their sum."""
        check_is_fitted(self, "sum_")
        options = {n: v for n, v in self.get_params(deep=False).items() if n not in ("domain", "method", "on_invalid")}
        return self._publish(release_sum(self.__dict__.pop("sum_"), **options))

    def _publish(self, release: Release) -> "PrivateFrechetMean":
        self.release_ = release
        self.mean_ = release.value
        self.certificate_ = release.certificate
        self.n_features_in_ = self.mean_.shape[0]
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Log-vectors vecd(Logm X − Logm mean_), shape (n, k(k+1)/2): an isometry of the log-Euclidean metric."""
        check_is_fitted(self, "mean_")
        A = matrix_stack(X)
        if A.ndim != 3 or A.shape[1] != self.n_features_in_:
            raise InvalidMatrixError(f"X has shape {A.shape}; expected (n, {self.n_features_in_}, {self.n_features_in_})")
        return vecd(logm(A)) - vecd(logm(self.mean_))
