"""Private principal component analysis in the tangent space, as scikit-learn class."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from spdp.charts import chart_of
from spdp.domain import Domain, check_domain
from spdp.errors import ParameterError
from spdp.learn.vectors import vectors_of
from spdp.privacy.ledger import Ledger
from spdp.statistics.pca import private_pca

__all__ = ["PrivateTangentPCA"]


class PrivateTangentPCA(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Private principal geodesic analysis of SPD matrices in a flat metric.

    Unless told otherwise, ``fit`` spends ε = 1, δ = 1e-6: scikit-learn's repr shows
    only what differs from such defaults, the certificate all.

    With the face of geomstats' TangentPCA. Only what ``fit`` learns is private: the
    attributes below may be published. ``transform`` maps matrices to their coordinates
    along the components; its output is as sensitive as its input.

    Parameters
    ----------
    n_components : int
        Components to keep.
    epsilon, delta, domain, metric, reference_point, adjacency, on_invalid, ledger,
    label, random_state
        As in :func:`spdp.private_mean`.

    Attributes
    ----------
    components_ : array (p, d)
        Orthonormal directions in the metric's chart, the first explaining most.
    explained_variance_ : array (p,)
        Variances along them, debiased for noise; lower estimates.
    explained_variance_ratio_ : array (p,)
        Over the variance in all directions.
    trusted_variance_ratio_ : float
        Share of what the best p directions hold that these hold for certain.
    mean_ : array (k, k)
        The released mean.
    covariance_ : array (d, d)
        The released covariance in the chart.
    release_ : Release
        All of it with its certificate.
    certificate_ : dict
    n_features_in_ : int
        k.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, PrivateTangentPCA
    >>> from spdp.distributions import LogGaussian
    >>> X = LogGaussian(np.eye(2), np.diag([0.5, 0.1, 0.01])).rvs(5000, random_state=0)
    >>> model = PrivateTangentPCA(n_components=1, domain=EigenvalueBounds(0.01, 100.0))
    >>> model.fit(X).components_.shape, model.transform(X).shape
    ((1, 3), (5000, 1))
    """

    def __init__(
        self,
        n_components: int = 2,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        domain: Domain | None = None,
        metric: str = "logeuclid",
        reference_point: Any = None,
        adjacency: str = "replace-one",
        on_invalid: str = "raise",
        ledger: Ledger | None = None,
        label: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.metric = metric
        self.reference_point = reference_point
        self.adjacency = adjacency
        self.on_invalid = on_invalid
        self.ledger = ledger
        self.label = label
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> "PrivateTangentPCA":
        """Release mean, covariance and components of ``X`` (n, k, k); ``y`` is ignored.

        ``groups`` says whose each record is.
        """
        options = self.get_params(deep=False) | {"domain": check_domain(self.domain)}
        release = private_pca(X, groups=groups, **options)
        if release.value.ndim != 2:
            raise ParameterError("records of several matrices each: use private_pca")
        self.release_, self.certificate_ = release, release.certificate
        self.mean_ = release.values["mean"]
        self.components_ = release.values["components"]
        self.explained_variance_ = release.values["explained_variance"]
        self.covariance_ = release.values["covariance"]
        self.explained_variance_ratio_ = self.explained_variance_ / np.trace(self.covariance_)
        self.trusted_variance_ratio_ = float(self.certificate_["steps"][-1]["trusted"])
        self.n_features_in_ = self.mean_.shape[0]
        return self

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Coordinates (n, p) along the components, about ``mean_``."""
        check_is_fitted(self, "components_")
        chart, k = chart_of(self.metric, self.reference_point), self.n_features_in_
        offsets = vectors_of(X, chart, (k, k)) - chart.vector(self.mean_)
        return np.asarray(offsets @ self.components_.T)

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:
        """Matrices (n, k, k) of coordinates (n, p) along the components."""
        check_is_fitted(self, "components_")
        Z, p = np.asarray(X, float), len(self.components_)
        if Z.ndim != 2 or Z.shape[1] != p:
            raise ParameterError(f"X has shape {Z.shape}; expected (n, {p})")
        chart = chart_of(self.metric, self.reference_point)
        v = chart.vector(self.mean_) + Z @ self.components_
        return chart.matrices(chart.representable(v))
