import json

import numpy as np
import pytest

from spdp.privacy.laws import chi2_law, gamma_square_law, law_of, weighted_chi2_law


@pytest.mark.parametrize(
    "spec",
    [chi2_law(5, 0.3), gamma_square_law(4, 0.2), weighted_chi2_law(np.array([1.0, 2.0, 0.1, 5.0]))],
)
def test_laws_are_right(spec):
    law = law_of(json.loads(json.dumps(spec)))
    draws = law.rvs(size=4000, random_state=0)
    assert law.mean() == pytest.approx(draws.mean(), rel=0.1)
    for p in (0.1, 0.5, 0.95):
        assert (draws <= law.ppf(p)).mean() == pytest.approx(p, abs=0.025)
    assert law.cdf(law.ppf(0.7)) == pytest.approx(0.7, abs=1e-6)


def test_weighted_law_reduces_to_chi2():
    assert weighted_chi2_law(np.full(4, 0.5)) == chi2_law(4, 0.5)
    nearly = law_of(weighted_chi2_law(np.array([0.5, 0.5, 0.5, 0.5 * (1 + 1e-6)])))
    assert nearly.ppf(0.9) == pytest.approx(law_of(chi2_law(4, 0.5)).ppf(0.9), rel=1e-4)
