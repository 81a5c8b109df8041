"""Median, regression and difference on real data, beside non-private and naive ways.

    python benchmarks/statistics/robust.py median|regression|difference [--runs N]

prints a table and writes it to benchmarks/results/statistics-NAME.md. Noise is seeded:
these are simulations. Constants were chosen on MNIST's class 3 (median, regression);
all other sets were looked at once, with those constants.
"""

import argparse
import warnings
from math import sqrt
from pathlib import Path

import numpy as np
from labelled import data_folder, load

from spdp import EigenvalueBounds, private_difference, private_mean, private_median
from spdp.charts import chart_of
from spdp.datasets import read_idx
from spdp.errors import DomainMismatch
from spdp.kernels import kernels_for
from spdp.learn import PrivateGeodesicRegression
from spdp.privacy.budget import Budget

RESULTS = Path(__file__).parents[1] / "results"
CHART = chart_of("logeuclid")
DELTA = 1e-6
CONNECTOMES = EigenvalueBounds(1e-3, 20.0)  # of 20 regions: no eigenvalue exceeds the trace


def vectors(X, domain):
    return CHART.vectors(X, domain.region(X.shape[1], CHART), kernels_for(X))[0]


def rms(values):
    return sqrt(np.mean(np.square(values)))


# --- median


def weiszfeld(Y, steps=500):
    """The geometric median, without privacy."""
    M = np.median(Y, axis=0)
    for _ in range(steps):
        w = 1.0 / np.maximum(np.linalg.norm(Y - M, axis=1), 1e-12)
        M = w @ Y / w.sum()
    return M


