"""Public and synthetic data for examples and experiments.

Image sets are looked for in a local directory first (``SPDP_DATA``, or the ``data``
argument), then downloaded: by scikit-learn's ``fetch_openml``, or as MedMNIST's files,
verified by checksum, with pooch (extra ``datasets``). ``digits``, 1,797 handwritten
ones, come with spdp: the test set of E. Alpaydin and C. Kaynak, Optical Recognition of
Handwritten Digits, UCI Machine Learning Repository, 1998 (CC BY 4.0).
"""

import gzip
import hashlib
import os
import struct
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError, ParameterError, need, reason
from spdp.kernels.vecd import compose
from spdp.options import positive

__all__ = ["DATASETS", "ImageSet", "load_images", "read_idx", "synthetic_spd"]


def synthetic_spd(
    n: int, k: int, radius: float = 0.25, random_state: int | np.random.Generator | None = None
) -> NDArray[np.float64]:
    """The paper's synthetic records.

    Eigenvalues uniform in [e^-r, e^r], eigenvectors Haar-distributed; shape (n, k, k).

    Examples
    --------
    >>> from spdp.datasets import synthetic_spd
    >>> synthetic_spd(100, 3, random_state=0).shape
    (100, 3, 3)
    """
    if n < 1 or k < 1:
        raise ParameterError(f"n and k must be at least 1, got {n} and {k}")
    r = positive("radius", radius)
    rng = np.random.default_rng(random_state)
    Q, R = np.linalg.qr(rng.standard_normal((n, k, k)))
    # makes QR's orthogonal factor Haar-distributed
    Q *= np.sign(np.diagonal(R, axis1=1, axis2=2))[:, None, :]
    w = rng.uniform(np.exp(-r), np.exp(r), (n, k))
    return np.asarray(compose(Q, w))


class ImageSet(NamedTuple):
    """Images with their labels, and where they came from."""

    name: str
    images: NDArray[np.uint8]  # (n, H, W) or (n, H, W, 3)
    labels: NDArray[np.int64]  # (n,)
    source: str
    official: bool  # known by the official file's checksum, or from a trusted loader

    def of_class(self, label: int) -> NDArray[np.uint8]:
        """The images of one class."""
        return np.asarray(self.images[self.labels == label])


class _Known(NamedTuple):
    """Where a dataset is looked for, and where it comes from."""

    shape: tuple[int, ...]  # of one image
    folders: tuple[str, ...] = ()
    # patterns (images, labels), the same for an npz that holds both
    files: tuple[tuple[str, str], ...] = ()
    md5: str | None = None  # of the official image file
    openml: str | None = None


_IDX = ("train-images*idx3-ubyte*", "train-labels*idx1-ubyte*")
_MEDMNIST = "https://zenodo.org/records/10519652/files/"


_KMNIST = tuple((f"kmnist-{s}-imgs.npz", f"kmnist-{s}-labels.npz") for s in ("train", "test"))
_FASHION = ("fashionmnist", "fashion-mnist", "FashionMNIST/raw")
_CIFAR10 = ("cifar10", "cifar-10-batches-py")


def _grey(folders: tuple[str, ...], openml: str, md5: str | None, files: Any = ()) -> _Known:
    return _Known((28, 28), folders, (*files, _IDX), md5, openml)


def _med(name: str, md5: str, shape: tuple[int, ...]) -> _Known:
    patterns = (f"{name}.npz", f"{name}[-_]*.npz")
    files = tuple((pattern, pattern) for pattern in patterns)
    return _Known(shape, ("medmnist", name), files, md5)


