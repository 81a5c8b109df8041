"""Folders, patterns, manifests and ids: which records are meant, and whose they are."""

import gzip

import numpy as np
import pytest

from spdp import EigenvalueBounds, private_mean
from spdp.data import open_records
from spdp.errors import DataError, DataWarning, InvalidMatrixError, ParameterError
from spdp.statistics.partial_sums import LatticeSum

nib = pytest.importorskip("nibabel")

DOMAIN = EigenvalueBounds(0.01, 100.0)


@pytest.fixture
def X(random_spd):
    return random_spd(30, 3)


@pytest.fixture
def folder(tmp_path, X):
    """Five files of 2, 4, 6, 8 and 10 records."""
    folder = tmp_path / "study"
    folder.mkdir()
    for i, part in enumerate(np.split(X, [2, 6, 12, 20])):
        np.save(folder / f"s{i}.npy", part)
    return folder


PERSONS = np.repeat(np.arange(5), [2, 4, 6, 8, 10])


def check(source, X, ids):
    assert source.unit == "person"
    total = LatticeSum.of(source, DOMAIN)
    assert total.n == len(np.unique(ids))
    np.testing.assert_array_equal(total.total, LatticeSum.of(X, DOMAIN, groups=ids).total)


def refusal(kind, path, **options):
    with pytest.raises(kind) as refused:
        list(open_records(path, **options).blocks())
    return str(refused.value)


def test_a_folder_is_its_files_by_name(folder, X):
    (folder / ".hidden.npy").write_bytes(b"no array")
    (folder / "notes.txt").write_text("not data")
    (folder / "deeper").mkdir()
    np.save(folder / "deeper" / "s9.npy", X)
    for path in (folder, folder / "*.npy", str(folder / "s?.npy"), sorted(folder.glob("s*.npy"))):
        source = open_records(path)
        assert (source.n, source.unit) == (30, "record")
        np.testing.assert_array_equal(np.concatenate(list(source.blocks())), X)
    assert open_records(folder / "**" / "s*.npy").n == 60


def test_each_file_is_a_person(folder, X):
    check(open_records(folder, per_file=True), X, PERSONS)
    single = open_records(folder / "s4.npy", per_file=True)
    check(single, X[20:], np.zeros(10))


def test_a_file_may_hold_one_matrix(tmp_path, X):
    for i, matrix in enumerate(X):
        np.save(tmp_path / f"{i:02}.npy", matrix)
    source = open_records(tmp_path)
    assert source.n == 30
    np.testing.assert_array_equal(np.concatenate(list(source.blocks())), X)
    np.testing.assert_array_equal(np.concatenate([chunk() for chunk in source.chunks]), X)


@pytest.mark.parametrize("name", ["ids.npy", "ids.npz", "ids.txt", "ids.csv", "table.csv"])
def test_ids_in_a_file(tmp_path, folder, X, name):
    ids, options = np.random.default_rng(0).permutation(PERSONS), {}
    path = tmp_path / name
    if name == "ids.npy":
        np.save(path, ids)
    elif name == "ids.npz":
        np.savez(path, who=ids, X=X)
        options = {"groups_column": "who"}
        assert "which array?" in refusal(DataError, folder, groups=path)
        assert "no array 'x'" in refusal(DataError, folder, groups=path, groups_column="x")
    elif name == "table.csv":
        path.write_text("visit,who\n" + "".join(f"1,{i}\n" for i in ids))
        options = {"groups_column": "who"}
        assert "several columns" in refusal(DataError, folder, groups=path)
    else:
        path.write_text("".join(f"person {i}\n" for i in ids))
    check(open_records(folder, groups=path, **options), X, ids)
    check(open_records(folder, groups=str(path), **options), X, ids)


