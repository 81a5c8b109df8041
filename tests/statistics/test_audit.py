"""Privacy audits.

Worst-case neighbours, thousands of releases on each side, and a lower bound on μ that
must not exceed the claim.

For a μ-GDP mechanism every test between neighbours has Φ⁻¹(true positive rate) −
Φ⁻¹(false positive rate) ≤ μ, with equality for threshold events along the worst-case
direction. Clopper–Pearson intervals turn counts into a bound that holds with confidence
99.9 %. Draws have no seed: both counts must be off by 3.1 standard errors, or one by
more, for the bound to exceed the true μ, a chance of Φ(−3.1·√2) = 6e-6 per audit.
"""

import numpy as np
import pytest
from scipy import stats

from spdp import Ball, private_mean
from spdp.engines.store import SumStore
from spdp.geometry import expm, invvecd, logm, vecd
from spdp.lattice import exact_sum
from spdp.privacy import account as accounts
from spdp.privacy import gaussian_epsilon, gaussian_mu
from spdp.privacy.account import Account
from spdp.statistics.method import plan_one_shot

EPSILON, DELTA, RADIUS, CONFIDENCE = 3.0, 1e-3, 1.0, 0.999


def neighbours(k, n=4):
    """n records at one end of a diameter, and the same with one of them at the other
    end.
    """
    u = np.zeros(k * (k + 1) // 2)
    u[-1] = 1.0
    D = np.stack([expm(invvecd(u))] * n)
    E = D.copy()
    E[0] = expm(invvecd(-u))
    return D, E, u


def lower_bound_on_mu(at_d, at_e, threshold):
    """Of two samples, the first expected above the (data-independent) threshold more
    often.
    """
    m = len(at_d)
    hits, alarms = int((at_d > threshold).sum()), int((at_e > threshold).sum())
    true_positive = stats.beta.ppf(1 - CONFIDENCE, hits, m - hits + 1) if hits else 0.0
    false_positive = stats.beta.ppf(CONFIDENCE, alarms + 1, m - alarms) if alarms < m else 1.0
    return stats.norm.ppf(true_positive) - stats.norm.ppf(false_positive)


def audit(plan, k, releases):
    D, E, u = neighbours(k)
    sides = []
    for data in (D, E):
        store = SumStore(exact_sum(data, plan.domain), len(data))
        asked = (Account(plan.budget).ask(plan.query, store) for _ in range(releases))
        sides.append(np.array([answer.estimate.value for answer in asked]) @ u)
    # halfway between the two means, 1 and 1/2
    return lower_bound_on_mu(*sides, threshold=0.75)


@pytest.mark.parametrize("k", [1, 2])
def test_the_release_is_as_private_as_it_claims_and_wastes_no_noise(k):
    plan = plan_one_shot(k, epsilon=EPSILON, delta=DELTA, domain=Ball(RADIUS), mechanism="gaussian")
    bound = audit(plan, k, 10_000)
    claim = gaussian_mu(EPSILON, DELTA)
    assert bound <= claim
    assert bound >= 0.7 * claim
    assert gaussian_epsilon(DELTA, bound) <= EPSILON


@pytest.mark.parametrize("part", [2, 50])
def test_the_audit_catches_half_the_noise_and_the_misprinted_condition(part, monkeypatch):
    """As printed, theorem 2's condition holds for every σ: also for a 50th of it."""
    honest = accounts.lattice_scale
    monkeypatch.setattr(accounts, "lattice_scale", lambda s, mu: honest(s, mu) / part)
    plan = plan_one_shot(1, epsilon=EPSILON, delta=DELTA, domain=Ball(RADIUS), mechanism="gaussian")
    assert audit(plan, 1, 2000) > gaussian_mu(EPSILON, DELTA)


@pytest.mark.audit
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_end_to_end_audit(adjacency):
    """10,000 calls of private_mean on each side.

    Add-remove neighbours differ by the record at the far end.
    """
    D, E, u = neighbours(1)
    if adjacency == "add-remove":
        D, E = D, D[1:]
    options = {
        "epsilon": EPSILON,
        "delta": DELTA,
        "domain": Ball(RADIUS),
        "mechanism": "gaussian",
        "adjacency": adjacency,
        "anyway": True,
    }
    plan = plan_one_shot(
        1,
        epsilon=EPSILON,
        delta=DELTA,
        domain=Ball(RADIUS),
        mechanism="gaussian",
        adjacency=adjacency,
    )
    sides = []
    for data in (D, E):
        draws = []
        for _ in range(10_000):
            release = private_mean(data, **options)
            y = float(vecd(logm(release.value)) @ u)
            # the joint direction of noisy sum and noisy count
            if adjacency == "add-remove":
                count = release.certificate["n_estimate"]
                y = y * count * 2**30 + count * plan.query.weight * (plan.query.weight / 2**30)
            draws.append(y)
        sides.append(np.array(draws))
    bound = lower_bound_on_mu(*sides, threshold=np.mean(sides))
    claim = gaussian_mu(EPSILON, DELTA)
    assert bound <= claim
    if adjacency == "replace-one":
        assert bound >= 0.7 * claim