DATASETS: dict[str, _Known] = {
    "digits": _Known((8, 8)),
    "mnist": _grey(("mnist", "MNIST/raw"), "mnist_784", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
    "fashionmnist": _grey(_FASHION, "Fashion-MNIST", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
    "kmnist": _grey(("kmnist", "KMNIST/raw"), "Kuzushiji-MNIST", None, _KMNIST),
    "cifar10": _Known((32, 32, 3), _CIFAR10, (("cifar10.npz", "cifar10.npz"),), None, "CIFAR_10"),
    "pathmnist": _med("pathmnist", "a8b06965200029087d5bd730944a56c1", (28, 28, 3)),
    "octmnist": _med("octmnist", "c68d92d5b585d8d81f7112f81e2d0842", (28, 28)),
    "pneumoniamnist": _med("pneumoniamnist", "28209eda62fecd6e6a2d98b1501bb15f", (28, 28)),
    "breastmnist": _med("breastmnist", "750601b1f35ba3300ea97c75c52ff8f6", (28, 28)),
    "retinamnist": _med("retinamnist", "bd4c0672f1bba3e3a89f0e4e876791e4", (28, 28, 3)),
}


def load_images(name: str, data: str | Path | None = None, download: bool = True) -> ImageSet:
    """Training images of a dataset.

    Local files are read if they exist; otherwise the images are downloaded. If neither
    works, an error says which files to put where.

    Parameters
    ----------
    name : str
        One of :data:`DATASETS`.
    data : path, optional
        Directory that holds a folder per dataset, or the files themselves.
    download : bool
        Whether to download what is not found.

    Examples
    --------
    >>> from spdp.datasets import load_images
    >>> load_images("digits").images.shape
    (1797, 8, 8)
    """
    key = name.lower()
    if key not in DATASETS:
        raise ParameterError(f"unknown dataset {name!r}; expected one of {', '.join(DATASETS)}")
    if key == "digits":
        return _digits()
    local = data if data is not None else os.environ.get("SPDP_DATA")
    if local is not None:
        if not Path(local).is_dir():
            raise DataError(f"{local}: no such directory")
        found = _local(key, Path(local))
        if found is not None:
            return found
    if download:
        found = _medmnist(key) if DATASETS[key].openml is None else _openml(key)
        if found is not None:
            return found
    patterns = " or ".join(sorted({pair[0] for pair in DATASETS[key].files}))
    folder = f"{local or '$SPDP_DATA'}/{DATASETS[key].folders[0]}/"
    raise DataError(f"{key}: put {patterns} into {folder} (or set SPDP_DATA), or go online")


def _digits() -> ImageSet:
    with files("spdp").joinpath("digits.npz").open("rb") as file, np.load(file) as digits:
        images = np.rint(digits["images"] * (255.0 / 16.0)).astype(np.uint8)
        labels = digits["labels"].astype(np.int64)
    return ImageSet("digits", images, labels, "UCI", True)


def _local(name: str, root: Path) -> ImageSet | None:
    known = DATASETS[name]
    for folder in (root / f for f in known.folders):
        for images, labels in known.files:
            for base in (folder, root) if known.openml is None else (folder,):
                x, y = sorted(base.glob(images)), sorted(base.glob(labels))
                if x and y:
                    return _read(name, x[0], y[0])
    return None


def _read(name: str, images: Path, labels: Path) -> ImageSet:
    try:
        X = _array(images, ("train_images", "images", "arr_0"))
        y = _array(labels, ("train_labels", "labels", "arr_0"))
    except DataError:
        raise
    except Exception as error:
        raise DataError(f"{images}: damaged or truncated ({reason(error)})") from None
    known = DATASETS[name]
    y = y.reshape(-1).astype(np.int64)[: len(X)]
    if len(X) != len(y) or X.shape[1:] != known.shape:
        sizes = ", ".join(map(str, known.shape))
        raise DataError(f"{images}: {X.shape} images and {len(y)} labels; expected (n, {sizes})")
    digest = hashlib.md5(images.read_bytes(), usedforsecurity=False).hexdigest()
    return ImageSet(name, X.astype(np.uint8), y, str(images), digest == known.md5)


def _array(file: Path, keys: tuple[str, ...]) -> NDArray[Any]:
    if file.suffix != ".npz":
        return read_idx(file)
    with np.load(file, allow_pickle=False) as archive:
        for key in keys:
            if key in archive:
                return np.asarray(archive[key])
        names = ", ".join(archive.files)
        raise DataError(f"{file}: no array {' or '.join(keys)}; it holds {names}")


def read_idx(file: str | Path) -> NDArray[Any]:
    """An idx file as MNIST's are, plain or gzipped."""
    path = Path(file)
    opener: Callable[..., Any] = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as stream:
        head = stream.read(4)
        if len(head) < 4 or head[:2] != b"\0\0" or head[2] != 8:
            raise DataError(f"{path}: not an idx file of unsigned bytes")
        shape = struct.unpack(f">{head[3]}I", stream.read(4 * head[3]))
        data = stream.read()
    wanted = int(np.prod(shape))
    if len(data) != wanted:
        raise DataError(f"{path}: truncated, {len(data)} of {wanted} bytes")
    return np.frombuffer(data, np.uint8).reshape(shape)


def _openml(name: str) -> ImageSet | None:
    """From OpenML, by scikit-learn, which caches and verifies; None when offline."""
    from urllib.error import URLError

    fetch_openml = need("sklearn.datasets", "datasets", "OpenML", "scikit-learn").fetch_openml
    known = DATASETS[name]
    try:
        bunch = fetch_openml(
            known.openml, version=1, as_frame=False, parser="auto", n_retries=1, delay=0.1
        )
    except (URLError, OSError):
        return None
    X, y = bunch.data.astype(np.uint8), bunch.target.astype(np.int64)
    # OpenML appends the test images
    if name == "cifar10":
        train, X = 50_000, np.moveaxis(X.reshape(-1, 3, 32, 32), 1, 3)
    else:
        train, X = 60_000, X.reshape(-1, *known.shape)
    return ImageSet(name, X[:train], y[:train], f"OpenML {known.openml}", True)


def _medmnist(name: str) -> ImageSet | None:
    """MedMNIST's official file, by checksum; None when offline or without pooch."""
    try:
        import pooch
    except ImportError:
        return None
    known = DATASETS[name]
    try:
        url, cache = f"{_MEDMNIST}{name}.npz", pooch.os_cache("spdp")
        file = pooch.retrieve(url, f"md5:{known.md5}", f"{name}.npz", cache, progressbar=True)
    except OSError:
        return None
    return _read(name, Path(file), Path(file))
