"""
Error against ε, and the bound that holds
=========================================

Every release states a bound on its whole error. Does it hold, and how wide is it?

The data are scikit-learn's 1,797 digits as covariance descriptors. They are public, so
that errors can be measured: each dot below is one private release and its distance from
the exact mean.
"""

import matplotlib.pyplot as plt
import numpy as np

from spdp import private_mean
from spdp.datasets import load_images
from spdp.descriptors import covariance_descriptors, descriptor_bounds
from spdp.geometry import distance_logeuclid, mean_logeuclid

X = covariance_descriptors(load_images("digits").images)
exact = mean_logeuclid(X)
domain = descriptor_bounds(channels=1)

# %%
# Ten releases for each ε
# -----------------------
# In practice one would release once: ten releases cost ten budgets. One shot, with one
# noisy sum over the whole domain, has an error whose law is known exactly; the adaptive
# method first finds, privately, where the data lie.

epsilons, repeats = np.array([0.5, 1.0, 2.0, 4.0, 8.0]), 10
errors = np.empty((len(epsilons), repeats))
bounds = np.empty_like(errors)
one_shot = []
for i, epsilon in enumerate(epsilons):
    paying = {"epsilon": float(epsilon), "delta": 1e-6, "domain": domain}
    for j in range(repeats):
        release = private_mean(X, method="adaptive", **paying)
        errors[i, j] = distance_logeuclid(release.value, exact)
        bounds[i, j] = release.error_bound(0.95)
    one_shot.append(private_mean(X, method="oneshot", **paying).error_bound(0.95))

# %%
# The picture
# -----------
# The grey line is what one shot promises. Each error is joined to its own bound.

held = int((errors <= bounds).sum())
place = epsilons[:, None] * np.exp(np.linspace(-0.16, 0.16, repeats))

fig, ax = plt.subplots(figsize=(9, 5), layout="constrained")
ax.loglog(
    epsilons, one_shot, color="gray", ls="--", marker="D", ms=5, label="95 % bound,\none shot"
)
ax.vlines(place, errors, bounds, color="#56b4e9", lw=1, alpha=0.6)
ax.plot(
    place.ravel(), bounds.ravel(), "_", color="#0072b2", ms=8, mew=2, label="95 % bound,\nadaptive"
)
ax.plot(place.ravel(), errors.ravel(), "o", color="#d55e00", ms=4, label="its error")
ax.set(xlabel="ε (δ = 10⁻⁶)", ylabel="log-Euclidean distance")
ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
ax.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5, 1, 2], ["0.02", "0.05", "0.1", "0.2", "0.5", "1", "2"])
ax.minorticks_off()
ax.grid(alpha=0.3)
fig.legend(loc="outside right center", frameon=False)
ax.set_title(f"{held} of {errors.size} errors are below their stated 95 % bounds", fontsize=14)
plt.show()

# %%
# The bound covers noise, clipping and shrinkage, and must hold for any records
# whatsoever: it is honest rather than tight.

print(f"bound over error, median: {np.median(bounds / errors):.1f}")
