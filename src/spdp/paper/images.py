"""Utility on MNIST, KMNIST, FashionMNIST (gray: the paper calls it RGB) and CIFAR10.

scikit-learn's digits stand in offline.
"""

from spdp.paper import medical
from spdp.paper.common import Row, Settings
from spdp.paper.medical import draw, measure

__all__ = ["CLAIM", "NAME", "TITLE", "cells", "draw", "measure", "verdict"]

NAME = "images"
TITLE = "Private means of images (covariance descriptors)"
CLAIM = (
    "On MNIST, KMNIST, FashionMNIST and CIFAR10 the tangent Gaussian mechanism beats the "
    "Riemannian Laplace mechanism."
)
DATASETS = ("digits", "mnist", "kmnist", "fashionmnist", "cifar10")


def cells(settings: Settings) -> list[Row]:
    return medical.grid(settings, DATASETS)


def verdict(rows: list[Row]) -> str:
    return medical.verdict_on(rows, DATASETS)
