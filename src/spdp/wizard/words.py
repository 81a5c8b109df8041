"""What the page says about predictions, ledgers and releases; it knows no page."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from spdp.charts import chart_of
from spdp.domain.sets import CorrelationBounds, EigenvalueBounds, TraceBounds
from spdp.options import Adjacency, counted
from spdp.privacy.budget import Budget
from spdp.privacy.odds import table
from spdp.release.board import SUSPICIONS
from spdp.release.declaration import MATRICES, MATRIX
from spdp.release.summary import cautions
from spdp.statistics import find
from spdp.wizard.accuracy import TERMS, distance_for, in_term
from spdp.wizard.forecast import LEAST, MOST, Forecast, forecast_of
from spdp.wizard.guarantee import predicted
from spdp.wizard.instruments import Instrument
from spdp.wizard.picture import curve
from spdp.wizard.recipe import Recipe

EPSILONS = np.geomspace(0.05, 20.0, 28)
REACH, POINTS = 10.0, 21  # the other curve goes from n/10 to 10·n
DISTANCE = "distance"


@dataclass(frozen=True)
class Note:
    """A sentence, and how grave it is: "", "good" or "no"."""

    text: str
    kind: str = ""


@dataclass(frozen=True, eq=False)
class Outlook:
    """Predictions of one kind of records, in the terms of their users."""

    forecast: Forecast

    @classmethod
    def of(cls, recipe: Recipe) -> "Outlook":
        """Simulated here, for the curves; it takes a few seconds."""
        made = cls(forecast_of(recipe).warm())
        for term in terms_of(recipe.instrument, recipe.statistic):
            in_term(term, recipe.instrument, recipe.k, 1.0)
        return made

    def solve(self, recipe: Recipe, term: str, within: float) -> float | None:
        """The least ε that typically keeps within; None if none does."""
        error = distance_for(term, recipe.instrument, recipe.k, within)
        return None if error is None else self.forecast.needed(error, recipe.n, recipe.delta)

    def verdict(self, recipe: Recipe, epsilon: float | None) -> list[Note]:
        """What is to be expected, and what to beware of."""
        wanted, units = recipe.wanted, counted(recipe.unit)
        if epsilon is None:
            assert wanted is not None
            said = TERMS[wanted.term].say(wanted.within)
            text = (
                f"No ε up to {MOST:g} gives {said} with {recipe.n:,} {units}. More {units}, a "
                "coarser wish or fewer rows are needed."
            )
            return [Note(text, "no")]
        found = self.forecast.predict(recipe.n, epsilon, recipe.delta)
        if found.refused or found.error is None:
            text = (
                f"With {recipe.n:,} {units} and ε = {epsilon:.3g} the release would be refused, at "
                "no cost: public numbers say that it would be no better than a guess without data."
            )
            return [Note(text, "no"), *_cautions(recipe, epsilon)]
        error = found.error
        terms = terms_of(recipe.instrument, recipe.statistic) if self.forecast.is_distance else {}
        chart = chart_of(recipe.metric, curved=True)
        in_metric = f" ({chart.distance} distance)" if self.forecast.is_distance else ""
        first = f"{self.forecast.measure.removeprefix('rms ')} of about {error:.2g}{in_metric}"
        in_terms = [
            TERMS[name].say(in_term(name, recipe.instrument, recipe.k, error))
            for name in terms
            if name != DISTANCE
        ]
        typical = f" For a typical matrix of this kind: {'; '.join(in_terms)}." if in_terms else ""
        lowest = f" (the least that is looked at: {LEAST:g})" if epsilon <= LEAST else ""
        assert found.budget is not None
        bound = predicted(recipe, found)
        notes = [
            Note(
                f"ε = {epsilon:.3g}{lowest}, {recipe.n:,} {units}: expect an {first}.{typical} "
                "More than half of all releases are closer.",
                "good",
            ),
            *([Note(bound)] if bound else []),
            Note(odds(recipe, found.budget)),
        ]
        return [*notes, *_cautions(recipe, epsilon)]

    def pictures(self, recipe: Recipe, epsilon: float | None) -> list[tuple[str, str]]:
        """The error over ε at this n, and over n at this ε, with captions."""
        term = self._term(recipe)
        shown = epsilon or 1.0
        unit = f"{TERMS[term].title} {_unit(term)}".strip()
        name = unit if term != DISTANCE else self.forecast.measure
        wanted = recipe.wanted.within if recipe.wanted and recipe.wanted.term == term else None
        units = counted(recipe.unit)
        by_n = np.unique(np.geomspace(max(1.0, recipe.n / REACH), REACH * recipe.n, POINTS).round())

        def at(n: float, e: float) -> float | None:
            error = self.forecast.predict(int(n), float(e), recipe.delta).error
            return None if error is None else in_term(term, recipe.instrument, recipe.k, error)

        here = at(recipe.n, shown) if epsilon is not None else None
        look: Any = {"y_name": name, "wanted": wanted}
        first = [(float(e), at(recipe.n, e)) for e in EPSILONS]
        second = [(float(n), at(n, shown)) for n in by_n]
        return [
            (
                curve(first, x_name="privacy loss ε", at=(shown, here), **look),
                f"Typical error by ε, for {recipe.n:,} {units}.",
            ),
            (
                curve(second, x_name=f"number of {units}", at=(recipe.n, here), **look),
                f"Typical error by the number of {units}, at ε = {shown:.3g}.",
            ),
        ]

    def _term(self, recipe: Recipe) -> str:
        """The term of the pictures: the wanted one, or the instrument's first."""
        terms = terms_of(recipe.instrument, recipe.statistic)
        if not self.forecast.is_distance:
            return DISTANCE
        wanted = recipe.wanted
        return wanted.term if wanted is not None and wanted.term in terms else next(iter(terms))


