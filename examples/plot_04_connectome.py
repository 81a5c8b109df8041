"""
A connectome that may be published
==================================

The mean of correlation matrices of brain regions, in the off-log metric: the result is
a correlation matrix again, with ones on its diagonal, whatever the noise was.

The data are synthetic: 900 persons, 20 regions in five networks, 150 scans each, one
matrix per person, in the shape that nilearn's
``ConnectivityMeasure(kind="correlation")`` returns: (persons, regions, regions).
"""

import matplotlib.pyplot as plt
import numpy as np

from spdp import CorrelationBounds, private_mean
from spdp.geometry import expm, logm

# %%
# Synthetic persons
# -----------------
# Regions of a network share a signal, each more or less of it, and persons differ in
# how much; two of the networks work against each other.

networks = {"visual": 4, "motor": 4, "attention": 4, "default": 5, "limbic": 3}
member = np.repeat(np.arange(5), list(networks.values()))
labels = [f"{name} {i + 1}" for name, size in networks.items() for i in range(size)]
k, persons, scans = len(labels), 900, 150

rng = np.random.default_rng(0)
mixing = np.eye(5) + 0.3 * np.eye(5, k=1)
mixing[2, 3] = mixing[3, 2] = -0.5  # attention against default
shared = np.einsum("ij,pjt->pit", mixing, rng.standard_normal((persons, 5, scans)))
loading = rng.uniform(0.4, 1.3, (k, 1)) * np.exp(0.2 * rng.standard_normal((persons, k, 1)))
series = loading * shared[:, member] + rng.standard_normal((persons, k, scans))
connectomes = np.stack([np.corrcoef(person) for person in series])

# %%
# The release
# -----------
# A correlation matrix may be nearly singular, so each is shrunk towards the identity by
# a public share η = 0.2; that is what makes a public domain possible.

eta = 0.2
shrunk = (1 - eta) * connectomes + eta * np.eye(k)
release = private_mean(
    shrunk, epsilon=2.0, delta=1e-6, domain=CorrelationBounds(eta), metric="offlog"
)
assert (release.value.diagonal() == 1.0).all()

# %%
# The exact mean in the same metric: average the entries of the logarithms beside the
# diagonal, and find the one diagonal that gives a correlation matrix.

beside = logm(shrunk).mean(axis=0)
for _ in range(50):
    beside -= np.diag(np.log(expm(beside).diagonal()))
exact = expm(beside)

# %%
# Matrix and graph
# ----------------
# One matrix holds both: the exact mean above the diagonal, the released one below it.
# The graphs show the 40 strongest connections of each, red where regions work together,
# blue where they work against each other, the stronger the wider.

OKABE_ITO = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"]


def strongest(C, count=40):
    """Pairs of regions with the largest correlations, by size."""
    i, j = np.triu_indices(k, 1)
    order = np.argsort(-np.abs(C[i, j]))[:count]
    return list(zip(i[order].tolist(), j[order].tolist(), strict=True))


def graph(ax, C, edges):
    """Regions on a circle, joined by edges as wide as their correlation."""
    turn = np.pi / 2 - 2 * np.pi * np.arange(k) / k
    u, v = np.cos(turn), np.sin(turn)
    for i, j in edges:
        colour = "#b2182b" if C[i, j] > 0 else "#2166ac"
        ax.plot(u[[i, j]], v[[i, j]], color=colour, lw=6 * abs(C[i, j]), alpha=0.6, zorder=1)
    ax.scatter(u, v, s=90, c=[OKABE_ITO[m] for m in member], edgecolor="black", zorder=2)
    for i, name in enumerate(labels):
        angle = np.degrees(turn[i])
        flip = np.cos(turn[i]) < -1e-9
        ax.text(
            1.1 * u[i], 1.1 * v[i], name, fontsize=8, rotation=angle + 180 * flip,
            rotation_mode="anchor", ha="right" if flip else "left", va="center",
        )  # fmt: skip
    ax.set(xlim=(-1.65, 1.65), ylim=(-1.65, 1.65), aspect="equal")
    ax.set_axis_off()


fig, axes = plt.subplots(
    1, 3, figsize=(14.5, 5), layout="constrained", gridspec_kw={"width_ratios": [1.25, 1, 1]}
)
both = np.triu(exact, 1) + np.tril(release.value, -1)
both[np.diag_indices(k)] = np.nan
top = np.nanmax(np.abs(both))
image = axes[0].imshow(both, cmap="RdBu_r", vmin=-top, vmax=top)
edges = np.flatnonzero(np.diff(member)) + 0.5
for edge in edges:
    axes[0].axhline(edge, color="black", lw=0.6)
    axes[0].axvline(edge, color="black", lw=0.6)
centres = [np.flatnonzero(member == m).mean() for m in range(5)]
axes[0].set_xticks(centres, networks, rotation=30, ha="right")
axes[0].set_yticks(centres, networks)
axes[0].set(title="above the diagonal: exact; below: released", xlabel="region", ylabel="region")
fig.colorbar(image, ax=axes[0], label="correlation", shrink=0.8)

exact_edges, released_edges = strongest(exact), strongest(release.value)
graph(axes[1], exact, exact_edges)
graph(axes[2], release.value, released_edges)
axes[1].set_title("exact (not private)")
axes[2].set_title("released, ε = 2, δ = 10⁻⁶")
same = len(set(exact_edges) & set(released_edges))
fig.suptitle(
    f"{same} of the 40 strongest connections are the same in the released connectome", fontsize=14
)
plt.show()

# %%
# The mean's error, and the bound that its certificate states, in the metric's distance:

i, j = np.triu_indices(k, 1)
apart = np.sqrt(2) * np.linalg.norm((logm(release.value) - logm(exact))[i, j])
print(f"error {apart:.2f}, bound {release.error_bound(0.95):.2f}")
