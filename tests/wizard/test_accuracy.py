"""Errors in the terms of their users, against what is known of them exactly."""

from math import exp, sqrt

import numpy as np
import pytest

from spdp.geometry import distance_logeuclid
from spdp.wizard.accuracy import DISTANCES, TERMS, distance_for, in_term, typical
from spdp.wizard.instruments import Connectomes, Diffusion, Images, Other, Signals

KINDS = [
    (Diffusion(), 3),
    (Signals(), 6),
    (Connectomes(), 8),
    (Images(), 9),
    (Other(radius=2.0), 4),
]
CASES = [(name, kind, k) for kind, k in KINDS for name in kind.terms]


@pytest.mark.parametrize(("name", "kind", "k"), CASES)
def test_a_wish_and_its_distance_are_each_others_inverse(name, kind, k):
    for error in (0.002, 0.05, 0.3, 1.0):
        value = in_term(name, kind, k, error)
        assert distance_for(name, kind, k, value) == pytest.approx(error, rel=1e-6)


@pytest.mark.parametrize(("name", "kind", "k"), CASES)
def test_a_larger_error_is_never_better(name, kind, k):
    values = [in_term(name, kind, k, e) for e in np.geomspace(1e-4, 20.0, 30)]
    assert (np.diff(values) >= 0).all()
    assert np.isfinite(values).all()


def test_small_errors_of_a_diffusivity_follow_from_its_gradient():
    """d ln tr X = ⟨W, E⟩ with W = X/tr X: e in any of 6 directions gives e‖W‖/√6."""
    kind = Diffusion()
    W = typical(kind, 3) / np.trace(typical(kind, 3))
    exact = 100 * 0.01 * np.linalg.norm(W) / sqrt(6)
    assert in_term("diffusivity", kind, 3, 0.01) == pytest.approx(exact, rel=0.1)


def test_eigenvalues_are_never_off_by_more_than_the_distance():
    """Weyl: no logarithm of an eigenvalue moves farther than the matrix."""
    for e in (0.01, 0.1, 1.0):
        assert 1.0 + 0.5 * e < in_term("eigenvalues", Other(radius=2.0), 3, e) <= exp(e)


def test_small_errors_of_correlations_near_the_identity():
    """y = √2·Off(log C): an error e in d directions moves a correlation by e/√(2d)."""
    kind, k = Connectomes(0.999), 6
    exact = 0.01 / sqrt(2 * 15)
    assert in_term("correlations", kind, k, 0.01) == pytest.approx(exact, rel=0.05)


def test_the_unit_of_tensors_does_not_matter():
    one, other = Diffusion("mm2/s"), Diffusion("um2/ms")
    for name in ("diffusivity", "anisotropy", "eigenvalues"):
        assert in_term(name, one, 3, 0.2) == pytest.approx(in_term(name, other, 3, 0.2))


def test_a_wish_that_any_release_fulfils_has_no_distance():
    assert distance_for("anisotropy", Diffusion(), 3, 5.0) is None  # it is at most 1
    assert distance_for("eigenvalues", Diffusion(), 3, 0.9) is None
    for name in TERMS:
        assert distance_for(name, Diffusion(), 3, 0.0) is None


def test_a_typical_matrix_lies_in_the_domain_of_its_instrument():
    for kind, k in KINDS[:1]:
        assert kind.domain(k).contains(typical(kind, k))
    assert distance_logeuclid(typical(Connectomes(), 8), np.eye(8)) > 0.1
    assert DISTANCES[0] < 0.01


def test_every_term_says_its_value_in_words():
    assert TERMS["diffusivity"].say(5.0) == "mean diffusivity within 5 %"
    assert TERMS["eigenvalues"].say(1.2) == "all eigenvalues within a factor 1.2"
