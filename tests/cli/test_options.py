"""Options of many commands: the metric and the domain, one spelling of each kind."""

import json

import numpy as np
import pytest

from spdp.charts import CHARTS

DOMAIN = ("--radius", "3")


@pytest.fixture
def records(tmp_path):
    A = np.random.default_rng(0).standard_normal((300, 3, 12))
    np.save(tmp_path / "records.npy", A @ A.transpose(0, 2, 1) / 12)
    return "records.npy"


@pytest.mark.parametrize("metric", CHARTS)
def test_means_and_plans(run, budget, records, metric):
    code, out, _ = run("mean", records, *budget, *DOMAIN, "--metric", metric, "--json")
    assert code == 0
    assert json.loads(out)["certificate"]["metric"] == metric
    plan = ("plan", "--k", "3", "--n", "300", *budget, *DOMAIN, "--metric", metric)
    code, out, _ = run(*plan, "--spread", "10%", "--runs", "1", "--json")
    assert code == 0
    assert json.loads(out)["distance"] == CHARTS[metric].distance


def test_an_unknown_metric_is_told_which_there_are(refused, budget, records):
    refused(2, "'logchol'", "mean", records, *budget, *DOMAIN, "--metric", "wasserstein")


def test_sums_and_references_keep_their_metric(run, refused, budget, records):
    for metric in ("logchol", "offlog"):
        assert run("sum", records, "-o", f"{metric}.sum", *DOMAIN, "--metric", metric)[0] == 0
    refused(2, "different metrics", "merge", "logchol.sum", "offlog.sum", *budget)
    assert run("reference", records, "-o", "public.npz", "--metric", "logchol")[0] == 0
    refused(2, "'logchol'", "mean", records, *budget, *DOMAIN, "--reference", "public.npz")


def test_a_reference_point_is_certified(run, refused, budget, records, tmp_path):
    C = np.diag([1.0, 2.0, 0.5])
    np.save(tmp_path / "point.npy", C)
    options = (records, *DOMAIN, "--reference-point", "point.npy")
    code, out, _ = run("mean", *options, *budget, "--json")
    assert code == 0
    assert json.loads(out)["certificate"]["reference_point"] == C.tolist()
    assert run("sum", *options, "-o", "whitened.sum")[0] == 0
    assert run("sum", records, *DOMAIN, "-o", "plain.sum")[0] == 0
    refused(2, "different reference points", "merge", "whitened.sum", "plain.sum", *budget)
    refused(3, "nowhere.npy", "mean", records, *budget, *DOMAIN, "--reference-point", "nowhere.npy")


# --- domains

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
    words = (*words, "--runs", "1", "--spread", "20%")
    wide, narrow = (
        json.loads(run(*words, *domain)[1])["radius"]
        for domain in (("--eigenvalues", "0.2", "16.2"), ("--correlation", "0.2"))
    )
    assert wide == pytest.approx(9.83, abs=0.005)
    assert narrow == pytest.approx(5.49, abs=0.005)


def test_mistakes_in_a_domain(refused, data, tmp_path, budget):
    np.save(tmp_path / "center.npy", np.eye(3))
    words = ("mean", "data.npy", *budget)
    refused(2, "pass one of --eigenvalues", *words)
    both = ("--trace", "0.1", "9", "--radius", "2")
    refused(2, "got --trace and --radius; pass one of --eigenvalues", *words, *both)
    refused(2, "--center goes with --radius", *words, "--trace", "1", "9", "--center", "center.npy")
    refused(2, "--trace must exceed 3 times LOW", *words, "--trace", "1", "2")
    refused(2, "--correlation must be smaller than 1", *words, "--correlation", "1.5")
