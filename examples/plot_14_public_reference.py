"""
Few records, and a public study of the same kind
================================================

With few records most of the budget goes into finding out where they lie. Public data of
the same kind say so for free: ``reference=Reference.from_public(...)``.

The data are scikit-learn's digits as 9×9 covariance descriptors. Images of 0 to 4 play
the public study, which is of the same kind but not of the same people; images of 5 to 9
are the private ones.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

from spdp import Reference, private_mean
from spdp.datasets import load_images
from spdp.descriptors import covariance_descriptors, descriptor_bounds
from spdp.errors import DomainMismatch
from spdp.geometry import distance_logeuclid, mean_logeuclid

digits = load_images("digits")
X = covariance_descriptors(digits.images)
public, private = X[digits.labels < 5], X[digits.labels >= 5]
reference = Reference.from_public(public)
print(f"{reference.n} public records, typically {reference.spread:.2f} from their mean")

# %%
# With and without
# ----------------
# The reference is not trusted blindly: a share of the budget checks, privately, that
# the private records lie there. Five releases for each number of records. With so few
# of them the private estimate of how many lie outside the domain is rough, and may warn
# by chance; here no image can.

sizes, repeats = (100, 150, 200, 400, 800), 5
asked = {"epsilon": 1.0, "delta": 1e-6, "domain": descriptor_bounds(channels=1)}
ways = {"without": None, "with a public reference": reference}
errors = {name: np.empty((repeats, len(sizes))) for name in ways}
for j, n in enumerate(sizes):
    records = private[:n]
    exact = mean_logeuclid(records)
    for name, prior in ways.items():
        for i in range(repeats):
            with warnings.catch_warnings(action="ignore", category=DomainMismatch):
                release = private_mean(records, reference=prior, method="adaptive", **asked)
            errors[name][i, j] = distance_logeuclid(release.value, exact)
apart = [distance_logeuclid(mean_logeuclid(public), mean_logeuclid(private[:n])) for n in sizes]

# %%
# The picture
# -----------
# Each dot is a release; lines join the rms errors. The dotted line is what the public
# mean alone would give, without any private data. Where there are many private records
# the search does without the reference.

COLOURS = {"without": "#d55e00", "with a public reference": "#0072b2"}

fig, ax = plt.subplots(figsize=(9.5, 5), layout="constrained")
for name, table in errors.items():
    rms = np.sqrt((table**2).mean(axis=0))
    ax.loglog(sizes, rms, color=COLOURS[name], marker="o", label=name, lw=2)
    ax.plot(np.tile(sizes, repeats), table.ravel(), "o", color=COLOURS[name], ms=4, alpha=0.4)
ax.plot(sizes, apart, color="black", ls=":", label="the public mean itself")
ax.set(xlabel="private records n", ylabel="error (log-Euclidean distance)")
ax.set_xticks(sizes, map(str, sizes))
ax.set_yticks([0.1, 0.2, 0.5, 1, 2, 5, 10], ["0.1", "0.2", "0.5", "1", "2", "5", "10"])
ax.minorticks_off()
ax.grid(alpha=0.3)
fig.legend(loc="outside right center", frameon=False)
rms = {name: np.sqrt((table[:, 2] ** 2).mean()) for name, table in errors.items()}
ratio = rms["without"] / rms["with a public reference"]
ax.set_title(
    f"With {sizes[2]} records a public reference makes the error {ratio:.0f} times smaller",
    fontsize=13,
)
plt.show()
