"""
Metrics side by side
====================

A mean depends on what is called a distance. The arithmetic mean of tensors that point
in different directions is swollen: it diffuses more than any of them. The log-Euclidean
and the log-Cholesky mean are not, and both can be released with differential privacy.

The data are synthetic: 2,000 thin 2×2 tensors of one size, whose direction varies by
about 40° to either side.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from spdp import EigenvalueBounds, private_mean
from spdp.geometry import mean_logchol, mean_logeuclid

rng = np.random.default_rng(0)
n = 2000
angle = np.radians(30 + 40 * rng.standard_normal(n))
U = np.stack([np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)], axis=1)
U = U.reshape(n, 2, 2)
w = np.array([1.7, 0.2]) * np.exp(0.1 * rng.standard_normal((n, 2)))  # µm²/ms
X = (U * w[:, None]) @ U.swapaxes(1, 2)

# %%
# Two metrics
# -----------
# The domain is the same, from physics; what it means for a record is each metric's own
# affair. Distances, and so error bounds, of different metrics cannot be compared.

domain = EigenvalueBounds(0.01, 5.0)
exact = {"logeuclid": mean_logeuclid(X), "logchol": mean_logchol(X)}
releases = {
    metric: private_mean(X, epsilon=1.0, delta=1e-6, domain=domain, metric=metric)
    for metric in exact
}
for metric, release in releases.items():
    print(f"{metric}: off by less than {release.error_bound(0.95):.3f} in its own distance")

# %%
# The picture
# -----------
# Left some of the records; then the mean of each kind, exact as an outline, released
# filled. The area of an ellipse is √det, and that is what swells.


def ellipse(ax, M, at=(0, 0), **look):
    """{x : xᵀM⁻¹x ≤ 1}, in µm for 1 ms."""
    w, V = np.linalg.eigh(M)
    turn = np.degrees(np.arctan2(V[1, 1], V[0, 1]))
    ax.add_patch(Ellipse(at, 2 * np.sqrt(w[1]), 2 * np.sqrt(w[0]), angle=turn, **look))


typical = np.median(np.sqrt(np.linalg.det(X)))
arithmetic = X.mean(axis=0)
titles = {"logeuclid": "log-Euclidean", "logchol": "log-Cholesky"}

fig, axes = plt.subplots(1, 4, figsize=(13, 4.7), sharex=True, sharey=True, layout="constrained")
for M in X[:30]:
    ellipse(axes[0], M, fc="none", ec="#0072b2", alpha=0.35)
axes[0].set_title("30 records")
ellipse(axes[1], arithmetic, fc="none", ec="black", lw=1.8)
swollen = np.sqrt(np.linalg.det(arithmetic)) / typical
axes[1].set_title(f"arithmetic, not private\narea {swollen:.1f} times a record's")
for ax, (metric, release) in zip(axes[2:], releases.items(), strict=True):
    ellipse(ax, release.value, fc="#56b4e9", ec="none", label="released, ε = 1")
    ellipse(ax, exact[metric], fc="none", ec="black", lw=1.8, label="exact (not private)")
    area = np.sqrt(np.linalg.det(release.value)) / typical
    ax.set_title(f"{titles[metric]}, private\narea {area:.1f} times a record's")
for ax in axes:
    ax.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal", xlabel="x (µm, in 1 ms)")
axes[0].set_ylabel("y (µm, in 1 ms)")
handles, labels = axes[3].get_legend_handles_labels()
fig.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
fig.suptitle(
    f"An arithmetic mean swells to {swollen:.1f} times the size of a tensor; "
    "the private means do not",
    fontsize=14,
)
plt.show()

# %%
# The log-Euclidean mean does not depend on how the axes are turned; the log-Cholesky
# one does a little, and is faster to compute. For correlation matrices there is
# ``"offlog"``, for complex matrices ``"hermitian"``.
