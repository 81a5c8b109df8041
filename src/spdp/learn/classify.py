"""Classifiers made of privately released class means and covariances.

What ``fit`` learns is private: every attribute that ends in ``_`` may be published.
Results of ``predict`` and ``score`` are not private: they are computed from the records
that are passed to them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import ClassifierMixin, TransformerMixin

from spdp.errors import ParameterError
from spdp.kernels.arrays import Array
from spdp.learn.base import PrivateEstimator
from spdp.options import Covariance, choose
from spdp.release import Release
from spdp.statistics.class_means import private_class_means


@dataclass(eq=False)
class _Classes:
    """A base for the first parameter: dataclass fields of the last base come first."""

    classes: Sequence[Any] | None = None


@dataclass(eq=False, repr=False, kw_only=True)
class _ClassModel(ClassifierMixin, PrivateEstimator, _Classes, ABC):  # type: ignore[misc]
    """Base of classifiers made of class means."""

    method: str = "auto"

    def fit(self, X: Any, y: Any, groups: Any = None) -> "_ClassModel":
        """Release what the classifier needs of ``X`` (n, k, k) and its labels ``y``.

        ``groups`` holds the subject ID of each record; in a pipeline it is routed here
        by ``set_fit_request(groups=True)``.
        """
        if self.classes is None:
            raise ParameterError(
                "classes is missing: the public list of classes. A list of the labels in the data "
                "would leak them"
            )
        release = private_class_means(X, y, **self._options(X, groups))
        self._publish(release)
        return self

    def _publish(self, release: Release) -> None:
        self._keep(release)
        self.classes_ = np.asarray(self.classes)
        self.covmeans_ = release.values["means"]
        self.counts_ = release.values["counts"]
        self.priors_ = self.counts_ / self.counts_.sum()
        self.n_features_in_ = self.covmeans_.shape[-1]

    def _means(self) -> Array:
        return self._chart().vector(self.covmeans_)

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """Scores (n, C); the largest decides the class."""

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each matrix."""
        scores = self._scores(X)
        return np.asarray(self.classes_[np.argmax(scores, axis=1)])

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, C), in the order of ``classes_``."""
        return np.asarray(softmax(self._scores(X), axis=1))


@dataclass(eq=False, repr=False)
class PrivateMDM(TransformerMixin, _ClassModel):  # type: ignore[misc]
    """Minimum distance to private class means, in a flat metric.

    Each ``fit`` spends ε and δ, which have no default.

    Same interface as pyRiemann's ``MDM``. See :func:`spdp.private_class_means` for what
    is released and why it is private.

    Parameters
    ----------
    classes : sequence
        The public list of classes; needed.
    epsilon, delta, domain, metric, reference_point, method, adjacency, on_invalid,
    ledger, label, random_state, anyway, engine
        As in :func:`spdp.private_class_means`.
    unit : "person" or "record", optional
        With "person", ``fit`` without ``groups`` is an error.

    Attributes
    ----------
    classes_ : array (C,)
    covmeans_ : array (C, k, k)
        Released means.
    counts_, priors_ : array (C,)
        Released sizes of the classes, and their shares.
    release_, certificate_ : Release, dict
    n_features_in_ : int
        k.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, PrivateMDM
    >>> from spdp.datasets import synthetic_spd
    >>> y = np.arange(2000) % 2
    >>> X = synthetic_spd(2000, 2, random_state=0) * (1.0 + y)[:, None, None]
    >>> model = PrivateMDM([0, 1], 1.0, 1e-6, EigenvalueBounds(0.1, 10.0)).fit(X, y)
    >>> model.predict(np.stack([np.eye(2), 2 * np.eye(2)]))
    array([0, 1])
    """

    def transform(self, X: Any) -> Array:
        """Distances (n, C) to the class means."""
        return np.sqrt(self._squares(X))

    def _squares(self, X: Any) -> Array:
        V, M = self._vectors(X, "covmeans_"), self._means()
        return np.stack([np.einsum("ij,ij->i", V - m, V - m) for m in M], axis=1)

    def _scores(self, X: Any) -> Array:
        return -self._squares(X)


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateTangentLDA(_ClassModel):
    """Linear discriminant analysis of a metric's vectors, from private moments.

    Each ``fit`` spends ε and δ, which have no default.

    With class means m_c, priors π_c and the covariance W within the classes, all of
    them released together, the discriminant of v is m_cᵀW⁻¹v − ½m_cᵀW⁻¹m_c + ln π_c.
    Same interface as scikit-learn's ``LinearDiscriminantAnalysis`` after pyRiemann's
    ``TangentSpace``.

    Parameters
    ----------
    classes : sequence
        The public list of classes; needed.
    covariance : "diagonal", "full" or "none"
        "diagonal" needs few records; "full" is more accurate if n·μ is much larger than
        d^1.5; "none" takes the nearest mean.
    epsilon, delta, domain, metric, reference_point, method, adjacency, on_invalid,
    ledger, label, random_state, anyway, engine
        As in :func:`spdp.private_class_means`.
    unit : "person" or "record", optional
        With "person", ``fit`` without ``groups`` is an error.

    Attributes
    ----------
    classes_ : array (C,)
    covmeans_ : array (C, k, k)
    means_ : array (C, d)
        The same means in the metric's coordinates.
    covariance_ : array (d, d)
        Made of the released one, which may be its diagonal alone.
    counts_, priors_ : array (C,)
    coef_, intercept_ : arrays (C, d), (C,)
    release_, certificate_ : Release, dict
    n_features_in_ : int
        k.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, PrivateTangentLDA
    >>> from spdp.datasets import synthetic_spd
    >>> y = np.arange(2000) % 2
    >>> X = synthetic_spd(2000, 2, random_state=0) * (1.0 + y)[:, None, None]
    >>> model = PrivateTangentLDA([0, 1], 1.0, 1e-6, EigenvalueBounds(0.1, 10.0))
    >>> model.fit(X, y).predict(np.stack([np.eye(2), 2 * np.eye(2)]))
    array([0, 1])
    """

    covariance: str = "diagonal"

    def _publish(self, release: Release) -> None:
        super()._publish(release)
        self.means_ = self._means()
        d = self.means_.shape[1]
        W = release.values.get("covariance", np.ones(d))
        self.coef_ = self.means_ / W if W.ndim == 1 else np.linalg.solve(W, self.means_.T).T
        self.intercept_ = -0.5 * np.einsum("ij,ij->i", self.coef_, self.means_)
        if choose(Covariance, self.covariance, "covariance") is not Covariance.NONE:
            self.intercept_ = self.intercept_ + np.log(self.priors_)

    @property
    def covariance_(self) -> Array:
        d = self.means_.shape[1]
        W = self.release_.values.get("covariance", np.ones(d))
        return np.diag(W) if W.ndim == 1 else np.asarray(W)

    def decision_function(self, X: Any) -> Array:
        """Discriminants (n, C); for two classes the second less the first, (n,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _scores(self, X: Any) -> Array:
        return np.asarray(self._vectors(X, "covmeans_") @ self.coef_.T + self.intercept_)
