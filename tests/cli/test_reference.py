import json

import numpy as np
import pytest

from spdp import Ledger, Reference

PLAN = ("--k", "3", "--n", "300", "--radius", "4", "--runs", "3")


@pytest.fixture
def public(run, data):
    """A reference of the data of another study, here the same file."""
    code, out, err = run("reference", data, "-o", "ref.npz")
    assert (code, err) == (0, "")
    assert "wrote ref.npz: 3,000 public records, 3×3" in out
    return data.parent / "ref.npz"


def test_a_reference_is_named_in_the_certificate(run, public, data, budget, tmp_path, random_spd):
    np.save(tmp_path / "few.npy", random_spd(60, 3, seed=1, condition=4.0))
    words = ("mean", "few.npy", *budget, "--radius", "4", "--reference", public, "--json")
    code, out, err = run(*words, "--method", "adaptive")
    assert code == 0
    assert all("HOPELESS" in line for line in err.splitlines())  # so few, by chance
    certificate = json.loads(out)["certificate"]
    assert certificate["reference"] == Reference.load(public).digest


def test_json_and_force(run, refused, public, data):
    refused(2, "exists already", "reference", data, "-o", public)
    code, out, _ = run("reference", data, "-o", public, "--force", "--json")
    facts = json.loads(out)
    assert code == 0
    assert (facts["n"], facts["k"], facts["digest"]) == (3000, 3, Reference.load(public).digest)


def test_a_plan_takes_a_reference(run, public, budget):
    reference = Reference.load(public)
    for option, digest in (("--spread", None), ("--reference", reference.digest)):
        code, out, err = run("plan", *PLAN, *budget, option, public, "--json")
        assert (code, err) == (0, "")
        result = json.loads(out)
        assert result["reference"] == digest
        assert [row["spread"] for row in result["adaptive"]] == [reference.spread]
        assert result["known"] == "as in the reference"


def test_what_is_no_reference_is_refused(refused, run, data, tmp_path, budget, random_spd, ledger):
    refused(2, "written as .npz", "reference", data, "-o", "ref.npy")
    refused(3, "missing.npy", "reference", "missing.npy", "-o", "ref.npz")
    np.save(tmp_path / "other.npy", random_spd(30, 4))
    assert run("reference", "other.npy", "-o", "other.npz")[0] == 0
    words = ("mean", data, *budget, "--radius", "4", "--ledger", ledger, "-o", "out")
    refused(2, "4×4 matrices, the records are 3×3", *words, "--reference", "other.npz")
    refused(3, "data.npy: cannot be read as a reference", *words, "--reference", data)
    assert Ledger(ledger).history() == []
