"""``spdp describe`` and ``spdp reference``."""

import json

import numpy as np
import pytest

from spdp import Ledger, Reference
from spdp.datasets import load_images


@pytest.fixture(scope="module")
def digits():
    return load_images("digits")


def test_an_archive_of_images(run, tmp_path, digits):
    np.savez(tmp_path / "d.npz", images=digits.images[:50], labels=digits.labels[:50])
    code, out, err = run("describe", "d.npz", "-o", "x.npy")
    assert (code, err) == (0, "")
    assert "wrote x.npy: 50 descriptors, 9×9" in out
    assert "--trace 1e-06 2.866859" in out
    assert np.load(tmp_path / "x.npy").shape == (50, 9, 9)


def test_files_of_other_formats(run, tmp_path, digits):
    with (tmp_path / "d.NPY").open("wb") as file:
        np.save(file, digits.images[:5])
    head = bytes([0, 0, 8, 3]) + b"".join(v.to_bytes(4, "big") for v in (5, 8, 8))
    (tmp_path / "d-ubyte").write_bytes(head + digits.images[:5].tobytes())
    for name in ("d.NPY", "d-ubyte"):
        assert run("describe", name, "-o", f"{name}.npy")[0] == 0
    one, other = (np.load(tmp_path / f"{name}.npy") for name in ("d.NPY", "d-ubyte"))
    np.testing.assert_array_equal(one, other)


def test_a_folder_of_pictures(run, refused, tmp_path, digits):
    image = pytest.importorskip("PIL.Image")
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i in range(3):
        rgb = np.stack([digits.images[i]] * 3, axis=-1)
        image.fromarray(rgb).save(folder / f"{i}.png")
    assert run("describe", "pictures", "-o", "y.npy")[0] == 0
    assert np.load(tmp_path / "y.npy").shape == (3, 11, 11)
    (folder / "bad.png").write_bytes(b"no picture")
    refused(3, "bad.png: cannot be read as a picture", "describe", "pictures", "-o", "z.npy")
    image.fromarray(digits.images[0]).save(folder / "bad.png")
    refused(3, "of one size and kind", "describe", "pictures", "-o", "z.npy")


def test_images_that_cannot_be_described(refused, tmp_path, digits):
    np.savez(tmp_path / "d.npz", images=digits.images[:5])
    (tmp_path / "cut.npz").write_bytes((tmp_path / "d.npz").read_bytes()[:80])
    (tmp_path / "empty").mkdir()
    refused(3, "absent.npz: no such file", "describe", "absent.npz", "-o", "z.npy")
    refused(3, "no array 'x'; it holds images", "describe", "d.npz", "--key", "x", "-o", "z.npy")
    refused(3, "cut.npz", "describe", "cut.npz", "-o", "z.npy")
    refused(3, "holds no PNG", "describe", "empty", "-o", "z.npy")
    refused(2, "written as .npy", "describe", "d.npz", "-o", "z.txt")
    refused(2, "eta", "describe", "d.npz", "-o", "z.npy", "--eta", "-1")
    refused(3, "nowhere", "describe", "d.npz", "-o", "nowhere/z.npy")


# --- references

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
    assert all("UNINFORMATIVE" in line for line in err.splitlines())  # so few, by chance
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
    refused(2, "records are 3×3", *words, "--reference", "other.npz")
    refused(3, "data.npy: cannot be read as a reference", *words, "--reference", data)
    assert Ledger(ledger).history() == []


def test_pictures_of_other_kinds_are_refused(run, tmp_path):
    """A PostScript file would be drawn by a program, whatever it is called."""
    (tmp_path / "in").mkdir()
    picture = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EOF"
    (tmp_path / "in" / "a.png").write_bytes(picture)
    code, _, err = run("describe", "in", "-o", "x.npy")
    assert code == 3
    assert "a.png: cannot be read as a picture" in err
