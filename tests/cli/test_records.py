"""Whose the records are, on the command line: each user's way of saying it."""

import csv
import json

import numpy as np
import pytest

from spdp import Ledger, Release
from spdp.statistics.partial_sums import LatticeSum

nib = pytest.importorskip("nibabel")
pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

BOUNDS = ("--eigenvalues", "0.05", "20")
PERSONS = np.arange(600) % 200


@pytest.fixture
def X(random_spd):
    return random_spd(600, 3, condition=4.0)


def image(path, voxels, intent=None):
    six = voxels.reshape(-1, 1, 1, 3, 3)[..., [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    made = nib.Nifti1Image(six, np.eye(4))
    if intent is not None:
        made.header.set_intent(intent, (3,))
    nib.save(made, path)


def write_csv(path, X, persons):
    names = [f"c{i}{j}" for i in range(3) for j in range(i, 3)]
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["subject", *names, "class"])
        for person, matrix in zip(persons, X, strict=True):
            writer.writerow([person, *map(repr, matrix[np.triu_indices(3)].tolist()), "a"])


@pytest.fixture
def study(tmp_path, X):
    """The same 600 records of 200 persons, in every way there is to say so."""
    np.save(tmp_path / "all.npy", X)
    np.save(tmp_path / "ids.npy", PERSONS)
    (tmp_path / "ids.txt").write_text("".join(f"{i}\n" for i in PERSONS))
    for folder in ("files", "images"):
        (tmp_path / folder).mkdir()
    lines = ["path,person"]
    for i in range(200):
        np.save(tmp_path / "files" / f"{i:03}.npy", X[i == PERSONS])
        image(tmp_path / "images" / f"{i:03}.nii.gz", X[i == PERSONS])
        lines.append(f"files/{i:03}.npy,{i}")
    (tmp_path / "manifest.csv").write_text("\n".join(lines))
    write_csv(tmp_path / "table.csv", X, PERSONS)
    columns = {f"c{i}{j}": X[:, i, j] for i in range(3) for j in range(3)}
    pq.write_table(pa.table({"subject": PERSONS, **columns}), tmp_path / "table.parquet")
    return tmp_path


WAYS = {
    "ids": ("all.npy", "--groups", "ids.npy"),
    "ids as text": ("all.npy", "--groups", "ids.txt"),
    "folder": ("files", "--per-file"),
    "pattern": ("files/*.npy", "--per-file"),
    "images": ("images", "--per-file", "--order", "fsl"),
    "manifest": ("manifest.csv",),
    "csv": ("table.csv", "--groups-column", "subject", "--label-column", "class"),
    "parquet": ("table.parquet", "--groups-column", "subject"),
}


@pytest.mark.parametrize("words", WAYS.values(), ids=WAYS)
def test_every_way_of_saying_whose_records_are(run, study, X, words):
    """The exact sum is the same to the bit, and the release is for persons."""
    code, out, err = run("sum", *words, *BOUNDS, "-o", "s.sum")
    assert (code, err) == (0, "")
    assert "200 persons, 3×3" in out
    total = LatticeSum.load(study / "s.sum")
    expected = LatticeSum.of(X, total.domain, groups=PERSONS)
    np.testing.assert_array_equal(total.total, expected.total)
    code, out, err = run("mean", *words, *BOUNDS, "--epsilon", "1", "--delta", "1e-6", "-o", "out")
    assert (code, err) == (0, "")
    assert "per person" in out
    assert "persons" in out
    certificate = Release.load(study / "out").certificate
    assert (certificate["unit"], certificate["n"]) == ("person", 200)


def test_a_person_may_count_by_their_records(run, study, budget):
    words = ("mean", "all.npy", "--groups", "ids.npy", *BOUNDS, *budget, "--json")
    code, out, _ = run(*words, "--max-records", "3")
    assert code == 0
    assert json.loads(out)["certificate"]["max_records"] == 3


def test_the_report_speaks_of_people(run, study, budget):
    code, _, _ = run("mean", "files", "--per-file", *BOUNDS, *budget, "-o", "out", "--report")
    assert code == 0
    page = (study / "out" / "report.html").read_text()
    assert "any one person&#39;s records had been other ones" in page


def test_a_folder_of_many_records_per_file_is_asked_about(run, study, budget):
    """Nobody says whose they are: the command does, and goes on."""
    words = ("mean", "files", *BOUNDS, *budget)
    code, out, err = run(*words)
    assert code == 0
    assert "per record" in out
    assert err.startswith("spdp: warning: files: 200 files of many records")
    assert "--per-file" in err
    assert run(*words, "--unit", "record")[2] == ""
    np.save(study / "one.npy", np.eye(3))
    assert run("mean", "one*.npy", *BOUNDS, *budget, "--anyway")[2] == ""


class TestVoxels:
    def test_an_image_is_asked_about(self, refused, run, study, budget, tmp_path):
        for words in (("mean", *budget), ("sum", "-o", "s.sum")):
            for data in ("images/000.nii.gz", "images"):
                error = refused(2, "one person's", *words, data, "--order", "fsl", *BOUNDS)
                assert "--per-file" in error
                assert "--unit voxel" in error
        words = ("mean", "images/000.nii.gz", "--order", "fsl", *BOUNDS, *budget)
        code, out, _ = run(*words, "--unit", "voxel", "-o", "out", "--report", "--anyway")
        assert code == 0
        assert "per voxel" in out
        assert "voxels" in out
        assert Release.load(tmp_path / "out").certificate["unit"] == "voxel"
        assert "this does not protect a person" in (tmp_path / "out" / "report.html").read_text()
        assert run("verify", "out")[0] == 0

    def test_units_that_do_not_fit(self, refused, study, budget):
        words = ("mean", *budget, *BOUNDS)
        what = "its records have no subject IDs. If each person has one record, leave --unit out"
        refused(2, what, *words, "all.npy", "--unit", "person")
        refused(2, "it is read per record", *words, "all.npy", "--unit", "voxel")
        persons = ("images", "--order", "fsl", "--per-file")
        refused(2, "it is read per person", *words, *persons, "--unit", "voxel")

    def test_a_ledger_is_for_one_unit(self, run, refused, study, ledger):
        small = ("--epsilon", "0.1", "--delta", "1e-7", "--ledger", "a.ledger", "--anyway", *BOUNDS)
        image = ("mean", "images/000.nii.gz", "--order", "fsl")
        assert run(*image, "--unit", "voxel", *small)[0] == 0
        refused(5, "its budget is per voxel", *image, "--per-file", *small)


class TestImagesThatFail:
    def test_name_order_and_mask(self, refused, tmp_path, budget):
        v = np.random.default_rng(0).standard_normal((30, 3, 1))
        image(tmp_path / "t.nii", 0.1 * np.eye(3) + 3.0 * v @ v.transpose(0, 2, 1))
        words = ("mean", "t.nii", "--unit", "voxel", *BOUNDS, *budget)
        error = refused(3, "another order", *words, "--order", "mrtrix")
        assert "pass --order or pass --mask" in error
        asked = refused(3, "does not say how it orders", *words)
        assert "pass --order" in asked

    def test_zero_background_suggests_a_mask(self, refused, run, tmp_path, X, budget):
        X[:400] = 0.0
        image(tmp_path / "t.nii", X)
        words = ("mean", "t.nii", "--order", "fsl", "--unit", "voxel", *BOUNDS, *budget)
        error = refused(3, "400 of its 600 voxels are all zero", *words)
        assert "pass --mask" in error
        code, out, err = run(*words, "--on-invalid", "center")
        assert (code, err) == (0, "")
        assert "zero" not in out

    def test_a_header_that_contradicts_is_a_warning(self, run, tmp_path, X, budget):
        image(tmp_path / "t.nii", X, intent=1005)
        words = ("mean", "t.nii", "--order", "fsl", "--unit", "voxel", *BOUNDS, *budget, "--json")
        code, out, err = run(*words)
        assert code == 0
        assert json.loads(out)["certificate"]["n"] == 600
        assert err.startswith("spdp: warning: t.nii: its header says")
        assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (2, "once", ["all.npy", "--groups", "ids.npy", "--per-file"]),
        (2, "tables, not for all.npy", ["all.npy", "--groups-column", "subject"]),
        (3, "columns of entries", ["table.csv", "--entries", "full"]),
        (3, "no column 'who'", ["table.csv", "--groups-column", "who"]),
        (3, "600 ids for 3 records", ["files/000.npy", "--groups", "ids.npy"]),
        (3, "holds no files", ["empty"]),
        (2, "count twice", ["files", "files/000.npy"]),
        (2, "says itself", ["manifest.csv", "--per-file"]),
        (2, "--max-records needs --groups", ["all.npy", "--max-records", "3"]),
    ],
)
def test_mistakes_cost_nothing(refused, study, ledger, budget, code, message, words):
    (study / "empty").mkdir()
    refused(code, message, "mean", *words, *budget, *BOUNDS, "--ledger", ledger)
    assert Ledger(ledger).history() == []


def test_a_reference_and_a_bound_ledger_read_tables(run, study, budget, monkeypatch, ledger):
    table = ("table.csv", "--groups-column", "subject", "--entries", "upper")
    assert run("reference", *table, "-o", "r.npz")[0] == 0
    monkeypatch.setenv("SPDP_LEDGER_KEY", "0123456789abcdef")
    assert run("ledger", "bind", "a.ledger", *table)[0] == 0
    small = ("--epsilon", "0.1", "--delta", "1e-7", "--ledger", "a.ledger", *BOUNDS)
    assert run("mean", *table, *small, "--reference", "r.npz")[0] == 0
