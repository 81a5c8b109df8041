"""``spdp stats spread`` and ``spdp stats pca``."""

import json

import numpy as np
import pytest

from spdp import Ledger, Release

SPREAD = ("mean", "variance", "deviations", "distances")
PCA = ("mean", "components", "explained_variance", "covariance")
DOMAIN = ("--eigenvalues", "0.2", "5")


@pytest.mark.parametrize(
    ("words", "names"), [(("spread",), SPREAD), (("pca", "--components", "2"), PCA)]
)
def test_a_release_is_written_and_verifies(run, data, tmp_path, budget, ledger, words, names):
    more = ("-o", "out", "--report", "--ledger", ledger)
    code, out, err = run("stats", words[0], data, *words[1:], *budget, *DOMAIN, *more)
    assert (code, err) == (0, "")
    for file in (*(f"{name}.npy" for name in names), "certificate.json", "report.html"):
        assert f"wrote out/{file}" in out
    release = Release.load(tmp_path / "out")
    assert tuple(release.values) == names
    assert len(Ledger(ledger).history()) == 1
    assert run("verify", "out")[0] == 0
    assert "population" in (tmp_path / "out" / "report.html").read_text()


def test_all_arrays_are_shown(run, data, budget):
    code, out, _ = run("stats", "spread", data, *budget, *DOMAIN, "--json")
    assert code == 0
    assert set(json.loads(out)["values"]) == set(SPREAD)
    code, out, _ = run("stats", "spread", data, *budget, *DOMAIN)
    assert code == 0
    assert "variance:" in out
    assert "lower estimates" in " ".join(out.split())


def test_too_few_records_are_refused(refused, tmp_path, random_spd, budget):
    np.save(tmp_path / "few.npy", random_spd(5, 3))
    words = ("stats", "pca", "few.npy", "--components", "2", *budget, *DOMAIN)
    refused(2, "would be noise", *words)
