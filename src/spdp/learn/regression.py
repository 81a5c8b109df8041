"""Private geodesic regression as a scikit-learn estimator."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from spdp.charts import chart_of
from spdp.domain import Domain
from spdp.errors import DataError, ParameterError
from spdp.learn.vectors import vectors_of
from spdp.privacy.ledger import Ledger
from spdp.statistics.regression import predict, prediction_variance, private_regression

__all__ = ["PrivateGeodesicRegression"]

Array = NDArray[np.float64]


class PrivateGeodesicRegression(BaseEstimator):  # type: ignore[misc]
    """Regression of SPD matrices on covariates of public range, with privacy.

    Unless told otherwise, ``fit`` spends ε = 1, δ = 1e-6: scikit-learn's repr shows
    only what differs from such defaults, the certificate all.

    In a flat metric the geodesic of best fit is a straight line of the chart: the
    matrix at covariates x is predicted as ``intercept_`` moved along
    (x − at_)·``coef_``. What ``fit`` learns may be published; ``score`` is as sensitive
    as the records that it is given.

    Parameters
    ----------
    ranges : pair, or array (p, 2)
        Public least and largest value of each covariate.
    epsilon, delta, domain, metric, adjacency, on_invalid, ledger, label, random_state
        As in :func:`spdp.private_regression`.

    Attributes
    ----------
    intercept_ : array (k, k), or (parts, k, k) where a record is several matrices
        The trend where covariates have their released mean.
    at_ : array (p,)
        That mean.
    coef_ : array (p, d)
        Change of the chart's coordinates for one unit of each covariate.
    certificate_ : dict
        Statement of the guarantee.
    release_ : Release
        All of these.

    Examples
    --------
    >>> import numpy as np
    >>> from spdp import EigenvalueBounds, PrivateGeodesicRegression
    >>> from spdp.datasets import synthetic_spd
    >>> age = np.random.default_rng(0).uniform(20, 80, 3000)
    >>> growth = np.exp(0.01 * (age - 50))[:, None, None]
    >>> X = growth * synthetic_spd(3000, 2, random_state=0)
    >>> domain = EigenvalueBounds(0.1, 10.0)
    >>> model = PrivateGeodesicRegression(ranges=(0, 100), domain=domain)
    >>> model.fit(X, age).predict([30, 70]).shape
    (2, 2, 2)
    """

    def __init__(
        self,
        ranges: ArrayLike | None = None,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        domain: Domain | None = None,
        metric: str = "logeuclid",
        adjacency: str = "replace-one",
        on_invalid: str = "raise",
        ledger: Ledger | None = None,
        label: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.ranges = ranges
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.metric = metric
        self.adjacency = adjacency
        self.on_invalid = on_invalid
        self.ledger = ledger
        self.label = label
        self.random_state = random_state

    def fit(self, X: Any, covariates: Any, groups: Any = None) -> "PrivateGeodesicRegression":
        """Release the regression of ``X`` (n, k, k) on covariates (n,) or (n, p)."""
        options = self.get_params(deep=False)
        if options["ranges"] is None:
            raise ParameterError(
                "pass ranges, the public least and largest value of each covariate: ranges "
                "computed from the data would leak the data"
            )
        self.release_ = private_regression(X, covariates, groups=groups, **options)
        values = self.release_.values
        self.intercept_, self.coef_, self.at_ = values["fitted"], values["slopes"], values["at"]
        self.certificate_ = self.release_.certificate
        self.n_features_in_ = len(self.at_)
        return self

    def predict(self, covariates: ArrayLike) -> Array:
        """Matrices (m, k, k), or (m, parts, k, k), at covariates (m, p)."""
        check_is_fitted(self, "release_")
        return predict(self.release_, covariates)

    def prediction_noise(self, covariates: ArrayLike, confidence: float = 0.95) -> Array:
        """Distances (m,) that the noise of the last answer moves predictions by.

        They are exceeded with probability 1 − ``confidence``, given the released Gram
        matrix of the covariates. This is not a bound on the error: it leaves out
        clipping, shrinkage of slopes and noise in that matrix (see the certificate).
        """
        check_is_fitted(self, "release_")
        variance = prediction_variance(self.release_, covariates)
        return np.asarray(np.sqrt(variance * stats.chi2.ppf(confidence, self.coef_.shape[1])))

    def score(self, X: Any, covariates: ArrayLike) -> float:
        """R² of predictions for records ``X``, in the metric's distance."""
        check_is_fitted(self, "release_")
        chart = chart_of(self.metric, None, self.certificate_["parts"])
        Y = vectors_of(X, chart, self.intercept_.shape)
        P = chart.vector(self.predict(covariates))
        if len(Y) != len(P):
            raise DataError(f"covariates have {len(P)} entries for {len(Y)} records")
        return 1.0 - float(((Y - P) ** 2).sum() / ((Y - Y.mean(axis=0)) ** 2).sum())
