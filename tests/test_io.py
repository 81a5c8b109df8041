import gzip
import sys

import numpy as np
import pytest
from scipy.io import savemat

from spdp.errors import DataError, ParameterError
from spdp.io import TENSOR_ORDERS, open_records

h5py = pytest.importorskip("h5py")
zarr = pytest.importorskip("zarr")
nib = pytest.importorskip("nibabel")


@pytest.fixture
def X(random_spd):
    return random_spd(25, 3)


def contents(records):
    return np.concatenate(list(records.blocks()))


def write(path, X):
    name = path.name
    if name.endswith(".npy"):
        np.save(path, X)
    elif name.endswith(".npz"):
        (np.savez_compressed if "small" in name else np.savez)(path, cov=X, labels=np.arange(len(X)))
    elif name.endswith(".mat"):
        savemat(path, {"cov": np.moveaxis(X, 0, 2), "fs": 250.0})
    elif name.endswith((".h5", ".hdf5")):
        with h5py.File(path, "w") as f:
            f.create_dataset("group/cov", data=X, chunks=(10, 3, 3))
            f["labels"] = np.arange(len(X))
    elif name.endswith(".zarr"):
        zarr.create_array(str(path), data=X, chunks=(10, 3, 3))


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "small.npz", "a.mat", "a.h5", "a.hdf5", "a.zarr"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_format(tmp_path, X, name, dtype, monkeypatch):
    monkeypatch.setattr("spdp.records.BLOCK_BYTES", 400)
    write(tmp_path / name, X.astype(dtype))
    records = open_records(tmp_path / name)
    assert (records.n, records.k) == (25, 3)
    assert len(list(records.blocks())) > 1
    np.testing.assert_array_equal(contents(records), X.astype(dtype))


def test_matlab_7_3_is_hdf5(tmp_path, X):
    with h5py.File(tmp_path / "plain.h5", "w", userblock_size=512) as f:
        f["cov"] = X
    data = bytearray((tmp_path / "plain.h5").read_bytes())
    data[:19] = b"MATLAB 7.3 MAT-file"
    (tmp_path / "a.mat").write_bytes(data)
    np.testing.assert_array_equal(contents(open_records(tmp_path / "a.mat")), X)


def test_keys(tmp_path, X):
    np.savez(tmp_path / "two.npz", a=X, b=2 * X, c=np.ones(3))
    with pytest.raises(DataError, match=r"several arrays.*a \(25, 3, 3\).*--key"):
        open_records(tmp_path / "two.npz")
    np.testing.assert_array_equal(contents(open_records(tmp_path / "two.npz", key="b")), 2 * X)
    with pytest.raises(DataError, match="no array 'd'"):
        open_records(tmp_path / "two.npz", key="d")
    np.savez(tmp_path / "none.npz", c=np.ones(3))
    with pytest.raises(DataError, match=r"no array of shape \(n, k, k\).*c \(3,\)"):
        open_records(tmp_path / "none.npz")
    np.savez(tmp_path / "fortran.npz", a=np.asfortranarray(X))
    np.testing.assert_array_equal(contents(open_records(tmp_path / "fortran.npz")), X)
    zarr.create_group(str(tmp_path / "g.zarr")).create_array("cov", data=X)
    np.testing.assert_array_equal(contents(open_records(tmp_path / "g.zarr")), X)


def tensor_image(tmp_path, X, order, name="t.nii.gz", shape=(5, 5, 1)):
    components = np.stack([X[:, 0, 0], X[:, 0, 1], X[:, 0, 2], X[:, 1, 1], X[:, 1, 2], X[:, 2, 2]], axis=-1)
    stored = np.empty_like(components)
    stored[:, list(TENSOR_ORDERS[order])] = components
    nib.save(nib.Nifti1Image(stored.reshape(*shape, 6), np.eye(4)), tmp_path / name)
    return tmp_path / name


@pytest.mark.parametrize("order", TENSOR_ORDERS)
def test_nifti_orders(tmp_path, X, order):
    path = tensor_image(tmp_path, X, order)
    np.testing.assert_allclose(contents(open_records(path, order=order)), X)
    with pytest.raises(DataError, match="--order"):
        open_records(path)
    with pytest.raises(ParameterError, match="order must be"):
        open_records(path, order="itk")


def test_component_orders_are_the_documented_ones():
    names = {"fsl": "xx xy xz yy yz zz", "nifti": "xx xy yy xz yz zz", "mrtrix": "xx yy zz xy xz yz"}
    for order, text in names.items():
        assert [text.split()[i] for i in TENSOR_ORDERS[order]] == names["fsl"].split()


