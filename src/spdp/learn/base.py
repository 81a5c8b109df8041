"""What estimators share: the options of a release, and records of a fitted model."""

from dataclasses import KW_ONLY, dataclass
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from spdp.charts import Chart, chart_of
from spdp.data.batching import matrix_stack
from spdp.data.source import Source
from spdp.domain.base import Domain, check_domain
from spdp.engines import Engine
from spdp.errors import InvalidMatrixError, ParameterError
from spdp.kernels.arrays import Array
from spdp.ledger import Ledger
from spdp.options import Unit, choose
from spdp.release import Release


@dataclass(eq=False, repr=False)
class PrivateEstimator(BaseEstimator):  # type: ignore[misc]
    """Options of every estimator, as in :func:`spdp.private_mean`.

    ``epsilon``, ``delta`` and ``domain`` have no default that could be spent: ``fit``
    says what is missing. With ``unit="person"``, ``fit`` needs ``groups``, the subject
    ID of each record; with ``unit="record"`` it takes none.
    """

    epsilon: float | None = None
    delta: float | None = None
    domain: Domain | None = None
    metric: str = "logeuclid"
    _: KW_ONLY
    reference_point: Any = None
    adjacency: str = "replace-one"
    on_invalid: str = "raise"
    ledger: Ledger | None = None
    label: str | None = None
    random_state: Any = None
    anyway: bool = False
    engine: Engine | str | None = None
    unit: str | None = None

    def _options(self, X: Any, groups: Any) -> dict[str, Any]:
        """All parameters and ``groups``, for the statistic's function."""
        self._check_budget()
        self._check_unit(X, groups)
        options: dict[str, Any] = self.get_params(deep=False)
        del options["unit"]
        return options | {"domain": check_domain(self.domain), "groups": groups}

    def _check_budget(self) -> None:
        """Refuse to fit without a budget: there is none that everybody could mean."""
        missing = [name for name in ("epsilon", "delta") if getattr(self, name) is None]
        if missing:
            raise ParameterError(
                f"{type(self).__name__} has no privacy budget: pass "
                f"{' and '.join(f'{name}=...' for name in missing)}; each fit spends it"
            )

    def _check_unit(self, X: Any, groups: Any) -> None:
        """Refuse records whose persons are not known where persons are protected."""
        if self.unit is None:
            return
        unit, name = choose(Unit, self.unit, "unit"), type(self).__name__
        known = groups is not None or (isinstance(X, Source) and "person" in X.columns)
        if unit is Unit.PERSON and not known:
            raise ParameterError(
                f"{name} protects persons, and needs groups, the subject ID of each record: "
                "fit(X, groups=...), or set_fit_request(groups=True) inside a pipeline or a "
                "search, with scikit-learn's metadata routing enabled"
            )
        if unit is not Unit.PERSON and known:
            raise ParameterError(
                f"{name} has unit={self.unit!r}, but its records have subject IDs: leave out "
                "groups, or pass unit='person'"
            )

    def _keep(self, release: Release) -> None:
        """Set the attributes that every fitted estimator has."""
        self.release_, self.certificate_ = release, release.certificate

    def _chart(self) -> Chart:
        return chart_of(self.metric, self.reference_point, curved=True)  # fit refuses it, if at all

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
