"""The steps of ledger and release, and what is handed out.

*Enforced.* A message about a record is for the holder of the data: it is folded away.
"""

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

from shiny import reactive, render, ui

from spdp.wizard import markup
from spdp.wizard.entries import number, text
from spdp.wizard.jobs import Job
from spdp.wizard.markup import Asked, framed, page_again, unbroken, window
from spdp.wizard.messages import on_the_page
from spdp.wizard.navigation import is_released
from spdp.wizard.page import STEPS
from spdp.wizard.persons import warning
from spdp.wizard.refresh import look_again

if TYPE_CHECKING:
    from spdp.wizard.session import Answers

PAGE = "The page of the release"


def ledgers(answers: "Answers") -> None:
    """Show a ledger, or create it."""
    input = answers.input

    @reactive.calc
    def state() -> Any:
        """What a ledger says of itself, or why it cannot be used."""
        from spdp.wizard.ledger_state import ledger_state

        answers.ledgers.get()
        made = answers.recipe()
        if input.ledger_mode() == "none":
            return None
        paid = is_released(made, answers.asked.get(), answers.job.get())
        return answers.there(partial(ledger_state, paid=paid), made)

    answers.state = state

    @reactive.effect
    @reactive.event(input.create)
    def _() -> None:
        from spdp.wizard.ledger_state import create_ledger

        totals = number(input.total_epsilon(), 0.0), number(input.total_delta(), 0.0)
        name = text(input.ledger()) or ""
        said = create_ledger(answers.folder / name, *totals, answers.recipe(), answers.own)
        answers.said.set((name, said))
        answers.ledgers.set(answers.ledgers.get() + 1)

    @render.ui
    def ledger_state() -> Any:
        if input.ledger_mode() == "none":
            return ui.div(
                "Nobody keeps count: another release of the same people adds to what is known "
                "of them.",
                class_="note",
            )
        found, (name, said) = state(), answers.said.get()
        first = ui.div(said, class_="note") if said and name == text(input.ledger()) else ""
        if isinstance(found, str):
            return ui.TagList(first, ui.div(unbroken(found), class_="note"))
        bar = ui.div(
            ui.div(style=f"width:{100 * found.share:.1f}%"),
            class_="bar",
            role="img",
            aria_label=found.text,
        )
        return ui.TagList(first, bar, ui.p(unbroken(found.text)))


def releases(answers: "Answers") -> None:
    """Release, cancel, and hand out what was released."""
    input, session = answers.input, answers.session

    @render.ui
    async def summary() -> Any:
        from spdp.wizard.words import facts
        from spdp.wizard.writing import shell

        recipe, found = answers.recipe(), await answers.problems()
        if found:
            text = "; ".join(f"{STEPS[s].lower()}: {p}" for s, p in found.items())
            return ui.div(f"Not ready. {text}", class_="note no")
        rows = [
            ui.div(ui.tags.dt(name), ui.tags.dd(unbroken(value)))
            for name, value in facts(recipe).items()
        ]
        risk = warning(recipe, await answers.seen())
        return ui.TagList(
            ui.p(ui.tags.b(f"The guarantee is per {recipe.unit}.")),
            ui.div(risk, class_="note no", role="alert") if risk else "",
            ui.tags.dl(*rows),
            ui.tags.details(ui.tags.summary("The same as one command"), ui.tags.pre(shell(recipe))),
        )

    @reactive.effect
    async def _() -> None:
        job, found = answers.job.get(), await answers.problems()
        busy = job is not None and job.running
        if busy:
            look_again()
        done = is_released(answers.recipe(), answers.asked.get(), job)
        await session.send_custom_message("able", {"go": not busy and not found and not done})
        await session.send_custom_message("shown", {"stop": busy})

    @reactive.effect
    @reactive.event(input.go)
    async def _() -> None:
        from spdp.wizard.writing import command

        job = answers.job.get()
        if (job is not None and job.running) or await answers.problems():
            return
        recipe = answers.recipe()
        made = Job(command(recipe), answers.folder)
        answers.past.append(Asked(recipe, made))
        answers.asked.set(recipe)
        answers.job.set(made)
        made.start()

    @reactive.effect
    @reactive.event(input.stop)
    def _() -> None:
        job = answers.job.get()
        if job is not None:
            job.cancel()

    @reactive.effect
    async def _() -> None:
        """Once a release has ended: to its results, if this page asked for it."""
        job = answers.job.get()
        if job is None or answers.known.get("ended") is job:
            return
        if job.running:
            look_again()
            return
        answers.known["ended"] = job
        answers.past[-1].told = True
        with reactive.isolate():
            answers.ledgers.set(answers.ledgers.get() + 1)
            if job.code == 0 and job is not answers.found:
                await answers.go("results")

    @render.ui
    def progress() -> Any:
        job, asked = answers.job.get(), answers.asked.get()
        answers.ledgers.get()
        if job is None or asked is None:
            return ""
        if job.running:
            look_again()
            return markup.progress(job)
        if job.code and asked != answers.recipe() and job is not answers.found:
            return ""  # what it complained of may have been corrected
        return markup.ended(Asked(asked, job))

    @render.ui
    def news() -> Any:
        job = answers.job.get()
        if job is None or job is not answers.found:
            return ""
        if job.running:
            look_again()
        kind = "" if job.running else "good" if job.code == 0 else "no"
        return ui.div(answers.news(), class_=f"note {kind}", role="status")

    @render.ui
    async def results() -> Any:
        job, recipe = answers.job.get(), answers.asked.get()
        answers.ledgers.get()
        if job is None or recipe is None or job.code != 0:
            return ui.div("Nothing was released yet.", class_="note")
        from spdp.wizard.guarantee import stated

        where = answers.folder / recipe.output
        bound = await asyncio.to_thread(stated, recipe, where)
        text = page_again(answers.folder, recipe.output)
        return ui.TagList(
            ui.div(f"Released, and written to {recipe.output}.", class_="note good"),
            *(ui.div(on_the_page(m), class_="note no") for m in job.messages),
            ui.div(unbroken(bound), class_="note") if bound else "",
            ui.div(
                ui.download_link("zip", "Download everything (zip)", class_="link"),
                class_="moves",
            ),
            ui.div(framed(text, PAGE, window(session, "released", text)), class_="shown"),
        )

    @render.download_link(filename="plan.yaml", media_type="application/yaml")
    def plan() -> Any:
        yield answers.recipe().yaml()

    @render.download_link(filename="release.zip", media_type="application/zip")
    def zip() -> Any:
        from spdp.wizard.bundle import bundle

        recipe = answers.asked.get()
        assert recipe is not None
        yield bundle(answers.folder / recipe.output, recipe)
