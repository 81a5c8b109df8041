"""``spdp stats classes``."""

import json

import numpy as np
import pytest

from spdp import Ledger, Release


@pytest.fixture
def labels(data, tmp_path):
    y = np.arange(len(np.load(data))) % 2
    np.save(tmp_path / "y.npy", y)
    (tmp_path / "y.txt").write_text("\n".join("ab"[c] for c in y) + "\n")
    return "y.npy"


def words(data, budget, *more):
    return ("stats", "classes", data, *budget, "--eigenvalues", "0.2", "5", *more)


def test_it_writes_a_release_with_its_page(run, data, labels, tmp_path, budget):
    options = ("--labels", labels, "--classes", "0,1", "--covariance", "diagonal")
    code, out, err = run(*words(data, budget, *options, "-o", "out", "--report"))
    assert (code, err) == (0, "")
    for name in ("means.npy", "counts.npy", "covariance.npy", "certificate.json", "report.html"):
        assert f"wrote out/{name}" in out
    release = Release.load(tmp_path / "out")
    assert release.values["means"].shape == (2, 3, 3)
    np.testing.assert_allclose(release.values["counts"], [1500, 1500], atol=150)
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert "means of 2 classes of 3×3 matrices" in page
    assert "Mean of class 1 (about 1," in page
    code, out, err = run("verify", "out")
    assert (code, err) == (0, "")


def test_texts_and_json(run, data, labels, budget):
    code, out, _ = run(
        *words(data, budget, "--labels", "y.txt", "--classes", "a, b", "--json"),
    )
    assert code == 0
    result = json.loads(out)
    assert np.array(result["values"]["means"]).shape == (2, 3, 3)
    assert result["certificate"]["steps"][-1]["classes"] == ["a", "b"]


def test_a_last_label_that_is_blank_is_a_label(run, data, labels, tmp_path, budget):
    """Joined by line breaks, it ends the file as the break of a full line does."""
    lines = (tmp_path / "y.txt").read_text().split()
    options = ("--labels", "y.txt", "--classes", "a,b", "--on-invalid", "center")
    for last, end in ((lines[-1], ""), (lines[-1], "\n"), ("", ""), ("", "\n")):
        (tmp_path / "y.txt").write_text("\n".join([*lines[:-1], last]) + end)
        assert run(*words(data, budget, *options))[0] == 0


def test_a_ledger_keeps_all_arrays(run, data, labels, tmp_path, budget):
    ledger = Ledger(tmp_path / "l.db", epsilon=3.0, delta=1e-4)
    options = ("--labels", labels, "--classes", "0,1", "--ledger", "l.db")
    code, _, err = run(*words(data, budget, *options))
    assert (code, err) == (0, "")
    (entry,) = ledger.history()
    assert set(entry["value"]) == {"means", "counts"}


def test_what_is_wrong_is_said_before_anything_is_paid(refused, data, labels, tmp_path, budget):
    np.save(tmp_path / "bad.npy", np.zeros((3, 2)))
    options = ("--labels", labels, "--classes")
    what = f"{data}: matrix 0 has label 0 in {labels}, which is none of the classes; name all "
    remedy = "labels in --classes, or pass --on-invalid center: such records count in no class"
    refused(3, what + remedy, *words(data, budget, *options, "a,b"))
    refused(2, "twice", *words(data, budget, *options, "1,1"))
    refused(
        2,
        "the class of each record is missing (pass --labels)",
        *words(data, budget, "--classes", "a"),
    )
    refused(3, "one number or text", *words(data, budget, "--labels", "bad.npy", "--classes", "0"))
    refused(
        3,
        "no.npy: cannot be read as labels (No such file or directory)",
        *words(data, budget, "--labels", "no.npy", "--classes", "0"),
    )
    refused(3, "has label 1", *words(data, budget, *options, "0"))


def test_labels_are_named_by_their_file_where_they_are_too_few(refused, data, tmp_path, budget):
    np.save(tmp_path / "few.npy", np.zeros(2998, int))
    (tmp_path / "few.txt").write_text("a\n" * 2998)
    for file in ("few.npy", "few.txt"):
        options = ("--labels", file, "--classes", "0,1")
        refused(
            3,
            f"{file}: labels have 2,998 entries for 3,000 records",
            *words(data, budget, *options),
        )


def test_records_of_other_classes_count_in_none(run, data, tmp_path, budget):
    """Two of three classes, over all records: n is that of all."""
    np.save(tmp_path / "y.npy", np.array(["A", "B", "C"])[np.arange(3000) % 3])
    options = ("--labels", "y.npy", "--classes", "A,B", "--on-invalid", "center", "--json")
    code, out, err = run(*words(data, budget, *options))
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert result["certificate"]["n"] == 3000
    np.testing.assert_allclose(result["values"]["counts"], [1000, 1000], atol=150)


def test_labels_of_an_npz_are_named_as_groups_are(run, refused, data, labels, tmp_path, budget):
    y = np.load(tmp_path / labels)
    np.savez(tmp_path / "one.npz", y=y)
    np.savez(tmp_path / "two.npz", y=y, other=y[:5])
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04")
    for options in (("one.npz",), ("two.npz", "--label-column", "y")):
        asked = words(data, budget, "--labels", *options, "--classes", "0,1")
        assert run(*asked)[::2] == (0, "")
    for what, *options in (
        ("two.npz: which array? It holds y, other (pass --label-column)", "two.npz"),
        ("two.npz: no array 'z'; It holds y, other", "two.npz", "--label-column", "z"),
        ("broken.npz: cannot be read as labels", "broken.npz"),
    ):
        refused(3, what, *words(data, budget, "--labels", *options, "--classes", "0,1"))
    asked = words(data, budget, "--labels", labels, "--label-column", "y", "--classes", "0,1")
    refused(2, "y.npy: is no .npz, so that --label-column has no meaning", *asked)
