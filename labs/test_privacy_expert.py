"""A privacy expert with connectomes: what is refused, what it tells, what it costs."""

import numpy as np
import pytest

connectome = pytest.importorskip("nilearn.connectome")

from spdp import CorrelationBounds, Ledger, private_mean  # noqa: E402
from spdp.data import open_records  # noqa: E402
from spdp.errors import BudgetExceeded, DataError, ParameterError  # noqa: E402

REGIONS, PERSONS = 5, 300
BUDGET = {"epsilon": 1.0, "delta": 1e-6, "domain": CorrelationBounds(0.1), "metric": "offlog"}


@pytest.fixture(scope="module")
def series():
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((PERSONS, 120, 1))
    return list(rng.standard_normal((PERSONS, 120, REGIONS)) + 0.7 * shared)


def estimated(series, kind, **options):
    measure = connectome.ConnectivityMeasure(kind=kind, standardize="zscore_sample", **options)
    return measure, measure.fit_transform(series)


@pytest.mark.parametrize("discard_diagonal", [False, True])
def test_vectors_of_nilearn_are_the_matrices_they_were_made_of(series, discard_diagonal):
    _, matrices = estimated(series, "correlation")
    how = {"vectorize": True, "discard_diagonal": discard_diagonal}
    measure, vectors = estimated(series, "correlation", **how)
    records = open_records(vectors, kind=measure)
    assert (records.k, records.kind) == (REGIONS, "correlation")
    (block,) = records.blocks()
    np.testing.assert_allclose(block, matrices, rtol=0, atol=1e-14)


def test_vectors_without_their_estimator_name_the_line(series):
    _, vectors = estimated(series, "correlation", vectorize=True)
    with pytest.raises(DataError, match=r"open_records\(X, kind=measure\)"):
        private_mean(vectors, **BUDGET)


def test_a_correlation_is_released_and_verified(series, published):
    measure, vectors = estimated(series, "correlation", vectorize=True)
    release = private_mean(open_records(vectors, kind=measure), **BUDGET)
    published(release, "record", PERSONS)
    assert (np.diagonal(release.value) == 1.0).all()


@pytest.mark.parametrize("kind", ["precision", "partial correlation"])
def test_what_is_no_correlation_is_refused_before_payment(series, kind, tmp_path):
    ledger = Ledger(tmp_path / "budget.ledger", epsilon=2.0, delta=1e-5)
    measure, matrices = estimated(series, kind)
    with pytest.raises(ParameterError, match=f"{kind} matrices: metric='offlog' is for corr"):
        private_mean(open_records(matrices, kind=measure), ledger=ledger, **BUDGET)
    assert not ledger.history()


def test_the_tangent_space_of_nilearn_is_refused(series):
    measure, vectors = estimated(series, "tangent", vectorize=True)
    with pytest.raises(ParameterError, match="each of them depends on all records"):
        open_records(vectors, kind=measure)


def test_a_diagonal_that_was_left_out_is_no_guess(series):
    how = {"vectorize": True, "discard_diagonal": True}
    measure, vectors = estimated(series, "covariance", **how)
    with pytest.raises(ParameterError, match="discard_diagonal=False"):
        open_records(vectors, kind=measure)


def test_a_ledger_is_not_overspent_and_add_remove_hides_n(series, tmp_path, published):
    ledger = Ledger(tmp_path / "budget.ledger", epsilon=2.0, delta=1e-5)
    measure, matrices = estimated(series, "correlation")
    records = open_records(matrices, kind=measure)
    release = private_mean(records, ledger=ledger, adjacency="add-remove", **BUDGET)
    assert release.certificate["n"] is None
    published(release, "record", None)
    with pytest.raises(BudgetExceeded):
        private_mean(records, ledger=ledger, **BUDGET | {"epsilon": 2.0})
