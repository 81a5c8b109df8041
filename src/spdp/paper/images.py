"""Utility on MNIST, KMNIST, FashionMNIST (gray: the paper calls it RGB) and CIFAR10.

scikit-learn's digits are used, too: they need no download.
"""

from spdp.paper import medical
from spdp.paper.common import Row, Settings

NAME = "images"
TITLE = "Private means of images (covariance descriptors)"
CLAIM = (
    "On MNIST, KMNIST, FashionMNIST and CIFAR10 the tangent Gaussian mechanism beats the "
    "Riemannian Laplace mechanism."
)
measure, draw = medical.measure, medical.draw
DATASETS = ("digits", "mnist", "kmnist", "fashionmnist", "cifar10")


def cells(settings: Settings) -> list[Row]:
    return medical.grid(settings, DATASETS)


def verdict(rows: list[Row]) -> str:
    return medical.verdict_on(rows, DATASETS)
