"""
A study's budget in a ledger
============================

A data set is asked more than once. A ledger adds up exactly what all releases cost
together, commits each cost before any noise is drawn, and refuses what would exceed the
budget.

The data are synthetic: 3,000 persons, 3×3 diffusion tensors in mm²/s, an age, and a
group.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from spdp import (
    BudgetExceeded,
    Ledger,
    private_difference,
    private_dispersion,
    private_mean,
    private_median,
    private_pca,
    private_regression,
    tensor_bounds,
)
from spdp.geometry import expm, invvecd

rng = np.random.default_rng(0)
n = 3000
age, group = rng.uniform(20, 80, n), rng.integers(0, 2, n)
change = 0.004 * (age - 50)[:, None] * [1, 1, 1, 0, 0, 0] + 0.1 * group[:, None]
X = 8e-4 * expm(invvecd(change + 0.25 * rng.standard_normal((n, 6))))

# %%
# Releases, until the budget is spent
# -----------------------------------
# The ledger is a file beside the data; every function takes it. Here eight questions
# are asked, of ε = 0.8 each, with a budget of ε = 2 for the whole study. The mean is
# asked for with Gaussian noise: that of all the others, which adds up best.

ledger = Ledger(Path(tempfile.mkdtemp()) / "study.ledger", epsilon=2.0, delta=1e-5)
asked = {"epsilon": 0.8, "delta": 1e-6, "domain": tensor_bounds("mm2/s"), "ledger": ledger}
questions = {
    "mean": lambda: private_mean(X, mechanism="gaussian", **asked),
    "dispersion": lambda: private_dispersion(X, **asked),
    "trend\nwith age": lambda: private_regression(X, age, ranges=(0, 100), **asked),
    "groups\ndiffer?": lambda: private_difference(X, group, classes=(1, 0), **asked),
    "median": lambda: private_median(X, **asked),
    "components": lambda: private_pca(X, n_components=2, **asked),
    "first\nhalf": lambda: private_mean(X[: n // 2], mechanism="gaussian", **asked),
    "second\nhalf": lambda: private_mean(X[n // 2 :], mechanism="gaussian", **asked),
}
spent, refused = [], []
for name, ask in questions.items():
    try:
        ask()
    except BudgetExceeded as error:
        print(f"{name}: refused; ε = {error.fits:.2f} would still fit".replace("\n", " "))
        refused.append(name)
    spent.append(ledger.spent()["epsilon"])

# %%
# What was spent
# --------------
# Adding up ε would have stopped the study after two releases. The ledger composes the
# noise itself, exactly, and gets further. A refusal costs nothing.

answered = [name not in refused for name in questions]
added = 0.8 * np.cumsum(answered)
place = np.arange(len(questions))

fig, ax = plt.subplots(figsize=(10, 5), layout="constrained")
before = np.concatenate([[0.0], spent[:-1]])
ax.bar(place, before, color="#56b4e9", label="spent before")
ax.bar(place, np.subtract(spent, before), bottom=before, color="#0072b2", label="this release")
ax.plot(place, added, "D", color="#e69f00", label="ε added up")
ax.axhline(ledger.epsilon, color="black", ls="--", label="budget")
no = [i for i, yes in enumerate(answered) if not yes]
ax.plot(no, np.full(len(no), ledger.epsilon + 0.2), "X", color="#d55e00", ms=12, label="refused")
ax.set_xticks(place, questions)
ax.set(xlabel="question, in the order asked", ylabel="ε at δ = 10⁻⁵")
fig.legend(loc="outside right center", frameon=False)
ax.set_title(
    f"{sum(answered)} releases of ε = 0.8 fit into a budget of ε = {ledger.epsilon:g}; "
    f"{len(refused)} more {'was' if len(refused) == 1 else 'were'} refused",
    fontsize=14,
)
plt.show()

# %%
# What is left, and what has been done, can be looked up at any time; on the command
# line by ``spdp ledger show study.ledger``.

print(ledger.remaining())
for entry in ledger.history():
    print(entry["id"], entry["state"])
