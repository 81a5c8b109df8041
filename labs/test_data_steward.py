"""A data steward: a BIDS dataset and a ledger in, a valid BIDS dataset out."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

nibabel = pytest.importorskip("nibabel")
connectome = pytest.importorskip("nilearn.connectome")

from spdp import Ledger, Release  # noqa: E402
from spdp.cli import main  # noqa: E402

PERSONS, REGIONS = 120, ["V1", "M1", "PFC", "Hip"]
VALIDATOR = shutil.which("bids-validator-deno", path=Path(sys.executable).parent)


@pytest.fixture
def dataset(tmp_path, rng, monkeypatch):
    """A BIDS dataset with connectivity of nilearn in its derivatives."""
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "dataset"
    described = {"Name": "A study", "BIDSVersion": "1.10.0", "DatasetDOI": "doi:10.0/example"}
    lines = ["participant_id\tage\tgroup"]
    measure = connectome.ConnectivityMeasure(kind="correlation", standardize="zscore_sample")
    for i in range(PERSONS):
        lines.append(f"sub-{i:03}\t{20 + i % 50}\t{'patient' if i % 2 else 'control'}")
        for session in ("a", "b")[: 1 + i % 2]:
            series = rng.standard_normal((150, 4)) + 0.5 * rng.standard_normal((150, 1))
            (C,) = measure.fit_transform([series])
            rows = [[name, *map(repr, row)] for name, row in zip(REGIONS, C.tolist(), strict=True)]
            text = "\n".join("\t".join(row) for row in [["Node", *REGIONS], *rows])
            stem = f"sub-{i:03}_ses-{session}_task-rest_seg-four_stat-pearsoncorrelation"
            folder = root / "derivatives" / "xcp_d" / f"sub-{i:03}" / f"ses-{session}" / "func"
            folder.mkdir(parents=True)
            (folder / f"{stem}_relmat.tsv").write_text(text + "\n")
    (root / "dataset_description.json").write_text(json.dumps(described))
    (root / "participants.tsv").write_text("\n".join(lines) + "\n")
    return root


def spdp(monkeypatch, line):
    monkeypatch.setattr("sys.argv", ["spdp", *line.split()])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code or 0


MORE = "--metric offlog --correlation 0.05 --epsilon 2 --delta 1e-6"
GROUP = "--metric offlog --correlation 0.05 --epsilon 1 --delta 1e-6"


def test_a_dataset_becomes_a_dataset(dataset, monkeypatch, capsys):
    Ledger("study.ledger", epsilon=2.0, delta=1e-5)
    paid = "--ledger study.ledger"
    assert spdp(monkeypatch, f"bids {dataset} out group {GROUP} {paid}") == 0
    classes = "--statistic class-means --classes control,patient --label-column group"
    assert spdp(monkeypatch, f"bids {dataset} out group {classes} {GROUP} {paid}") == 0
    for name in ("mean", "classmeans"):
        assert spdp(monkeypatch, f"verify out/group/stat-{name}") == 0
        certificate = Release.load(f"out/group/stat-{name}").certificate
        assert (certificate["unit"], certificate["n"]) == ("person", PERSONS)
    header, *rows = Path("out/group/stat-mean_desc-mean_relmat.tsv").read_text().splitlines()
    assert header.split("\t") == REGIONS
    mean = np.array([row.split("\t") for row in rows], float)
    np.testing.assert_array_equal(mean, Release.load("out/group/stat-mean").value)
    assert spdp(monkeypatch, f"bids {dataset} out group {MORE} {paid} --force") == 4
    assert len(Ledger("study.ledger").history()) == 2


@pytest.mark.skipif(VALIDATOR is None, reason="bids-validator-deno is not installed")
def test_the_validator_finds_no_error(dataset, monkeypatch, capsys):
    assert spdp(monkeypatch, f"bids {dataset} out group {GROUP}") == 0
    found = subprocess.run([VALIDATOR, "out", "--json"], capture_output=True, text=True)
    issues = json.loads(found.stdout)["issues"]["issues"]
    assert [issue for issue in issues if issue["severity"] == "error"] == []
