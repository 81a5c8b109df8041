"""The private mean inside pipelines of pyRiemann and scikit-learn."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from spdp.charts import Chart, chart_of
from spdp.domain import Domain, check_domain
from spdp.errors import ParameterError
from spdp.learn.vectors import vectors_of
from spdp.privacy.ledger import Ledger
from spdp.release import Release
from spdp.statistics.mean import private_mean, release_sum
from spdp.statistics.reference import Reference
from spdp.statistics.sums import LatticeSum

__all__ = ["PrivateFrechetMean"]


class PrivateFrechetMean(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Private Fréchet mean of a set of SPD matrices.

    Unless told otherwise, ``fit`` spends ε = 1, δ = 1e-6: scikit-learn's repr shows
    only what differs from such defaults, the certificate all.

    Only what ``fit`` learns is private: ``mean_`` and ``certificate_`` may be
    published. ``transform`` maps matrices to their vectors relative to that mean; its
    output is as sensitive as its input.

    Parameters
    ----------
    epsilon, delta, domain, metric, mechanism, method, adjacency, on_invalid, ledger,
    weights, max_records, label, random_state, reference, reference_point
        As in :func:`spdp.private_mean`.

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

    Examples
    --------
    >>> from spdp import EigenvalueBounds, PrivateFrechetMean
    >>> from spdp.datasets import synthetic_spd
    >>> X = synthetic_spd(1000, 3, random_state=0)
    >>> model = PrivateFrechetMean(epsilon=1.0, domain=EigenvalueBounds(0.5, 2.0))
    >>> model.fit(X).mean_.shape, model.certificate_["private"]
    ((3, 3), True)
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        domain: Domain | None = None,
        metric: str = "logeuclid",
        mechanism: str = "auto",
        method: str = "auto",
        adjacency: str = "replace-one",
        weights: str = "persons",
        max_records: int | None = None,
        on_invalid: str = "raise",
        ledger: Ledger | None = None,
        label: str | None = None,
        random_state: Any = None,
        reference: Reference | None = None,
        reference_point: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.metric = metric
        self.mechanism = mechanism
        self.method = method
        self.adjacency = adjacency
        self.weights = weights
        self.max_records = max_records
        self.on_invalid = on_invalid
        self.ledger = ledger
        self.label = label
        self.random_state = random_state
        self.reference = reference
        self.reference_point = reference_point

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> "PrivateFrechetMean":
        """Release the mean of ``X`` (n, k, k); ``y`` is ignored.

        ``groups`` says whose each record is; in a pipeline it is routed here by
        ``set_fit_request(groups=True)``.
        """
        return self._publish(private_mean(X, groups=groups, **self.get_params(deep=False)))

    def partial_fit(self, X: Any, y: Any = None, groups: Any = None) -> "PrivateFrechetMean":
        """Add records to an exact sum; nothing is released before :meth:`release`.

        The estimator is as sensitive as the data meanwhile. With ``groups``, all
        records of a person must come in one call.
        """
        if self.max_records is not None:
            raise ParameterError("weights='records' needs all records at once: use fit")
        if self.reference is not None:  # for a search; a sum is released in one shot
            raise ParameterError("a reference needs all records at once: use fit")
        part = LatticeSum.of(
            X,
            check_domain(self.domain),
            self.on_invalid,
            self.metric,
            groups=groups,
            reference_point=self.reference_point,
        )
        self.sum_: LatticeSum = self.sum_ + part if hasattr(self, "sum_") else part
        self.n_features_in_ = self.sum_.k
        return self

    def merge(self, other: "PrivateFrechetMean") -> "PrivateFrechetMean":
        """Take over the records another estimator of the same domain has seen.

        They leave the other one: a sum is released once.
        """
        check_is_fitted(other, "sum_")
        if not hasattr(self, "sum_"):
            mine = check_domain(self.domain).describe(), self._chart().key
            if mine != (other.sum_.domain.describe(), other.sum_.chart.key):
                raise ParameterError("estimators of different domains or metrics do not merge")
            self.sum_ = other.sum_
        else:
            self.sum_ = self.sum_ + other.sum_
        del other.sum_
        self.n_features_in_ = self.sum_.k
        return self

    def release(self) -> "PrivateFrechetMean":
        """Release the mean of all records added so far, once, and forget them."""
        check_is_fitted(self, "sum_")
        used = ("epsilon", "delta", "mechanism", "adjacency", "ledger", "label", "random_state")
        options = {name: getattr(self, name) for name in used}
        return self._publish(release_sum(self.sum_, **options))

    def _publish(self, release: Release) -> "PrivateFrechetMean":
        self.release_ = release
        self.mean_ = release.value
        self.certificate_ = release.certificate
        self.n_features_in_ = self.mean_.shape[0]
        if hasattr(self, "sum_"):
            del self.sum_  # exact: what was fitted may be published
        return self

    def _chart(self) -> Chart:
        return chart_of(self.metric, self.reference_point)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Vectors (n, d) relative to ``mean_``, by the metric's isometry to R^d.

        For the log-Euclidean metric, vecd(Logm X − Logm mean_).
        """
        check_is_fitted(self, "mean_")
        chart, k = self._chart(), self.n_features_in_
        return vectors_of(X, chart, (k, k)) - chart.vector(self.mean_)
