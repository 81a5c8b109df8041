"""``spdp mean`` and ``spdp stats``."""

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
        (2, "pass --dask,", ["--radius", "2", "--workers", "2", "--dask", "tcp://x"]),
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
def test_invalid_centers_are_one_line(run, data, tmp_path, ledger, budget, content):
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
    words = ("mean", "bad.npy", *budget, "--radius", "1", "-o", "out", "--anyway")
    what = "bad.npy: matrix 3 is not positive definite: smallest eigenvalue -1; "
    refused(3, f"{what}--on-invalid center replaces such records with the domain's centre", *words)
    assert run(*words, "--on-invalid", "center")[0] == 0


@pytest.fixture
def cluster():
    """The address of a cluster whose workers are threads: it starts at once."""
    distributed = pytest.importorskip("distributed")
    size = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "protocol": "tcp"}
    with distributed.LocalCluster(**size, dashboard_address=None, memory_limit=0) as cluster:
        yield cluster.scheduler_address


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of the cluster's sockets
def test_a_cluster_reads_what_this_process_reads(
    run, cluster, monkeypatch, tmp_path, random_spd, budget
):
    """The options of a format and a ledger bound to its data work there too."""
    nibabel = pytest.importorskip("nibabel")
    X = random_spd(60, 3).reshape(3, 4, 5, 3, 3)
    six = np.stack([X[..., i, j] for i in range(3) for j in range(i + 1)], axis=-1)
    nibabel.save(nibabel.Nifti1Image(six, np.eye(4)), tmp_path / "X.NII")
    mask = np.zeros((3, 4, 5), np.uint8)
    mask[1:] = 1
    nibabel.save(nibabel.Nifti1Image(mask, np.eye(4)), tmp_path / "mask.nii")
    monkeypatch.setenv("SPDP_LEDGER_KEY", "0123456789abcdef")
    image = ("X.NII", "--order", "nifti")
    assert run("ledger", "create", "l", *budget)[0] == 0
    code, _, err = run("ledger", "bind", "l", *image, "--mask", "mask.nii")
    assert code == 0, err
    words = ("mean", *image, "--radius", "5", *budget, "--json", "--ledger", "l")
    words = (*words, "--dask", cluster, "--unit", "voxel")
    code, out, err = run(*words, "--mask", "mask.nii")
    assert code == 0, err
    assert json.loads(out)["certificate"]["n"] == 40
    code, _, err = run(*words)
    assert code == 5
    assert "not the data" in err


def test_an_uninformative_release_is_told_once(run, data):
    words = ("--epsilon", "0.001", "--delta", "1e-6", "--radius", "2")
    code, out, err = run("mean", data, *words, "--anyway")
    assert (code, err) == (0, "")
    assert out.count("UNINFORMATIVE") == 1


def test_an_uninformative_release_is_refused_before_payment(run, refused, ledger, tmp_path):
    """Five persons at ε = 0.9: nothing is written, and nothing is charged."""
    np.save(tmp_path / "few.npy", np.stack([np.eye(3)] * 5))
    words = ("mean", "few.npy", "--epsilon", "0.9", "--delta", "1e-6", "--radius", "2")
    words = (*words, "--ledger", ledger, "-o", "out")
    told = refused(7, "refused before any budget is spent", *words)
    assert "At least 12 records, or ε = 2.13, are needed" in told
    assert "pass --anyway" in told
    assert Ledger(ledger).history() == []
    code, out, _ = run(*words, "--anyway")
    assert code == 0
    assert "UNINFORMATIVE" in out


# --- every other statistic

WIDE = ("--eigenvalues", "0.05", "20")


@pytest.fixture
def files(tmp_path, random_spd):
    X = random_spd(3000, 2, condition=3.0)
    y = np.arange(3000) % 2
    X[y == 1] *= 1.5
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    (tmp_path / "x.txt").write_text("".join(f"{v}, {v % 3}\n" for v in range(3000)))


