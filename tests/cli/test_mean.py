import json

import numpy as np
import pytest

from spdp import Ledger, Release
from spdp.geometry import distance_logeuclid, mean_logeuclid


def test_mean_writes_a_release(run, data, tmp_path, budget):
    words = ("mean", data, *budget, "--eigenvalues", "0.2", "5", "-o", "out/deep", "--report")
    code, out, err = run(*words)
    assert (code, err) == (0, "")
    assert "ε = 1" in out
    for name in ("mean.npy", "certificate.json", "report.html"):
        assert f"wrote out/deep/{name}" in out
    release = Release.load(tmp_path / "out" / "deep")
    assert release.certificate["private"] is True
    assert release.certificate["n"] == 3000
    assert distance_logeuclid(release.value, mean_logeuclid(np.load(data))) < 0.1
    assert (tmp_path / "out" / "deep" / "report.html").stat().st_size > 3000


def test_json_is_all_there_is_on_standard_output(run, data, tmp_path, budget):
    words = ("mean", data, *budget, "--radius", "2", "--json", "--mechanism", "gaussian")
    code, out, err = run(*words, "--adjacency", "add-remove", "-o", "out")
    assert (code, err) == (0, "")
    result = json.loads(out)
    assert np.array(result["value"]).shape == (3, 3)
    assert result["certificate"]["adjacency"] == "add-remove"
    assert result["certificate"] == Release.load(tmp_path / "out").certificate


def test_without_a_directory_the_matrix_is_printed(run, data, tmp_path, budget):
    np.save(tmp_path / "center.npy", 1.1 * np.eye(3))
    words = ("mean", data, *budget, "--radius", "2", "--center", "center.npy")
    code, out, _ = run(*words)
    assert code == 0
    assert "[[" in out


def test_several_files_are_one_dataset(run, refused, data, tmp_path, random_spd, budget):
    np.save(tmp_path / "b.npy", random_spd(50, 3, seed=1))
    (tmp_path / "link.npy").hardlink_to(tmp_path / "b.npy")
    words = ("mean", data, "b.npy", *budget, "--radius", "2")
    code, out, _ = run(*words, "--json")
    assert code == 0
    assert json.loads(out)["certificate"]["n"] == 3050
    refused(2, "count twice", *words, tmp_path / "b.npy")
    refused(2, "count twice", *words, "link.npy")


@pytest.mark.parametrize(
    ("code", "message", "words"),
    [
        (2, "one of --eigenvalues", ["--radius", "2", "--eigenvalues", "1", "2"]),
        (2, "leak", []),
        (2, "radius", ["--radius", "-2"]),
        (2, "LOW must be smaller than HIGH", ["--eigenvalues", "2", "1"]),
        (2, "goes with --radius", ["--eigenvalues", "1", "2", "--center", "c.npy"]),
        (3, "none.npy", ["--radius", "2", "--center", "none.npy"]),
        (2, "add -o", ["--radius", "2", "--report"]),
        (2, "add -o", ["--radius", "2", "--sign", "key.pem"]),
        (2, "NIfTI", ["--radius", "2", "--order", "fsl"]),
        (2, "delta", ["--radius", "2", "--delta", "2"]),
        (2, "epsilon", ["--radius", "2", "--epsilon", "nan"]),
        (2, "epsilon", ["--radius", "2", "--epsilon", "1e100"]),
        (2, "budget is too small", ["--radius", "2", "--epsilon", "1e-300"]),
        (2, "radius", ["--radius", "1e200"]),
        (2, "either --dask", ["--radius", "2", "--workers", "2", "--dask", "tcp://x"]),
        (3, "no Dask cluster", ["--radius", "2", "--dask", "nonsense://x"]),
    ],
)
def test_mistakes_cost_nothing(refused, data, ledger, budget, code, message, words):
    """One line, nothing written, nothing paid."""
    refused(code, message, "mean", data, *budget, "--ledger", ledger, *words)
    assert Ledger(ledger).history() == []


CENTERS = {
    "objects": np.array([[1, None], [None, 1]], dtype=object),
    "text": np.array([["a", "b"], ["c", "d"]]),
    "complex": np.eye(3) * 1j,
    "not positive": -np.eye(3),
    "another size": np.eye(2),
    "a stack": np.ones((2, 3, 3)),
}


@pytest.mark.parametrize("content", CENTERS.values(), ids=CENTERS)
def test_unusable_centers_are_one_line(run, data, tmp_path, ledger, budget, content):
    np.save(tmp_path / "center.npy", content, allow_pickle=True)
    words = ("mean", data, *budget, "--radius", "2", "--center", "center.npy")
    code, out, err = run(*words, "--ledger", ledger)
    assert code in (2, 3)
    assert out == ""
    assert "Traceback" not in err
    assert err.count("\n") == 1
    assert Ledger(ledger).history() == []


def test_bad_data_write_nothing(run, refused, tmp_path, budget):
    X = np.stack([np.eye(2)] * 5)
    X[3, 0, 0] = -1.0
    np.save(tmp_path / "bad.npy", X)
    words = ("mean", "bad.npy", *budget, "--radius", "1", "-o", "out")
    what = "bad.npy: matrix 3 is not positive definite: smallest eigenvalue -1; "
    refused(3, f"{what}--on-invalid center counts such records as the domain's centre", *words)
    assert run(*words, "--on-invalid", "center")[0] == 0


def test_a_local_cluster_reads_what_this_process_reads(shell, tmp_path, random_spd, budget):
    """The options of a format and a ledger bound to its data work there too."""
    nibabel = pytest.importorskip("nibabel")
    pytest.importorskip("distributed")
    X = random_spd(60, 3).reshape(3, 4, 5, 3, 3)
    six = np.stack([X[..., i, j] for i in range(3) for j in range(i + 1)], axis=-1)
    nibabel.save(nibabel.Nifti1Image(six, np.eye(4)), tmp_path / "X.NII")
    mask = np.zeros((3, 4, 5), np.uint8)
    mask[1:] = 1
    nibabel.save(nibabel.Nifti1Image(mask, np.eye(4)), tmp_path / "mask.nii")
    key, image = {"SPDP_LEDGER_KEY": "0123456789abcdef"}, ("X.NII", "--order", "nifti")
    assert shell("ledger", "create", "l", *budget).returncode == 0
    bound = shell("ledger", "bind", "l", *image, "--mask", "mask.nii", env=key)
    assert bound.returncode == 0, bound.stderr
    words = ("mean", *image, "--radius", "5", *budget, "--json", "--ledger", "l", "--workers", "2")
    words = (*words, "--unit", "voxel")
    done = shell(*words, "--mask", "mask.nii", env=key)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["certificate"]["n"] == 40
    other = shell(*words, env=key)
    assert other.returncode == 5
    assert b"not the data" in other.stderr


def test_a_hopeless_release_is_told_once(run, data):
    words = ("--epsilon", "0.001", "--delta", "1e-6", "--radius", "2")
    code, out, err = run("mean", data, *words)
    assert (code, err) == (0, "")
    assert out.count("HOPELESS") == 1
