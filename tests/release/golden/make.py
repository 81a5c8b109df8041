"""Releases kept for good: later versions must load and verify them.

    python tests/release/golden/make.py 0.3

makes those that the folder of that version lacks, such as the ones of a new statistic.
What is there is never written again: it is what users of that version hold.
"""

import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1]))  # tests

from replay import columns, covered  # noqa: E402

from spdp import (  # noqa: E402
    Ball,
    CorrelationBounds,
    EigenvalueBounds,
    ExtrinsicGaussian,
    Reference,
    RiemannianLaplace,
    TangentGaussian,
    TraceBounds,
    private_class_means,
    private_mean,
    private_pca,
)
from spdp.datasets import synthetic_spd  # noqa: E402
from spdp.statistics.partial_sums import LatticeSum, release_sum  # noqa: E402

N = 900
X = synthetic_spd(N, 2, random_state=0)
BESIDE = columns(np.random.default_rng(1), N)
PERSONS = np.arange(N) // 2
BUDGET = {"epsilon": 8.0, "delta": 1e-6}
OPTIONS = {**BUDGET, "domain": EigenvalueBounds(0.1, 10.0)}
SIGNED, PUBLIC_KEY = "mean, signed", "public.pem"


def of_statistics():
    """For each statistic one of records, of persons, and where their number is
    private."""
    for name, ask in covered().items():
        yield name, lambda ask=ask: ask(X, BESIDE, **OPTIONS)
        yield f"{name}, persons", lambda ask=ask: ask(X, BESIDE, groups=PERSONS, **OPTIONS)
        more = {"adjacency": "add-remove", **OPTIONS}
        yield f"{name}, private count", lambda ask=ask, more=more: ask(X, BESIDE, **more)


def mean(**options):
    return lambda: private_mean(X, **OPTIONS | options)


def class_means(**options):
    return lambda: private_class_means(X, BESIDE["y"], classes=[0, 1], **OPTIONS | options)


def sites():
    domain = OPTIONS["domain"]
    return release_sum(LatticeSum.of(X[:400], domain) + LatticeSum.of(X[400:], domain), **BUDGET)


ONE_SHOT = {"method": "oneshot", "mechanism": "gaussian"}
OTHERS = {
    "mean, one shot": mean(**ONE_SHOT),
    "mean, one shot, private count": mean(adjacency="add-remove", **ONE_SHOT),
    "mean, pure": mean(delta=0.0),
    "mean, pure, private count": mean(delta=0.0, adjacency="add-remove"),
    "mean, adaptive": mean(method="adaptive", domain=Ball(6.0)),
    "mean, adaptive, persons": mean(method="adaptive", groups=PERSONS),
    "mean, weighted persons": mean(groups=PERSONS, weights="records", max_records=2),
    "mean, reference point": mean(reference_point=np.diag([1.0, 2.0]), domain=Ball(3.0)),
    "mean, reference": mean(
        method="adaptive", reference=Reference.from_public(synthetic_spd(200, 2, random_state=1))
    ),
    "mean, trace bounds": mean(domain=TraceBounds(0.1, 20.0)),
    "mean, logchol": mean(metric="logchol", domain=Ball(3.0)),
    "mean, offlog": mean(metric="offlog", domain=CorrelationBounds(0.05)),
    "mean, hermitian": lambda: private_mean(
        X + 0.1j * np.array([[0.0, 1.0], [-1.0, 0.0]]), metric="hermitian", **OPTIONS
    ),
    "mean, several matrices": lambda: private_mean(np.stack([X, X[::-1]], axis=1), **OPTIONS),
    "mean, simulation": mean(random_state=3),
    "mean, sum of sites": sites,
    "mean, few": lambda: private_mean(X[:30], **OPTIONS | {"epsilon": 0.5}),
    SIGNED: mean(),
    "class-means, one shot": class_means(method="oneshot", covariance="full"),
    "class-means, adaptive": class_means(method="adaptive", covariance="full"),
    "class-means, diagonal": class_means(method="adaptive", covariance="diagonal"),
    "pca, pairs": lambda: private_pca(np.stack([X, X[::-1]], axis=1), n_components=2, **OPTIONS),
    "summary": lambda: TangentGaussian(0.1, 1.0, 1e-6).release(np.eye(2)),
    "summary, classical": lambda: TangentGaussian(0.1, 0.5, 1e-6, "classical").release(np.eye(2)),
    "summary, laplace": lambda: RiemannianLaplace(0.1, 1.0).release(np.eye(2)),
    "summary, extrinsic": lambda: ExtrinsicGaussian(0.1, 1.0, 1e-6).release(np.eye(2)),
}


def every():
    """All that a version keeps: how each is made, by its name."""
    return dict(of_statistics()) | OTHERS


def folder_of(version, name):
    return HERE / version / name.replace(", ", "--").replace(" ", "-")


def new_key(folder):
    """A key to sign with, whose public half is kept."""
    from cryptography.hazmat.primitives import serialization as s
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, file = Ed25519PrivateKey.generate(), folder / "key.pem"
    form = s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption()
    file.write_bytes(key.private_bytes(*form))
    return file, key.public_key().public_bytes(s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo)


def make(version):
    """Make and save what the version's folder lacks; gives the names of that."""
    missing = {n: ask for n, ask in every().items() if not folder_of(version, n).exists()}
    for name, ask in missing.items():
        with warnings.catch_warnings(), tempfile.TemporaryDirectory() as scratch:
            warnings.simplefilter("ignore")
            folder, key = folder_of(version, name), None
            release = ask()
            if name == SIGNED:
                key, public = new_key(Path(scratch))
            release.save(folder, sign=key)
            if name == SIGNED:
                (folder / PUBLIC_KEY).write_bytes(public)
    return list(missing)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1][0].isdigit():
        sys.exit("expected a version, such as 0.3")
    if not (made := make(sys.argv[1])):
        sys.exit(f"{HERE / sys.argv[1]} has them all, and they are not made again")
    print("\n".join(made))