COMMANDS = {
    "median": (),
    "regression": ("--covariates", "x.txt", "--ranges", "0:3000,0:3"),
    "difference": ("--labels", "y.npy", "--classes", "1,0"),
    "anova": ("--labels", "y.npy", "--classes", "1,0"),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_release_is_written_verified_and_reported(run, budget, files, tmp_path, name):
    words = ("stats", name, "X.npy", *COMMANDS[name], *budget, *WIDE, "-o", "out", "--report")
    code, out, err = run(*words)
    assert (code, err) == (0, ""), err
    assert "wrote" in out
    release = Release.load(tmp_path / "out")
    assert all(check.ok for check in release.verify())
    assert f"{next(iter(release.values))}.npy" in out
    page = (tmp_path / "out" / "report.html").read_text("utf-8")
    assert ("matrix estimates" in page) == (name == "median")  # others are several arrays
    assert run("verify", "out")[0] == 0


EVERY = {
    **COMMANDS,
    "class-means": ("--labels", "y.npy", "--classes", "1,0"),
    "dispersion": (),
    "pca": ("--components", "1"),
}


@pytest.mark.parametrize("name", EVERY)
def test_persons(run, budget, files, tmp_path, name):
    np.save(tmp_path / "who.npy", np.arange(3000) // 3)
    words = ("stats", name, "X.npy", *EVERY[name], *budget, *WIDE, "--groups", "who.npy")
    code, out, err = run(*words, "--json")
    assert (code, err) == (0, ""), err
    certificate = json.loads(out)["certificate"]
    assert (certificate["unit"], certificate["n"]) == ("person", 1000)


@pytest.mark.parametrize("name", EVERY)
def test_a_private_number(run, budget, files, name):
    words = ("stats", name, "X.npy", *EVERY[name], *budget, *WIDE, "--adjacency", "add-remove")
    code, out, err = run(*words, "--json")
    assert (code, err) == (0, ""), err
    certificate = json.loads(out)["certificate"]
    assert (certificate["adjacency"], certificate["n"]) == ("add-remove", None)
    assert certificate["n_estimate"] == pytest.approx(3000, abs=300)


def test_a_test_is_told_in_json(run, budget, files):
    code, out, _ = run(
        "stats", "difference", "X.npy", *COMMANDS["difference"], *budget, *WIDE, "--json"
    )
    assert code == 0
    test = json.loads(out)["certificate"]["steps"][-1]["test"]
    assert test["p_value"] < 0.01


def test_covariates_and_labels_that_cannot_be_read_are_refused(refused, budget, files, tmp_path):
    common = (*budget, *WIDE)
    wrong = ("--covariates", "x.txt", "--ranges", "0-3000")
    refused(2, "expected LOW:HIGH", "stats", "regression", "X.npy", *wrong, *common)
    wrong = ("--covariates", "x.txt", "--ranges", "0:3000")
    refused(3, "not 1 number(s), one per range", "stats", "regression", "X.npy", *wrong, *common)
    missing = ("--covariates", "none.txt", "--ranges", "0:1")
    refused(3, "none.txt: cannot be read", "stats", "regression", "X.npy", *missing, *common)
    refused(
        2,
        "each record needs a class",
        "stats",
        "difference",
        "X.npy",
        "--classes",
        "1,0",
        *common,
    )


# --- dispersion, principal components

DISPERSION = ("mean", "variance", "deviations", "distances")
PCA = ("mean", "components", "explained_variance", "covariance")
NARROW = ("--eigenvalues", "0.2", "5")


@pytest.mark.parametrize(
    ("words", "names"), [(("dispersion",), DISPERSION), (("pca", "--components", "2"), PCA)]
)
def test_moments_are_written_and_verify(run, data, tmp_path, budget, ledger, words, names):
    more = ("-o", "out", "--report", "--ledger", ledger)
    code, out, err = run("stats", words[0], data, *words[1:], *budget, *NARROW, *more)
    assert (code, err) == (0, "")
    for file in (*(f"{name}.npy" for name in names), "certificate.json", "report.html"):
        assert f"wrote out/{file}" in out
    release = Release.load(tmp_path / "out")
    assert tuple(release.values) == names
    assert len(Ledger(ledger).history()) == 1
    assert run("verify", "out")[0] == 0
    assert "population" in (tmp_path / "out" / "report.html").read_text()


def test_all_arrays_are_shown(run, data, budget):
    code, out, _ = run("stats", "dispersion", data, *budget, *NARROW, "--json")
    assert code == 0
    assert set(json.loads(out)["values"]) == set(DISPERSION)
    code, out, _ = run("stats", "dispersion", data, *budget, *NARROW)
    assert code == 0
    assert "variance:" in out
    assert "lower estimates" in " ".join(out.split())


def test_too_few_records_for_components_are_refused(refused, tmp_path, random_spd, budget):
    np.save(tmp_path / "few.npy", random_spd(5, 3))
    words = ("stats", "pca", "few.npy", "--components", "2", *budget, *NARROW)
    refused(7, "uninformative", *words)
    refused(2, "would be noise", *words, "--anyway")


# --- classes


@pytest.fixture
def labels(data, tmp_path):
    y = np.arange(len(np.load(data))) % 2
    np.save(tmp_path / "y.npy", y)
    (tmp_path / "y.txt").write_text("\n".join("ab"[c] for c in y) + "\n")
    return "y.npy"


def class_words(data, budget, *more):
    return ("stats", "class-means", data, *budget, "--eigenvalues", "0.2", "5", *more)


def test_class_means_are_written_with_their_page(run, data, labels, tmp_path, budget):
    options = ("--labels", labels, "--classes", "0,1", "--covariance", "diagonal")
    code, out, err = run(*class_words(data, budget, *options, "-o", "out", "--report"))
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


def test_labels_as_texts_and_json(run, data, labels, budget):
    code, out, _ = run(
        *class_words(data, budget, "--labels", "y.txt", "--classes", "a, b", "--json"),
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
        assert run(*class_words(data, budget, *options))[0] == 0


def test_a_ledger_keeps_all_arrays(run, data, labels, tmp_path, budget):
    ledger = Ledger(tmp_path / "l.db", epsilon=3.0, delta=1e-4)
    options = ("--labels", labels, "--classes", "0,1", "--ledger", "l.db")
    code, _, err = run(*class_words(data, budget, *options))
    assert (code, err) == (0, "")
    (entry,) = ledger.history()
    assert set(entry["value"]) == {"means", "counts"}


def test_what_is_wrong_with_labels_is_said_before_anything_is_paid(
    refused, data, labels, tmp_path, budget
):
    np.save(tmp_path / "bad.npy", np.zeros((3, 2)))
    options = ("--labels", labels, "--classes")
    what = f"{data}: matrix 0 has label 0 in {labels}, which is none of the classes; name all "
    remedy = "labels in --classes, or pass --on-invalid center: such records count in no class"
    refused(3, what + remedy, *class_words(data, budget, *options, "a,b"))
    refused(2, "twice", *class_words(data, budget, *options, "1,1"))
    refused(
        2,
        "each record needs a class (pass --labels)",
        *class_words(data, budget, "--classes", "a"),
    )
    refused(
        3, "one number or text", *class_words(data, budget, "--labels", "bad.npy", "--classes", "0")
    )
    refused(
        3,
        "no.npy: cannot be read as labels (No such file or directory)",
        *class_words(data, budget, "--labels", "no.npy", "--classes", "0"),
    )
    refused(3, "has label 1", *class_words(data, budget, *options, "0"))


def test_labels_are_named_by_their_file_where_they_are_too_few(refused, data, tmp_path, budget):
    np.save(tmp_path / "few.npy", np.zeros(2998, int))
    (tmp_path / "few.txt").write_text("a\n" * 2998)
    for file in ("few.npy", "few.txt"):
        options = ("--labels", file, "--classes", "0,1")
        refused(
            3,
            f"{file}: labels have 2,998 entries for 3,000 records",
            *class_words(data, budget, *options),
        )


def test_records_of_other_classes_count_in_none(run, data, tmp_path, budget):
    """Two of three classes, over all records: n is that of all."""
    np.save(tmp_path / "y.npy", np.array(["A", "B", "C"])[np.arange(3000) % 3])
    options = ("--labels", "y.npy", "--classes", "A,B", "--on-invalid", "center", "--json")
    code, out, err = run(*class_words(data, budget, *options))
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
        asked = class_words(data, budget, "--labels", *options, "--classes", "0,1")
        assert run(*asked)[::2] == (0, "")
    for what, *options in (
        ("two.npz: which array? It holds y, other (pass --label-column)", "two.npz"),
        ("two.npz: no array 'z'; It holds y, other", "two.npz", "--label-column", "z"),
        ("broken.npz: cannot be read as labels", "broken.npz"),
    ):
        refused(3, what, *class_words(data, budget, "--labels", *options, "--classes", "0,1"))
    asked = class_words(data, budget, "--labels", labels, "--label-column", "y", "--classes", "0,1")
    refused(2, "y.npy: not an .npz file, so --label-column cannot be used", *asked)
