"""The four studies of docs/studies: files, commands as users type them, pictures.

SPDP_DATA=FOLDER python docs/studies/make.py [dti|eeg|connectomes|harmonisation]...

Files go to a temporary folder, pictures beside this script; what the commands print is
printed. Releases differ from run to run: they are private.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from sites import EPSILONS, SITES, SIX, by_lot, draw, harmonised, removed, site_difference

from spdp import CorrelationBounds, Release, amplitude_bounds, private_class_means
from spdp.geometry import distance_logeuclid, expm, logm, mean_logeuclid, vecd
from spdp.planning.model import Planner

HERE = Path(__file__).parent
DATA = Path(os.environ.get("SPDP_DATA", "../shared/data"))
SPDP = [sys.executable, "-m", "spdp"]


def spdp(line):
    """Run a command as a user types it, and show what it prints."""
    print(f"$ spdp {line}")
    done = subprocess.run(
        [*SPDP, *shlex.split(line)],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "100"},
    )
    print(done.stdout + done.stderr)
    return done


def errors(line, exact, runs=8):
    """Root mean square distance of releases from the exact answer."""
    squares = []
    for _ in range(runs):
        subprocess.run([*SPDP, *shlex.split(f"{line} -o again --force")], check=True, stdout=-3)
        squares.append(float(distance_logeuclid(Release.load("again").value, exact)) ** 2)
    return np.sqrt(np.mean(squares))


def mean_of_persons(X, persons):
    return mean_logeuclid(np.stack([mean_logeuclid(X[persons == i]) for i in np.unique(persons)]))


def figure(columns, width):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(1, columns, figsize=(width, 2.7), layout="constrained")


def heat(ax, matrix, title, top, cmap="RdBu_r"):
    shown = ax.imshow(matrix, cmap=cmap, vmin=-top, vmax=top)
    ax.set(xticks=[], yticks=[])
    ax.set_title(title, fontsize=9)
    return shown


def save(fig, name):
    fig.savefig(HERE / name, dpi=80)
    print(f"wrote {name}: {(HERE / name).stat().st_size:,} bytes\n")


# Diffusion MRI: one image per subject, made of real tensors.


def subject(tensors, mask, rng):
    """An image of tensors drawn from real ones, all turned and stretched a little."""
    G = rng.standard_normal((3, 3))
    A = expm(0.05 * (G + G.T))
    drawn = A @ tensors[rng.integers(0, len(tensors), int(mask.sum()))] @ A.T
    image = np.zeros((*mask.shape, 3, 3))
    image[mask] = drawn * np.exp(0.1 * rng.standard_normal())
    return image


def write_image(path, X):
    """Six components per voxel in the NIfTI standard's order, as dipy writes them."""
    import nibabel

    six = X[..., [0, 1, 1, 2, 2, 2], [0, 0, 1, 0, 1, 2]].astype(np.float32)
    image = nibabel.Nifti1Image(six[..., None, :], np.eye(4))
    image.header.set_intent("symmetric matrix", (3,))
    nibabel.save(image, path)


def dti(persons=400):
    import nibabel

    rng = np.random.default_rng(0)
    tensors = np.load(DATA / "dti/small_64D_tensors.npz")["D"].astype(float)
    grid = np.indices((8, 8, 8)) - 3.5
    mask = (grid**2).sum(axis=0) < 15.0
    Path("subjects").mkdir()
    own = []
    for i in range(persons):
        X = subject(tensors, mask, rng)
        write_image(f"subjects/sub-{i:03}.nii.gz", X)
        own.append(mean_logeuclid(X[mask]))
    nibabel.save(nibabel.Nifti1Image(mask.astype(np.uint8), np.eye(4)), "mask.nii.gz")
    exact = mean_logeuclid(np.stack(own))
    budget = "--eigenvalues 1e-5 5e-3 --epsilon 1 --delta 1e-6"
    print(f"{persons} images of {mask.size} voxels, {mask.sum()} in the mask\n")
    spdp(f"mean subjects/sub-000.nii.gz {budget} -o published")
    spdp(f"mean subjects --per-file {budget} -o published")
    spdp(f"plan --k 3 --n {persons} {budget}")
    line = f"mean subjects --per-file --mask mask.nii.gz {budget}"
    spdp(f"{line} --method adaptive --report -o published")
    for method in ("oneshot", "adaptive"):
        print(f"{method}: rms error {errors(f'{line} --method {method}', exact):.3g}")
    spread = np.sqrt(np.mean(distance_logeuclid(np.stack(own), exact) ** 2))
    print(f"root mean square distance of persons from their mean: {spread:.3g}\n")
    _tensor_picture(exact, Release.load("published").value)


