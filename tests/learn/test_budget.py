"""Estimators spend nothing that was not given, and protect whom they say."""

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from spdp import (
    EigenvalueBounds,
    Ledger,
    PrivateFrechetMean,
    PrivateGeodesicRegression,
    PrivateMDM,
    PrivateTangentLDA,
    PrivateTangentPCA,
)
from spdp.data import as_source
from spdp.data.columns import with_columns
from spdp.datasets import synthetic_spd
from spdp.errors import ParameterError

DOMAIN = EigenvalueBounds(0.1, 10.0)
GIVEN = {"epsilon": 4.0, "delta": 1e-6}
N, PERSONS = 1200, 300

MODELS = {
    "mean": lambda **o: PrivateFrechetMean(domain=DOMAIN, **o),
    "pca": lambda **o: PrivateTangentPCA(1, domain=DOMAIN, **o),
    "mdm": lambda **o: PrivateMDM([0, 1], domain=DOMAIN, **o),
    "lda": lambda **o: PrivateTangentLDA([0, 1], domain=DOMAIN, **o),
    "regression": lambda **o: PrivateGeodesicRegression((0, 1), domain=DOMAIN, **o),
}


@pytest.fixture(scope="module")
def study():
    """Records, labels and persons: a person's records are of one class."""
    ids = np.arange(N) % PERSONS
    y = ids % 2
    X = synthetic_spd(N, 2, random_state=0) * (1.0 + y)[:, None, None]
    return X, y, ids


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("left_out", [("epsilon",), ("delta",), ("epsilon", "delta")])
def test_no_budget_is_spent_that_was_not_given(name, left_out, study, tmp_path):
    X, y, _ = study
    ledger = Ledger(tmp_path / "ledger", epsilon=9.0, delta=1e-5)
    given = {option: GIVEN[option] for option in GIVEN if option not in left_out}
    model = MODELS[name](ledger=ledger, **given)
    pass_ = " and ".join(f"{option}=..." for option in left_out)
    with pytest.raises(ParameterError, match=f"has no privacy budget: pass {pass_};"):
        model.fit(X, y)
    assert ledger.history() == []
    model.set_params(**GIVEN).fit(X, y)
    assert len(ledger.history()) == 1


def test_a_sum_is_not_released_without_a_budget(study):
    X, *_ = study
    model = PrivateFrechetMean(domain=DOMAIN).partial_fit(X)
    with pytest.raises(ParameterError, match="has no privacy budget"):
        model.release()
    assert model.set_params(**GIVEN).release().certificate_["epsilon"] == 4.0


@pytest.mark.parametrize("name", MODELS)
def test_where_persons_are_protected_records_need_ids(name, study):
    X, y, ids = study
    model = MODELS[name](unit="person", **GIVEN)
    with pytest.raises(
        ParameterError, match=r"protects persons, and needs groups.*set_fit_request"
    ):
        model.fit(X, y)
    assert model.fit(X, y, groups=ids).certificate_["unit"] == "person"
    assert model.certificate_["n"] == PERSONS
    with pytest.raises(ParameterError, match="unit='record', but its records have subject IDs"):
        model.set_params(unit="record").fit(X, y, groups=ids)
    assert model.fit(X, y).certificate_["unit"] == "record"
    with pytest.raises(ParameterError, match="unit must be"):
        model.set_params(unit="family").fit(X, y)


def test_ids_may_come_with_the_records(study):
    X, _, ids = study
    source = with_columns(as_source(X), person=ids)
    model = PrivateFrechetMean(domain=DOMAIN, unit="person", **GIVEN).fit(source)
    assert model.certificate_["n"] == PERSONS
    with pytest.raises(ParameterError, match="subject IDs"):
        model.set_params(unit="record").fit(source)


def test_sums_of_persons_need_ids(study):
    X, _, ids = study
    model = PrivateFrechetMean(domain=DOMAIN, unit="person", **GIVEN)
    with pytest.raises(ParameterError, match="needs groups"):
        model.partial_fit(X)
    assert model.partial_fit(X, groups=ids).release().certificate_["n"] == PERSONS


# --- scikit-learn's metadata routing


@pytest.fixture
def routed():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_groups_reach_an_estimator_in_a_pipeline(study, routed):
    X, y, ids = study
    model = PrivateMDM([0, 1], domain=DOMAIN, unit="person", **GIVEN)
    pipeline = make_pipeline(FunctionTransformer(), model.set_fit_request(groups=True))
    pipeline.fit(X, y, groups=ids)
    c = pipeline[-1].certificate_
    assert (c["unit"], c["n"]) == ("person", PERSONS)
    with pytest.raises(ParameterError, match="needs groups"):
        pipeline.fit(X, y)


def test_groups_reach_folds_and_estimators_of_a_search(study, routed):
    """Folds keep a person's records together, and each fit counts persons."""
    X, y, ids = study
    model = PrivateTangentLDA([0, 1], domain=DOMAIN, unit="person", **GIVEN)
    pipeline = make_pipeline(FunctionTransformer(), model.set_fit_request(groups=True))
    choices = {"privatetangentlda__covariance": ["none", "diagonal"]}
    search = GridSearchCV(pipeline, choices, cv=GroupKFold(3), error_score="raise")
    search.fit(X, y, groups=ids)
    assert search.best_estimator_[-1].certificate_["n"] == PERSONS
    found = cross_validate(
        pipeline, X, y, cv=GroupKFold(3), params={"groups": ids}, return_estimator=True
    )
    fitted = [fold[-1].certificate_ for fold in found["estimator"]]
    assert [(c["unit"], c["n"]) for c in fitted] == [("person", 2 * PERSONS // 3)] * 3
    assert min(found["test_score"]) > 0.8


def test_without_routing_the_search_stops_instead_of_protecting_records(study):
    X, y, ids = study
    model = PrivateMDM([0, 1], domain=DOMAIN, unit="person", **GIVEN)
    with pytest.raises(ParameterError, match="needs groups"):
        GridSearchCV(model, {"epsilon": [4.0]}, cv=GroupKFold(3), error_score="raise").fit(
            X, y, groups=ids
        )


def test_a_search_spends_once_for_every_fit(study, routed, tmp_path):
    X, y, ids = study
    ledger = Ledger(tmp_path / "ledger", epsilon=9.0, delta=1e-5)
    model = PrivateMDM([0, 1], 0.5, 1e-7, DOMAIN, unit="person", ledger=ledger)
    search = GridSearchCV(
        model.set_fit_request(groups=True), {"metric": ["logeuclid", "logchol"]}, cv=GroupKFold(3)
    )
    search.fit(X, y, groups=ids)
    assert len(ledger.history()) == 2 * 3 + 1
    assert ledger.unit == "person"
