"""Data sets of the comparison, as log-vectors in a public domain.

A set is named by its family and a class ("mnist_0", "hapt_2"), or "all" of them.
"""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from spdp import Ball, EigenvalueBounds
from spdp.charts import chart_of
from spdp.datasets import load_images
from spdp.descriptors import covariance_descriptors, descriptor_bounds
from spdp.errors import DataError
from spdp.kernels import kernels_for

__all__ = ["HELD_OUT", "SETS", "SYNTHETIC", "TUNED", "Records", "Set", "data_folder", "records"]

CHART = chart_of("logeuclid")
HELD_OUT, TUNED, SYNTHETIC = "held out", "tuned", "synthetic"
FEWER = {"fashionmnist_all": 20_000}  # the first images only
ARRAYS = {  # files that hold matrices: key of these, key and value of a class, domain
    "abide": ("abide/connectomes20.npz", "matrices", "diagnosis", EigenvalueBounds(0.05, 20.0)),
    "dti": ("dti/small_64D_tensors.npz", "D", "", EigenvalueBounds(1e-6, 1e-2)),
    "hapt": ("people/hapt_cov6.npz", "X", "label", EigenvalueBounds(1e-6, 100.0)),
}
RADIUS, SPREAD, FILLED = 20.0, 1.5, 0.25  # of the synthetic sets
OFFSET, NEAR = 6.0, 4.0  # distances of their means from the domain's centre


@dataclass(frozen=True)
class Set:
    """Records to take: ``n`` of a set, or all of them, and what they were used for."""

    name: str
    n: int | None
    use: str  # HELD_OUT, TUNED or SYNTHETIC

    @property
    def family(self):
        return self.name.split("_")[0]

    @property
    def group(self):
        """The kind of data, as the targets name them."""
        if self.family in ("abide", "dti", "hapt", "aniso", "fill") or self.use == SYNTHETIC:
            return self.name if self.family == "gauss" else self.family
        return "images" if self.use == TUNED else "images, held out"


@dataclass(frozen=True)
class Records:
    """Log-vectors (n, d) and the public domain they lie in."""

    Y: np.ndarray
    k: int
    domain: Ball | EigenvalueBounds

    @property
    def region(self):
        return self.domain.region(self.k)


def several(use, names, *sizes):
    return [Set(name, n, use) for name in names.split() for n in sizes]


SETS = (
    *several(HELD_OUT, "digits_0 digits_1 digits_2 digits_3", 178),
    *several(HELD_OUT, "breastmnist_0 breastmnist_1 retinamnist_0 retinamnist_1", None),
    *several(HELD_OUT, "octmnist_0 octmnist_1 octmnist_3", None),
    *several(HELD_OUT, "pneumoniamnist_0 pneumoniamnist_1", None),
    *several(HELD_OUT, "kmnist_0 kmnist_1 kmnist_2", None),
    *several(HELD_OUT, "kmnist_all", 3000, None),
    *several(HELD_OUT, "hapt_1 hapt_2 hapt_3 hapt_all", None),
    *several(TUNED, "mnist_0 fashionmnist_0 cifar10_0", 300, 1000, 5000),
    *several(TUNED, "mnist_1 fashionmnist_1 cifar10_1", 200, 600),
    *several(TUNED, "pathmnist_0", 600, 9000),
    *several(TUNED, "pathmnist_1", 2000),
    *several(TUNED, "mnist_all", 2000, None),
    *several(TUNED, "fashionmnist_all abide_all abide_1 dti_all", None),
    *several(SYNTHETIC, "gauss_d3 gauss_d6 gauss_d45", 200, 2000, 20_000),
    *several(SYNTHETIC, "gauss_d210", 500, 5000),
    *several(SYNTHETIC, "aniso_axis aniso_rot t2 t3 bimodal outlier1", 500, 6000, 30_000),
    *several(SYNTHETIC, "fill_k2 fill_k9 fill_k20", 500, 3000),
)


def data_folder(given=None):
    """Where data are: as said, ``SPDP_DATA``, or shared/data beside the checkout."""
    beside = Path(__file__).parents[3] / "shared" / "data"
    return Path(given or os.environ.get("SPDP_DATA") or beside)


def records(wanted, data, cache=None):
    """The records of a set; a DataError if they are not at hand."""
    if wanted.use == SYNTHETIC:
        return synthetic(wanted.name, wanted.n)
    file = None if cache is None else Path(cache) / f"{wanted.name}.npy"
    if file is not None and file.exists():
        Y, domain = np.load(file), domain_of(wanted.family)
    else:
        Y, domain = log_vectors(wanted.name, data)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            np.save(file, Y)
    if wanted.n is not None and wanted.n < len(Y):
        chosen = np.random.default_rng(wanted.n).permutation(len(Y))[: wanted.n]
        Y = Y[np.sort(chosen)]
    return Records(Y, CHART.size(Y.shape[1]), domain)


