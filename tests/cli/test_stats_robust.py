"""spdp stats median, regress and compare; persons, for every statistic."""

import json

import numpy as np
import pytest

from spdp import Release

DOMAIN = ("--eigenvalues", "0.05", "20")


@pytest.fixture
def files(tmp_path, random_spd):
    X = random_spd(3000, 2, condition=3.0)
    y = np.arange(3000) % 2
    X[y == 1] *= 1.5
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    (tmp_path / "x.txt").write_text("".join(f"{v}, {v % 3}\n" for v in range(3000)))


COMMANDS = {
    "median": (),
    "regress": ("--covariates", "x.txt", "--ranges", "0:3000,0:3"),
    "compare": ("--labels", "y.npy", "--classes", "1,0"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_release_is_written_verified_and_reported(run, budget, files, tmp_path, name):
    words = ("stats", name, "X.npy", *COMMANDS[name], *budget, *DOMAIN, "-o", "out", "--report")
    code, out, err = run(*words)
    assert (code, err) == (0, ""), err
    assert "wrote" in out
    release = Release.load(tmp_path / "out")
    assert all(check.ok for check in release.verify())
    assert f"{next(iter(release.values))}.npy" in out
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert ("matrix estimates" in page) == (name == "median")  # others are several arrays
    assert run("verify", "out")[0] == 0


EVERY = {
    **COMMANDS,
    "classes": ("--labels", "y.npy", "--classes", "1,0"),
    "spread": (),
    "pca": ("--components", "1"),
}


@pytest.mark.parametrize("name", EVERY)
def test_persons(run, budget, files, tmp_path, name):
    np.save(tmp_path / "who.npy", np.arange(3000) // 3)
    words = ("stats", name, "X.npy", *EVERY[name], *budget, *DOMAIN, "--groups", "who.npy")
    code, out, err = run(*words, "--json")
    assert (code, err) == (0, ""), err
    certificate = json.loads(out)["certificate"]
    assert (certificate["unit"], certificate["n"]) == ("person", 1000)


@pytest.mark.parametrize("name", EVERY)
def test_a_private_number(run, budget, files, name):
    words = ("stats", name, "X.npy", *EVERY[name], *budget, *DOMAIN, "--adjacency", "add-remove")
    code, out, err = run(*words, "--json")
    assert (code, err) == (0, ""), err
    certificate = json.loads(out)["certificate"]
    assert (certificate["adjacency"], certificate["n"]) == ("add-remove", None)
    assert certificate["n_estimate"] == pytest.approx(3000, abs=300)


def test_json(run, budget, files):
    code, out, _ = run(
        "stats", "compare", "X.npy", *COMMANDS["compare"], *budget, *DOMAIN, "--json"
    )
    assert code == 0
    test = json.loads(out)["certificate"]["steps"][-1]["test"]
    assert test["p_value"] < 0.01


def test_what_cannot_be_read_is_refused(refused, budget, files, tmp_path):
    common = (*budget, *DOMAIN)
    wrong = ("--covariates", "x.txt", "--ranges", "0-3000")
    refused(2, "expected LOW:HIGH", "stats", "regress", "X.npy", *wrong, *common)
    wrong = ("--covariates", "x.txt", "--ranges", "0:3000")
    refused(3, "not 1 number(s), one per range", "stats", "regress", "X.npy", *wrong, *common)
    missing = ("--covariates", "none.txt", "--ranges", "0:1")
    refused(3, "none.txt: cannot be read", "stats", "regress", "X.npy", *missing, *common)
    refused(
        2,
        "the class of each record is missing",
        "stats",
        "compare",
        "X.npy",
        "--classes",
        "1,0",
        *common,
    )
