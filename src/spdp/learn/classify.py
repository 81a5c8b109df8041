"""Classifiers made of privately released class means and covariances.

What ``fit`` learns is private: every attribute that ends in ``_`` may be published.
``predict`` on other people's records is the user's own affair, and ``score`` on the
records themselves is not private: it is one more number computed from them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from spdp.charts import chart_of
from spdp.choices import Covariance, choose
from spdp.domain import Domain, check_domain
from spdp.errors import ParameterError
from spdp.learn.vectors import vectors_of
from spdp.privacy.ledger import Ledger
from spdp.release import Release
from spdp.statistics.classes import private_class_means

__all__ = ["PrivateMDM", "PrivateTangentLDA"]

Array = NDArray[np.float64]


class _ClassModel(ClassifierMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """What classifiers made of class means share."""

    metric: str
    classes: Sequence[Any] | None

    def fit(self, X: Any, y: Any, groups: Any = None) -> "_ClassModel":
        """Release what the classifier needs of ``X`` (n, k, k) and its labels ``y``.

        ``groups`` says whose each record is; in a pipeline it is routed here by
        ``set_fit_request(groups=True)``.
        """
        if self.classes is None:
            raise ParameterError(
                "classes is missing: the public list of classes. Labels found in the data "
                "would tell of the records"
            )
        release = private_class_means(X, y, groups=groups, **self._options())
        self._publish(release)
        return self

    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = self.get_params(deep=False)
        options["domain"] = check_domain(options["domain"])
        return options

    def _publish(self, release: Release) -> None:
        self.release_, self.certificate_ = release, release.certificate
        self.classes_ = np.asarray(self.classes)
        self.covmeans_ = release.values["means"]
        self.counts_ = release.values["counts"]
        self.priors_ = self.counts_ / self.counts_.sum()
        self.n_features_in_ = self.covmeans_.shape[-1]

    def _vectors(self, X: Any) -> Array:
        """Records (n, k, k) in the coordinates of the metric's chart."""
        check_is_fitted(self, "covmeans_")
        k = self.n_features_in_
        return vectors_of(X, chart_of(self.metric), (k, k))

    def _means(self) -> Array:
        return chart_of(self.metric).vector(self.covmeans_)

    @abstractmethod
    def _scores(self, X: Any) -> Array:
        """What the largest of decides the class, (n, C)."""

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of each matrix."""
        scores = self._scores(X)
        return np.asarray(self.classes_[np.argmax(scores, axis=1)])

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, C), in the order of ``classes_``."""
        return np.asarray(softmax(self._scores(X), axis=1))


class PrivateMDM(TransformerMixin, _ClassModel):  # type: ignore[misc]
    """Minimum distance to private class means, in a flat metric.

    Unless told otherwise, ``fit`` spends ε = 1, δ = 1e-6: scikit-learn's repr shows
    only what differs from such defaults, the certificate all.

    The face of pyRiemann's ``MDM``. See :func:`spdp.private_class_means` for what is
    released and why it is private.

    Parameters
    ----------
    classes : sequence
        The public list of classes; needed.
    epsilon, delta, domain, metric, method, adjacency, on_invalid, ledger, label,
    random_state
        As in :func:`spdp.private_class_means`.

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
    >>> model = PrivateMDM(classes=[0, 1], domain=EigenvalueBounds(0.1, 10.0)).fit(X, y)
    >>> model.predict(np.stack([np.eye(2), 2 * np.eye(2)]))
    array([0, 1])
    """

    def __init__(
        self,
        classes: Sequence[Any] | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        domain: Domain | None = None,
        metric: str = "logeuclid",
        method: str = "auto",
        adjacency: str = "replace-one",
        on_invalid: str = "raise",
        ledger: Ledger | None = None,
        label: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.classes = classes
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.metric = metric
        self.method = method
        self.adjacency = adjacency
        self.on_invalid = on_invalid
        self.ledger = ledger
        self.label = label
        self.random_state = random_state

    def transform(self, X: Any) -> Array:
        """Distances (n, C) to the class means."""
        return np.sqrt(self._squares(X))

    def _squares(self, X: Any) -> Array:
        V, M = self._vectors(X), self._means()
        return np.stack([np.einsum("ij,ij->i", V - m, V - m) for m in M], axis=1)

    def _scores(self, X: Any) -> Array:
        return -self._squares(X)


class PrivateTangentLDA(_ClassModel):
    """Linear discriminant analysis of a metric's vectors, from private moments.

    Unless told otherwise, ``fit`` spends ε = 1, δ = 1e-6: scikit-learn's repr shows
    only what differs from such defaults, the certificate all.

    With class means m_c, priors π_c and the covariance W within the classes, all of
    them released together, the discriminant of v is m_cᵀW⁻¹v − ½m_cᵀW⁻¹m_c + ln π_c.
    The face of scikit-learn's ``LinearDiscriminantAnalysis`` after pyRiemann's
    ``TangentSpace``.

    Parameters
    ----------
    classes : sequence
        The public list of classes; needed.
    covariance : "diagonal", "full" or "none"
        "diagonal" needs few records; "full" is more accurate where n·μ is large against
        d^1.5; "none" takes the nearest mean.
    epsilon, delta, domain, metric, method, adjacency, on_invalid, ledger, label,
    random_state
        As in :func:`spdp.private_class_means`.

    Attributes
    ----------
    classes_ : array (C,)
    covmeans_ : array (C, k, k)
    means_ : array (C, d)
        The same means in the metric's coordinates.
    covariance_ : array (d, d)
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
    >>> model = PrivateTangentLDA(classes=[0, 1], domain=EigenvalueBounds(0.1, 10.0))
    >>> model.fit(X, y).predict(np.stack([np.eye(2), 2 * np.eye(2)]))
    array([0, 1])
    """

    def __init__(
        self,
        classes: Sequence[Any] | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        domain: Domain | None = None,
        covariance: str = "diagonal",
        metric: str = "logeuclid",
        method: str = "auto",
        adjacency: str = "replace-one",
        on_invalid: str = "raise",
        ledger: Ledger | None = None,
        label: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.classes = classes
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.covariance = covariance
        self.metric = metric
        self.method = method
        self.adjacency = adjacency
        self.on_invalid = on_invalid
        self.ledger = ledger
        self.label = label
        self.random_state = random_state

    def _publish(self, release: Release) -> None:
        super()._publish(release)
        self.means_ = self._means()
        d = self.means_.shape[1]
        W = release.values.get("covariance", np.ones(d))
        self.covariance_ = np.diag(W) if W.ndim == 1 else W
        self.coef_ = np.linalg.solve(self.covariance_, self.means_.T).T
        self.intercept_ = -0.5 * np.einsum("ij,ij->i", self.coef_, self.means_)
        if choose(Covariance, self.covariance, "covariance") is not Covariance.NONE:
            self.intercept_ = self.intercept_ + np.log(self.priors_)

    def decision_function(self, X: Any) -> Array:
        """Discriminants (n, C); for two classes the difference of the two, (n,)."""
        scores = self._scores(X)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def _scores(self, X: Any) -> Array:
        return np.asarray(self._vectors(X) @ self.coef_.T + self.intercept_)
