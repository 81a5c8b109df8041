"""
A first release
===============

A private mean of covariance descriptors, beside the mean that nobody else may see.

The data are the 1,797 digits that come with scikit-learn. Each image becomes a 9×9
covariance matrix of what happens at its pixels: place, brightness, derivatives.
"""

import matplotlib.pyplot as plt

from spdp import private_mean
from spdp.datasets import load_images
from spdp.descriptors import covariance_descriptors, descriptor_bounds
from spdp.geometry import distance_logeuclid, logm, mean_logeuclid

X = covariance_descriptors(load_images("digits").images)
print(X.shape)

# %%
# The release
# -----------
# The domain is public: it holds the descriptor of every possible image, so it says
# nothing about these. ε = 1 and δ = 10⁻⁶ are the guarantee for each image.

domain = descriptor_bounds(channels=1)
release = private_mean(X, epsilon=1.0, delta=1e-6, domain=domain)
print(release)

# %%
# What is known of the error, without looking at the data again: with a probability of
# at least 95 % the released mean is nearer to the true one than this.

bound = release.error_bound(0.95)
print(f"off by less than {bound:.2f} (log-Euclidean distance)")

# %%
# Beside the truth
# ----------------
# Digits are public, so here the true mean may be shown. Entries of a covariance matrix
# span five orders of magnitude; its logarithm is where the metric measures, so that is
# what the picture shows, both on one scale.

exact = mean_logeuclid(X)
error = float(distance_logeuclid(release.value, exact))
matrices = {
    "exact mean (not private)": logm(exact),
    "released mean, ε = 1": logm(release.value),
    "difference, on the same scale": logm(release.value) - logm(exact),
}
names = ["$x$", "$y$", "$I$", "$|I_x|$", "$|I_y|$", "$|I_{xx}|$", "$|I_{yy}|$"]
names += [r"$|\nabla I|$", "angle"]
top = max(abs(matrix).max() for matrix in matrices.values())

fig, axes = plt.subplots(1, 3, figsize=(11, 4.3), sharey=True, layout="constrained")
for ax, (title, matrix) in zip(axes, matrices.items(), strict=True):
    image = ax.imshow(matrix, cmap="RdBu_r", vmin=-top, vmax=top)
    ax.set_title(title)
    ax.set_xticks(range(9), names, rotation=90)
    ax.set_yticks(range(9), names)
    ax.set_xlabel("feature of a pixel")
axes[0].set_ylabel("feature of a pixel")
fig.colorbar(image, ax=axes, label="entry of the matrix logarithm", shrink=0.85)
fig.suptitle(
    f"The released mean is off by {error:.2f}; its certificate promised less than {bound:.2f}",
    fontsize=14,
)
plt.show()

# %%
# The certificate says what was done in a form that can be checked later:
# ``release.save("published")`` writes it beside the matrix, and ``spdp verify
# published`` recomputes it.

for name in ("private", "epsilon", "delta", "adjacency", "estimand"):
    print(f"{name}: {release.certificate[name]}")
