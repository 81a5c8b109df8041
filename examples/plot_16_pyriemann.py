"""
A private mean inside pyRiemann
===============================

pyRiemann's classes take a callable where they take the name of a metric. A private mean
is such a callable: ``MDM``, ``TangentSpace`` and the rest of a pipeline stay as they
are.

The data are synthetic: trials of two mental tasks, 6 electrodes, one trial each of
1,200 persons. 400 other persons are there to test.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from pyriemann.classification import MDM
from pyriemann.estimation import Covariances
from pyriemann.tangentspace import TangentSpace
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score

from spdp import EigenvalueBounds, Ledger, PrivateMDM, private_mean

rng = np.random.default_rng(0)


def recordings(persons):
    """Signals (persons, 6, 128) in units of 10 µV, and which task each is of."""
    task = np.arange(persons) % 2
    gain = np.ones((persons, 6, 1))
    gain[task == 0, 1] = gain[task == 1, 4] = 1.3  # left or right motor cortex
    gain = gain * np.exp(0.15 * rng.standard_normal(gain.shape))
    mixing = np.eye(6) + 0.4 * np.eye(6, k=1) + 0.4 * np.eye(6, k=-1)
    return gain * (mixing @ rng.standard_normal((persons, 6, 128))), task


covariances = Covariances(estimator="lwf")  # learns nothing: it works trial by trial
signals, task = recordings(1200)
X = covariances.transform(signals)
signals, other_task = recordings(400)
X_other = covariances.transform(signals)

# %%
# The callable
# ------------
# pyRiemann calls it for the mean of each class, and each call is a release: a ledger
# counts what they cost together. Who did which task, and how many did, is public here,
# since the protocol of the study says so.

ledger = Ledger(Path(tempfile.mkdtemp()) / "tasks.ledger", epsilon=3.0, delta=1e-5)
budget = {"epsilon": 1.0, "delta": 1e-6, "domain": EigenvalueBounds(0.02, 50.0)}


def mean_private(X, sample_weight=None):
    """A mean as pyRiemann calls it: all records weigh the same."""
    return private_mean(X, ledger=ledger, **budget).value


# %%
# Classes of pyRiemann with it
# ----------------------------
# ``MDM`` takes mean and distance apart. ``PrivateMDM`` is spdp's own: one release, in
# which the task of a person is protected as well.

models = {
    "MDM, not private": MDM(metric="logeuclid"),
    "MDM with private means": MDM(metric={"mean": mean_private, "distance": "logeuclid"}),
    "PrivateMDM": PrivateMDM(classes=[0, 1], **budget),
}
for model in models.values():
    model.fit(X, task)
print(f"the ledger: {ledger.spent()['entries']} releases, ε = {ledger.spent()['epsilon']:.2f}")

# %%
# A tangent space at a private mean is a transformer like any other. The mean in it may
# be published; what a later step learns from the same people would not be private. Here
# another clinic takes the published space and learns from its own people.

space = TangentSpace(metric={"mean": mean_private, "map": "logeuclid"}).fit(X)
V_other = space.transform(X_other)
scores = cross_val_score(LinearDiscriminantAnalysis(), V_other, other_task)
print(f"at the other clinic {100 * scores.mean():.0f} % right")

# %%
# The picture
# -----------
# A test trial is decided by the nearer of two means: below the diagonal for task B,
# above it for task A.

COLOURS, MARKERS = ("#0072b2", "#e69f00"), "os"

fig, axes = plt.subplots(1, 3, figsize=(13, 4.9), sharex=True, sharey=True, layout="constrained")
low, high = 0.3, 2.1
right = []
for ax, (name, model) in zip(axes, models.items(), strict=True):
    distances = model.transform(X_other)
    right.append(100 * np.mean(model.predict(X_other) == other_task))
    for c, (colour, marker) in enumerate(zip(COLOURS, MARKERS, strict=True)):
        mine = distances[other_task == c]
        ax.plot(*mine.T, marker, color=colour, ms=4, alpha=0.6, label=f"task {'AB'[c]}")
    ax.plot([low, high], [low, high], color="black", lw=1, label="decision")
    ax.set(title=f"{name}: {right[-1]:.0f} % right", aspect="equal")
    ax.set(xlim=(low, high), ylim=(low, high), xlabel="distance to the mean of task A")
axes[0].set_ylabel("distance to the mean of task B")
handles, labels = axes[0].get_legend_handles_labels()
fig.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
fig.suptitle(
    f"pyRiemann's MDM with private means decides as before: {right[1]:.0f} % against "
    f"{right[0]:.0f} % right",
    fontsize=14,
)
plt.show()
