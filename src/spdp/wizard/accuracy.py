"""An error in the terms of its users: "mean diffusivity within 5 %".

A release errs by a distance of its metric. What that means for a diffusivity, an
eigenvalue or a correlation is computed by moving a public, typical matrix of the
instrument by that distance in many directions.

*Assumed.* The typical matrix resembles the mean, and no direction of the error is
likelier than another, as in every prediction of a plan. *Therefore* these are
predictions, for choosing ε; no certificate states them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import exp, sqrt
from typing import Any

import numpy as np

from spdp.charts import chart_of
from spdp.kernels.arrays import Array
from spdp.wizard.instruments import Connectomes, Diffusion, Instrument, Signals

DISTANCES = np.geomspace(3e-3, 5.0, 8)  # at which matrices are moved
NUMBERS = 20_000  # entries of all moved matrices at one distance, about
MOST, LEAST = 200, 12  # directions
TENSOR = (1.7e-3, 0.3e-3, 0.3e-3)  # mm²/s, of white matter
TYPICAL = 0.3  # correlation of two channels, or regions

Measure = Callable[[Array, Array], float]


@dataclass(frozen=True)
class Term:
    """A quantity in which an error is stated.

    Attributes
    ----------
    title, unit : str
    start : float
        A usual wish, in the unit.
    measure : callable
        From a matrix and many moved ones (m, k, k): their typical change, in the unit.
    text : str
        How a value is said.
    """

    title: str
    unit: str
    start: float
    measure: Measure
    text: str

    def say(self, value: float) -> str:
        """A value in words."""
        return self.text.format(value)


def _rms(x: Any) -> float:
    return float(np.sqrt(np.mean(np.square(x))))


def _diffusivity(A: Array, B: Array) -> float:
    return 100.0 * _rms(np.trace(B, axis1=1, axis2=2) / np.trace(A) - 1.0)


def _power(A: Array, B: Array) -> float:
    return 100.0 * _rms(np.diagonal(B, axis1=1, axis2=2) / np.diagonal(A) - 1.0)


def _anisotropy(A: Array, B: Array) -> float:
    def fractional(M: Array) -> Array:
        w = np.linalg.eigvalsh(M)
        away = w - w.mean(axis=-1, keepdims=True)
        return np.asarray(np.sqrt(1.5 * (away**2).sum(axis=-1) / (w**2).sum(axis=-1)))

    return _rms(fractional(B) - fractional(A))


def _eigenvalues(A: Array, B: Array) -> float:
    w = np.maximum(np.linalg.eigvalsh(B), np.finfo(float).tiny)
    worst = np.abs(np.log(w) - np.log(np.linalg.eigvalsh(A))).max(axis=-1)
    return exp(min(_rms(worst), 600.0))


def _correlations(A: Array, B: Array) -> float:
    def correlation(M: Array) -> Array:
        sd = np.sqrt(np.diagonal(M, axis1=-2, axis2=-1))
        return np.asarray(M / sd[..., :, None] / sd[..., None, :])

    beside = ~np.eye(len(A), dtype=bool)
    return _rms((correlation(B) - correlation(A))[:, beside])


TERMS: dict[str, Term] = {
    "diffusivity": Term(
        "mean diffusivity", "%", 5.0, _diffusivity, "mean diffusivity within {:.2g} %"
    ),
    "anisotropy": Term(
        "fractional anisotropy", "", 0.05, _anisotropy, "fractional anisotropy within {:.2g}"
    ),
    "power": Term(
        "power of a channel", "%", 10.0, _power, "the power of a channel within {:.2g} %"
    ),
    "eigenvalues": Term(
        "all eigenvalues", "times", 1.2, _eigenvalues, "all eigenvalues within a factor {:.3g}"
    ),
    "correlations": Term("a correlation", "", 0.05, _correlations, "a correlation within {:.2g}"),
    "distance": Term("distance in the metric", "", 0.1, lambda A, B: 0.0, "distance within {:.3g}"),
}


def typical(instrument: Instrument, k: int) -> Array:
    """A public matrix of the kind that this instrument gives."""
    if isinstance(instrument, Diffusion):
        scale = sqrt(instrument.domain(3).low * instrument.domain(3).high)  # type: ignore[attr-defined]
        return np.diag(np.array(TENSOR) / TENSOR[1] * scale)
    if isinstance(instrument, Signals | Connectomes):
        C = (1.0 - TYPICAL) * np.eye(k) + TYPICAL * np.ones((k, k))
        if isinstance(instrument, Connectomes):
            s = instrument.shrinkage
            return np.asarray((1.0 - s) * C + s * np.eye(k))
        return np.asarray(C)
    return np.eye(k)


@lru_cache(maxsize=64)
def _table(name: str, instrument: Instrument, k: int) -> Array:
    """What errors of :data:`DISTANCES` mean in a term."""
    chart = chart_of(instrument.metric, curved=True)
    A = typical(instrument, k)
    v = chart.vector(A)
    rng = np.random.default_rng(0)
    E = rng.standard_normal((int(np.clip(NUMBERS // k**2, LEAST, MOST)), len(v)))
    E /= np.linalg.norm(E, axis=1, keepdims=True)
    moved = [TERMS[name].measure(A, chart.matrices(v + e * E)) for e in DISTANCES]
    return np.maximum.accumulate(np.array(moved))


def _grown(name: str, table: Array) -> Array:
    """The table as something proportional to a small distance."""
    return np.log(table) if name == "eigenvalues" else table


def in_term(name: str, instrument: Instrument, k: int, error: float) -> float:
    """What an rms error of this distance typically means in a term."""
    if name == "distance":
        return error
    grown = _grown(name, _table(name, instrument, k))
    if error <= DISTANCES[0]:
        value = float(grown[0] * error / DISTANCES[0])
    else:
        value = exp(np.interp(np.log(error), np.log(DISTANCES), np.log(grown)))
    return exp(value) if name == "eigenvalues" else value


def distance_for(name: str, instrument: Instrument, k: int, within: float) -> float | None:
    """The rms error that typically means ``within``; None if any error does."""
    if name == "distance":
        return within if within > 0 else None
    wanted = np.log(within) if name == "eigenvalues" and within > 1 else within
    if not wanted > 0 or (name == "eigenvalues" and within <= 1):
        return None
    grown = _grown(name, _table(name, instrument, k))
    if wanted >= grown[-1]:
        return None
    if wanted <= grown[0]:
        return float(DISTANCES[0] * wanted / grown[0])
    rising = np.concatenate([[True], np.diff(grown) > 0])
    at = np.interp(np.log(wanted), np.log(grown[rising]), np.log(DISTANCES[rising]))
    return exp(at)
