"""Two sites made comparable: what the fourth study of make.py computes and draws."""

import numpy as np

from spdp.geometry import logm, vecd

SITES = ("UM_1", "NYU")  # the two largest of ABIDE
SIX = (0, 3, 7, 11, 15, 19)  # every fourth region or so, chosen without looking
EPSILONS = (1, 2, 4, 8)


def harmonised(V, site, means):
    """Vectors moved so that each site's mean falls on that of both."""
    shift = vecd(logm(means))
    return V - (shift - shift.mean(axis=0))[site]


def site_difference(V, site):
    return V[site == 1].mean(axis=0) - V[site == 0].mean(axis=0)


def removed(V, site, moved):
    """Share of the squared distance of site means that is gone; below 0, more came."""
    left = np.sum(site_difference(moved, site) ** 2)
    return 1 - left / np.sum(site_difference(V, site) ** 2)


def by_lot(V, site, runs=200):
    """Distance of two means that sampling alone gives, sites drawn by lot."""
    rng = np.random.default_rng(0)
    drawn = (site_difference(V, rng.permutation(site)) for _ in range(runs))
    return np.sqrt(np.mean([np.sum(d**2) for d in drawn]))


def draw(axes, shares, V, moved, site):
    """People along the difference of the sites; what is removed, by ε."""
    axis = site_difference(V, site)
    axis = axis / np.linalg.norm(axis)
    steps = np.linspace(-1.0, 1.0, 25)
    for ax, vectors, title in (
        (axes[0], V, "as recorded"),
        (axes[1], moved, "moved by released means, ε = 2"),
    ):
        along = (vectors - vectors.mean(axis=0)) @ axis
        for number, colour in enumerate(("C1", "C0")):
            ax.hist(along[site == number], steps, density=True, color=colour, alpha=0.55)
            ax.axvline(along[site == number].mean(), color=colour, lw=2, label=SITES[number])
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("along the difference of the sites", fontsize=8)
        ax.set(yticks=[], ylim=(0, 2.9))
    axes[0].legend(fontsize=8, frameon=False)
    for k, style in ((6, "C0o-"), (20, "C3s-")):
        middle = [np.median(shares[k, epsilon]) for epsilon in EPSILONS]
        axes[2].plot(EPSILONS, middle, style, label=f"{k} regions", ms=4)
    axes[2].axhline(0, color="black", lw=0.5)
    axes[2].set(xscale="log", ylim=(-0.5, 1.05), xlabel="ε")
    axes[2].set_xticks(EPSILONS, EPSILONS, minor=False)
    axes[2].set_xticks([], minor=True)
    axes[2].set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    axes[2].set_title("site effect removed, median", fontsize=9)
    axes[2].legend(fontsize=8, frameon=False)
    for ax in axes:
        ax.tick_params(labelsize=7)