def median(data, runs):
    yield "Root mean square distance to the non-private median of the same data, with a share of"
    yield "the records moved to one corner of the domain. Last column: distances to the clean"
    yield "median, of the private median, of the non-private one, of the adaptive private mean."
    yield "Before it: the noise that certificates state, over the error, at ε = 1 and 3."
    yield ""
    yield (
        "| data | moved | ε = 0.1 | ε = 0.3 | ε = 1 | ε = 3 | stated noise over error | "
        "to the clean median at ε = 1 |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name, label in (("mnist", 3), ("fashionmnist", 4), ("pathmnist", 2)):
        part = load(name, data)
        X = part.X[part.y == label][:6000]
        clean = weiszfeld(vectors(X, part.domain))
        for share in (0.0, 0.1, 0.3):
            Z = X.copy()
            moved = np.random.default_rng(5).permutation(len(Z))[: int(share * len(Z))]
            Z[moved] = 1e-6 * np.eye(Z.shape[1])
            yield median_row(f"{name} {label} ({len(Z):,})", Z, share, clean, part.domain, runs)


def median_row(name, Z, share, clean, domain, runs):
    target, cells, stated = weiszfeld(vectors(Z, domain)), [], []
    options = {"delta": DELTA, "domain": domain, "anyway": True}
    for epsilon in (0.1, 0.3, 1.0, 3.0):
        released = [
            private_median(Z, epsilon=epsilon, random_state=s, **options) for s in range(runs)
        ]
        found = [CHART.vector(release.value) for release in released]
        error = rms([np.linalg.norm(y - target) for y in found])
        cells.append(f"{error:.4f}")
        if epsilon >= 1.0:
            noise = rms([release.certificate["sigma"] for release in released])
            stated.append(f"{noise * sqrt(len(target)) / error:.2f}")
        if epsilon == 1.0:
            ours = rms([np.linalg.norm(y - clean) for y in found])
    means = [
        CHART.vector(private_mean(Z, epsilon=1.0, random_state=s, **options).value)
        for s in range(3)
    ]
    mean = rms([np.linalg.norm(y - clean) for y in means])
    last = f"{ours:.3f}, {np.linalg.norm(target - clean):.3f}, {mean:.3f}"
    return f"| {name} | {share:.0%} | {' | '.join(cells)} | {', '.join(stated)} | {last} |"


# --- regression


def ink(data, name, label):
    images = read_idx(next((data / name).glob("train-images-idx3-ubyte*")))
    labels = read_idx(next((data / name).glob("train-labels-idx1-ubyte*")))
    return images[labels == label].mean(axis=(1, 2)) / 255.0


def naive(Y, x, region, epsilon, rng):
    """One noisy sum over the whole domain, covariates as they come."""
    scale = 2.0 * sqrt(2.0) / Budget.gaussian(epsilon, DELTA).mu
    F = np.column_stack([np.ones(len(x)), 4.0 * x - 1.0])
    C = F.T @ (Y - region.center) + scale * region.radius * rng.standard_normal((2, Y.shape[1]))
    B = np.linalg.lstsq(F.T @ F, C, rcond=None)[0]
    return region.center + F @ B


def regression(data, runs):
    yield "R² of vectors on ink (mean intensity, public range [0, 0.5]), mean of the runs, on the"
    yield "records that were learned from; naive: one noisy sum over the whole domain."
    yield ""
    yield "| data | non-private | | ε = 0.1 | ε = 0.3 | ε = 1 | ε = 3 |"
    yield "|---|---|---|---|---|---|---|"
    for name, label in (("mnist", 3), ("mnist", 7), ("fashionmnist", 4)):
        part = load(name, data)
        X, x = part.X[part.y == label], ink(data, name, label)
        yield from regression_rows(f"{name} {label} ({len(X):,})", X, x, part.domain, runs)


def regression_rows(name, X, x, domain, runs):
    Y, region = vectors(X, domain), domain.region(X.shape[1], CHART)
    F = np.column_stack([np.ones(len(x)), x])
    total = ((Y - Y.mean(axis=0)) ** 2).sum()
    best = 1.0 - ((Y - F @ np.linalg.lstsq(F, Y, rcond=None)[0]) ** 2).sum() / total
    ours, plain = [], []
    for epsilon in (0.1, 0.3, 1.0, 3.0):
        scores, others = [], []
        for s in range(runs):
            model = PrivateGeodesicRegression(
                (0.0, 0.5), epsilon, DELTA, domain, random_state=s
            ).fit(X, x)
            scores.append(model.score(X, x))
            P = naive(Y, x, region, epsilon, np.random.default_rng(s))
            others.append(1.0 - ((Y - P) ** 2).sum() / total)
        ours.append(f"{np.mean(scores):.3f}")
        plain.append(f"{np.mean(others):.3g}")
    yield f"| {name} | {best:.3f} | private | {' | '.join(ours)} |"
    yield f"| | | naive | {' | '.join(plain)} |"


# --- difference


def difference(data, runs):
    yield "Rejections at 5 %, and coverage of the 95 % bounds: on the difference of the classes'"
    yield "means, and of their records clipped to the ball found. First the null cells."
    yield ""
    yield "| data | n | ε | rejected | covered | covered, clipped | bound, clipped | runs |"
    yield "|---|---|---|---|---|---|---|---|"
    digits = load("mnist", data)
    with np.load(data / "abide" / "connectomes20.npz") as archive:
        brains, diagnosis = archive["matrices"].astype(float), archive["diagnosis"].astype(int)
    for n in (1000, 4000):
        for epsilon in (0.3, 1.0, 3.0):
            draw = halves(digits.X[digits.y == 3], n)
            yield compared("MNIST 3, halves", draw, digits.domain, epsilon, runs)
    for epsilon in (1.0, 3.0, 10.0):
        draw = lambda rng: (brains, rng.permutation(diagnosis) - 1)  # noqa: E731
        yield compared("ABIDE, permuted", draw, CONNECTOMES, epsilon, runs)
    few = min(runs, 50)
    for n in (1000, 4000):
        for epsilon in (0.1, 0.3, 1.0):
            draw = four_and_nine(digits, n)
            yield compared("MNIST 4 and 9", draw, digits.domain, epsilon, few)
    for epsilon in (1.0, 3.0, 10.0):
        draw = lambda rng: (brains, diagnosis - 1)  # noqa: E731
        yield compared("ABIDE, diagnosis", draw, CONNECTOMES, epsilon, few)


def halves(X, n):
    return lambda rng: (X[rng.permutation(len(X))[:n]], np.arange(n) % 2)


def four_and_nine(part, n):
    places = np.flatnonzero(np.isin(part.y, (4, 9)))

    def draw(rng):
        some = rng.permutation(places)[:n]
        return part.X[some], (part.y[some] == 9).astype(int)

    return draw


def compared(name, draw, domain, epsilon, runs):
    results = []
    for s in range(runs):
        X, y = draw(np.random.default_rng([s, 17]))
        options = {"delta": DELTA, "domain": domain, "random_state": s, "anyway": True}
        release = private_difference(X, y, classes=(0, 1), epsilon=epsilon, **options)
        results.append(judged(release, vectors(X, domain), y))
    rejected, covered, within, bound = np.mean(results, axis=0)
    row = f"| {name} | {len(X):,} | {epsilon:g} | {rejected:.1%} | {covered:.1%} "
    return row + f"| {within:.1%} | {bound:.3g} | {runs} |"


def judged(release, Y, y):
    """Whether a release rejects, and whether its bounds hold."""
    last = release.certificate["steps"][-1]
    center = np.array(last["center"])
    far = np.maximum(np.linalg.norm(Y - center, axis=1) / last["radius"], 1.0)
    clipped = center + (Y - center) / far[:, None]
    error, within = (
        np.linalg.norm(release.value - (Z[y == 0].mean(axis=0) - Z[y == 1].mean(axis=0)))
        for Z in (Y, clipped)
    )
    bound = release.certificate["error_bound_within"]["95%"]
    reject = float(release.values["p_value"]) < 0.05
    return reject, error <= release.error_bound(0.95), within <= bound, bound


# --- command


STUDIES = {"median": (median, 10), "regression": (regression, 10), "difference": (difference, 400)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--data")
    parser.add_argument("--runs", type=int)
    given = parser.parse_args()
    warnings.simplefilter("ignore", DomainMismatch)
    study, runs = STUDIES[given.study]
    lines = []
    for line in study(data_folder(given.data), given.runs or runs):
        print(line, flush=True)
        lines.append(line)
    command = f"`python benchmarks/statistics/robust.py {given.study}`"
    tuned = "Constants were chosen on MNIST's class 3."
    if given.study == "difference":
        tuned = "The radius was set beforehand."
    told = f"{command}, {given.runs or runs} seeded runs, δ = 1e-6. {tuned}"
    text = [f"# {given.study.capitalize()}", "", told, "", *lines, ""]
    (RESULTS / f"statistics-{given.study}.md").write_text("\n".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
