"""Private dispersion, principal components and the population's mean, on real data.

    python benchmarks/statistics/dispersion.py [--data DIR] [--cache DIR] [--seeds N]
        [--draws N] [--geomstats PYTHON] [--output FILE]

Prints tables in Markdown and writes them to
benchmarks/results/statistics-dispersion.md. Noise is seeded; the statistics run on
log-vectors, as inside ``private_dispersion`` and ``private_pca``. Data are looked for
in DIR, ``SPDP_DATA``, or shared/data beside the checkout.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy: one thread is faster
sys.path.insert(0, str(Path(__file__).parents[1] / "utility"))

import numpy as np
from sets import HELD_OUT, TUNED, Set, data_folder, records

from spdp.charts import chart_of
from spdp.domain.base import Space
from spdp.engines.store import ArrayStore
from spdp.error.bound import population_bound
from spdp.geometry import vecd
from spdp.privacy.account import Account
from spdp.privacy.budget import Budget
from spdp.queries import Rows
from spdp.queries.moments import MomentSum, SquaredNormSum
from spdp.queries.sums import Frame
from spdp.statistics import pca
from spdp.statistics.base import Context, Settled
from spdp.statistics.dispersion import LEVELS, Dispersion

CHART, DELTA, P = chart_of("logeuclid"), 1e-6, 5
RESULT = Path(__file__).parents[1] / "results" / "statistics-dispersion.md"
SETS = (
    Set("mnist_3", None, TUNED),
    Set("pathmnist_0", None, TUNED),
    Set("fashionmnist_0", None, TUNED),
    Set("abide_all", None, TUNED),
    Set("cifar10_0", None, HELD_OUT),
    Set("octmnist_3", None, HELD_OUT),
)
POPULATIONS = ("mnist_all", "pathmnist_all", "abide_all")
EPSILONS = (0.1, 0.3, 1.0, 3.0)
# Directions of the logarithm that its components are; it is flat, so any step will do.
GEOMSTATS = """
import sys, numpy as np
from geomstats.geometry.spd_matrices import SPDLogEuclideanMetric, SPDMatrices
from geomstats.learning.pca import TangentPCA
X, p = np.load(sys.argv[1]), int(sys.argv[3])
space = SPDMatrices(X.shape[1], equip=False)
space.equip_with_metric(SPDLogEuclideanMetric)
pca = TangentPCA(space, n_components=p).fit(X)
steps = np.vstack([np.zeros(p), np.diag(np.sqrt(pca.explained_variance_))])
values, V = np.linalg.eigh(pca.inverse_transform(steps))
logs = (V * np.log(values)[:, None, :]) @ V.transpose(0, 2, 1)
moved = logs[1:] - logs[0]
np.save(sys.argv[2], 0.5 * (moved + moved.transpose(0, 2, 1)))
"""


def account(epsilon, seed):
    return Account(Budget.gaussian(epsilon, DELTA), random_state=seed)


def run(statistic, known, epsilon, seed):
    """What a statistic finds in vectors, and what its last step released."""
    paid, space = account(epsilon, seed), Space.of(CHART, known.domain, known.k)
    held = SimpleNamespace(gather=lambda _key: ArrayStore(Rows(known.Y)))
    outcome = statistic.run(Context(space, paid, held, Settled(paid.budget)))
    return outcome, paid.steps[-1]


def over_domain(query, known, epsilon, seed):
    """A query over the whole domain with the whole budget: the naive way."""
    return account(epsilon, seed).ask(query, ArrayStore(Rows(known.Y)), whole=True).estimate


def naive_variance(known, epsilon, seed):
    query = SquaredNormSum("", Frame.plain(known.region.center), known.region.radius)
    v, square, sigma, *_ = over_domain(query, known, epsilon, seed)
    return square - v @ v + len(v) * sigma**2


def naive_components(known, epsilon, seed):
    query = MomentSum("", Frame.plain(known.region.center), known.region.radius, second="full")
    found = over_domain(query, known, epsilon, seed).over(float(len(known.Y)))
    z = found.sums[0]
    return np.linalg.eigh(found.second[0] - np.outer(z, z))[1][:, ::-1][:, :P].T


def peer_components(known, python):
    """Components of geomstats' TangentPCA, made orthonormal in the metric."""
    if python is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        files = [str(Path(folder) / name) for name in ("X.npy", "out.npy")]
        np.save(files[0], CHART.matrices(known.Y))
        subprocess.run([python, "-c", GEOMSTATS, *files, str(P)], check=True, capture_output=True)
        return np.linalg.qr(vecd(np.load(files[1])).T)[0].T


def rms(x):
    return float(np.sqrt(np.mean(np.square(x))))


def dispersion_row(name, known, epsilon, seeds):
    Y = known.Y
    V, sd = Y.var(axis=0).sum(), Y.std(axis=0)
    true = np.quantile(np.linalg.norm(Y - Y.mean(axis=0), axis=1), LEVELS)
    runs = [run(Dispersion(), known, epsilon, seed) for seed in range(seeds)]
    found = [SimpleNamespace(**outcome.numbers) for outcome, _ in runs]
    errors = np.array([one.variance / V - 1 for one in found])
    naive = rms([naive_variance(known, epsilon, seed) / V - 1 for seed in range(seeds)])
    deviations = np.mean([np.median(np.abs(one.deviations / sd - 1)) for one in found])
    medians = rms([one.distances[2] / true[2] - 1 for one in found])
    nines = rms([one.distances[4] / true[4] - 1 for one in found])
    stated = np.mean([last.variance_sd / V for _, last in runs])
    return (
        f"| {name}, n = {len(Y):,}, d = {Y.shape[1]} | {epsilon:g} | {rms(errors):.3f} "
        f"| {errors.mean():+.3f} | {stated:.3f} | {deviations:.3f} | {medians:.3f} | {nines:.3f} "
        f"| {naive:.3g} |"
    )


