"""
How tensors change with age
===========================

Geodesic regression: the curve of tensors that follows a covariate best, released with
differential privacy.

The data are synthetic, after what is known of white matter: 2,500 persons of 20 to 85
years, one diffusion tensor each, in mm²/s; with age the fastest direction slows down,
and diffusion across the fibres quickens.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse

from spdp import PrivateGeodesicRegression, tensor_bounds
from spdp.geometry import expm, invvecd, logm, vecd

rng = np.random.default_rng(0)
n = 2500
age = rng.uniform(20, 85, n)
young = np.log([1.6e-3, 4.0e-4, 3.5e-4])
slope = np.array([-0.003, 0.006, 0.007])  # per year, of the logarithm
turn, _ = np.linalg.qr(np.array([[0.8, -0.6, 0.0], [0.6, 0.8, 0.0], [0.0, 0.0, 1.0]]))
logs = (turn * (young + slope * (age - 20)[:, None])[:, None, :]) @ turn.T
X = expm(logs + invvecd(0.12 * rng.standard_normal((n, 6))))

# %%
# The fit
# -------
# Public are the domain, from physics, and the range that ages can have. Both are wider
# than the data, which costs little.

model = PrivateGeodesicRegression(
    ranges=(0, 110), epsilon=1.0, delta=1e-6, domain=tensor_bounds("mm2/s")
)
model.fit(X, age)
print(model.release_)

# %%
# The same without privacy: least squares in the coordinates of the logarithm.

years = np.linspace(20, 85, 8)
coefficients = np.polyfit(age, vecd(logm(X)), 1)
exact = expm(invvecd(np.outer(years, coefficients[0]) + coefficients[1]))
released = model.predict(years)
noise = model.prediction_noise(years)

# %%
# The picture
# -----------
# Above, tensors as ellipses in the plane of the fibre: exact as an outline, released
# filled. Below, their three diffusivities. The band is how far noise alone moves the
# logarithm of a tensor, at most, with 95 % probability; it says so before anybody
# compares.

COLOURS = ("#0072b2", "#e69f00", "#009e73")

fig, (top, bottom) = plt.subplots(
    2, 1, figsize=(10, 6.8), layout="constrained", gridspec_kw={"height_ratios": [1, 2.6]}
)
size = 0.95 / np.sqrt(1.6e-3)
for i, (T, P) in enumerate(zip(exact, released, strict=True)):
    for M, look in ((P, {"fc": "#56b4e9"}), (T, {"fc": "none", "ec": "black", "lw": 1.2})):
        w, U = np.linalg.eigh(M[:2, :2])
        angle = np.degrees(np.arctan2(U[1, 1], U[0, 1]))
        top.add_patch(Ellipse((i, 0), *(size * np.sqrt(w[::-1])), angle=angle, **look))
top.set(xlim=(-0.6, len(years) - 0.4), ylim=(-0.5, 0.5), yticks=[], aspect="equal")
top.set_xticks(range(len(years)), [f"{year:.0f} years" for year in years])
top.spines[:].set_visible(False)
top.tick_params(length=0)

unit = 1e3  # µm²/ms
widths = [np.linalg.eigvalsh(T)[:, ::-1] * unit for T in (exact, released)]
names = ("along the fibres", "across", "across, slower")
for i, (colour, name) in enumerate(zip(COLOURS, names, strict=True)):
    low, high = (widths[1][:, i] * np.exp(sign * noise) for sign in (-1, 1))
    bottom.fill_between(years, low, high, color=colour, alpha=0.2, lw=0)
    bottom.plot(years, widths[1][:, i], color=colour, lw=2.5, label=f"{name}, released")
    bottom.plot(years, widths[0][:, i], color="black", lw=1.2, ls="--")
bottom.plot([], [], color="black", lw=1.2, ls="--", label="exact (not private)")
bottom.fill_between([], [], [], color="gray", alpha=0.3, lw=0, label="noise, 95 %")
bottom.set(xlabel="age (years)", ylabel="diffusivity (µm²/ms)", ylim=(0, None), xlim=(20, 85))
bottom.grid(alpha=0.3)
fig.legend(loc="outside right center", frameon=False)
changes = [100 * abs(w[-1, 0] / w[0, 0] - 1) for w in widths]
fig.suptitle(
    f"From 20 to 85 diffusion along the fibres slows down by {changes[1]:.0f} %, as released "
    f"at ε = 1 (exact: {changes[0]:.0f} %)",
    fontsize=13,
)
plt.show()
