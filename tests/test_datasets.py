import gzip
import struct

import numpy as np
import pytest

from spdp.datasets import DATASETS, load_images, read_idx, synthetic_spd
from spdp.errors import DataError, ParameterError


def test_synthetic_records():
    X = synthetic_spd(500, 4, 0.25, random_state=0)
    w = np.linalg.eigvalsh(X)
    assert w.min() >= np.exp(-0.25) - 1e-12
    assert w.max() <= np.exp(0.25) + 1e-12
    np.testing.assert_allclose(X.mean(axis=0), np.eye(4) * np.cosh(0.25), atol=0.02)
    with pytest.raises(ParameterError, match="at least 1"):
        synthetic_spd(0, 3)


def test_digits_need_no_download():
    digits = load_images("digits")
    assert digits.images.shape == (1797, 8, 8)
    assert digits.images.max() == 255
    assert len(digits.of_class(3)) == 183


def write_idx(path, array):
    data = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)


def test_local_files(tmp_path, monkeypatch, rng):
    (tmp_path / "fashionmnist").mkdir()
    X = rng.integers(0, 256, (30, 28, 28)).astype(np.uint8)
    y = rng.integers(0, 10, 30).astype(np.uint8)
    write_idx(tmp_path / "fashionmnist" / "train-images-idx3-ubyte", X)
    write_idx(tmp_path / "fashionmnist" / "train-labels-idx1-ubyte", y)
    monkeypatch.setenv("SPDP_DATA", str(tmp_path))
    loaded = load_images("FashionMNIST", download=False)
    np.testing.assert_array_equal(loaded.images, X)
    assert loaded.official is False
    (tmp_path / "medmnist").mkdir()
    np.savez(tmp_path / "medmnist" / "octmnist_part.npz", images=X, labels=y[:, None])
    assert load_images("octmnist", download=False).labels.shape == (30,)
    np.savez(tmp_path / "medmnist" / "pathmnist.npz", train_images=X, train_labels=y)
    with pytest.raises(DataError, match=r"pathmnist.npz.*expected \(n, 28, 28, 3\)"):
        load_images("pathmnist", download=False)
    (tmp_path / "medmnist" / "pathmnist.npz").write_bytes(b"nothing")
    with pytest.raises(DataError, match=r"pathmnist.npz: .*damaged or truncated"):
        load_images("pathmnist", download=False)


def test_absent_data_says_what_to_put_where(tmp_path):
    with pytest.raises(DataError, match=r"put train-images\*idx3-ubyte\* into .*mnist/"):
        load_images("mnist", tmp_path, download=False)
    with pytest.raises(DataError, match="no such directory"):
        load_images("mnist", tmp_path / "absent")
    with pytest.raises(ParameterError, match="unknown dataset 'imagenet'"):
        load_images("imagenet")


def test_damaged_idx(tmp_path):
    (tmp_path / "a").write_bytes(b"no idx file")
    with pytest.raises(DataError, match="not an idx file"):
        read_idx(tmp_path / "a")
    write_idx(tmp_path / "b", np.zeros((3, 4), np.uint8))
    (tmp_path / "b").write_bytes((tmp_path / "b").read_bytes()[:-1])
    with pytest.raises(DataError, match="truncated, 11 of 12"):
        read_idx(tmp_path / "b")


@pytest.mark.parametrize(
    ("name", "official"),
    [
        ("mnist", True),
        ("kmnist", False),
        ("pneumoniamnist", True),
        ("pathmnist", False),
        ("octmnist", False),
    ],
)
def test_real_files(data_dir, name, official):
    loaded = load_images(name, data_dir, download=False)
    assert loaded.images.shape[1:] == DATASETS[name].shape
    assert len(loaded.images) == len(loaded.labels)
    assert loaded.official is official