def domain_of(family):
    """The public domain of a family's matrices."""
    if family in ARRAYS:
        return ARRAYS[family][3]
    channels = 3 if family in ("cifar10", "pathmnist", "retinamnist") else 1
    return descriptor_bounds(channels, bound="tight")  # as in the tables that are compared


def log_vectors(name, data):
    """All log-vectors of a set of real data, and its domain."""
    family, part = name.split("_")
    X, domain = matrices(family, part, data), domain_of(family)
    region = domain.region(X.shape[1])
    return CHART.vectors(X, region, kernels_for(X))[0], domain


def matrices(family, part, data):
    """SPD matrices (n, k, k) of one class of a family, or of all."""
    if family in ARRAYS:
        file, key, labels, _ = ARRAYS[family]
        if not (data / file).exists():
            raise DataError(f"{data / file}: no such file; put it there, or pass --data")
        with np.load(data / file) as archive:
            X = archive[key]
            return X if part == "all" else X[archive[labels] == int(part)]
    images = load_images(family, data if family != "digits" else None, download=False)
    if part != "all":
        return covariance_descriptors(images.of_class(int(part)))
    return covariance_descriptors(images.images[: FEWER.get(f"{family}_{part}")])


def synthetic(kind, n):
    """A synthetic set: always the same draw for the same n."""
    rng = np.random.default_rng([0, n, sum(map(ord, kind))])
    if kind.startswith("fill_k"):
        return filled(int(kind[6:]), n, rng)
    d = int(kind[7:]) if kind.startswith("gauss_d") else 45
    Y = SHAPES[kind.split("_d")[0]](n, d, rng)
    norm = np.linalg.norm(Y, axis=1, keepdims=True)
    return Records(Y * np.minimum(1.0, RADIUS / norm), CHART.size(d), Ball(RADIUS))


def offset(d, rng, length=OFFSET):
    v = rng.standard_normal(d)
    return length * v / np.linalg.norm(v)


def gauss(n, d, rng):
    return offset(d, rng) + rng.standard_normal((n, d)) * (SPREAD / np.sqrt(d))


def aniso(n, d, rng, turned=False):
    """Standard deviations from 1 to 0.02, along the axes or along others."""
    sd = np.geomspace(1.0, 0.02, d)
    sd *= SPREAD / np.linalg.norm(sd)
    Z = rng.standard_normal((n, d)) * rng.permutation(sd)
    if turned:
        Z = Z @ np.linalg.qr(rng.standard_normal((d, d)))[0]
    return offset(d, rng) + Z


def student(n, d, rng, freedom):
    Z = rng.standard_normal((n, d)) * (SPREAD / np.sqrt(d))
    Z /= np.sqrt(rng.chisquare(freedom, n) / freedom)[:, None]
    return offset(d, rng) + Z


def bimodal(n, d, rng):
    """A fifth of the records 12 away from the rest."""
    Y = rng.standard_normal((n, d)) * (0.7 / np.sqrt(d)) + offset(d, rng, NEAR)
    direction = offset(d, rng, 1.0)
    return Y + np.where(rng.random(n) < 0.2, 12.0, 0.0)[:, None] * direction


def outliers(n, d, rng):
    """One record in a hundred at 18 from the domain's centre."""
    Y = rng.standard_normal((n, d)) * (SPREAD / np.sqrt(d)) + offset(d, rng, NEAR)
    direction, out = offset(d, rng, 1.0), rng.random(n) < 0.01
    Y[out] = 18.0 * direction + rng.standard_normal((out.sum(), d)) * 0.1
    return Y


def filled(k, n, rng):
    """The paper's records: eigenvalues all over the domain, random eigenvectors."""
    Q = np.linalg.qr(rng.standard_normal((n, k, k)))[0]
    w = np.log(rng.uniform(np.exp(-FILLED), np.exp(FILLED), (n, k)))
    L = (Q * w[:, None, :]) @ Q.transpose(0, 2, 1)
    i, j = np.triu_indices(k, 1)
    Y = np.concatenate([np.diagonal(L, axis1=1, axis2=2), np.sqrt(2.0) * L[:, i, j]], axis=1)
    return Records(Y, k, EigenvalueBounds(np.exp(-FILLED), np.exp(FILLED)))


SHAPES = {
    "gauss": gauss,
    "aniso_axis": aniso,
    "aniso_rot": lambda n, d, rng: aniso(n, d, rng, turned=True),
    "t2": lambda n, d, rng: student(n, d, rng, 2),
    "t3": lambda n, d, rng: student(n, d, rng, 3),
    "bimodal": bimodal,
    "outlier1": outliers,
}