def pca_row(name, known, epsilon, seeds, peer):
    Y = known.Y
    S = np.cov(Y.T)
    values = np.linalg.eigvalsh(S)[::-1]

    def captured(components):
        return np.trace(components @ S @ components.T) / values[:P].sum()

    runs = [run(pca.PCA(P), known, epsilon, seed) for seed in range(seeds)]
    found = [outcome.numbers for outcome, _ in runs]
    shares = [captured(one["components"]) for one in found]
    naive = np.mean([captured(naive_components(known, epsilon, s)) for s in range(seeds)])
    rule = len(Y) * Budget.gaussian(epsilon, DELTA).mu / Y.shape[1] ** 1.5
    explained = np.mean([one["explained_variance"].sum() for one in found]) / values[:P].sum()
    return (
        f"| {name} | {epsilon:g} | {rule:.2f} | {np.mean(shares):.3f} | {min(shares):.3f} "
        f"| {np.mean([last.trusted for _, last in runs]):.2f} | {explained:.2f} | {naive:.3f} "
        f"| {'' if peer is None else f'{captured(peer):.3f}'} |"
    )


def coverage_row(name, known, n, epsilon, draws, statistic):
    """How often bounds hold for the mean of a set that records are drawn from."""
    rng = np.random.default_rng([n, int(10 * epsilon)])
    truth, hits, without, reaches = known.Y.mean(axis=0), 0, 0, []
    for seed in range(draws):
        drawn = type(known)(known.Y[rng.integers(len(known.Y), size=n)], known.k, known.domain)
        outcome, _ = run(statistic, drawn, epsilon, seed)
        error = np.linalg.norm(outcome.vectors["mean"] - truth)
        reaches.append(population_bound(outcome.bound, *outcome.sampling).at(0.95))
        hits += error <= reaches[-1]
        without += error <= outcome.bound.at(0.95)
    what = "dispersion" if isinstance(statistic, Dispersion) else "covariance"
    return (
        f"| {name} | {what} | {n:,} | {epsilon:g} | {hits / draws:.1%} | {without / draws:.1%} "
        f"| {np.mean(reaches):.3f} |"
    )


DISPERSION_HEAD = """
## Fréchet variance, deviations, distances

Relative errors against the data's own values: variance (rms, bias, and the standard deviation of
noise that the certificate states), deviations of coordinates (median over coordinates), the median
and the 90 % quantile of the distance to the mean (rms). Naive: one query over the whole domain.

| data | ε | variance, rms | bias | stated sd | deviations | median | 90 % | naive variance |
|---|---|---|---|---|---|---|---|---|"""
PCA_HEAD = f"""
## Principal components

Variance that {P} private components capture, over that of the best {P} (those of scikit-learn's PCA
of the same log-vectors). "Certain" is the share that the certificate states; "explained" the stated
explained variance over that of the best {P} (a lower estimate). The public rule warns below
n·μ = 2·d^1.5 and refuses below 0.25·d^1.5; refused cells are measured here all the same.
geomstats: what {P} components of its TangentPCA capture (not private; of the entries of tangent
vectors at the mean, and so not the best in the metric).

| data | ε | n·μ/d^1.5 | captured | least | certain | explained | naive | geomstats |
|---|---|---|---|---|---|---|---|---|"""
COVERAGE_HEAD = """
## The population's mean

The set is the population, n records of it are drawn with replacement. How often
`population_bound(0.95)` holds; how often the bound for the records' own mean would; mean radius.

| population | released | n | ε | covered | without sampling | radius |
|---|---|---|---|---|---|---|"""


def rows(options):
    """All lines of the page, as they come."""
    data = data_folder(options.data)

    def known(wanted):
        return records(wanted, data, options.cache)

    yield "# Dispersion, principal components, the population's mean"
    yield ""
    yield (
        f"δ = {DELTA:g}; {options.seeds} seeds each. MNIST, PathMNIST, FashionMNIST, KMNIST, "
        "PneumoniaMNIST and ABIDE were looked at while constants were chosen; cifar10_0 and "
        "octmnist_3 were not."
    )
    yield DISPERSION_HEAD
    for wanted in SETS:
        for epsilon in EPSILONS:
            yield dispersion_row(wanted.name, known(wanted), epsilon, options.seeds)
    yield PCA_HEAD
    for wanted in SETS:
        peer = peer_components(known(wanted), options.geomstats)
        for epsilon in EPSILONS:
            yield pca_row(wanted.name, known(wanted), epsilon, options.seeds, peer)
    yield COVERAGE_HEAD
    for name in POPULATIONS:
        population = known(Set(name, None, TUNED))
        both = (Dispersion(), pca.PCA(P))
        for statistic in both if name != "abide_all" else both[:1]:
            for n in (500, 2000):
                for epsilon in (1.0, 10.0, 50.0):
                    yield coverage_row(name, population, n, epsilon, options.draws, statistic)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data")
    parser.add_argument("--cache")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--geomstats", metavar="PYTHON")
    parser.add_argument("--output", type=Path, default=RESULT)
    options = parser.parse_args()
    pca.check_enough = lambda *_: None  # cells that are refused are measured all the same
    lines = []
    for line in rows(options):
        print(line, flush=True)
        lines.append(line)
    options.output.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