def test_nifti_intent_mask_and_full_matrices(tmp_path, X):
    X = X[:24]
    path = tensor_image(tmp_path, X, "nifti", shape=(3, 4, 2))
    image = nib.load(path)
    five = nib.Nifti1Image(np.asarray(image.dataobj).reshape(3, 4, 2, 1, 6), np.eye(4))
    five.header.set_intent(1005, (3,))
    nib.save(five, tmp_path / "five.nii")
    zyx = np.concatenate([X.reshape(3, 4, 2, 3, 3)[:, :, z].reshape(-1, 3, 3) for z in range(2)])
    np.testing.assert_allclose(contents(open_records(tmp_path / "five.nii")), zyx)
    mask = np.zeros((3, 4, 2), np.uint8)
    mask[1, :, 0] = 1
    nib.save(nib.Nifti1Image(mask, np.eye(4)), tmp_path / "mask.nii")
    masked = open_records(tmp_path / "five.nii", mask=tmp_path / "mask.nii")
    assert masked.n == 4
    np.testing.assert_allclose(contents(masked), X.reshape(3, 4, 2, 3, 3)[1, :, 0])
    nib.save(nib.Nifti1Image(X.reshape(3, 4, 2, 3, 3), np.eye(4)), tmp_path / "full.nii")
    np.testing.assert_allclose(contents(open_records(tmp_path / "full.nii")), zyx)
    nib.save(nib.Nifti1Image(np.zeros((2, 2, 2), np.uint8), np.eye(4)), tmp_path / "small.nii")
    with pytest.raises(DataError, match="mask of shape"):
        open_records(tmp_path / "full.nii", mask=tmp_path / "small.nii")
    nib.save(nib.Nifti1Image(np.zeros((3, 4, 2), np.uint8), np.eye(4)), tmp_path / "empty.nii")
    with pytest.raises(DataError, match="selects no voxel"):
        open_records(tmp_path / "full.nii", mask=tmp_path / "empty.nii")
    with pytest.raises(DataError, match="expected 6 tensor components"):
        open_records(tmp_path / "mask.nii")


def damage(path, name):
    """The bad files a user meets: text under a binary name, a truncated copy, an empty file."""
    yield "text", b"these are no matrices"
    yield "truncated", path.read_bytes()[: path.stat().st_size * 2 // 3]
    yield "empty", b""


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "small.npz", "a.mat", "a.h5", "t.nii.gz"])
def test_damaged_files_are_named(tmp_path, random_spd, name):
    X = random_spd(400, 3)
    if name == "t.nii.gz":
        path = tensor_image(tmp_path, X, "fsl", shape=(20, 20, 1))
    else:
        path = tmp_path / name
        write(path, X)
    options = {"order": "fsl"} if name == "t.nii.gz" else {}
    for kind, data in damage(path, name):
        bad = tmp_path / f"{kind}-{name}"
        bad.write_bytes(data)
        with pytest.raises(DataError, match=f"{kind}-{name}"):
            list(open_records(bad, **options).blocks())


def test_other_mistakes(tmp_path, X):
    with pytest.raises(DataError, match="unknown format '.csv'"):
        open_records(tmp_path / "a.csv")
    with pytest.raises(DataError, match="no such file"):
        open_records(tmp_path / "a.npy")
    np.save(tmp_path / "shape.npy", np.ones((4, 2, 3)))
    with pytest.raises(DataError, match=r"shape.npy: array of shape \(4, 2, 3\)"):
        open_records(tmp_path / "shape.npy")
    np.save(tmp_path / "none.npy", np.ones((0, 3, 3)))
    with pytest.raises(DataError, match="n >= 1"):
        open_records(tmp_path / "none.npy")
    np.save(tmp_path / "text.npy", np.full((2, 2, 2), "a"))
    with pytest.raises(DataError, match="real numbers"):
        open_records(tmp_path / "text.npy")
    np.save(tmp_path / "a.npy", X)
    with pytest.raises(ParameterError, match="NIfTI"):
        open_records(tmp_path / "a.npy", order="fsl")
    np.save(tmp_path / "pickled.npy", np.array([X, None], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="pickled.npy"):
        open_records(tmp_path / "pickled.npy")
    with gzip.open(tmp_path / "x.nii.gz", "wb") as f:
        f.write(b"zeros")
    with pytest.raises(DataError, match="x.nii.gz"):
        open_records(tmp_path / "x.nii.gz", order="fsl")


@pytest.mark.parametrize(("module", "name", "extra"), [("h5py", "a.h5", "hdf5"), ("zarr", "a.zarr", "zarr"), ("nibabel", "a.nii", "nifti")])
def test_missing_extras_are_asked_for_by_name(tmp_path, monkeypatch, module, name, extra):
    (tmp_path / name).write_bytes(b"")
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(DataError, match=rf"pip install 'spdp\[{extra}\]'"):
        open_records(tmp_path / name, order="fsl" if name.endswith("nii") else None)