def _tensor_picture(exact, released):
    fig, axes = figure(3, 7.0)
    turn = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(turn), np.sin(turn)])
    for ax, (i, j) in zip(axes, [(0, 1), (0, 2), (1, 2)], strict=True):
        for X, style, name in ((exact, "k-", "exact"), (released, "C3--", "released")):
            ax.plot(*1e3 * X[np.ix_([i, j], [i, j])] @ circle, style, label=name)
        ax.set(aspect="equal", xlim=(-1.3, 1.3), ylim=(-1.3, 1.3))
        ax.set_xlabel("xyz"[i], fontsize=8)
        ax.set_ylabel("xyz"[j], fontsize=8)
        ax.tick_params(labelsize=7)
    axes[0].legend(fontsize=8)
    fig.suptitle("diffusivity by direction, 10⁻³ mm²/s", fontsize=9)
    for name, X in (("exact", exact), ("released", released)):
        w = np.linalg.eigvalsh(X)
        fa = np.sqrt(1.5 * np.sum((w - w.mean()) ** 2) / np.sum(w**2))
        print(f"{name}: mean diffusivity {w.mean():.3e} mm²/s, fractional anisotropy {fa:.3f}")
    save(fig, "dti.png")


# EEG: many trials per person, and few persons.


def eeg():
    study = np.load(DATA / "people/smni_eeg_cov19.npz")
    floor = 0.25**2
    X = study["X"] + floor * np.eye(19)
    persons = study["subject"]
    np.savez("eeg.npz", X=X, subject=persons)
    domain = amplitude_bounds(19, 0.25, 50.0, unit="uV", data_unit="uV")
    exact = mean_of_persons(X, persons)
    print(f"{len(X)} trials of {len(set(persons))} persons; {domain!r}\n")
    bounds = f"--trace {domain.low:g} {domain.trace:g}"
    budget = f"{bounds} --epsilon 1 --delta 1e-5"
    spdp(f"plan --k 19 --n 16 {budget} --error 1")
    line = f"mean eeg.npz --key X --groups eeg.npz --groups-column subject {bounds} --delta 1e-5"
    line += " --anyway"  # refused without it
    spdp(f"{line} --epsilon 1 -o published")
    for epsilon in (1, 3, 10):
        print(f"ε = {epsilon}: rms error {errors(f'{line} --epsilon {epsilon}', exact):.3g}")
    middle = [8, 9, 10]
    np.savez("three.npz", X=X[np.ix_(range(len(X)), middle, middle)], subject=persons)
    three = amplitude_bounds(3, 0.25, 50.0, unit="uV", data_unit="uV")
    line = line.replace("eeg.npz", "three.npz")
    line = line.replace(bounds, f"--trace {three.low:g} {three.trace:g}")
    small = mean_of_persons(np.load("three.npz")["X"], persons)
    for epsilon in (1, 3, 10):
        print(f"C3, Cz, C4, ε = {epsilon}: rms {errors(f'{line} --epsilon {epsilon}', small):.3g}")
    spread = np.sqrt(np.mean(_distances(X, persons, exact) ** 2))
    print(f"root mean square distance of persons from their mean: {spread:.3g}\n")
    _eeg_picture(exact, Release.load("published").value, domain, spread)


def _distances(X, persons, exact):
    own = np.stack([mean_logeuclid(X[persons == i]) for i in np.unique(persons)])
    return distance_logeuclid(own, exact)


def _correlation(X):
    s = np.sqrt(np.diag(X))
    return X / np.outer(s, s)


def _eeg_picture(exact, released, domain, spread):
    fig, axes = figure(3, 8.0)
    heat(axes[0], _correlation(exact), "exact mean, as correlations", 1.0)
    shown = heat(axes[1], _correlation(released), "released, 16 persons, ε = 1", 1.0)
    fig.colorbar(shown, ax=axes[:2], shrink=0.8)
    planner = Planner(n=500, k=19, epsilon=1.0, delta=1e-5, domain=domain, spread=spread)
    grid, curves = planner.curves()
    axes[2].loglog(grid, curves[list(curves)[-1]], "C0")
    axes[2].set_yticks([0.1, 1, 10], ["0.1", "1", "10"], minor=False)
    axes[2].axvline(16, color="C3", ls="--", label="this study")
    axes[2].legend(fontsize=8)
    axes[2].set_xlabel("persons", fontsize=8)
    axes[2].set_title("rms error that spdp plan predicts", fontsize=9)
    axes[2].tick_params(labelsize=7)
    save(fig, "eeg.png")


# Connectomes: one matrix per person, in a table.


