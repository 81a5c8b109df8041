"""spdp bids: a BIDS dataset in, a BIDS dataset out."""

import json

import numpy as np
import pytest

from spdp import Ledger, Release
from spdp.datasets import synthetic_spd

NAMES = ["V1", "M1", "PFC"]
GROUP = ("--metric", "offlog", "--correlation", "0.1")


@pytest.fixture
def dataset(tmp_path):
    """Eighty participants with a correlation matrix each."""
    root = tmp_path / "study"
    root.mkdir()
    (root / "dataset_description.json").write_text(json.dumps({"DatasetDOI": "doi:10.0/x"}))
    lines = ["participant_id\tage\tgroup"]
    for i, X in enumerate(synthetic_spd(80, 3, random_state=0)):
        d = np.sqrt(np.diagonal(X))
        C = 0.9 * X / np.outer(d, d) + 0.1 * np.eye(3)
        rows = [NAMES, *([*map(repr, row)] for row in C.tolist())]
        file = root / f"sub-{i:02}" / f"sub-{i:02}_meas-PearsonCorrelation_relmat.tsv"
        file.parent.mkdir()
        file.write_text("\n".join("\t".join(row) for row in rows) + "\n")
        lines.append(f"sub-{i:02}\t{20 + i}\t{'patient' if i % 2 else 'control'}")
    (root / "participants.tsv").write_text("\n".join(lines) + "\n")
    return root


def test_a_mean_of_a_dataset_is_a_dataset(run, budget, dataset, tmp_path):
    code, _, err = run("bids", dataset, "out", "group", *GROUP, *budget, "--anyway")
    assert code == 0, err
    release = Release.load("out/group/stat-mean")
    assert (release.certificate["unit"], release.certificate["n"]) == ("person", 80)
    assert all(check.ok for check in release.verify())
    description = json.loads((tmp_path / "out/dataset_description.json").read_text())
    assert description["DatasetType"] == "derivative"
    assert description["GeneratedBy"][0]["Name"] == "spdp"
    assert description["SourceDatasets"] == [{"DOI": "doi:10.0/x"}]
    table = tmp_path / "out/group/stat-mean_desc-mean_relmat.tsv"
    header, *rows = table.read_text().splitlines()
    assert header.split("\t") == NAMES
    np.testing.assert_array_equal(np.array([r.split("\t") for r in rows], float), release.value)
    sidecar = json.loads(table.with_suffix(".json").read_text())
    assert sidecar["Certificate"] == json.loads(
        (tmp_path / "out/group/stat-mean/certificate.json").read_text()
    )
    page = (tmp_path / "out/group/stat-mean/report.html").read_text()
    assert all(name in page for name in NAMES)
    assert run("verify", "out/group/stat-mean")[0] == 0


def test_nothing_of_a_participant_is_written(run, budget, dataset, tmp_path):
    run("bids", dataset, "out", "group", *GROUP, *budget, "--anyway")
    for file in (tmp_path / "out").rglob("*"):
        if file.is_file() and file.suffix != ".npy":
            assert "sub-" not in file.read_text("utf-8").replace("sub-Gaussian", "")


def test_columns_of_participants_are_classes_and_covariates(run, budget, dataset):
    classes = ("--statistic", "class-means", "--classes", "control,patient")
    words = ("bids", dataset, "out", "group", *classes, *GROUP, *budget, "--anyway")
    code, _, err = run(*words, "--label-column", "group")
    assert code == 0, err
    assert Release.load("out/group/stat-classmeans").values["means"].shape == (2, 3, 3)
    ages = ("--statistic", "regression", "--ranges", "18:100", "--covariate-columns", "age")
    code, _, err = run("bids", dataset, "out", "group", *ages, *GROUP, *budget, "--anyway")
    assert code == 0, err
    assert Release.load("out/group/stat-regression").certificate["n"] == 80


def test_a_ledger_pays_once_and_is_not_charged_for_what_is_refused(run, budget, dataset, tmp_path):
    Ledger(tmp_path / "x.ledger", epsilon=1.0, delta=1e-6)
    words = ("bids", dataset, "out", "group", *GROUP, *budget, "--ledger", "x.ledger", "--anyway")
    bad = next(dataset.glob("sub-07/*.tsv"))
    kept = bad.read_text()
    bad.write_text(kept.replace("1.0", "no", 1))
    code, _, err = run(*words)
    assert code == 3
    assert "sub-07_meas-PearsonCorrelation_relmat.tsv: matrix 0 is not finite" in err
    assert not (tmp_path / "out").exists()
    bad.write_text(kept)
    assert run(*words)[0] == 0
    assert run(*words, "--force")[0] == 4
    assert len(Ledger(tmp_path / "x.ledger").history()) == 1


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (2, "there is no such level", ("participant",)),
        (2, "the level of analysis must be group", ("all",)),
        (2, "--statistic must be one of mean", ("group", "--statistic", "mode")),
        (2, "--components is no option of mean", ("group", "--components", "2")),
        (2, "pass --label-column", ("group", "--statistic", "difference", "--classes", "a,b")),
        (2, "--label-column has no meaning for mean", ("group", "--label-column", "group")),
        (3, "no such files of sub-99", ("group", "--participant-label", "01 99")),
        (2, "--order is for diffusion tensors", ("group", "--order", "fsl")),
    ],
)
def test_what_cannot_be_is_refused(refused, budget, dataset, code, message, words):
    level, *more = words
    refused(code, message, "bids", dataset, "out", level, *more, *GROUP, *budget)


def test_a_folder_of_another_dataset_is_left_alone(run, refused, budget, dataset):
    refused(3, "is another dataset", "bids", dataset, dataset, "group", *GROUP, *budget)


def test_participants_and_their_other_spelling(run, budget, dataset):
    for flag in ("--participant-label", "--participant_label"):
        words = ("bids", dataset, f"out{flag}", "group", *GROUP, *budget, "--anyway")
        code, _, err = run(*words, flag, "sub-01,02 03")
        assert code == 0, err
        assert Release.load(f"out{flag}/group/stat-mean").certificate["n"] == 3
