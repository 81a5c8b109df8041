import base64
import gzip
import json
import os
import pickle
import re
import shutil
import struct
import sys
import zipfile

import numpy as np
import pytest
from scipy.io import savemat

from spdp import Ball, private_mean
from spdp.data import open_records
from spdp.data.formats import FORMATS, SUFFIXES, base, nifti
from spdp.data.formats.nifti import TENSOR_ORDERS
from spdp.errors import DataError, InvalidMatrixError, ParameterError

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")
nib = pytest.importorskip("nibabel")

FILES = ["a.npy", "a.npz", "packed.npz", "a.mat", "a.h5", "a.hdf5", "a.zarr", "a.nii", "a.nii.gz"]
TABLES = ["a.csv", "a.parquet"]  # tests/data/test_tables.py

# archives here hold arrays beside the records, which is told
pytestmark = pytest.mark.filterwarnings("ignore::spdp.errors.DataWarning")


@pytest.fixture
def X(random_spd):
    return random_spd(25, 3)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of four records and large pieces of eight, so that every loop turns."""
    for module in (base, nifti):
        monkeypatch.setattr(module, "rows_per_block", lambda k, itemsize=8: 4)
    monkeypatch.setattr(nifti, "BLOCKS_PER_GZIP_PIECE", 2)


def contents(source):
    return np.concatenate(list(source.blocks()))


def refusal(path, **options):
    """What reading the whole file ends in."""
    with pytest.raises(DataError) as refused:
        list(open_records(path, **options).blocks())
    return str(refused.value)


def write(path, X):
    """A file of X in the format of its name, whatever the case; returns the path."""
    suffix = path.name.lower().partition(".")[2]
    if suffix == "npy":
        with path.open("wb") as stream:
            np.save(stream, X)
    elif suffix == "npz":
        save = np.savez_compressed if "packed" in path.name else np.savez
        with path.open("wb") as stream:
            save(stream, cov=X, labels=np.arange(len(X)))
    elif suffix == "mat":
        savemat(path, {"cov": np.moveaxis(X, 0, 2), "fs": 250.0}, appendmat=False)
    elif suffix in ("h5", "hdf5"):
        with h5py.File(path, "w") as store:
            store.create_dataset("group/cov", data=X, chunks=(10, 3, 3))
            store["labels"] = np.arange(len(X))
    elif suffix == "zarr":
        zarr.create_array(str(path), data=X, chunks=(10, 3, 3))
    elif suffix in ("nii", "nii.gz"):
        image = nib.Nifti1Image(X.reshape(-1, 1, 1, 3, 3).transpose(1, 2, 0, 3, 4), np.eye(4))
        data = image.to_bytes()
        path.write_bytes(gzip.compress(data) if suffix == "nii.gz" else data)
    return path


def test_every_suffix_is_tested():
    assert {"." + name.partition(".")[2] for name in FILES + TABLES} == set(SUFFIXES)
    assert all(form.rows or form.stream for form in FORMATS)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
def test_every_format_gives_back_what_was_stored(tmp_path, X, small_blocks, name, dtype):
    X = (100 * X).astype(dtype)
    source = open_records(write(tmp_path / name, X))
    assert (source.n, source.k, source.name) == (25, 3, str(tmp_path / name))
    for _ in range(2):
        assert [len(block) for block in source.blocks()][:2] == [4, 4]
        np.testing.assert_array_equal(contents(source), X)
    assert contents(source).dtype == dtype


@pytest.mark.parametrize("name", FILES)
def test_suffixes_may_be_in_upper_case(tmp_path, X, name):
    upper = tmp_path / (name.partition(".")[0] + "." + name.partition(".")[2].upper())
    source = open_records(write(upper, X))
    np.testing.assert_array_equal(contents(source), X)
    for chunk in source.chunks or ():
        assert chunk().shape[1:] == (3, 3)


@pytest.mark.parametrize("name", FILES)
def test_chunks_read_the_same_records_elsewhere(tmp_path, X, small_blocks, name, monkeypatch):
    write(tmp_path / name, X)
    monkeypatch.chdir(tmp_path)
    source = open_records(name)
    if name.endswith(".npz"):
        assert source.chunks is None
        return
    sent = [pickle.dumps(chunk) for chunk in source.chunks]
    assert len(sent) == (1 if name == "a.mat" else 2)
    monkeypatch.chdir("/")
    np.testing.assert_array_equal(np.concatenate([pickle.loads(chunk)() for chunk in sent]), X)


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.h5", "a.zarr", "a.nii"])
def test_byte_order_stays_as_stored(tmp_path, X, name):
    path = tmp_path / name
    if name == "a.zarr":
        zarr.create_array(str(path), data=X.astype(">f4"), zarr_format=2)
    elif name == "a.nii":
        image = X.reshape(1, 1, -1, 3, 3).astype(">f4")
        nib.save(nib.Nifti1Image(image, np.eye(4), nib.Nifti1Header(endianness=">")), path)
    else:
        write(path, X.astype(">f4"))
    source = open_records(path)
    assert next(source.blocks()).dtype == np.dtype(">f4")
    np.testing.assert_array_equal(contents(source), X.astype(">f4"))


def test_matlab_7_3_is_hdf5(tmp_path, X):
    with h5py.File(tmp_path / "plain.h5", "w", userblock_size=512) as store:
        store["cov"] = X
    data = bytearray((tmp_path / "plain.h5").read_bytes())
    data[:19] = b"MATLAB 7.3 MAT-file"
    (tmp_path / "a.mat").write_bytes(data)
    source = open_records(tmp_path / "a.mat")
    np.testing.assert_array_equal(contents(source), X)
    np.testing.assert_array_equal(source.chunks[0](), X)


def test_older_matlab_files(tmp_path, X):
    path = tmp_path / "a.mat"
    savemat(path, {"one": X[0], "complex": 1j * np.moveaxis(X, 0, 2), "rows": X, "text": "abc"})
    np.testing.assert_array_equal(contents(open_records(path, key="one")), X[:1])
    assert "expected (k, k, n)" in refusal(path, key="rows")
    assert "complex128; expected real numbers" in refusal(path, key="complex")
    assert "no array 'text'" in refusal(path, key="text")


@pytest.mark.parametrize(("code", "dtype"), [(6, np.float64), (7, np.float32), (9, np.uint8)])
def test_matlab_types_do_not_depend_on_the_values(tmp_path, code, dtype):
    """MATLAB itself stores whole numbers as uint8, in variables of any type."""

    def element(kind, data):
        return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)

    X = np.tile(np.diag([1, 2, 3]).astype(np.uint8), (4, 1, 1))
    flags, shape = struct.pack("<II", code, 0), struct.pack("<3i", 3, 3, 4)
    matrix = element(6, flags) + element(5, shape) + element(1, b"cov") + element(2, X.tobytes())
    head = b"MATLAB 5.0 MAT-file".ljust(116) + bytes(8) + b"\x00\x01IM"
    (tmp_path / "a.mat").write_bytes(head + element(14, matrix))
    records = contents(open_records(tmp_path / "a.mat"))
    assert records.dtype == dtype
    np.testing.assert_array_equal(records, X)


def test_the_array_is_found_or_asked_for(tmp_path, X):
    np.savez(tmp_path / "two.npz", a=X, b=2 * X, c=np.ones(3))
    with pytest.raises(DataError, match=r"several arrays.*: a \(25, 3, 3\), b") as refused:
        open_records(tmp_path / "two.npz")
    assert refused.value.ask == "key"
    assert "--" not in str(refused.value)
    np.testing.assert_array_equal(contents(open_records(tmp_path / "two.npz", key="b")), 2 * X)
    assert "no array 'd'; it holds a (25, 3, 3)" in refusal(tmp_path / "two.npz", key="d")
    np.savez(tmp_path / "none.npz", c=np.ones(3))
    assert "no array of shape (n, k, k); it holds c (3,)" in refusal(tmp_path / "none.npz")
    savemat(tmp_path / "none.mat", {"rows": X[:, :, :2]})
    assert "shape (k, k, n); it holds rows (25, 3, 2)" in refusal(tmp_path / "none.mat")


def test_arrays_inside_zarr_groups(tmp_path, X):
    path = tmp_path / "g.zarr"
    group = zarr.create_group(str(path))
    group.create_group("subject").create_array("cov", data=X)
    np.testing.assert_array_equal(contents(open_records(path)), X)
    group.create_array("other", data=2 * X)
    np.testing.assert_array_equal(contents(open_records(path, key="subject/cov")), X)
    np.testing.assert_array_equal(open_records(path, key="other").chunks[0](), 2 * X)
    assert "single array" in refusal(write(tmp_path / "a.zarr", X), key="cov")


def test_archives_in_fortran_order(tmp_path, X, small_blocks):
    np.savez_compressed(tmp_path / "fortran.npz", a=np.asfortranarray(X))
    np.testing.assert_array_equal(contents(open_records(tmp_path / "fortran.npz")), X)
    np.save(tmp_path / "fortran.npy", np.asfortranarray(X))
    np.testing.assert_array_equal(contents(open_records(tmp_path / "fortran.npy")), X)


def tensor_image(path, X, order, shape=(5, 5, 1)):
    """X as the six components of a tensor image, in one of the orders."""
    components = X[:, [0, 0, 0, 1, 1, 2], [0, 1, 2, 1, 2, 2]]
    stored = np.empty_like(components)
    stored[:, list(TENSOR_ORDERS[order])] = components
    nib.save(nib.Nifti1Image(stored.reshape(*shape, 6), np.eye(4)), path)
    return path


@pytest.mark.parametrize("order", TENSOR_ORDERS)
def test_tensor_orders(tmp_path, X, order):
    path = tensor_image(tmp_path / "t.nii.gz", X, order)
    np.testing.assert_array_equal(contents(open_records(path, order=order)), X)
    with pytest.raises(DataError, match=r"nifti \(or dipy\), fsl or mrtrix") as refused:
        open_records(path)
    assert refused.value.ask == "order"
    assert "--" not in str(refused.value)
    with pytest.raises(ParameterError, match="order .*'fsl'.* 'itk'"):
        open_records(path, order="itk")


def test_tensor_orders_are_the_documented_ones():
    names = {
        "fsl": "xx xy xz yy yz zz",
        "nifti": "xx xy yy xz yz zz",
        "dipy": "xx xy yy xz yz zz",
        "mrtrix": "xx yy zz xy xz yz",
    }
    assert names.keys() == TENSOR_ORDERS.keys()
    for order, text in names.items():
        assert [text.split()[i] for i in TENSOR_ORDERS[order]] == names["fsl"].split()


def by_slices(X, shape):
    return np.moveaxis(X.reshape(*shape, 3, 3), 2, 0).reshape(-1, 3, 3)


def test_images_that_say_how_they_are_ordered(tmp_path, X):
    path = tensor_image(tmp_path / "t.nii", X[:24], "nifti", (3, 4, 2))
    components = np.asarray(nib.load(path).dataobj).reshape(3, 4, 2, 1, 6)
    image = nib.Nifti1Image(components, np.eye(4))
    image.header.set_intent(1005, (3,))
    nib.save(image, tmp_path / "intent.nii")
    expected = by_slices(X[:24], (3, 4, 2))
    np.testing.assert_array_equal(contents(open_records(tmp_path / "intent.nii")), expected)


@pytest.mark.parametrize("suffix", ["nii", "nii.gz"])
def test_masks_here_and_in_chunks(tmp_path, random_spd, small_blocks, suffix, monkeypatch):
    shape = (4, 5, 6)
    X = random_spd(120, 3)
    tensor_image(tmp_path / f"t.{suffix}", X, "mrtrix", shape)
    keep = np.random.default_rng(1).uniform(size=shape) < 0.4
    keep[:, :, [0, 3]] = False
    nib.save(nib.Nifti1Image(keep.astype(np.uint8), np.eye(4)), tmp_path / "mask.nii.gz")
    monkeypatch.chdir(tmp_path)
    source = open_records(f"t.{suffix}", order="mrtrix", mask="mask.nii.gz")
    monkeypatch.chdir("/")
    expected = by_slices(X, shape)[np.moveaxis(keep, 2, 0).ravel()]
    assert source.n == len(expected) == keep.sum()
    np.testing.assert_array_equal(contents(source), expected)
    chunks = [pickle.loads(pickle.dumps(chunk)) for chunk in source.chunks]
    assert len(chunks) > 1
    np.testing.assert_array_equal(np.concatenate([chunk() for chunk in chunks]), expected)


def test_scaled_images_are_unscaled(tmp_path, X):
    image = nib.Nifti1Image(X[:24].reshape(3, 4, 2, 3, 3), np.eye(4))
    image.set_data_dtype(np.int16)
    nib.save(image, tmp_path / "scaled.nii")
    records = contents(open_records(tmp_path / "scaled.nii"))
    np.testing.assert_allclose(records, by_slices(X[:24], (3, 4, 2)), atol=1e-3)


def test_masks_that_do_not_fit(tmp_path, X):
    full = tmp_path / "full.nii"
    nib.save(nib.Nifti1Image(X[:24].reshape(3, 4, 2, 3, 3), np.eye(4)), full)
    for name, shape in (("small", (2, 2, 2)), ("empty", (3, 4, 2))):
        nib.save(nib.Nifti1Image(np.zeros(shape, np.uint8), np.eye(4)), tmp_path / f"{name}.nii")
    assert "small.nii: mask of shape (2, 2, 2)" in refusal(full, mask=tmp_path / "small.nii")
    assert "empty.nii: selects no voxel" in refusal(full, mask=tmp_path / "empty.nii")
    alone = open_records(full, mask=tmp_path / "empty.nii", per_file=True)
    assert (alone.n, alone.unit) == (1, "person")  # whose mask is empty is the centre
    assert np.isnan(next(alone.blocks()).records).all()
    assert "none.nii: no such file" in refusal(full, mask=tmp_path / "none.nii")
    (tmp_path / "text.nii").write_text("no mask")
    assert "text.nii: cannot be read" in refusal(full, mask=tmp_path / "text.nii")
    assert "expected 6 tensor components" in refusal(tmp_path / "small.nii")


@pytest.mark.parametrize("name", [name for name in FILES if name != "a.zarr"])
def test_damaged_files_are_named(tmp_path, random_spd, name):
    good = write(tmp_path / name, random_spd(400, 3)).read_bytes()
    damages = {"text": b"no matrices", "truncated": good[: len(good) * 2 // 3], "empty": b""}
    for kind, data in damages.items():
        (tmp_path / f"{kind}-{name}").write_bytes(data)
        assert f"{kind}-{name}: " in refusal(tmp_path / f"{kind}-{name}")


@pytest.mark.parametrize("name", ["a.npy", "a.h5", "a.nii"])
def test_files_damaged_after_opening_are_named_by_chunks(tmp_path, X, name):
    path = write(tmp_path / name, X)
    source = open_records(path)
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(DataError, match=f"{name}: cannot be read"):
        source.chunks[-1]()


def test_files_that_changed_after_opening(tmp_path, X):
    source = open_records(write(tmp_path / "a.npy", X))
    write(tmp_path / "a.npy", X[:20])
    with pytest.raises(DataError, match="a.npy: changed since it was opened"):
        source.chunks[0]()


@pytest.mark.parametrize("name", [name for name in FILES if "mat" not in name])
@pytest.mark.parametrize("change", [lambda X: np.float32(X), lambda X: np.concatenate([X, X])])
def test_files_of_other_numbers_or_more_after_opening(tmp_path, X, name, change):
    """Their shape and dtype, which their header told, decide how they are read."""
    source = open_records(write(tmp_path / name, X))
    if (tmp_path / name).is_dir():
        shutil.rmtree(tmp_path / name)
    write(tmp_path / name, change(X))
    with pytest.raises(DataError, match=f"{name}: changed since it was opened"):
        list(source.blocks())


@pytest.mark.parametrize("name", ["a.npz", "packed.npz"])
def test_archives_are_checked_to_their_end(tmp_path, X, name):
    path = write(tmp_path / name, X)
    with zipfile.ZipFile(path) as archive:
        start = archive.getinfo("cov.npy").header_offset
        middle = start + archive.getinfo("cov.npy").compress_size // 2
    data = bytearray(path.read_bytes())
    data[middle] ^= 1
    path.write_bytes(data)
    assert f"{name}: cannot be read" in refusal(path)


def test_archives_that_hold_more_than_they_say(tmp_path, X):
    data = write(tmp_path / "cov.npy", X).read_bytes()
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("cov.npy", data + bytes(72))
    assert "a.npz: array 'cov' is longer than it says" in refusal(tmp_path / "a.npz")


def test_zarr_chunks_that_are_missing(tmp_path, X):
    path = write(tmp_path / "a.zarr", X)
    (path / "c" / "1" / "0" / "0").unlink()
    records, missing = contents(open_records(path)), ~contents(open_records(path)).any(axis=(1, 2))
    assert 0 < missing.sum() < len(X)  # zeros, as their array says: invalid records
    np.testing.assert_array_equal(records[~missing], X[~missing])
    (tmp_path / "text.zarr").mkdir()
    (tmp_path / "text.zarr" / "zarr.json").write_text("no metadata")
    assert "text.zarr: cannot be read" in refusal(tmp_path / "text.zarr")


class TestHostileFiles:
    """Nothing in a file runs code, or reaches outside its folder."""

    @pytest.fixture
    def trap(self, tmp_path):
        """An object that, unpickled, leaves a file behind."""

        class Trap:
            def __reduce__(self):
                return os.mkdir, (str(tmp_path / "trapped"),)

        yield Trap()
        assert not (tmp_path / "trapped").exists()

    def test_pickles_in_arrays(self, tmp_path, trap):
        objects = np.array([trap, None], object)
        np.save(tmp_path / "a.npy", objects, allow_pickle=True)
        np.savez(tmp_path / "a.npz", cov=objects)
        for name in ("a.npy", "a.npz"):
            assert name in refusal(tmp_path / name)

    @pytest.mark.parametrize("where", ["filters", "compressor", "consolidated"])
    def test_codecs_that_unpickle_in_version_2(self, tmp_path, trap, where):
        """The fill value, or a chunk, is what the codec would unpack."""
        folder, data = tmp_path / "a.zarr", pickle.dumps(trap)
        folder.mkdir()
        codec = {"id": "pickle", "protocol": 5}
        array = {
            "zarr_format": 2,
            "shape": [2, 2, 2],
            "chunks": [2, 2, 2],
            "dtype": "|O",
            "order": "C",
            "fill_value": base64.b64encode(data).decode(),
            "filters": [codec] if where != "compressor" else None,
            "compressor": codec if where == "compressor" else None,
        }
        (folder / "0.0.0").write_bytes(data)
        if where == "consolidated":
            whole = {"metadata": {"cov/.zarray": array, ".zgroup": {"zarr_format": 2}}}
            (folder / ".zmetadata").write_text(json.dumps(whole | {"zarr_consolidated_format": 1}))
            (folder / ".zgroup").write_text('{"zarr_format": 2}')
        else:
            (folder / ".zarray").write_text(json.dumps(array))
        assert "uses the codec 'pickle'" in refusal(folder)

    @pytest.mark.parametrize("deep", [False, True])
    def test_codecs_that_are_not_known_in_version_3(self, tmp_path, X, deep):
        folder = write(tmp_path / "a.zarr", X)
        file = next(path for path in folder.rglob("zarr.json") if "codecs" in path.read_text())
        content = json.loads(file.read_text())
        odd = {"name": "numcodecs.pickle", "configuration": {}}
        if deep:
            inner = {"codecs": [odd], "index_codecs": content["codecs"], "chunk_shape": [1, 3, 3]}
            odd = {"name": "sharding_indexed", "configuration": inner}
        content["codecs"] = [odd]
        file.write_text(json.dumps(content))
        assert "uses the codec 'pickle'" in refusal(folder)

    @pytest.mark.parametrize("name", ["cov", "attributes"])
    def test_codecs_of_consolidated_arrays_whatever_they_are_called(self, tmp_path, name):
        """Attributes are free, but an array called so is an array."""
        folder = tmp_path / "a.zarr"
        folder.mkdir()
        array = {
            "zarr_format": 2,
            "shape": [2, 2, 2],
            "chunks": [2, 2, 2],
            "dtype": "<f8",
            "order": "C",
            "fill_value": 0.0,
            "filters": [{"id": "base64"}],
            "compressor": None,
            "node_type": "array",
            "attributes": {},
        }
        inline = {"kind": "inline", "must_understand": False, "metadata": {name: array}}
        group = {"zarr_format": 3, "node_type": "group", "attributes": {"filters": "none"}}
        (folder / "zarr.json").write_text(json.dumps(group | {"consolidated_metadata": inline}))
        assert "uses the codec 'base64'" in refusal(folder)

    def test_codecs_with_two_names(self, tmp_path, X):
        """The list would know one of them, and its library uses the other."""
        folder = write(tmp_path / "a.zarr", X)
        file = next(path for path in folder.rglob("zarr.json") if "codecs" in path.read_text())
        content = json.loads(file.read_text())
        content["codecs"].append({"name": "zlib", "id": "pickle"})
        file.write_text(json.dumps(content))
        assert "zlib or pickle" in refusal(folder)

    def test_virtual_sources_that_the_environment_moves(self, tmp_path, X, monkeypatch):
        write(tmp_path / "s.h5", X)
        file = tmp_path / "v.h5"
        name = "group/cov"
        layout = h5py.VirtualLayout(X.shape, X.dtype)
        layout[:] = h5py.VirtualSource("s.h5", name, X.shape)
        with h5py.File(file, "w") as store:
            store.create_virtual_dataset("cov", layout)
        assert open_records(file).n == len(X)
        monkeypatch.setenv("HDF5_VDS_PREFIX", str(tmp_path / "elsewhere"))
        assert "HDF5_VDS_PREFIX" in refusal(file)

    def test_zarr_links(self, tmp_path, X):
        secret, folder = write(tmp_path / "secret.zarr", X), write(tmp_path / "a.zarr", X + 1.0)
        chunk = next(path for path in folder.rglob("c/*") if path.is_dir() or path.is_file())
        chunk = chunk if chunk.is_file() else next(p for p in chunk.rglob("*") if p.is_file())
        other = secret / chunk.relative_to(folder)
        chunk.unlink()
        chunk.symlink_to(other)
        assert "is a link" in refusal(folder)
        chunk.unlink()
        os.mkfifo(chunk)  # reading it would wait for ever
        assert "no plain file" in refusal(folder)

    @pytest.mark.parametrize("way", ["above", "absolute", "link", "folder link", "inner link"])
    def test_virtual_arrays_of_other_folders(self, tmp_path, X, way):
        """A source elsewhere, or one that is reached by a link."""
        (tmp_path / "secret").mkdir()
        (tmp_path / "mine").mkdir()
        secret = write(tmp_path / "secret" / "s.h5", X)
        name = {"above": "../secret/s.h5", "absolute": str(secret)}.get(way, "s.h5")
        array = "group/cov"
        if way == "link":
            (tmp_path / "mine" / "s.h5").symlink_to(secret)
        if way == "folder link":
            (tmp_path / "mine" / "in").symlink_to(tmp_path / "secret")
            name = "in/s.h5"
        if way == "inner link":
            array = "far"
            with h5py.File(tmp_path / "mine" / "s.h5", "w") as store:
                store["far"] = h5py.ExternalLink(str(secret), "/group/cov")
        layout = h5py.VirtualLayout(X.shape, float)
        layout[:] = h5py.VirtualSource(name, array, X.shape)
        with h5py.File(tmp_path / "mine" / "all.h5", "w") as store:
            store.create_virtual_dataset("cov", layout)
        told = refusal(tmp_path / "mine" / "all.h5")
        assert re.search("outside its folder|a link|behind a link", told)

    def test_filters_that_load_code(self, tmp_path, X):
        path = tmp_path / "a.h5"
        with h5py.File(path, "w") as store:
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_chunk((5, 3, 3))
            plist.set_filter(307, h5py.h5z.FLAG_OPTIONAL, ())  # bzip2, from a plugin
            space = h5py.h5s.create_simple(X.shape)
            made = h5py.h5d.create(store.id, b"cov", h5py.h5t.NATIVE_DOUBLE, space, plist)
            made.write(h5py.h5s.ALL, h5py.h5s.ALL, X)
        assert "needs the HDF5 filter 307" in refusal(path)


class TestValuesOutsideAnHDF5File:
    """HDF5 reads zeros for them when they are missing: they are refused."""

    def test_virtual_arrays(self, tmp_path, X):
        parts = [write(tmp_path / f"part{i}.h5", X) for i in range(2)]
        layout = h5py.VirtualLayout((50, 3, 3), float)
        for i, part in enumerate(parts):
            layout[25 * i : 25 * (i + 1)] = h5py.VirtualSource(part.name, "group/cov", X.shape)
        path = tmp_path / "all.h5"
        with h5py.File(path, "w") as store:
            store.create_virtual_dataset("cov", layout)
        np.testing.assert_array_equal(contents(open_records(path)), np.concatenate([X, X]))
        with h5py.File(parts[1], "a") as store:
            del store["group/cov"]
        assert "part1.h5: cannot be read" in refusal(path)
        parts[1].unlink()
        assert re.search("all.h5: has values in .*part1.h5, which is missing", refusal(path))

    def test_virtual_arrays_with_gaps(self, tmp_path, X):
        layout = h5py.VirtualLayout((50, 3, 3), float)
        layout[:25] = h5py.VirtualSource(write(tmp_path / "part.h5", X), "group/cov", X.shape)
        with h5py.File(tmp_path / "all.h5", "w") as store:
            store.create_virtual_dataset("cov", layout)
        assert "never written" in refusal(tmp_path / "all.h5")

    def test_virtual_arrays_whose_overlaps_hide_a_gap(self, tmp_path, X):
        source = h5py.VirtualSource(write(tmp_path / "part.h5", X), "group/cov", X.shape)
        layouts = [h5py.VirtualLayout((50, 3, 3), float) for _ in range(4)]
        for layout in layouts:
            layout[:25] = source
        layouts[0][15:40] = source
        layouts[1][20:45], layouts[1][45:] = source, source[:5]
        layouts[2][0::2], layouts[2][1::2] = source, source
        layouts[3][[*range(24), 49]], layouts[3][24:49] = source, source
        for i, layout in enumerate(layouts):
            with h5py.File(tmp_path / f"all{i}.h5", "w") as store:
                store.create_virtual_dataset("cov", layout)
        assert "never written" in refusal(tmp_path / "all0.h5")
        for i in (1, 2, 3):
            assert contents(open_records(tmp_path / f"all{i}.h5")).any(axis=(1, 2)).all()

    def test_virtual_arrays_of_shorter_sources(self, tmp_path, X):
        """HDF5 makes up what lies beyond the end of a source."""
        part = write(tmp_path / "part.h5", X[:20])
        layout = h5py.VirtualLayout(X.shape, float)
        layout[:] = h5py.VirtualSource(part, "group/cov", X.shape)
        with h5py.File(tmp_path / "all.h5", "w") as store:
            store.create_virtual_dataset("cov", layout)
        assert "part.h5: array group/cov has shape (20, 3, 3), less" in refusal(tmp_path / "all.h5")

    def test_virtual_sources_that_went_after_opening(self, tmp_path, X):
        layout = h5py.VirtualLayout(X.shape, float)
        layout[:] = h5py.VirtualSource(write(tmp_path / "part.h5", X), "group/cov", X.shape)
        with h5py.File(tmp_path / "all.h5", "w") as store:
            store.create_virtual_dataset("cov", layout)
        source = open_records(tmp_path / "all.h5")
        np.testing.assert_array_equal(contents(source), X)
        (tmp_path / "part.h5").unlink()
        with pytest.raises(DataError, match=r"part.h5, which is missing"):
            contents(source)

    def test_rows_never_written_beside_others_are_invalid_records(self, tmp_path, X):
        """Nothing in the file tells them from zeros that were written."""
        with h5py.File(tmp_path / "a.h5", "w") as store:
            store.create_dataset("cov", X.shape, float, chunks=(20, 3, 3))[:22] = X[:22]
        options = {"epsilon": 5.0, "delta": 1e-6, "domain": Ball(2.0)}
        with pytest.raises(InvalidMatrixError, match="matrix 22"):
            private_mean(open_records(tmp_path / "a.h5"), **options)

    def test_virtual_arrays_within_the_file(self, tmp_path, X):
        path = write(tmp_path / "a.h5", X)
        layout = h5py.VirtualLayout((10, 3, 3), float)
        with h5py.File(path, "a") as store:
            layout[:] = h5py.VirtualSource(store["group/cov"])[:10]
            store.create_virtual_dataset("first", layout)
        np.testing.assert_array_equal(contents(open_records(path, key="first")), X[:10])

    def test_external_storage(self, tmp_path, X):
        X.tofile(tmp_path / "raw.bin")
        where = [(str(tmp_path / "raw.bin"), 0, X.nbytes)]
        with h5py.File(tmp_path / "a.h5", "w") as store:
            store.create_dataset("cov", X.shape, float, external=where)
        assert "raw.bin, outside the file" in refusal(tmp_path / "a.h5")

    def test_links(self, tmp_path, X):
        write(tmp_path / "real.h5", X)
        path = tmp_path / "links.h5"
        with h5py.File(path, "w") as store:
            store["far"] = h5py.ExternalLink("real.h5", "/group/cov")
        assert "far is a link to /group/cov in real.h5" in refusal(path)
        with h5py.File(path, "a") as store:
            store["folder"] = h5py.ExternalLink("real.h5", "/group")
            store["cov"] = store["alias"] = X
            store["near"] = h5py.SoftLink("/cov")
            del store["alias"]
            store["alias"] = store["cov"]
        assert "far is a link" in refusal(path, key="far")
        assert "near is a link to /cov" in refusal(path, key="near")
        assert "no array 'folder/cov'" in refusal(path, key="folder/cov")
        np.testing.assert_array_equal(contents(open_records(path, key="alias")), X)

    @pytest.mark.parametrize("chunks", [None, (10, 3, 3)])
    def test_values_never_written(self, tmp_path, X, chunks):
        with h5py.File(tmp_path / "a.h5", "w") as store:
            array = store.create_dataset("cov", X.shape, float, chunks=chunks)
            if chunks:
                array[:20] = X[:20]
        assert "never written" in refusal(tmp_path / "a.h5")


def test_names_that_cannot_be_opened(tmp_path):
    assert "unknown format '.xls'; expected one of .npy, " in refusal(tmp_path / "a.xls")
    assert "npy: no such file or folder" in refusal(tmp_path / "npy")
    (tmp_path / "npy").write_bytes(b"")
    assert "unknown format without a suffix" in refusal(tmp_path / "npy")
    assert "a.npy: no such file" in refusal(tmp_path / "a.npy")


def test_options_of_other_formats(tmp_path, X):
    write(tmp_path / "a.npy", X)
    write(tmp_path / "a.h5", X)
    write(tmp_path / "a.nii", X)
    for name, options in {
        "a.npy": {"order": "fsl"},
        "a.h5": {"mask": "m.nii"},
        "a.nii": {"key": "cov"},
    }.items():
        (option,) = options
        with pytest.raises(ParameterError, match=f"^{option} is for .*, not for {name}$"):
            open_records(tmp_path / name, **options)


def test_arrays_that_are_no_real_matrices(tmp_path, X):
    shapes = {"(4, 2, 3)": np.ones((4, 2, 3)), "(4, 0, 0)": np.ones((4, 0, 0))}
    for shape, A in shapes.items():
        np.save(tmp_path / "shape.npy", A)
        assert f"shape.npy: array of shape {shape}; expected" in refusal(tmp_path / "shape.npy")
    for A in (np.full((2, 2, 2), "a"), X > 0, np.array([X, None], dtype=object)[:, None]):
        np.save(tmp_path / "a.npy", A.reshape(-1, *A.shape[-1:] * 2), allow_pickle=True)
        assert f"a.npy: dtype {A.dtype}; expected real numbers" in refusal(tmp_path / "a.npy")
    write(tmp_path / "a.nii", X + 1j)
    assert "expected real numbers" in refusal(tmp_path / "a.nii")


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "packed.npz", "a.h5", "a.zarr"])
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_files_are_read_as_they_are(tmp_path, small_blocks, X, name, dtype):
    """The metric takes them or says which one does."""
    Z = (X + 1j * np.triu(X, 1)).astype(dtype)
    source = open_records(write(tmp_path / name, Z))
    assert contents(source).dtype == source.dtype == dtype
    np.testing.assert_array_equal(contents(source), Z)
    options = {"epsilon": 1.0, "delta": 1e-6, "domain": Ball(1.0), "on_invalid": "center"}
    with pytest.raises(InvalidMatrixError, match=rf"{name} has dtype .* metric='hermitian'"):
        private_mean(source, **options)


@pytest.mark.parametrize(
    ("module", "name", "extra"),
    [("h5py", "a.h5", "hdf5"), ("zarr", "a.zarr", "zarr"), ("nibabel", "a.nii", "nifti")],
)
def test_missing_extras_are_asked_for_by_name(tmp_path, monkeypatch, module, name, extra):
    (tmp_path / name).write_bytes(b"")
    monkeypatch.setitem(sys.modules, module, None)
    assert f"needs {module}; install it with: pip install 'spdp[{extra}]'" in refusal(
        tmp_path / name
    )


def test_what_the_system_refused_is_told_without_its_number(tmp_path):
    file = tmp_path / "gone.npy"
    with pytest.raises(DataError) as told, base.reading(file):
        file.open()
    assert str(told.value).endswith("truncated (No such file or directory)")
    assert str(told.value).count("gone.npy") == 1


@pytest.mark.parametrize("shape", [(2**62, 3, 3), (10**12, 3, 3), (10**9, 9000, 9000)])
@pytest.mark.parametrize("kind", ["npy", "zarr"])
def test_a_header_of_more_matrices_than_are_read_from_a_file(tmp_path, shape, kind):
    file = tmp_path / f"many.{kind}"
    if kind == "npy":
        with file.open("wb") as stream:
            header = {"descr": "<f8", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_2_0(stream, header)
            stream.write(bytes(72))
    else:
        zarr = pytest.importorskip("zarr")
        zarr.create_array(file, shape=(20, *shape[1:]), chunks=(1, *shape[1:]), dtype="f8")
        stated = json.loads((file / "zarr.json").read_text())
        (file / "zarr.json").write_text(json.dumps(stated | {"shape": shape}))
    with pytest.raises(DataError, match=rf"many\.{kind}.*(one file|too large)"):
        open_records(file)


@pytest.mark.parametrize("shape", [(1, 9000, 9000), (3, 10**6, 10**6), (1, 2**31, 2**31)])
def test_matrices_that_no_memory_holds_are_one_clear_error(tmp_path, shape):
    """The header alone decides: nothing is allocated for it."""
    file = tmp_path / "huge.npy"
    with file.open("wb") as stream:
        header = {"descr": "<f8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_2_0(stream, header)
        stream.truncate(stream.tell() + min(8 * shape[0] * shape[1] ** 2, 1 << 40))
    with pytest.raises(DataError, match=r"huge\.npy.*too large"):
        open_records(file)
