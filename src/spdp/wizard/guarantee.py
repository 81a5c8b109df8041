"""The error that is wished for, beside the one that is guaranteed.

A wish is for the typical error: a prediction. A certificate states a bound, which holds
with 95 % probability whatever the records are, and is larger. Both are said together,
so that nobody takes one for the other.

*Enforced.* Before a release, both are public predictions; after it, the bound is the
certificate's.
"""

from pathlib import Path

from spdp.charts import chart_of
from spdp.error import field_units as units
from spdp.errors import DataError, ParameterError
from spdp.release import Release
from spdp.release.board import in_field_units, up
from spdp.release.summary import Summary
from spdp.wizard.accuracy import TERMS, typical
from spdp.wizard.forecast import Predicted, forecast_of
from spdp.wizard.instruments import Diffusion
from spdp.wizard.recipe import Recipe

LARGEST = 50.0  # a distance beyond which no factor of eigenvalues says anything
DIFFERENCE = (
    "The prediction is what the error typically is; the bound is what is guaranteed, with 95 % "
    "probability, whatever the records are"
)


def predicted(recipe: Recipe, found: Predicted) -> str | None:
    """The bound that will typically be guaranteed; None where none is predicted."""
    if found.bound is None or not found.error:
        return None
    forecast = forecast_of(recipe)
    in_metric = f" ({_distance(recipe)} distance)" if forecast.is_distance else ""
    means = _means(recipe, found.bound) if forecast.is_distance else []
    meaning = f": {'; '.join(means)}" if means else ""
    return (
        f"{DIFFERENCE}, and is about {found.bound / found.error:.2g} times larger. Typically it "
        f"will be {up(found.bound, 2)}{in_metric}{meaning}."
    )


def stated(recipe: Recipe, folder: Path) -> str:
    """The wish, or the predicted error, beside the bound of a release in a folder."""
    try:
        release = Release.load(folder)
    except (DataError, OSError):
        return ""
    told = Summary(release.certificate)
    if told.c.error_bound is None:
        return ""
    rows = in_field_units(told, release.values)
    means = "".join(f"; {name}: {text}" for name, text in rows.items())
    return (
        f"{_expected(recipe)} Guaranteed is at most {up(told.c.error_bound['95%'], 3)} "
        f"({told.c.distance}){means}. {DIFFERENCE}."
    )


def _expected(recipe: Recipe) -> str:
    wanted = recipe.wanted
    wish = f"Wished for: {TERMS[wanted.term].say(wanted.within)}, typically. " if wanted else ""
    try:
        error = forecast_of(recipe).predict(recipe.n, recipe.epsilon, recipe.delta).error
    except (ParameterError, DataError):
        error = None
    return wish + ("" if error is None else f"Predicted as the typical error: about {error:.2g}.")


def _means(recipe: Recipe, u: float) -> list[str]:
    """What a bound says of the instrument's typical matrix, as the page proves it."""
    A, told = typical(recipe.instrument, recipe.k), []
    if recipe.metric in units.SPECTRAL and u < LARGEST:
        told.append(f"each eigenvalue within a factor of {up(units.eigenvalue_factor(u), 3)}")
        if isinstance(recipe.instrument, Diffusion):
            mean = float(A.trace()) / len(A)
            low, high = units.mean_eigenvalue(A, u)
            off = 100 * max(1 - low / mean, high / mean - 1)
            told.append(f"mean diffusivity within {up(off, 2)} %")
    if recipe.metric == "offlog" and recipe.k > 1:
        told.append(f"each correlation within ±{up(units.correlation_shift(A, u), 2)}")
    return told


def _distance(recipe: Recipe) -> str:
    return str(chart_of(recipe.metric, curved=True).distance)
