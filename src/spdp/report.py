"""Pictures of a release: one self-contained HTML page, and the plots of a plan."""

import html
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp.errors import DataError
from spdp.privacy import gaussian_epsilon
from spdp.release import Release

__all__ = ["html_report", "ledger_picture", "plan_png", "terminal_curve"]

Array = NDArray[np.float64]

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b2733}
h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.15rem;margin-top:2rem}
.figures{display:flex;flex-wrap:wrap;gap:1.5rem}figure{margin:0}figcaption{font-size:.85rem;color:#566}
pre{background:#f4f6f8;padding:1rem;overflow:auto;font-size:.8rem}
.warn{background:#fdecea;border-left:4px solid #b3261e;padding:.6rem 1rem}
.ok{background:#eaf5ee;border-left:4px solid #1e7a3c;padding:.6rem 1rem}svg text{font-family:inherit}
"""
MEANING = {
    "replace-one": "whoever sees it can hardly tell whether any one record had been another one",
    "add-remove": "whoever sees it can hardly tell whether any one record was in the data at all",
}


def html_report(release: Release) -> str:
    """A page with the matrix, the guarantee in plain words, the law of the error and the certificate."""
    c = release.certificate
    pictures = [_figure(_heat_map(release.value), "The released matrix.")]
    k = len(release.value)
    if k in (2, 3) and np.linalg.eigvalsh(release.value)[0] > 0:
        pictures.append(_figure(_ellipses(release.value), "Its ellipse." if k == 2 else "Its ellipsoid, seen along each axis."))
    pictures.append(_figure(_error_curve(release), "How far the release may be from what it estimates."))
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Private mean</title>
<meta name="viewport" content="width=device-width"><style>{STYLE}</style></head><body>
<h1>Private Fréchet mean</h1><p>{k}×{k} matrix, {_who(c)}, {html.escape(str(c["created"]))}</p>
{_words(c, release)}<h2>Pictures</h2><div class="figures">{"".join(pictures)}</div>
<h2>Certificate</h2><pre>{html.escape(json.dumps(c, indent=2))}</pre></body></html>"""


def _who(c: dict[str, Any]) -> str:
    if c["n"] is not None:
        return f"{c['n']:,} records"
    return f"about {c['n_estimate']:,.0f} records" if c.get("n_estimate") else "a stated summary"


def _words(c: dict[str, Any], release: Release) -> str:
    if not c["private"]:
        return '<p class="warn"><b>Not private.</b> This is a seeded simulation and must not be published as a private release.</p>'
    meaning = MEANING.get(c["adjacency"], "the guarantee holds for the sensitivity that was stated")
    odds = f"e<sup>{c['epsilon']:g}</sup> = {np.exp(min(c['epsilon'], 700.0)):.3g}"
    slip = "" if not c["delta"] else f", except with a probability of at most {c['delta']:g}"
    bound = float(np.sqrt(c["squared_error_quantiles"]["95%"]))
    floats = "" if c["float_safe"] else " The noise was sampled in floating point, so the guarantee holds up to rounding."
    return (
        f'<p class="ok"><b>({c["epsilon"]:g}, {c["delta"]:g})-differentially private.</b> Of this page and everything made from it: '
        f"{meaning}. The chances of any outcome change by a factor of at most {odds}{slip}.{floats}</p>" + _accuracy(c, bound)
    )


def _accuracy(c: dict[str, Any], bound: float) -> str:
    if "steps" in c:
        return (
            f"<p>With a probability of 95 %, noise moved the result by at most <b>{bound:.4g}</b> (log-Euclidean). Records far from the "
            f"others were clipped to a ball found privately in {len(c['steps'])} steps; the bias this may cause is not known.</p>"
        )
    return (
        f"<p>With a probability of 95 %, the distance to the mean of the clipped records is at most <b>{bound:.4g}</b> (log-Euclidean).</p>"
    )


def _figure(svg: str, caption: str) -> str:
    return f"<figure>{svg}<figcaption>{caption}</figcaption></figure>"


def _color(t: float) -> str:
    """Blue, white, red for t in [-1, 1]."""
    end = np.array([178, 24, 43]) if t > 0 else np.array([33, 102, 172])
    r, g, b = (255 + (end - 255) * min(1.0, abs(t))).astype(int)
    return f"rgb({r},{g},{b})"


def _heat_map(M: Array, size: int = 340) -> str:
    k = len(M)
    cell = size / k
    top = float(np.abs(M).max()) or 1.0
    parts = []
    for (i, j), value in np.ndenumerate(M):
        x, y = j * cell, i * cell
        parts.append(
            f'<rect x="{x:.2f}" y="{y:.2f}" width="{cell:.2f}" height="{cell:.2f}" fill="{_color(value / top)}">'
            f"<title>({i}, {j}): {value:.6g}</title></rect>"
        )
        if k <= 11:
            ink = "#fff" if abs(value) > 0.6 * top else "#222"
            parts.append(
                f'<text x="{x + cell / 2:.2f}" y="{y + cell / 2:.2f}" fill="{ink}" font-size="{min(14.0, cell / 3.6):.1f}" '
                f'text-anchor="middle" dominant-baseline="central">{value:.2g}</text>'
            )
    return f'<svg role="img" aria-label="heat map" width="{size}" height="{size}">{"".join(parts)}</svg>'


def _ellipses(M: Array, size: int = 170) -> str:
    """Level sets xᵀM⁻¹x = 1, projected on each pair of axes: ellipses of the 2×2 submatrices."""
    pairs = [(i, j) for i in range(len(M)) for j in range(i + 1, len(M))]
    reach = float(np.sqrt(np.diagonal(M).max()))
    angle = np.linspace(0.0, 2 * np.pi, 121)
    parts = []
    for place, (i, j) in enumerate(pairs):
        root = np.linalg.cholesky(M[np.ix_([i, j], [i, j])])
        x, y = root @ np.stack([np.cos(angle), np.sin(angle)]) * (0.42 * size / reach)
        points = " ".join(f"{place * size + size / 2 + a:.1f},{size / 2 - b:.1f}" for a, b in zip(x, y, strict=True))
        parts.append(f'<polygon points="{points}" fill="#cfe0f1" stroke="#2166ac" stroke-width="2"/>')
        parts.append(f'<text x="{place * size + 8}" y="{size - 8}" font-size="12">axes {i}, {j}</text>')
    return f'<svg role="img" aria-label="ellipses" width="{size * len(pairs)}" height="{size}">{"".join(parts)}</svg>'


def _error_curve(release: Release, width: int = 400, height: int = 260) -> str:
    p = np.array([0.001, 0.01, *np.linspace(0.05, 0.95, 19), 0.99, 0.999])
    rho = np.sqrt(release.squared_error.ppf(p))
    left, bottom, top = 46, height - 40, 12
    x = left + (width - left - 14) * rho / rho[-1]
    y = bottom - (bottom - top) * p
    line = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip([left, *x], [bottom, *y], strict=True))
    marks = []
    for level in (0.5, 0.95):
        at = float(np.sqrt(release.squared_error.ppf(level)))
        px, py = left + (width - left - 14) * at / rho[-1], bottom - (bottom - top) * level
        marks.append(
            f'<circle cx="{px:.1f}" cy="{py:.1f}" r="4" fill="#b2182b"/>'
            f'<text x="{px - 8:.1f}" y="{py - 6:.1f}" font-size="12" text-anchor="end">{level:.0%}: {at:.3g}</text>'
        )
    axes = (
        f'<path d="M{left},{top}V{bottom}H{width - 10}" fill="none" stroke="#889"/>'
        f'<text x="{(width + left) / 2}" y="{height - 8}" font-size="12" text-anchor="middle">log-Euclidean distance</text>'
        f'<text x="{left - 6}" y="{top + 8}" font-size="12" text-anchor="end">1</text>'
        f'<text x="{left - 6}" y="{bottom}" font-size="12" text-anchor="end">0</text>'
        f'<text x="14" y="{height / 2}" font-size="12" text-anchor="middle" transform="rotate(-90 14 {height / 2})">probability</text>'
    )
    curve = f'<polyline points="{line}" fill="none" stroke="#2166ac" stroke-width="2"/>'
    return f'<svg role="img" aria-label="error law" width="{width}" height="{height}">{axes}{curve}{"".join(marks)}</svg>'


def terminal_curve(x: Array, y: Array, label: str, width: int = 44) -> list[str]:
    """A decreasing curve as bars on a logarithmic scale, one line per point."""
    logs = np.log10(y)
    low, high = np.floor(logs.min()), logs.max()
    bars = np.maximum(1, np.rint(width * (logs - low) / max(high - low, 1e-9))).astype(int)
    return [f"{label} = {a:>13,.0f}  {'█' * b:<{width}}  {v:.3g}" for a, b, v in zip(x, bars, y, strict=True)]


def _new_figure() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise DataError("a PNG plot needs matplotlib; install it with: pip install 'spdp[plots]'") from None
    return Figure(figsize=(6.4, 4.2), layout="constrained")


def ledger_picture(path: str | Path, history: list[dict[str, Any]], epsilon: float, delta: float) -> Path:
    """Plot of the budget spent over the releases of a ledger."""
    total = np.sqrt(np.cumsum([0.0] + [entry["mu"] ** 2 for entry in history]))
    spent = [gaussian_epsilon(delta, float(mu)) if mu > 0 and delta > 0 else 0.0 for mu in total]
    if delta == 0:
        spent = list(np.cumsum([0.0] + [entry["pure"] for entry in history]))
    figure = _new_figure()
    axes = figure.subplots()
    axes.step(range(len(spent)), spent, where="post", marker="o", label="spent")
    axes.axhline(epsilon, color="tab:red", linestyle="--", label=f"budget ε = {epsilon:g}")
    axes.set(xlabel="releases", ylabel=f"ε at δ = {delta:g}", title="Privacy budget", ylim=(0, 1.08 * max(epsilon, spent[-1])))
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=150)
    return Path(path)


def plan_png(path: str | Path, n: Array, errors: dict[str, Array], chosen: int) -> Path:
    """Plot of root-mean-square error against the number of records, one line per mechanism."""
    figure = _new_figure()
    axes = figure.subplots()
    for name, values in errors.items():
        axes.loglog(n, values, label=name)
    axes.axvline(chosen, color="0.6", linestyle=":", label=f"n = {chosen:,}")
    axes.set(xlabel="number of records", ylabel="rms log-Euclidean error", title="Expected error of a private mean")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    figure.savefig(path, dpi=150)
    return Path(path)
