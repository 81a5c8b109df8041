"""
Minimum distance to mean, privately
===================================

``PrivateMDM`` has the interface of pyRiemann's ``MDM`` and releases its class means
with differential privacy. Which mistakes does that add, and how large must ε be?

The data are scikit-learn's digits as 9×9 covariance descriptors: half of them to train,
about 90 of each class, which is few; half to test. pyRiemann's ``MDM`` in the same
metric is the classifier without privacy.
"""

import matplotlib.pyplot as plt
import numpy as np
from pyriemann.classification import MDM
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split

from spdp import PrivateMDM
from spdp.datasets import load_images
from spdp.descriptors import covariance_descriptors, descriptor_bounds

digits = load_images("digits")
X = covariance_descriptors(digits.images)
X_train, X_test, y_train, y_test = train_test_split(
    X, digits.labels, test_size=0.5, stratify=digits.labels, random_state=0
)

# %%
# Three budgets, and none
# -----------------------
# The classes are public and must be given: a list found in the labels would tell of the
# records. All ten means and the sizes of the classes are one release. (Fitting three
# times, as here, costs all three budgets; test images are other people's, so that
# predicting for them costs nothing.)

models = {"pyRiemann, not private": MDM(metric="logeuclid")}
for epsilon in (8.0, 2.0, 1.0):
    models[f"private, ε = {epsilon:g}"] = PrivateMDM(
        classes=range(10), epsilon=epsilon, delta=1e-6, domain=descriptor_bounds(channels=1)
    )
tables = {}
for name, model in models.items():
    model.fit(X_train, y_train)
    tables[name] = confusion_matrix(y_test, model.predict(X_test), normalize="true")

# %%
# Confusion
# ---------

fig, axes = plt.subplots(1, 4, figsize=(14, 4.2), sharey=True, layout="constrained")
for ax, (name, table) in zip(axes, tables.items(), strict=True):
    image = ax.imshow(100 * table, cmap="cividis", vmin=0, vmax=100)
    ax.set(title=f"{name}\n{100 * np.mean(table.diagonal()):.0f} % right", xlabel="predicted digit")
    ax.set_xticks(range(10))
    ax.set_yticks(range(10))
axes[0].set_ylabel("true digit")
fig.colorbar(image, ax=axes, label="% of the true digit's images", shrink=0.85)
right = [100 * np.mean(table.diagonal()) for table in tables.values()]
fig.suptitle(
    f"With 90 images per class: {right[0]:.0f} % right without privacy, "
    f"{right[1]:.0f} % at ε = 8, {right[3]:.0f} % at ε = 1",
    fontsize=14,
)
plt.show()

# %%
# What ``fit`` learnt may be published, as one release with its certificate.

print(models["private, ε = 2"].release_)
