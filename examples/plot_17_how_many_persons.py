"""
How many persons does a study need?
===================================

``plan`` predicts the error of a private mean from public numbers alone, before anybody
is recorded and without spending any budget.

No data are read. The setting: covariances of 8 electrodes from 0.5 to 100 µV, one per
person.
"""

import matplotlib.pyplot as plt
import numpy as np

from spdp import amplitude_bounds, plan

k = 8
domain = amplitude_bounds(k, 0.5, 100.0, unit="uV", data_unit="uV")

# %%
# One plan
# --------
# What is assumed of the data must be said: here that persons lie about 1 from their
# mean (root mean square, log-Euclidean), which other studies may tell. ``print`` shows
# all.

public = {"k": k, "delta": 1e-6, "domain": domain, "spread": 1.0}
print(plan(n=500, epsilon=1.0, runs=4, **public))

# %%
# Many plans
# ----------
# One shot has an exact law; the adaptive method is simulated, four releases per point.

sizes = np.array([100, 200, 400, 800, 1600, 3200])
epsilons = (0.5, 1.0, 2.0)
plans = {e: [plan(n=int(n), epsilon=e, runs=4, **public) for n in sizes] for e in epsilons}
errors = {e: np.array([p.adaptive[0].rms for p in row]) for e, row in plans.items()}
one_shot = np.array([p.one_shot["gaussian"].rms for p in plans[1.0]])
centre = plans[1.0][0].adaptive[0].offset

# %%
# The picture
# -----------
# Below the grey area a release is worth more than the domain's centre, which costs
# nothing. The target is an error of a quarter: each eigenvalue is then off by a factor
# of at most e^0.25, by 28 %.

target = 0.25
needed = {
    e: np.exp(np.interp(-np.log(target), -np.log(error), np.log(sizes)))
    for e, error in errors.items()
}
COLOURS, MARKERS = ("#d55e00", "#0072b2", "#009e73"), "^os"

fig, ax = plt.subplots(figsize=(9.5, 5.2), layout="constrained")
for (e, error), colour, marker in zip(errors.items(), COLOURS, MARKERS, strict=True):
    ax.loglog(sizes, error, color=colour, marker=marker, lw=2, label=f"adaptive, ε = {e:g}")
    ax.plot([needed[e]] * 2, [0.01, target], color=colour, ls=":", lw=1.5)
ax.plot(sizes, one_shot, color="#0072b2", ls="--", lw=1.2, label="one shot, ε = 1")
ax.axhline(target, color="black", lw=1, label="wanted")
ax.axhspan(centre, 30, color="0.88", label="no better than\nthe domain's centre")
ax.set(xlabel="persons n", ylabel="predicted error, rms (log-Euclidean)", ylim=(0.01, 20))
ax.set_xticks(sizes, map(str, sizes))
ax.set_yticks([0.01, 0.1, target, 1, 10], ["0.01", "0.1", f"{target:g}", "1", "10"])
ax.minorticks_off()
ax.grid(alpha=0.3)
fig.legend(loc="outside right center", frameon=False)
numbers = ", ".join(f"{round(needed[e], -1):.0f} at ε = {e:g}" for e in epsilons)
ax.set_title(f"An error of {target:g} needs about {numbers}", fontsize=13)
plt.show()

# %%
# On the command line, with the number of persons as the answer: ``spdp plan --k 8 --n
# 500 --trace 0.25 80002 --epsilon 1 --delta 1e-6 --error 0.25``.
