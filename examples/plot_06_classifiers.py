"""
Which private classifier?
=========================

The nearest mean, linear discriminant analysis, and what one would do with private means
alone: one for every class.

The data are images as covariance descriptors: 6,000 of MNIST if the folder
``SPDP_DATA`` holds it, else scikit-learn's 1,797 digits. Two thirds train, one third
tests.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import train_test_split

from spdp import PrivateMDM, PrivateTangentLDA, private_mean
from spdp.datasets import load_images
from spdp.descriptors import covariance_descriptors, descriptor_bounds
from spdp.errors import DataError
from spdp.geometry import distance_logeuclid, logm, vecd

try:
    images = load_images("mnist", download=False)
except DataError:
    images = load_images("digits")
X, y = covariance_descriptors(images.images[:6000]), images.labels[:6000]
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=1 / 3, stratify=y, random_state=0
)
print(images.name, X_train.shape)

# %%
# The ways
# --------
# ``PrivateMDM`` and ``PrivateTangentLDA`` release all they need together: the class of
# a person is as private as their matrix, and nothing is divided by the number of
# classes. One mean per class protects less for more: since a person may have another
# class, two of the ten means may change, so each gets half of the budget, and under
# add-remove adjacency, because the sizes of the classes are private too.

public = {"classes": range(10), "delta": 1e-6, "domain": descriptor_bounds(channels=1)}


def one_mean_per_class(epsilon):
    """Accuracy of the nearest of ten separately released means."""
    means = [
        private_mean(
            X_train[y_train == c],
            epsilon=epsilon / 2,
            delta=public["delta"] / 2,
            domain=public["domain"],
            adjacency="add-remove",
        ).value
        for c in range(10)
    ]
    distances = [distance_logeuclid(X_test, mean) for mean in means]
    return np.mean(np.argmin(distances, axis=0) == y_test)


def mdm(epsilon):
    """Accuracy of the nearest mean."""
    return PrivateMDM(epsilon=epsilon, **public).fit(X_train, y_train).score(X_test, y_test)


def lda(epsilon):
    """Accuracy of discriminant analysis with a full covariance."""
    model = PrivateTangentLDA(epsilon=epsilon, covariance="full", **public)
    return model.fit(X_train, y_train).score(X_test, y_test)


ways = {"PrivateTangentLDA, full": lda, "PrivateMDM": mdm, "a mean per class": one_mean_per_class}
epsilons = np.array([0.5, 1.0, 2.0, 4.0, 8.0])
runs = {
    name: 100 * np.array([[way(float(epsilon)) for epsilon in epsilons] for _ in range(3)])
    for name, way in ways.items()
}
plain = LinearDiscriminantAnalysis().fit(vecd(logm(X_train)), y_train)
limit = 100 * plain.score(vecd(logm(X_test)), y_test)

# %%
# Accuracy against ε
# ------------------
# Every dot is a release of its own; lines join their means.

COLOURS, MARKERS = ("#0072b2", "#e69f00", "#d55e00"), "os^"

fig, ax = plt.subplots(figsize=(10, 5), layout="constrained")
ax.axhline(limit, color="black", lw=1, ls="--", label="LDA, not private")
for (name, table), colour, marker in zip(runs.items(), COLOURS, MARKERS, strict=True):
    ax.semilogx(epsilons, table.mean(axis=0), color=colour, marker=marker, ms=3, label=name)
    ax.plot(np.tile(epsilons, len(table)), table.ravel(), marker, color=colour, ms=5, alpha=0.5)
ax.axhline(10, color="gray", lw=1, ls=":", label="guessing")
ax.set(xlabel="ε (δ = 10⁻⁶)", ylabel="test images classified right (%)", ylim=(0, 100))
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.minorticks_off()
ax.grid(alpha=0.3)
fig.legend(loc="outside right center", frameon=False)
best, naive = runs["PrivateTangentLDA, full"][:, 2].mean(), runs["a mean per class"][:, 2].mean()
ax.set_title(
    f"{images.name}, {len(X_train):,} records, ε = 2: {best:.0f} % right with one joint release, "
    f"{naive:.0f} % with ten",
    fontsize=13,
)
plt.show()
