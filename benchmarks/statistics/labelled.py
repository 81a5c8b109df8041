"""Labelled image sets as covariance descriptors, split for training and testing.

Test sets are those that were published with the images; where only training images are
at hand, a fixed fifth of them.
"""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spdp.datasets import read_idx
from spdp.descriptors import covariance_descriptors, descriptor_bounds

__all__ = ["CLEAN", "TUNED", "Split", "data_folder", "load"]

TUNED = ("mnist", "fashionmnist", "kmnist", "pathmnist")
CLEAN = ("pneumoniamnist", "octmnist")


class Split(NamedTuple):
    """Descriptors (n, k, k) and labels, to learn from and to test on; their domain."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    domain: object

    @property
    def classes(self):
        return [int(c) for c in np.unique(self.y)]


def data_folder(given=None):
    """Where data are: as said, ``SPDP_DATA``, or shared/data beside the checkout."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    return Path(given or os.environ.get("SPDP_DATA") or beside)


def load(name, data, cache=None):
    """A set by its name; ``cache``, a folder, keeps descriptors if it is given."""
    file = None if cache is None else Path(cache) / f"{name}.npz"
    if file is not None and file.exists():
        with np.load(file) as kept:
            X, y, X_test, y_test = (kept[part] for part in ("X", "y", "X_test", "y_test"))
    else:
        images, y, test_images, y_test = READERS.get(name, idx_files)(data, name)
        X, X_test = covariance_descriptors(images), covariance_descriptors(test_images)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            np.savez(file, X=X, y=y, X_test=X_test, y_test=y_test)
    return Split(X, y, X_test, y_test, descriptor_bounds(X.shape[1] - 8))


def idx_files(data, name):
    images, labels, test_images, test_labels = (
        read_idx(next((data / name).glob(f"{part}-{kind}-ubyte*")))
        for part in ("train", "t10k")
        for kind in ("images-idx3", "labels-idx1")
    )
    return images, labels.astype(int), test_images, test_labels.astype(int)


def kmnist(data, name):
    folder = data / name
    images = first(folder / "kmnist-train-first7011.npz")
    labels = first(folder / "kmnist-train-labels.npz")[: len(images)]
    test = [first(folder / f"kmnist-test-{part}.npz") for part in ("imgs", "labels")]
    return images, labels.astype(int), test[0], test[1].astype(int)


def pathmnist(data, name):
    with np.load(data / "medmnist" / "pathmnist-classes0to3.npz") as archive:
        return fifth(archive["train_images"], archive["train_labels"].ravel())


def pneumoniamnist(data, name):
    with np.load(data / "medmnist" / "pneumoniamnist.npz") as archive:
        train, test = (
            (archive[f"{part}_images"], archive[f"{part}_labels"].ravel().astype(int))
            for part in ("train", "test")
        )
    return *train, *test


def octmnist(data, name):
    with np.load(data / "medmnist" / "octmnist_subset2254.npz") as archive:
        return fifth(archive["images"], archive["labels"].ravel(), part=0.25)


def first(file):
    with np.load(file) as archive:
        return archive[next(iter(archive))]


def fifth(images, labels, part=0.2):
    """A fixed part of the images, for testing, and the rest."""
    order = np.random.default_rng(0).permutation(len(images))
    test = order < part * len(images)
    labels = labels.astype(int)
    return images[~test], labels[~test], images[test], labels[test]


READERS = {
    "kmnist": kmnist,
    "pathmnist": pathmnist,
    "pneumoniamnist": pneumoniamnist,
    "octmnist": octmnist,
}
