"""spdp among OpenDP's measurements, and its releases among dp-accounting's events."""

from math import isclose

import numpy as np
import opendp.prelude as dp
import pytest
from dp_accounting import NeighboringRelation, NonPrivateDpEvent
from dp_accounting.pld import PLDAccountant

from spdp import Ball, private_mean, private_median
from spdp.errors import ParameterError
from spdp.opendp import make_private
from spdp.privacy.budget import Budget

dp.enable_features("contrib", "honest-but-curious")
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


@pytest.mark.parametrize("statistic", [private_mean, private_median])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_measurement_costs_what_its_certificate_says(statistic, adjacency, random_spd):
    if (statistic, adjacency) == (private_mean, "add-remove"):
        options = {"method": "oneshot"}
    else:
        options = {}
    measurement = make_private(
        statistic, k=3, adjacency=adjacency, domain=Ball(3.0), **BUDGET, **options
    )
    release = measurement(random_spd(300, 3))
    assert release.certificate["adjacency"] == adjacency
    assert isclose(measurement.map(1), release.certificate["mu"] ** 2 / 2, rel_tol=1e-9)
    assert measurement.map(1) >= release.certificate["mu"] ** 2 / 2
    assert isclose(measurement.map(3), 9 * measurement.map(1))


def test_measurements_compose_with_opendps_own(random_spd):
    means = [make_private(private_mean, k=2, domain=Ball(2.0), **BUDGET) for _ in range(2)]
    both = dp.c.make_composition(means)
    assert isclose(both.map(1), 2 * means[0].map(1))
    first, second = both(random_spd(200, 2))
    assert first.value.shape == second.value.shape == (2, 2)
    assert not np.array_equal(first.value, second.value)


def test_what_the_measurement_decides_is_not_to_be_chosen(tmp_path):
    with pytest.raises(ParameterError, match="random_state cannot be chosen"):
        make_private(private_mean, k=2, domain=Ball(2.0), random_state=1, **BUDGET)


def test_invalid_records_do_not_raise():
    measurement = make_private(private_mean, k=2, domain=Ball(2.0), **BUDGET)
    assert np.isfinite(measurement(np.full((50, 2, 2), np.nan)).value).all()


@pytest.mark.parametrize("mechanism", ["gaussian", "laplace"])
def test_events_add_up_to_no_less_than_was_spent(mechanism, random_spd):
    """An accountant finds ε at δ again for Gaussian releases; more for pure ones."""
    release = private_mean(
        random_spd(100, 2), domain=Ball(2.0), method="oneshot", mechanism=mechanism, **BUDGET
    )
    accountant = PLDAccountant(neighboring_relation=NeighboringRelation.REPLACE_SPECIAL)
    found = accountant.compose(release.dp_event()).get_epsilon(1e-6)
    assert found >= 1.0 - 1e-6
    if mechanism == "gaussian":
        assert found == pytest.approx(1.0, rel=1e-3)
        twice = accountant.compose(release.dp_event()).get_epsilon(1e-6)
        mu = Budget.gaussian(1.0, 1e-6).mu
        assert twice == pytest.approx(
            PLDAccountant(neighboring_relation=NeighboringRelation.REPLACE_SPECIAL)
            .compose(type(release.dp_event())(1 / (mu * np.sqrt(2))))
            .get_epsilon(1e-6),
            rel=1e-3,
        )


def test_a_seeded_release_is_no_private_event(random_spd):
    release = private_mean(random_spd(50, 2), domain=Ball(2.0), random_state=1, **BUDGET)
    assert isinstance(release.dp_event(), NonPrivateDpEvent)
