import json

import numpy as np
import pytest

from spdp import Ball, Release, private_mean
from spdp.errors import DataError
from spdp.laws import chi2_law, gamma_square_law, law_of, weighted_chi2_law


@pytest.fixture
def release():
    return private_mean(np.stack([np.diag([1.0, 2.0])] * 50), epsilon=1.0, delta=1e-4, domain=Ball(2.0))


def test_immutable(release):
    with pytest.raises(AttributeError, match="changed"):
        release.value = np.eye(2)
    with pytest.raises(AttributeError, match="changed"):
        del release.value
    with pytest.raises(ValueError, match="read-only"):
        release.value[0, 0] = 1.0
    release.certificate["epsilon"] = 0.0
    assert release.certificate["epsilon"] == 1.0


def test_save_and_load(release, tmp_path):
    path = release.save(tmp_path / "a" / "b")
    assert sorted(p.name for p in path.iterdir()) == ["certificate.json", "mean.npy"]
    again = Release.load(path)
    np.testing.assert_array_equal(again.value, release.value)
    assert again.certificate == release.certificate
    assert again.squared_error.mean() == release.squared_error.mean()
    release.save(path)
    np.save(path / "mean.npy", np.eye(2))
    with pytest.raises(DataError, match="not the matrix"):
        Release.load(path)
    (path / "mean.npy").unlink()
    with pytest.raises(DataError, match="does not hold a release"):
        Release.load(path)


def test_a_failed_save_leaves_nothing(release, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr(json, "dump", fail)
    with pytest.raises(OSError, match="disk full"):
        release.save(tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def test_shown_in_a_notebook(release):
    page = release._repr_html_()
    assert "<table>" in page
    assert "95 %" in page
    assert "private" in repr(release)


@pytest.mark.parametrize("spec", [chi2_law(5, 0.3), gamma_square_law(4, 0.2), weighted_chi2_law(np.array([1.0, 2.0, 0.1, 5.0]))])
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
