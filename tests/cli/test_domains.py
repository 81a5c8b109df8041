"""Each kind of domain has one spelling, in every command that takes a domain."""

import json

import numpy as np
import pytest

KINDS = {
    "EigenvalueBounds": ("--eigenvalues", "0.1", "10"),
    "TraceBounds": ("--trace", "0.1", "6"),
    "CorrelationBounds": ("--correlation", "0.2"),
    "Ball": ("--radius", "3"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_means_and_sums_of_each_kind(run, data, tmp_path, budget, kind):
    code, out, err = run("mean", "data.npy", *budget, *KINDS[kind], "-o", "m", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["certificate"]["domain"]["type"] == kind
    assert run("verify", "m")[0] == 0
    assert run("sum", "data.npy", *KINDS[kind], "-o", "s.npz")[0] == 0
    code, out, err = run("merge", "s.npz", *budget, "-o", "n")
    assert (code, err) == (0, "")
    assert kind in out
    assert run("verify", "n")[0] == 0


def test_plans_follow_the_radius(run, budget):
    words = ("plan", "--k", "20", "--n", "1000", *budget, "--method", "oneshot", "--json")
    wide, narrow = (
        json.loads(run(*words, *domain)[1])["radius"]
        for domain in (("--eigenvalues", "0.2", "16.2"), ("--correlation", "0.2"))
    )
    assert wide == pytest.approx(9.83, abs=0.005)
    assert narrow == pytest.approx(5.49, abs=0.005)


def test_mistakes(refused, data, tmp_path, budget):
    np.save(tmp_path / "center.npy", np.eye(3))
    words = ("mean", "data.npy", *budget)
    refused(2, "pass one of --eigenvalues", *words)
    both = ("--trace", "0.1", "9", "--radius", "2")
    refused(2, "got --trace and --radius; pass one of --eigenvalues", *words, *both)
    refused(2, "--center goes with --radius", *words, "--trace", "1", "9", "--center", "center.npy")
    refused(2, "--trace must exceed 3 times LOW", *words, "--trace", "1", "2")
    refused(2, "--correlation must be smaller than 1", *words, "--correlation", "1.5")
