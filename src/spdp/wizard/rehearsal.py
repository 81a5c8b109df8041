"""A rehearsal: the recipe's release, simulated on synthetic or public records.

*Enforced.* The recipe's own files and its ledger are not opened. The noise is seeded,
so that the certificate says ``private: false``, and its page says that it is a
simulation.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from spdp.data import open_records
from spdp.errors import ParameterError, named
from spdp.options import Mechanism
from spdp.planning.model import Planner
from spdp.release import Release
from spdp.statistics.base import Statistic
from spdp.wizard.forecast import planner_of
from spdp.wizard.recipe import Recipe
from spdp.wizard.writing import asked

NUMBERS = 40_000_000  # entries of all synthetic records, at most
SEED = 0


def rehearse(recipe: Recipe, public: Sequence[str] = ()) -> Release:
    """Simulate the release on records of ``public`` files, or on synthetic ones.

    Synthetic records have the recipe's number, size, classes and spread, a third of the
    radius from the domain's centre, as in a plan. Where they are too many to be held,
    there are fewer: the certificate says how many.
    """
    recipe.check()
    statistic = _as_paid(recipe, asked(recipe))
    given: Any = {
        "epsilon": recipe.epsilon,
        "delta": recipe.delta,
        "domain": recipe.instrument.domain(recipe.k),
        "metric": recipe.metric,
        "adjacency": recipe.adjacency,
        "anyway": recipe.anyway,
        "random_state": SEED,
    }
    if public:
        if statistic.columns:
            raise ParameterError(f"public records have no {' and '.join(statistic.columns)}")
        return statistic.release(open_records(public), on_invalid=recipe.on_invalid, **given)
    X, labels, covariates, persons = synthetic(recipe, statistic)
    return statistic.release(X, labels=labels, covariates=covariates, groups=persons, **given)


def _as_paid(recipe: Recipe, statistic: Statistic) -> Statistic:
    """With the noise that it has where a ledger pays."""
    if recipe.ledger and recipe.delta > 0 and getattr(statistic, "mechanism", None) == "auto":
        object.__setattr__(statistic, "mechanism", str(Mechanism.GAUSSIAN))
    return statistic


def synthetic(recipe: Recipe, statistic: Statistic) -> tuple[Any, Any, Any, Any]:
    """Synthetic records (n, k, k), with classes, covariates and persons if needed."""
    n = max(1, min(recipe.n, NUMBERS // recipe.k**2))
    planner: Planner = planner_of(recipe)
    made = planner.populations[0]
    rows = np.resize(np.arange(len(made.Y)), n)
    distinct = planner.space.chart.matrices(made.Y[: min(n, len(made.Y))])
    labels = covariates = None
    if "label" in statistic.columns:
        names = np.array(recipe.classes, object)
        labels = names[made.label[rows] % len(names)].tolist()
    if "x" in statistic.columns:
        ranges = np.asarray(getattr(statistic, "ranges", ()), np.float64)
        if ranges.ndim != 2:
            raise ParameterError(f"{named('ranges')} must be pairs, such as 18:90")
        unit = np.resize(made.x, (n, len(ranges)))
        covariates = ranges.mean(axis=1) + unit * np.ptp(ranges, axis=1) / 2.0
    persons = np.arange(n) if recipe.unit == "person" else None
    return distinct[rows], labels, covariates, persons


def said(recipe: Recipe) -> str:
    """What a rehearsal is made of, in a sentence."""
    n = max(1, min(recipe.n, NUMBERS // recipe.k**2))
    with suppress(ParameterError):
        spread = planner_of(recipe).spreads[0]
        return (
            f"A simulation on {n:,} synthetic {recipe.unit}s that lie about {spread:.3g} from "
            "their mean. Your records were not opened, and nothing was spent."
        )
    return f"A simulation on {n:,} synthetic {recipe.unit}s. Your records were not opened."
