"""What a ledger says of its budget, its history and the releases it keeps."""

from itertools import pairwise

import numpy as np
import pytest

from spdp.errors import LedgerError
from spdp.privacy import gaussian_mu
from spdp.privacy.ledger import Ledger
from spdp.privacy.ledger_view import LedgerView

MECHANISM = "tangent-gaussian"


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "account.ledger", epsilon=1.0, delta=1e-6)


@pytest.fixture
def view(ledger):
    return LedgerView(ledger.path)


def test_the_budget_and_what_is_left(ledger, view):
    assert (view.epsilon, view.delta, view.unit) == (1.0, 1e-6, None)
    assert view.would_fit(0.9, 1e-6)
    ledger.spend(mechanism=MECHANISM, mu=gaussian_mu(0.6, 1e-6), unit="person")
    assert view.unit == "person"
    assert view.spent()["epsilon"] == pytest.approx(0.6)
    assert view.would_fit(0.99 * view.remaining()["epsilon"], 1e-6)
    assert not view.would_fit(0.9, 1e-6)


def test_curve(ledger, view):
    assert view.curve([1e-6]) == [(1e-6, 0.0)]
    ledger.spend(mechanism=MECHANISM, mu=gaussian_mu(0.5, 1e-6))
    curve = view.curve()
    assert all(a[1] >= b[1] for a, b in pairwise(curve))
    assert dict(view.curve([1e-6]))[1e-6] == pytest.approx(0.5, rel=1e-6)


def test_a_paid_release_is_recovered(ledger, view):
    value, certificate = np.arange(3.0), {"epsilon": 0.3}
    ledger.store(ledger.spend(mechanism=MECHANISM, mu=0.1), value, certificate)
    pending = ledger.spend(mechanism=MECHANISM, mu=0.01)
    recovered, kept = view.recover(1)
    np.testing.assert_array_equal(recovered, value)
    assert kept == certificate
    assert [entry["state"] for entry in view.history()] == ["done", "pending"]  # costs nothing
    with pytest.raises(LedgerError, match=r"entry 2 is pending.*no result"):
        view.recover(pending)
    for entry in (0, 3, -1, 10**20):
        with pytest.raises(LedgerError, match="no entry"):
            view.recover(entry)


def test_complex_values_are_recovered(ledger, view):
    value = np.array([[2.0, -1j], [1j, complex(3.0, -0.0)]])
    ledger.store(ledger.spend(mechanism=MECHANISM, mu=0.1), value, {})
    again, _ = view.recover(1)
    assert again.dtype == np.complex128
    assert again.tobytes() == value.tobytes()


def test_acts_are_told(ledger, view):
    ledger.change_budget(2.0, 1e-6, "more people agreed")
    assert view.acts()[-1]["what"].endswith("more people agreed")
    assert view.epsilon == 2.0
