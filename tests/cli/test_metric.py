"""``--metric``, on every command that has it."""

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
    refused(2, "'logchol'", "mean", records, *budget, *DOMAIN, "--metric", "riemann")


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
