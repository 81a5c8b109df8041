"""The private mean, principal components and regression inside pipelines."""

from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincinv
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from spdp.charts import LOGEUCLID, chart_of
from spdp.data.source import as_source
from spdp.domain.base import check_domain
from spdp.errors import DataError, ParameterError
from spdp.kernels.arrays import Array
from spdp.learn.base import PrivateEstimator, vectors_of
from spdp.release import Release
from spdp.statistics.mean import private_mean
from spdp.statistics.partial_sums import LatticeSum, release_sum
from spdp.statistics.pca import private_pca
from spdp.statistics.reference import Reference
from spdp.statistics.regression import predict, prediction_variance, private_regression


@dataclass(eq=False, repr=False, kw_only=True)
class PrivateFrechetMean(TransformerMixin, PrivateEstimator):  # type: ignore[misc]
    """Private Fréchet mean of a set of SPD matrices.

    Each ``fit`` spends ε and δ, which have no default.

    Only what ``fit`` learns is private: ``mean_`` and ``certificate_`` may be
    published. ``transform`` maps matrices to their vectors relative to that mean; its
    output is as sensitive as its input.

    Parameters
    ----------
    epsilon, delta, domain, metric, reference_point, mechanism, method, adjacency,
    weights, max_records, on_invalid, ledger, label, random_state, reference, anyway,
    engine
        As in :func:`spdp.private_mean`.
    unit : "person" or "record", optional
        With "person", ``fit`` without ``groups`` is an error.

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
    >>> model = PrivateFrechetMean(1.0, 1e-6, EigenvalueBounds(0.5, 2.0))
    >>> model.fit(X).mean_.shape, model.certificate_["private"]
    ((3, 3), True)
    """

    mechanism: str = "auto"
    method: str = "auto"
    weights: str | None = None
    max_records: int | None = None
    reference: Reference | None = None

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> "PrivateFrechetMean":
        """Release the mean of ``X`` (n, k, k); ``y`` is ignored.

        ``groups`` holds the subject ID of each record; in a pipeline it is routed here
        by ``set_fit_request(groups=True)``.
        """
        return self._publish(private_mean(X, **self._options(X, groups)))

    def partial_fit(self, X: Any, y: Any = None, groups: Any = None) -> "PrivateFrechetMean":
        """Add records to an exact sum; nothing is released before :meth:`release`.

        Until then the estimator is as sensitive as the data. With ``groups``, all
        records of a person must come in one call.
        """
        if self.max_records is not None:
            raise ParameterError("weights='records' needs all records at once: use fit")
        if self.reference is not None:  # for a search; a sum is released in one shot
            raise ParameterError("a reference needs all records at once: use fit")
        self._check_unit(X, groups)
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
        """Add the sum of another estimator of the same domain to this one's.

        The other estimator loses its sum: a sum is released once.
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
        names = signature(release_sum).parameters.keys() & self.get_params(deep=False).keys()
        self._check_budget()
        return self._publish(release_sum(self.sum_, **{x: getattr(self, x) for x in names}))

    def _publish(self, release: Release) -> "PrivateFrechetMean":
        self._keep(release)
        self.mean_ = release.value
        self.n_features_in_ = self.mean_.shape[0]
        if hasattr(self, "sum_"):
            del self.sum_  # exact, and a fitted estimator may be published
        return self

    def transform(self, X: Any) -> Array:
        """Vectors (n, d) relative to ``mean_``, by the metric's isometry to R^d.

        For the log-Euclidean metric, vecd(Logm X − Logm mean_).
        """
        if not self._chart().flat:
            check_is_fitted(self, "mean_")
            k = self.n_features_in_
            return vectors_of(X, chart_of(LOGEUCLID.name, self.mean_), (k, k))
        return self._vectors(X, "mean_") - self._chart().vector(self.mean_)


@dataclass(eq=False)
class _Components:
    """A base for the first parameter: dataclass fields of the last base come first."""

    n_components: int = 2


@dataclass(eq=False, repr=False)
class PrivateTangentPCA(TransformerMixin, PrivateEstimator, _Components):  # type: ignore[misc]
    """Private principal geodesic analysis of SPD matrices in a flat metric.

    Each ``fit`` spends ε and δ, which have no default.

    With the interface of geomstats' TangentPCA. Only what ``fit`` learns is private:
    the attributes below may be published. ``transform`` maps matrices to their
    coordinates along the components; its output is as sensitive as its input.

    Parameters
    ----------
    n_components : int
        Components to keep.
    epsilon, delta, domain, metric, reference_point, adjacency, on_invalid, ledger,
    label, random_state, anyway, engine
        As in :func:`spdp.private_mean`.
    unit : "person" or "record", optional
        With "person", ``fit`` without ``groups`` is an error.

    Attributes
    ----------
    components_ : array (p, d)
        Orthonormal directions in the metric's chart, the first explaining most.
    explained_variance_ : array (p,)
        Variances along them, debiased for noise; lower estimates.
    explained_variance_ratio_ : array (p,)
        Over the variance in all directions.
    trusted_variance_ratio_ : float
        Share of the variance of the best p directions that these hold, at 95 %
        confidence.
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
    >>> model = PrivateTangentPCA(1, 1.0, 1e-6, EigenvalueBounds(0.01, 100.0))
    >>> model.fit(X).components_.shape, model.transform(X).shape
    ((1, 3), (5000, 1))
    """

    def fit(self, X: Any, y: Any = None, groups: Any = None) -> "PrivateTangentPCA":
        """Release mean, covariance and components of ``X`` (n, k, k); ``y`` is ignored.

        ``groups`` holds the subject ID of each record.
        """
        source = as_source(X)
        if source.parts is not None:
            raise ParameterError("records of several matrices each: use private_pca")
        release = private_pca(source, **self._options(X, groups))
        self._keep(release)
        for name, value in release.values.items():  # mean_, components_ and so on
            setattr(self, f"{name}_", value)
        self.explained_variance_ratio_ = self.explained_variance_ / np.trace(self.covariance_)
        self.trusted_variance_ratio_ = float(self.certificate_["steps"][-1]["trusted"])
        self.n_features_in_ = self.mean_.shape[0]
        return self

    def transform(self, X: Any) -> Array:
        """Coordinates (n, p) along the components, about ``mean_``."""
        offsets = self._vectors(X, "components_") - self._chart().vector(self.mean_)
        return np.asarray(offsets @ self.components_.T)

    def inverse_transform(self, X: Any) -> Array:
        """Matrices (n, k, k) of coordinates (n, p) along the components."""
        check_is_fitted(self, "components_")
        Z, p = np.asarray(X, float), len(self.components_)
        if Z.ndim != 2 or Z.shape[1] != p:
            raise ParameterError(f"X has shape {Z.shape}; expected (n, {p})")
        chart = self._chart()
        v = chart.vector(self.mean_) + Z @ self.components_
        return chart.matrices(chart.representable(v))


@dataclass(eq=False)
class _Ranges:
    """A base for the first parameter: dataclass fields of the last base come first."""

    ranges: ArrayLike | None = None


@dataclass(eq=False, repr=False)
class PrivateGeodesicRegression(PrivateEstimator, _Ranges):
    """Private regression of SPD matrices on covariates of public range.

    Each ``fit`` spends ε and δ, which have no default.

    In a flat metric the geodesic of best fit is a straight line of the chart: the
    matrix at covariates x is predicted as ``intercept_`` moved along
    (x − at_)·``coef_``. What ``fit`` learns may be published; ``score`` is as sensitive
    as the records that it is given.

    Parameters
    ----------
    ranges : pair, or array (p, 2)
        Public least and largest value of each covariate.
    epsilon, delta, domain, metric, reference_point, adjacency, on_invalid, ledger,
    label, random_state, anyway, engine
        As in :func:`spdp.private_regression`.
    unit : "person" or "record", optional
        With "person", ``fit`` without ``groups`` is an error.

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
    >>> model = PrivateGeodesicRegression((0, 100), 1.0, 1e-6, domain)
    >>> model.fit(X, age).predict([30, 70]).shape
    (2, 2, 2)
    """

    def fit(self, X: Any, covariates: Any, groups: Any = None) -> "PrivateGeodesicRegression":
        """Release the regression of ``X`` (n, k, k) on covariates (n,) or (n, p)."""
        if self.ranges is None:
            raise ParameterError(
                "pass ranges, the public least and largest value of each covariate: ranges "
                "computed from the data would leak the data"
            )
        self._keep(private_regression(X, covariates, **self._options(X, groups)))
        values = self.release_.values
        self.intercept_, self.coef_, self.at_ = values["fitted"], values["slopes"], values["at"]
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
        square = 2.0 * gammaincinv(self.coef_.shape[1] / 2, confidence)
        return np.asarray(np.sqrt(variance * square))

    def score(self, X: Any, covariates: ArrayLike) -> float:
        """R² of predictions for records ``X``, in the metric's distance."""
        check_is_fitted(self, "release_")
        chart = chart_of(self.metric, self.reference_point, self.certificate_["parts"])
        Y = vectors_of(X, chart, self.intercept_.shape)
        P = chart.vector(self.predict(covariates))
        if len(Y) != len(P):
            raise DataError(f"covariates have {len(P)} entries for {len(Y)} records")
        return 1.0 - float(((Y - P) ** 2).sum() / ((Y - Y.mean(axis=0)) ** 2).sum())
