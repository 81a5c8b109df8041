"""The step of predictions: curves that follow a slider."""

import asyncio
from typing import TYPE_CHECKING, Any

import msgspec
from shiny import reactive, render, ui

from spdp.errors import ParameterError
from spdp.wizard.entries import instrument_of, number, text, unfilled
from spdp.wizard.markup import unbroken
from spdp.wizard.recipe import Recipe, Step, explained

if TYPE_CHECKING:
    from spdp.wizard.session import Answers


def predictions(answers: "Answers") -> None:
    """Simulate in the background, and draw what is known."""
    input = answers.input

    @reactive.extended_task
    async def simulated(recipe: Recipe) -> Any:
        from spdp.wizard.words import Outlook

        return await asyncio.to_thread(answers.there, Outlook.of, recipe)

    @reactive.calc
    def kind() -> Recipe:
        """What the curves depend on: not ε, and not what a release is called."""
        made = answers.entered()
        blank = {"epsilon": 1.0, "label": None, "output": "published", "names": None}
        return msgspec.structs.replace(made, **blank, ledger=made.ledger and "one")

    @reactive.effect
    def _() -> None:
        made = kind()
        needed = (Step.INSTRUMENT, Step.STATISTIC)
        if unfilled(input.instrument(), lambda field: input[field]()):
            return
        if answers.step.get() in ("records", "instrument", "statistic"):
            return  # what is being entered is not simulated at every letter
        known = answers.known.get("simulated") == made or made.n < 1
        if not known and not any(step in made.problems() for step in needed):
            answers.known["simulated"] = made
            simulated(made)

    @reactive.calc
    def outlook() -> Any:
        """Predictions for what is entered now, once they are there."""
        done = simulated.status() == "success" and answers.known.get("simulated") == kind()
        done = done and kind().n >= 1
        return simulated.result() if done else None

    @reactive.calc
    def solved() -> float | None:
        made, term = outlook(), text(input.term())
        if made is None or term is None or input.mode() != "accuracy":
            return None
        found: float | None = made.solve(answers.entered(), term, number(input.within(), 0.0))
        return found

    answers.solved, answers.outlook = solved, outlook
    offered: reactive.Value[tuple[str, ...]] = reactive.value(())

    @reactive.effect
    def _() -> None:
        from spdp.wizard.words import terms_of

        input.instrument()
        statistic = input.statistic()
        with reactive.isolate():
            terms = terms_of(instrument_of(input), statistic)
            if tuple(terms) == offered.get():
                return
            wanted = answers.start.wanted
            kept = not offered.get() and wanted is not None and wanted.term in terms
            offered.set(tuple(terms))
            first = wanted.term if kept and wanted else next(iter(terms))
            ui.update_select("term", choices=terms, selected=first)

    last = reactive.value("")

    @reactive.effect
    def _() -> None:
        from spdp.wizard.words import start_of, unit_of

        term = text(input.term())
        with reactive.isolate():
            if term is None or term == last.get():
                return
            wanted = answers.start.wanted
            first = last.get() == "" and wanted is not None and wanted.term == term
            last.set(term)
            value = wanted.within if first and wanted else start_of(term)
            ui.update_numeric("within", label=f"Within {unit_of(term)}".strip(), value=value)

    @render.ui
    def verdict() -> Any:
        made = outlook()
        if made is None:
            return _waiting(simulated)
        recipe = answers.recipe()
        notes = made.verdict(recipe, answers.solved() if recipe.wanted else recipe.epsilon)
        return ui.TagList(*(ui.div(unbroken(n.text), class_=f"note {n.kind}") for n in notes))

    @render.ui
    def curves() -> Any:
        made = outlook()
        if made is None:
            return ""
        recipe = answers.recipe()
        pictures = made.pictures(recipe, answers.solved() if recipe.wanted else recipe.epsilon)
        figures = [ui.tags.figure(ui.HTML(svg), ui.tags.figcaption(text)) for svg, text in pictures]
        return ui.div(*figures, class_="curves")


def _waiting(task: Any) -> Any:
    if task.status() == "error":
        try:
            task.result()
        except ParameterError as error:
            return ui.div(explained(error), class_="note no")
        except Exception as error:
            return ui.div(f"The prediction failed: {error}", class_="note no")
    return ui.div(
        ui.tags.progress(aria_label="Simulating"),
        ui.p("Simulating releases of such records …", class_="soft"),
    )