def connectomes():
    import pyarrow as pa
    import pyarrow.parquet as pq

    study = np.load(DATA / "abide/connectomes20.npz")
    X = 0.8 * study["matrices"].astype(float) + 0.2 * np.eye(20)
    rows, columns = np.triu_indices(20)
    table = {"subject": [f"ABIDE-{i:04}" for i in range(len(X))], "site": study["site"].astype(str)}
    table |= {f"r{i}_{j}": X[:, i, j] for i, j in zip(rows, columns, strict=True)}
    table["diagnosis"] = study["diagnosis"]
    pq.write_table(pa.table(table), "abide.parquet", row_group_size=256)
    exact = mean_logeuclid(X)
    print(f"{len(X)} persons, {len(rows)} entries each\n")
    spdp("mean abide.parquet --correlation 0.2 --epsilon 2 --delta 1e-6 -o published")
    line = "mean abide.parquet --groups-column subject --label-column diagnosis --correlation 0.2"
    line += " --delta 1e-6"
    spdp(f"plan --k 20 --n {len(X)} --correlation 0.2 --epsilon 2 --delta 1e-6")
    spdp("ledger create abide.ledger --epsilon 3 --delta 1e-5")
    spdp(f"{line} --epsilon 2 --ledger abide.ledger --report -o published")
    spdp("ledger show abide.ledger")
    for epsilon in (0.5, 1, 2):
        print(f"ε = {epsilon}: rms error {errors(f'{line} --epsilon {epsilon}', exact):.3g}")
    _connectome_picture(exact, Release.load("published").value)


def _connectome_picture(exact, released):
    fig, axes = figure(3, 8.0)
    off = ~np.eye(20, dtype=bool)
    heat(axes[0], exact, "exact mean", 0.6)
    shown = heat(axes[1], released, "released, 1,088 persons, ε = 2", 0.6)
    fig.colorbar(shown, ax=axes[:2], shrink=0.8)
    axes[2].plot([-0.1, 0.6], [-0.1, 0.6], "k-", lw=0.5)
    axes[2].plot(exact[off], released[off], ".", ms=3)
    axes[2].set_xlabel("exact entry", fontsize=8)
    axes[2].set_ylabel("released entry", fontsize=8)
    axes[2].tick_params(labelsize=7)
    print(f"correlation of the entries: {np.corrcoef(exact[off], released[off])[0, 1]:.3f}")
    save(fig, "connectomes.png")


# Harmonisation: two sites made comparable by released site means.


def harmonisation(runs=25):
    study = np.load(DATA / "abide/connectomes20.npz")
    here = np.isin(study["site"].astype(str), SITES)
    site = (study["site"].astype(str)[here] == SITES[1]).astype(int)
    C = 0.8 * study["matrices"][here].astype(float) + 0.2 * np.eye(20)
    np.savez("two.npz", X=C[np.ix_(range(len(C)), SIX, SIX)], site=site)
    np.save("site.npy", site)
    print(f"{SITES}: {np.bincount(site)} persons\n")
    budget = "--classes 0,1 --correlation 0.2 --epsilon 2 --delta 1e-5"
    spdp(f"stats class-means two.npz --key X --labels site.npy {budget} -o published")
    shares, pictures = {}, {}
    for regions in (SIX, tuple(range(20))):
        X = C[np.ix_(range(len(C)), regions, regions)]
        V = vecd(logm(X))
        k = len(regions)
        length = np.linalg.norm(site_difference(V, site))
        print(f"{k} regions: site means {length:.3f} apart; by lot {by_lot(V, site):.3f}")
        for epsilon in EPSILONS:
            found = []
            for _ in range(runs):
                release = private_class_means(
                    X, site, classes=[0, 1], epsilon=epsilon, delta=1e-5,
                    domain=CorrelationBounds(0.2), anyway=True,
                )  # fmt: skip
                moved = harmonised(V, site, release.values["means"])
                found.append(removed(V, site, moved))
            shares[k, epsilon] = found
            pictures.setdefault((k, epsilon), (V, moved))
            low, middle, high = np.quantile(found, [0.1, 0.5, 0.9])
            print(
                f"  ε = {epsilon}: removed {np.mean(found):.0%}, "
                f"median {middle:.0%}, 10 to 90 % {low:.0%} to {high:.0%}"
            )
    fig, axes = figure(3, 8.0)
    draw(axes, shares, *pictures[6, 2], site)
    save(fig, "harmonisation.png")


STUDIES = {
    "dti": dti,
    "eeg": eeg,
    "connectomes": connectomes,
    "harmonisation": harmonisation,
}


def main():
    global DATA
    DATA = DATA.absolute()
    for name in sys.argv[1:] or STUDIES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            STUDIES[name]()
            os.chdir("/")


if __name__ == "__main__":
    main()
