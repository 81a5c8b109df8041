"""
Principal directions as pictures
================================

Along which directions do matrices differ most? ``PrivateTangentPCA`` releases mean,
covariance, components and explained variances together, for one budget.

The data are scikit-learn's digits as 9×9 covariance descriptors. A covariance of 45
coordinates has 1,035 numbers, so 1,797 records need a generous ε here.
"""

import matplotlib.pyplot as plt
import numpy as np

from spdp import PrivateTangentPCA
from spdp.datasets import load_images
from spdp.descriptors import covariance_descriptors, descriptor_bounds
from spdp.geometry import invvecd, logm, vecd

X = covariance_descriptors(load_images("digits").images)

# %%
# The release
# -----------

pca = PrivateTangentPCA(
    n_components=3, epsilon=4.0, delta=1e-6, domain=descriptor_bounds(channels=1)
)
pca.fit(X)
print(pca.release_)
print(
    f"of the best three directions' variance these hold {pca.trusted_variance_ratio_:.0%} or more"
)

# %%
# The exact ones
# --------------
# In the log-Euclidean metric they are the principal directions of the vectors of the
# matrix logarithm. A direction has no sign, so signs are made to agree.

V = vecd(logm(X))
values, axes_ = np.linalg.eigh(np.cov(V.T))
exact = axes_[:, ::-1].T[:3]
exact *= np.sign((exact * pca.components_).sum(axis=1))[:, None]
exact_share = values[::-1][:3] / values.sum()

# %%
# Directions as matrices
# ----------------------
# A direction is a symmetric matrix that is added to the logarithm of the mean: red
# entries grow along it while blue ones shrink. All six are on one scale. The second and
# third explain nearly as much as each other, so that noise may turn one into the other.

names = ["$x$", "$y$", "$I$", "$|I_x|$", "$|I_y|$", "$|I_{xx}|$", "$|I_{yy}|$"]
names += [r"$|\nabla I|$", "angle"]
top = max(np.abs(invvecd(exact)).max(), np.abs(invvecd(pca.components_)).max())

fig, grid = plt.subplots(2, 3, figsize=(10.5, 7.6), sharex=True, sharey=True, layout="constrained")
rows = {
    "exact": (exact, exact_share),
    "released": (pca.components_, pca.explained_variance_ratio_),
}
for row, (kind, (directions, shares)) in zip(grid, rows.items(), strict=True):
    for i, ax in enumerate(row):
        image = ax.imshow(invvecd(directions[i]), cmap="RdBu_r", vmin=-top, vmax=top)
        ax.set_title(f"{kind} {i + 1}: {100 * shares[i]:.0f} % of the variance", fontsize=11)
        ax.set_xticks(range(9), names, rotation=90)
        ax.set_yticks(range(9), names)
    row[0].set_ylabel("feature of a pixel")
for ax in grid[1]:
    ax.set_xlabel("feature of a pixel")
fig.colorbar(image, ax=grid, label="entry of the direction (unit norm)", shrink=0.7)
held = sum(c @ np.cov(V.T) @ c for c in pca.components_) / values[::-1][:3].sum()
fig.suptitle(
    f"The released directions hold {100 * held:.0f} % of the variance that the best three hold",
    fontsize=14,
)
plt.show()

# %%
# The released shares are lower estimates for the first direction: records far away are
# clipped, which can only lower a variance. What may be shown: everything that ``fit``
# learnt. ``pca.transform(X)`` is computed from the records and is as sensitive as they
# are. ``pca.release_.sample(1000)`` draws synthetic records with this mean and
# covariance, which are free to share.

synthetic = pca.release_.sample(1000)
print(synthetic.shape)
