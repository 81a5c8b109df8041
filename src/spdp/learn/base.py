"""What estimators share: the options of a release, and records of a fitted model."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from spdp.charts import Chart, chart_of
from spdp.data.batching import matrix_stack
from spdp.domain.base import Domain, check_domain
from spdp.engines import Engine
from spdp.errors import InvalidMatrixError
from spdp.kernels.arrays import Array
from spdp.ledger import Ledger
from spdp.release import Release


@dataclass(eq=False, repr=False)
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """Options of every estimator, as in :func:`spdp.private_mean`.

    By default ``fit`` spends ε = 1, δ = 1e-6. scikit-learn's repr shows parameters only
    if they differ from their defaults; the certificate always states ε and δ.
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    domain: Domain | None = None
    metric: str = "logeuclid"
    _: KW_ONLY
    reference_point: Any = None
    adjacency: str = "replace-one"
    on_invalid: str = "raise"
    ledger: Ledger | None = None
    label: str | None = None
    random_state: Any = None
    engine: Engine | str | None = None

    def _options(self) -> dict[str, Any]:
        """All parameters, for the statistic's function."""
        options: dict[str, Any] = self.get_params(deep=False)
        return options | {"domain": check_domain(self.domain)}

    def _keep(self, release: Release) -> None:
        """Set the attributes that every fitted estimator has."""
        self.release_, self.certificate_ = release, release.certificate

    def _chart(self) -> Chart:
        return chart_of(self.metric, self.reference_point)

    def _vectors(self, X: Any, fitted: str) -> Array:
        """Records (n, k, k) given to a fitted model, in its chart's coordinates."""
        check_is_fitted(self, fitted)
        k = self.n_features_in_
        return vectors_of(X, self._chart(), (k, k))


def vectors_of(X: Any, chart: Chart, shape: tuple[int, ...]) -> Array:
    """Vectors (n, d) of n records, or an error if they do not have this shape."""
    A = matrix_stack(X, kinds=chart.kinds)
    if A.shape[1:] != shape:
        expected = ", ".join(["n", *map(str, shape)])
        raise InvalidMatrixError(f"X has shape {A.shape}; expected ({expected})")
    return chart.vector(A)