def test_ids_that_do_not_fit(tmp_path, folder):
    ids = tmp_path / "ids.csv"
    ids.write_text("who\n" + "a\n" * 30)
    message = refusal(DataError, folder, groups=ids)
    assert "ids.csv: 31 ids for 30 records; does its first line, 'who'" in message
    assert message.endswith("(pass groups_column=...)")
    ids.write_text("a\n" * 29)
    assert "ids.csv: 29 ids for 30 records" in refusal(DataError, folder, groups=ids)
    ids.write_text("a\n" * 10 + "\n" + "a\n" * 19)
    with pytest.raises(DataError, match="has no person"):
        LatticeSum.of(open_records(folder, groups=ids), DOMAIN)
    np.save(tmp_path / "ids.npy", np.zeros((30, 2)))
    assert "array of shape (30, 2)" in refusal(DataError, folder, groups=tmp_path / "ids.npy")
    (tmp_path / "ids.npy").write_bytes(b"no ids")
    assert "ids.npy: cannot be read" in refusal(DataError, folder, groups=tmp_path / "ids.npy")
    assert "no such file" in refusal(DataError, folder, groups=tmp_path / "none.npy")
    assert "ids are read from .npy" in refusal(DataError, folder, groups=folder)
    assert "groups have 3 entries" in refusal(DataError, folder, groups=[1, 2, 3])
    message = refusal(ParameterError, folder, groups=tmp_path / "ids.npy", groups_column="a")
    assert "has no columns" in message


@pytest.fixture
def manifest(folder):
    """s0 and s3 are Ann's, the others have one person each."""
    path = folder / "study.csv"
    owners = ["Ann", "Bob", "Cem", "Ann", "Dot"]
    lines = [f"s{i}.npy,{who},{i % 2}" for i, who in enumerate(owners)]
    path.write_text("path,person,label\n" + "\n".join(lines) + "\n\n")
    return path


