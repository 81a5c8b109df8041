"""
EEG: many trials per person
===========================

Noise that hides one trial does not hide a person who has many. With ``groups=`` a
person counts once, with all their trials, and is what the guarantee protects.

The data are synthetic: 700 persons with 6 trials each, 19 electrodes of the 10–20
system, in volts, as ``mne.Epochs.get_data()`` gives them: (trials, channels, times).
With MNE the next cell would be ``signals = epochs.get_data()`` and ``person =
epochs.metadata["subject"].to_numpy()``.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle
from matplotlib.patheffects import withStroke
from scipy.interpolate import RBFInterpolator

from spdp import amplitude_bounds, private_mean
from spdp.geometry import mean_logeuclid

# %%
# Synthetic recordings
# --------------------
# Four sources with smooth patterns on the scalp: the occipital rhythm is the strongest,
# the last two are dipoles with a positive and a negative side. How strong each of them
# is differs from person to person.

places = {
    "Fp1": (-0.25, 0.77), "Fp2": (0.25, 0.77), "F7": (-0.65, 0.48), "F3": (-0.34, 0.42),
    "Fz": (0.0, 0.4), "F4": (0.34, 0.42), "F8": (0.65, 0.48), "T7": (-0.81, 0.0),
    "C3": (-0.4, 0.0), "Cz": (0.0, 0.0), "C4": (0.4, 0.0), "T8": (0.81, 0.0),
    "P7": (-0.65, -0.48), "P3": (-0.34, -0.42), "Pz": (0.0, -0.4), "P4": (0.34, -0.42),
    "P8": (0.65, -0.48), "O1": (-0.25, -0.77), "O2": (0.25, -0.77),
}  # fmt: skip
channels, at = list(places), np.array(list(places.values()))
k = len(channels)

rng = np.random.default_rng(0)
persons, trials, times = 700, 6, 96
sources = np.array([[-0.3, -0.9], [0.35, -0.8], [0.0, 0.8], [-0.6, 0.1]])
strength = np.array([10.0, 9.0, 9.0, 8.0])  # µV
pattern = np.exp(-((at[:, None] - sources) ** 2).sum(axis=2) / 0.4)
pattern[:, 2:] -= np.exp(-((at[:, None] + [[0.0, 0.1], [-0.6, 0.1]]) ** 2).sum(axis=2) / 0.4)
own = strength * np.exp(0.3 * rng.standard_normal((persons, 1, 1, len(sources))))
activity = rng.standard_normal((persons, trials, times, len(sources))) * own
signals = activity @ pattern.T + 3.0 * rng.standard_normal((persons, trials, times, k))
signals = 1e-6 * signals.reshape(persons * trials, times, k).swapaxes(1, 2)  # in V, as in MNE
person = np.repeat(np.arange(persons), trials)
print(signals.shape)

# %%
# Covariances, and a domain that knows units
# ------------------------------------------
# A floor of (0.5 µV)² keeps every covariance away from singular. The domain comes from
# the amplifier: nothing below that floor, nothing above 100 µV. MNE's unit is the volt.

floor = (0.5e-6) ** 2
X = signals @ signals.swapaxes(1, 2) / times + floor * np.eye(k)
domain = amplitude_bounds(k, low=0.5, high=100.0, unit="uV", data_unit="V")
release = private_mean(X, groups=person, epsilon=1.0, delta=1e-6, domain=domain)
print(release.certificate["unit"], release.certificate["n"])

# %%
# The picture
# -----------
# Left what only the holder of the data knows, right what may be published: the
# covariance matrix, and the amplitude at each electrode, which is on its diagonal.


def head(ax):
    """Outline of a head seen from above."""
    turn = np.linspace(0, 2 * np.pi, 100)
    ax.plot(np.cos(turn), np.sin(turn), color="black", lw=1.2)
    ax.plot([-0.12, 0, 0.12], [0.99, 1.12, 0.99], color="black", lw=1.2)
    ax.plot(*at.T, "o", color="black", ms=2.5)
    for name, (u, v) in places.items():
        text = ax.text(u, v + 0.04, name, ha="center", fontsize=7.5)
        text.set_path_effects([withStroke(linewidth=2, foreground="white")])
    ax.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.2), aspect="equal")
    ax.set_axis_off()


def topography(ax, amplitude, **scale):
    """Amplitudes between electrodes, by a smooth interpolation."""
    u, v = np.meshgrid(np.linspace(-1, 1, 90), np.linspace(-1, 1, 90))
    smooth = RBFInterpolator(at, amplitude)(np.stack([u, v], axis=-1).reshape(-1, 2))
    square = {"extent": (-1, 1, -1, 1), "origin": "lower"}
    image = ax.imshow(smooth.reshape(u.shape), cmap="cividis", **square, **scale)
    image.set_clip_path(Circle((0, 0), 1, transform=ax.transData))
    head(ax)
    return image


exact = mean_logeuclid(mean_logeuclid(X.reshape(persons, trials, k, k)))
means = {
    "exact mean of 700 persons (not private)": 1e12 * exact,
    "released mean, ε = 1, δ = 10⁻⁶, per person": 1e12 * release.value,
}
top = max(abs(M).max() for M in means.values())
amplitudes = [np.sqrt(M.diagonal()) for M in means.values()]
loudest = np.max(amplitudes)

fig, axes = plt.subplots(
    2, 2, figsize=(9, 8.6), layout="constrained", gridspec_kw={"height_ratios": [1.25, 1]}
)
for column, (title, M) in zip(axes.T, means.items(), strict=True):
    image = column[0].imshow(M, cmap="RdBu_r", vmin=-top, vmax=top)
    column[0].set_title(title)
    column[0].set_xticks(range(k), channels, rotation=90, fontsize=8)
    column[0].set_yticks(range(k), channels, fontsize=8)
    map_ = topography(column[1], np.sqrt(M.diagonal()), vmin=0, vmax=1.1 * loudest)
axes[0, 0].set_ylabel("electrode")
fig.colorbar(image, ax=axes[0], label="covariance (µV²)", shrink=0.8)
fig.colorbar(map_, ax=axes[1], label="amplitude (µV, RMS)", shrink=0.8)
off = np.abs(amplitudes[1] / amplitudes[0] - 1).max()
fig.suptitle(
    f"Released for persons, and right to within {100 * off:.0f} % at all 19 electrodes", fontsize=14
)
plt.show()

# %%
# Trials do not replace persons: the same array without ``groups`` would pass for 4,200
# people and get less noise, and each person would be protected with six times the ε.
# Below a few hundred persons 19 electrodes are too many; ``spdp plan`` says so before
# anything is paid.
