"""
Do two groups differ?
=====================

The difference of two groups' means, with a region that holds the true one and a test:
``private_difference``.

The data are synthetic: EEG covariances of 8 electrodes, 2,400 persons, half of them
patients, in whom the back of the head is a third louder. For comparison the same
release with labels drawn by lot, where there is nothing to find.
"""

import matplotlib.pyplot as plt
import numpy as np

from spdp import amplitude_bounds, private_difference
from spdp.geometry import invvecd, logm

channels = ["F3", "F4", "C3", "C4", "P3", "P4", "O1", "O2"]
k, n, times = len(channels), 2400, 256
rng = np.random.default_rng(0)
patient = rng.integers(0, 2, n)
effect = np.where(np.arange(k) >= 6, 1.33, 1.0) ** patient[:, None]
mixing = np.exp(-np.abs(np.subtract.outer(np.arange(k), np.arange(k))) / 1.5)
own = mixing * np.exp(0.15 * rng.standard_normal((n, 1, k)))
signals = 8.0 * effect[..., None] * (own @ rng.standard_normal((n, k, times)))  # µV
X = signals @ signals.swapaxes(1, 2) / times + 0.25 * np.eye(k)

# %%
# Two releases
# ------------
# Of ε = 1 each; a group that nobody is told of is as private as the recording.

asked = {
    "classes": (1, 0),
    "epsilon": 1.0,
    "delta": 1e-6,
    "domain": amplitude_bounds(k, 0.5, 100.0, unit="uV", data_unit="uV"),
}
by_lot = rng.permutation(patient)
groups = {"patients − controls": patient, "labels by lot": by_lot}
releases = {name: private_difference(X, y, **asked) for name, y in groups.items()}


def p_value(release):
    """In words: a tiny p-value is only approximate."""
    p = float(release.values["p_value"])
    return "p < 0.001" if p < 1e-3 else f"p = {p:.2f}"


for name, release in releases.items():
    print(f"{name}: {p_value(release)}")

# %%
# The picture
# -----------
# Differences of mean logarithms, as matrices. On the diagonal, ln(a/b) of power. Right,
# their length, with the region that holds the true difference of the records clipped to
# the ball that the release found, at 95 %.

exact = {
    name: logm(X[y == 1]).mean(axis=0) - logm(X[y == 0]).mean(axis=0) for name, y in groups.items()
}
found = {name: invvecd(release.value) for name, release in releases.items()}
first, second = groups
panels = {
    f"{first}\nexact (not private)": exact[first],
    f"{first}\nreleased": found[first],
    f"{second}\nreleased": found[second],
}
top = max(np.abs(M).max() for M in panels.values())

fig, axes = plt.subplots(
    1, 4, figsize=(14.5, 4.8), layout="constrained", gridspec_kw={"width_ratios": [1, 1, 1, 0.9]}
)
for ax, (title, M) in zip(axes, panels.items(), strict=False):
    image = ax.imshow(M, cmap="RdBu_r", vmin=-top, vmax=top)
    ax.set_title(title)
    ax.set_xticks(range(k), channels)
    ax.set_yticks(range(k), channels)
    ax.set_xlabel("electrode")
axes[0].set_ylabel("electrode")
fig.colorbar(image, ax=axes[2], label="difference of the log-covariances", shrink=0.8)

for i, (name, release) in enumerate(releases.items()):
    length = np.linalg.norm(release.value)
    within = release.certificate["error_bound_within"]["95%"]
    span = [[min(within, length)], [within]]
    axes[3].errorbar(i, length, span, fmt="o", color="#0072b2", capsize=6, lw=2, ms=7)
    axes[3].plot(i, np.linalg.norm(exact[name]), "x", color="black", ms=9, mew=2)
    axes[3].text(i + 0.12, length, p_value(release), va="center")
axes[3].plot([], [], "x", color="black", ms=9, mew=2, label="exact")
axes[3].errorbar([], [], [], fmt="o", color="#0072b2", capsize=6, lw=2, label="released")
axes[3].set_xticks(range(2), ["patients −\ncontrols", "labels\nby lot"])
axes[3].set(xlim=(-0.4, 2.0), ylim=(0, None), ylabel="length of the difference")
axes[3].set_title("released, with its region")
fig.legend(*axes[3].get_legend_handles_labels(), loc="outside lower right", ncols=2, frameon=False)
fig.suptitle(
    f"Patients' occipital electrodes are louder ({p_value(releases[first])}); "
    f"with labels by lot {p_value(releases[second])}",
    fontsize=14,
)
plt.show()
