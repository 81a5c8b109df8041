"""Draw the picture of the start page: `python docs/picture.py`.

A handwritten digit's ink has a covariance matrix, which is an ellipse. Grey: all zeros
of scikit-learn's digits; dashed: their exact mean; blue: one release each. Noise is
drawn anew in every run.
"""

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

from spdp import TraceBounds, private_mean
from spdp.datasets import load_images
from spdp.geometry import mean_logeuclid

HERE = Path(__file__).parent
EPSILONS = (0.1, 0.5, 2.0)
FLOOR = 0.01  # added to both variances
INKS = {  # of the words, the records, the exact mean, the release
    "light": ("#24292f", "#b8c0c8", "#b45309", "#0b5394"),
    "dark": ("#e6edf3", "#7d8896", "#f6b26b", "#8ec5ff"),
}


def ink_covariances(digit):
    """Covariances (n, 2, 2) of where the ink of a digit's images lies, in [0, 1]²."""
    digits = load_images("digits")
    images = np.asarray(digits.images, float)[np.asarray(digits.labels) == digit]
    weights = images / images.sum((1, 2), keepdims=True)
    place = np.stack(np.meshgrid(*2 * [np.linspace(0, 1, 8)]), -1).reshape(-1, 2)
    flat = weights.reshape(len(images), -1)
    away = place - (flat @ place)[:, None]
    return np.einsum("np,npi,npj->nij", flat, away, away) + FLOOR * np.eye(2)


def outline(matrix):
    """Where xᵀ·matrix⁻¹·x = 1."""
    angle = np.linspace(0, 2 * np.pi, 100)
    return np.linalg.cholesky(matrix) @ [np.cos(angle), np.sin(angle)]


def draw(X, releases, inks, file):
    words, record, exact, released = inks
    with mpl.rc_context({"font.size": 14, "text.color": words}):
        figure, panels = plt.subplots(1, 3, figsize=(7, 2.9), sharex=True, sharey=True)
        for axes, (epsilon, release) in zip(panels, releases.items(), strict=True):
            for matrix in X[::2]:
                axes.plot(*outline(matrix), color=record, lw=0.4, alpha=0.6)
            axes.plot(*outline(release.value), color=released, lw=3, label="released")
            axes.plot(*outline(mean_logeuclid(X)), "--", color=exact, lw=1.8, label="exact mean")
            axes.set_title(f"ε = {epsilon:g}", fontsize=14)
            axes.set_aspect("equal")
            axes.axis("off")
        axes.plot([], [], color=record, label="people (not published)")
        order = [2, 1, 0]
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(
            [handles[i] for i in order], [labels[i] for i in order],
            loc="lower center", ncols=3, frameon=False, columnspacing=1.2,
        )  # fmt: skip
        figure.subplots_adjust(left=0, right=1, top=0.88, bottom=0.13, wspace=0)
        figure.savefig(file, dpi=170, transparent=True, pil_kwargs={"quality": 60, "method": 6})
        plt.close(figure)


def main():
    X = ink_covariances(0)
    domain = TraceBounds(FLOOR, 0.5 + 2 * FLOOR)  # a variance in [0, 1] is at most 1/4
    releases = {e: private_mean(X, epsilon=e, delta=1e-6, domain=domain) for e in EPSILONS}
    for name, inks in INKS.items():
        draw(X, releases, inks, HERE / "_static" / f"start-{name}.webp")
    print(len(X), "records", {e: r.certificate["mechanism"] for e, r in releases.items()})


if __name__ == "__main__":
    main()