def _cautions(recipe: Recipe, epsilon: float) -> list[Note]:
    public = recipe.n if recipe.adjacency is Adjacency.REPLACE_ONE else None
    return [Note(text, "no") for text in cautions(epsilon, recipe.delta, public, str(recipe.unit))]


def odds(recipe: Recipe, budget: Budget) -> str:
    """What a budget means for a suspicion: a row of the table on the published page."""
    before, least, largest = table(budget.epsilon, budget.delta, budget.mu)[-1]
    what = SUSPICIONS[str(recipe.adjacency), str(recipe.unit)]
    but = f", but for a probability of at most δ = {budget.delta:g}" if budget.delta else ""
    return (
        f"ε = {budget.epsilon:.3g} means: somebody who knows all other {counted(recipe.unit)}, and "
        f"has a suspicion {what}, {before} sure of it before, is at least {least} and at most "
        f"{largest} sure of it after{but}."
    )


def terms_of(instrument: Instrument, statistic: str) -> dict[str, str]:
    """The terms in which an error of a statistic may be wanted, with their titles."""
    first = next(iter(find(statistic).releases.values()))
    measured = first in (MATRIX, MATRICES)  # their error is a distance
    names = instrument.terms if measured else (DISTANCE,)
    return {name: TERMS[name].title for name in names}


def classified(statistic: str) -> bool:
    """Whether a statistic is one of classes."""
    return "label" in find(statistic).columns


def start_of(term: str) -> float:
    """A usual wish."""
    return TERMS[term].start


def unit_of(term: str) -> str:
    """The unit of a wish, for its label."""
    return {"%": "(in %)", "times": "a factor of"}.get(TERMS[term].unit, "")


def _unit(term: str) -> str:
    return {"%": "(%)", "times": "(factor)"}.get(TERMS[term].unit, "")


def domain_in_words(recipe: Recipe) -> str:
    """The public domain, as numbers."""
    domain = recipe.instrument.domain(recipe.k)
    radius = domain.radius_for(recipe.k, chart_of(recipe.metric, curved=True))
    unit = f" {recipe.instrument.unit_of_entries}".rstrip()
    if isinstance(domain, EigenvalueBounds):
        text = f"Eigenvalues from {domain.low:g} to {domain.high:g}{unit}"
    elif isinstance(domain, TraceBounds):
        text = (
            f"Eigenvalues of at least {domain.low:g}{unit}, trace of at most {domain.trace:g}{unit}"
        )
    elif isinstance(domain, CorrelationBounds):
        text = f"Correlation matrices, shrunk by {domain.shrinkage:g}"
    else:
        text = "A ball around the identity"
    chart = chart_of(recipe.metric, curved=True)
    return f"{text}; radius {radius:.3g} in the {chart.distance} metric."


# --- the release


def facts(recipe: Recipe) -> dict[str, str]:
    """What will be released, a row each."""
    paid = recipe.ledger or "no ledger"
    return {
        "records": f"{', '.join(recipe.files)}: {recipe.n:,} {counted(recipe.unit)}, "
        f"{recipe.k}×{recipe.k}",
        "instrument": recipe.instrument.title,
        "domain": domain_in_words(recipe),
        "statistic": _title(recipe.statistic),
        "guarantee": f"per {recipe.unit}: ε = {recipe.epsilon:.4g}, δ = {recipe.delta:g}",
        "paid from": paid,
        "written to": recipe.output,
    }


@lru_cache(maxsize=16)
def _title(statistic: str) -> str:
    return str(find(statistic).title)
