import json

import msgspec
import numpy as np
import pytest

from spdp.error.laws import Chi2, GammaSquare, StretchedLaplace, law_of, weighted_chi2


@pytest.mark.parametrize(
    "law",
    [
        Chi2(5, 0.3),
        GammaSquare(4, 0.2),
        StretchedLaplace(4, 0.2, 0.5),
        weighted_chi2(np.array([1.0, 2.0, 0.1, 5.0])),
    ],
)
def test_laws_are_right(law):
    assert law_of(json.loads(json.dumps(msgspec.to_builtins(law)))) == law
    found = law.distribution()
    draws = found.rvs(size=4000, random_state=0)
    assert law.mean() == pytest.approx(found.mean(), rel=1e-9)
    assert found.mean() == pytest.approx(draws.mean(), rel=0.1)
    for p in (0.1, 0.5, 0.95):
        assert (draws <= found.ppf(p)).mean() == pytest.approx(p, abs=0.025)
    assert found.cdf(found.ppf(0.7)) == pytest.approx(0.7, abs=1e-6)
    levels = np.array([0.1, 0.5, 0.95])
    np.testing.assert_allclose(law.quantile(levels), found.ppf(levels), rtol=1e-6)


def test_weighted_law_reduces_to_chi2():
    assert weighted_chi2(np.full(4, 0.5)) == Chi2(4, 0.5)
    nearly = weighted_chi2(np.array([0.5, 0.5, 0.5, 0.5 * (1 + 1e-6)])).distribution()
    assert nearly.ppf(0.9) == pytest.approx(Chi2(4, 0.5).distribution().ppf(0.9), rel=1e-4)
