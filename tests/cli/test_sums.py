import json
import stat

import numpy as np
import pytest

from spdp import EigenvalueBounds, Ledger
from spdp.lattice import exact_sum
from spdp.statistics.partial_sums import LatticeSum

BOUNDS = ("--eigenvalues", "0.01", "100")


@pytest.fixture
def sites(tmp_path, random_spd):
    X = random_spd(60, 3)
    np.save(tmp_path / "a.npy", X[:20])
    np.save(tmp_path / "b.npy", X[20:])
    return X


@pytest.fixture
def summed(run, sites, tmp_path):
    for site in "ab":
        code, out, _ = run("sum", f"{site}.npy", "-o", f"{site}.sum", *BOUNDS)
        assert code == 0
        assert "NOT private" in out
    return ("a.sum", "b.sum")


def test_several_files_are_one_sum(run, sites, tmp_path):
    code, out, err = run("sum", "a.npy", "b.npy", "-o", "ab.sum", *BOUNDS)
    assert (code, err) == (0, "")
    assert "60 records, 3×3" in out
    total = LatticeSum.load(tmp_path / "ab.sum").total
    np.testing.assert_array_equal(total, exact_sum(sites, EigenvalueBounds(0.01, 100.0)))


def test_a_sum_file_is_for_its_owner_and_not_overwritten(run, refused, summed, tmp_path):
    file = tmp_path / "a.sum"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    refused(2, "(pass --force)", "sum", "b.npy", "-o", "a.sum", *BOUNDS)
    assert file.read_bytes() == before
    assert run("sum", "b.npy", "-o", "a.sum", "--force", *BOUNDS)[0] == 0
    assert LatticeSum.load(file).n == 40
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_merge_releases_the_mean_of_all(run, summed, tmp_path, budget):
    code, out, err = run("merge", *summed, *budget, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["certificate"]["n"] == 60
    code, out, _ = run("merge", *summed, *budget, "-o", "out", "--report")
    assert code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "mean.npy",
        "certificate.json",
        "report.html",
    }


def test_nobody_counts_twice(run, refused, summed, sites, ledger, tmp_path, budget):
    (tmp_path / "copy.sum").write_bytes((tmp_path / "a.sum").read_bytes())
    (tmp_path / "link.sum").hardlink_to(tmp_path / "a.sum")
    for other in ("a.sum", "link.sum", "copy.sum"):
        refused(2, "twice", "merge", "a.sum", other, *budget, "--ledger", ledger)
    refused(2, "count twice", "sum", "a.npy", "a.npy", "-o", "x.sum", *BOUNDS)
    assert Ledger(ledger).history() == []


def test_sums_that_do_not_fit_cost_nothing(run, refused, summed, ledger, tmp_path, budget):
    assert run("sum", "a.npy", "-o", "other.sum", "--radius", "3")[0] == 0
    refused(2, "different domains", "merge", "a.sum", "other.sum", *budget, "--ledger", ledger)
    (tmp_path / "cut.sum").write_bytes((tmp_path / "b.sum").read_bytes()[:50])
    refused(3, "cut.sum", "merge", "a.sum", "cut.sum", *budget, "--ledger", ledger)
    refused(3, "absent.sum", "merge", "a.sum", "absent.sum", *budget, "--ledger", ledger)
    assert Ledger(ledger).history() == []


def test_a_local_cluster_gives_the_same_sum(shell, run, sites, tmp_path):
    pytest.importorskip("distributed")
    words = ("sum", "a.npy", "b.npy", *BOUNDS, "-o")
    assert run(*words, "here.sum")[0] == 0
    done = shell(*words, "there.sum", "--workers", "1")
    assert done.returncode == 0, done.stderr
    here, there = (LatticeSum.load(tmp_path / f"{name}.sum") for name in ("here", "there"))
    np.testing.assert_array_equal(here.total, there.total)