def test_a_manifest_says_whose_files_are(manifest, X, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    source = open_records("study/study.csv")
    assert source.columns == ("person", "label")
    check(source, X, np.where(PERSONS == 3, 0, PERSONS))
    assert [block.columns["label"][0] for block in source.blocks()] == [0, 1, 0, 1, 0]
    monkeypatch.chdir("/")
    assert [len(chunk()) for chunk in source.chunks] == source.sizes == [2, 4, 6, 8, 10]


def test_a_manifest_may_mix_formats_and_name_masks(tmp_path, random_spd):
    X = random_spd(24, 3)
    np.save(tmp_path / "a.npy", X[:4])
    nib.save(nib.Nifti1Image(X[4:].reshape(4, 5, 1, 3, 3), np.eye(4)), tmp_path / "b.nii.gz")
    mask = np.zeros((4, 5, 1), np.uint8)
    mask[:2] = 1
    nib.save(nib.Nifti1Image(mask, np.eye(4)), tmp_path / "m.nii")
    (tmp_path / "all.csv").write_text("person,path,mask\nAnn,a.npy,\nBob,b.nii.gz,m.nii\n")
    source = open_records(tmp_path / "all.csv")
    assert source.n == 14
    check(source, X[:14], np.repeat([0, 1], [4, 10]))


def test_manifests_that_cannot_be_used(manifest, folder):
    def bad(text, **options):
        manifest.write_text("path,person\n" + text)
        return refusal((DataError, ParameterError), manifest, **options)

    assert "study.csv: lists no files" in bad("")
    assert "study.csv: line 3 has no person" in bad("s0.npy,a\ns1.npy,\n")
    assert "study.csv: line 2 has no path" in bad(",a\n")
    assert "s7.npy: no such file" in bad("s7.npy,a\n")
    assert "count twice" in bad("s0.npy,a\n../study/s0.npy,b\n")
    assert "no file of matrices" in bad("study.csv,a\n")
    assert "no file of matrices" in bad(".,a\n")
    assert "says itself" in bad("s0.npy,a\n", per_file=True)
    assert "says itself" in bad("s0.npy,a\n", groups=[1])
    both = [manifest, folder / "s0.npy"]
    assert "read alone" in refusal(DataError, both)


@pytest.mark.parametrize("label", ['"A', 'A"', '"', '"A"b', "\x0b", "\udcff", ""])
def test_a_label_of_a_manifest_swallows_no_line(folder, label):
    """A quote that nobody closed joined all lines up to the next one."""
    lines = [f"s{i}.npy,{label if i == 0 else 'A'},p{i}" for i in range(3)]
    file = folder / "m.csv"
    file.write_bytes("\n".join(["path,label,person", *lines]).encode("utf-8", "surrogateescape"))
    source = open_records(file)
    columns = [block.columns for block in source.blocks()]
    whole = [pair for b in columns for pair in zip(b["person"], b["label"], strict=True)]
    assert {p for p, _ in whole} == {"p0", "p1", "p2"}
    assert {y for p, y in whole if p != "p0"} == {"A"}
    file.write_text("path,label,person\ns0.npy,A,B,p0\n")
    assert "m.csv: line 2 has 4 cells for 3 columns" in refusal(DataError, file)


def test_a_listed_person_without_records_is_the_centre(folder):
    """The number of persons is public, whatever their files hold."""
    file = folder / "m.csv"
    file.write_text("path,person\ns0.npy,a\ns1.npy,b\ns2.npy,c\n")
    budget = {"epsilon": 5.0, "delta": 1e-6, "domain": DOMAIN, "random_state": 0, "anyway": True}
    X = np.load(folder / "s1.npy")
    found = {}
    for name, records in {"none": X[:0], "bad": X[:1] * np.nan}.items():
        np.save(folder / "s1.npy", records)
        for method in ("oneshot", "adaptive"):
            source = open_records(file)
            release = private_mean(source, on_invalid="center", method=method, **budget)
            found[name, method] = release.value
            assert release.certificate["n"] == 3
        assert [len(chunk()) for chunk in source.chunks] == source.sizes
        files = sorted(folder.glob("*.npy"))
        each = private_mean(open_records(files, per_file=True), on_invalid="center", **budget)
        assert each.certificate["n"] == len(files)
    for method in ("oneshot", "adaptive"):
        np.testing.assert_array_equal(found["none", method], found["bad", method])
    np.save(folder / "s1.npy", X[:0])
    with pytest.raises(
        InvalidMatrixError, match=r"s1\.npy: matrix 0 .*; the file holds no records"
    ):
        private_mean(open_records(file), **budget)


def test_folders_that_cannot_be_used(folder, tmp_path, random_spd):
    (tmp_path / "empty").mkdir()
    assert "empty: holds no files of a known format" in refusal(DataError, tmp_path / "empty")
    assert "none matches" in refusal(DataError, tmp_path / "*.npz")
    assert "no such file" in refusal(DataError, tmp_path / "none.npy")
    assert "no files are named" in refusal(DataError, [])
    np.savez(folder / "t.npz", X=random_spd(3, 3))
    assert "different formats, s0.npy and t.npz" in refusal(DataError, folder)
    (folder / "t.npz").unlink()
    (folder / "s2.npy").write_bytes(b"damaged")
    assert "s2.npy: cannot be read" in refusal(DataError, folder)
    np.save(folder / "s2.npy", random_spd(3, 4))
    message = refusal(DataError, folder)
    assert "s2.npy: 4×4 matrices" in message
    (folder / "s2.npy").unlink()
    (folder / "s2.npy").hardlink_to(folder / "s1.npy")
    assert "count twice" in refusal(ParameterError, folder)


def test_whose_records_are_is_said_once(folder):
    for options in ({"per_file": True, "groups": [1]}, {"groups": [1], "groups_column": "a"}):
        assert "once" in refusal(ParameterError, folder, **options)


def test_an_invalid_record_is_named_with_its_file(folder):
    bad = np.load(folder / "s2.npy")
    bad[1] *= -1
    np.save(folder / "s2.npy", bad)
    with pytest.raises(InvalidMatrixError, match=r"s2\.npy: matrix 1 is not") as error:
        LatticeSum.of(open_records(folder), DOMAIN)
    assert error.value.index == (7,)


def test_sources_of_voxels_are_not_sources_of_persons(tmp_path, X):
    for name in ("a.nii", "b.nii"):
        nib.save(nib.Nifti1Image(X.reshape(5, 6, 1, 3, 3), np.eye(4)), tmp_path / name)
    source = open_records(tmp_path)
    assert source.unit == "voxel"
    release = private_mean(source, epsilon=1.0, delta=1e-6, domain=DOMAIN)
    assert release.certificate["unit"] == "voxel"
    assert "the voxels" in release.certificate["estimand"]
    assert all(check.ok for check in release.verify())
    assert open_records(tmp_path, per_file=True).unit == "person"
    np.save(tmp_path / "c.npy", X)
    with pytest.raises(DataError, match="different things"):
        open_records([tmp_path / "a.nii", tmp_path / "c.npy"])


def image(path, voxels, order=(0, 1, 2, 3, 4, 5), intent=None):
    """An image of six components per voxel, xx xy xz yy yz zz in some order."""
    six = voxels[..., [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]][..., list(order)]
    made = nib.Nifti1Image(six, np.eye(4))
    if intent is not None:
        made.header.set_intent(intent, (3,))
    data = made.to_bytes()
    path.write_bytes(gzip.compress(data) if path.name.endswith("gz") else data)
    return path


class TestImagesThatHelp:
    def test_zero_background_suggests_a_mask(self, tmp_path, X):
        voxels = X.reshape(5, 6, 1, 3, 3).copy()
        voxels[:2] = 0
        path = image(tmp_path / "t.nii.gz", voxels)
        source = open_records(path, order="fsl")
        with pytest.raises(InvalidMatrixError) as refused:
            LatticeSum.of(source, DOMAIN)
        assert "12 of its 30 voxels are all zero" in str(refused.value)
        assert str(refused.value).endswith("(pass mask=...)")
        # nothing of it where no data-dependent error may escape
        assert LatticeSum.of(source, DOMAIN, "center").n == 30

    def test_a_wrong_order_is_asked_about(self, tmp_path):
        rng = np.random.default_rng(0)
        v = rng.standard_normal((30, 3, 1))
        X = 0.1 * np.eye(3) + 3.0 * v @ v.transpose(0, 2, 1)
        path = image(tmp_path / "t.nii", X.reshape(5, 6, 1, 3, 3))
        with pytest.raises(InvalidMatrixError, match="another order") as refused:
            LatticeSum.of(open_records(path, order="mrtrix"), DOMAIN)
        assert str(refused.value).endswith("(pass order=... or mask=...)")
        assert refused.value.asks == ("order", "mask")

    def test_dipy_is_the_lower_triangle(self, tmp_path, X):
        path = image(tmp_path / "t.nii", X.reshape(5, 6, 1, 3, 3), order=(0, 1, 3, 2, 4, 5))
        found = np.concatenate(list(open_records(path, order="dipy").blocks()))
        np.testing.assert_array_equal(found, X)

    def test_a_header_that_contradicts_the_order(self, tmp_path, X):
        path = image(tmp_path / "t.nii", X.reshape(5, 6, 1, 3, 3), intent=1005)
        for order in (None, "nifti", "dipy"):
            open_records(path, order=order)
        with pytest.warns(DataWarning, match=r"t\.nii: its header says .*'nifti'.*'fsl'"):
            open_records(path, order="fsl")


def test_ids_that_nobody_asked_for_are_told(tmp_path):
    """The file says whose its records are, the reader does not."""
    X = np.tile(np.eye(2), (6, 1, 1))
    np.savez(tmp_path / "study.npz", X=X, subject=np.arange(6) // 2)
    with pytest.warns(DataWarning, match="arrays subject not used"):
        open_records(tmp_path / "study.npz")
    open_records(tmp_path / "study.npz", groups=np.arange(6) // 2)
    lines = ["subject,c11,c12,c22", *(f"p{i // 2},1,0,1" for i in range(6))]
    (tmp_path / "study.csv").write_text("\n".join(lines) + "\n")
    with pytest.warns(DataWarning, match="columns subject not used"):
        open_records(tmp_path / "study.csv", entries="upper")
    open_records(tmp_path / "study.csv", entries="upper", groups_column="subject")


def test_a_mask_is_a_file(folder, tmp_path):
    (tmp_path / "masks").mkdir()
    with pytest.raises(DataError, match="masks: is a folder"):
        open_records(folder, mask=tmp_path / "masks")
