"""
Several hospitals, one release
==============================

No hospital has enough patients for a useful private mean; together they have. Each adds
up its own records exactly, the sums travel to a trusted curator, and noise is added
once.

The data are synthetic: five hospitals with 60 to 400 persons, one 4×4 covariance each.
"""

import matplotlib.pyplot as plt
import numpy as np

from spdp import EigenvalueBounds, PrivateFrechetMean
from spdp.geometry import distance_logeuclid, expm, invvecd, mean_logeuclid

rng = np.random.default_rng(0)
sizes = {"Aarhus": 60, "Basel": 110, "Cork": 180, "Delft": 260, "Évora": 400}
sites = {
    name: expm(invvecd(0.4 * rng.standard_normal((n, 10)) + 0.1 * rng.standard_normal(10)))
    for name, n in sizes.items()
}
public = {"epsilon": 1.0, "delta": 1e-6, "domain": EigenvalueBounds(0.05, 20.0)}

# %%
# Sums that travel
# ----------------
# ``partial_fit`` adds up; ``merge`` takes over another estimator's sum, exactly, as if
# all records had been in one place; ``release`` adds noise, once. Between files the
# same is ``spdp sum site.npy -o site.sum`` at each hospital and ``spdp merge *.sum`` at
# the curator's. A sum that has not been released is as sensitive as the records.

everyone = PrivateFrechetMean(**public)
for records in sites.values():
    site = PrivateFrechetMean(**public).partial_fit(records)
    everyone.merge(site)
everyone.release()
print(everyone.release_, everyone.certificate_["n"])

# %%
# To compare: what each could have released alone, by the same method.

alone = {
    name: PrivateFrechetMean(**public).partial_fit(records).release()
    for name, records in sites.items()
}

# %%
# The picture
# -----------
# Bars are what the certificates promise, known before any comparison; dots are the
# errors, each to the exact mean of its own records. A promise holds with 95 %, so that
# one in twenty dots may lie above its bar. With so few coordinates Laplace noise is the
# better one, and δ is 0.

exact = {name: mean_logeuclid(records) for name, records in sites.items()}
together = mean_logeuclid(np.concatenate(list(sites.values())))
names = [*(f"{name}\nn = {n}" for name, n in sizes.items()), f"together\nn = {sum(sizes.values())}"]
models = [*alone.values(), everyone]
bounds = [model.release_.error_bound(0.95) for model in models]
targets = [*exact.values(), together]
errors = [distance_logeuclid(m.mean_, M) for m, M in zip(models, targets, strict=True)]

fig, ax = plt.subplots(figsize=(9.5, 5), layout="constrained")
colours = ["#56b4e9"] * len(sites) + ["#0072b2"]
ax.bar(names, bounds, color=colours, width=0.6, label="error promised, 95 %")
ax.plot(names, errors, "o", color="#d55e00", ms=8, label="error")
ax.set(ylabel="log-Euclidean distance", xlabel="who releases, at ε = 1")
handles, labels = ax.get_legend_handles_labels()
fig.legend(handles[::-1], labels[::-1], loc="outside right center", frameon=False)
ax.set_title(
    f"Together the hospitals promise {bounds[-1]:.2f}; the largest alone {bounds[-2]:.2f}, "
    f"the smallest {bounds[0]:.2f}",
    fontsize=13,
)
plt.show()
