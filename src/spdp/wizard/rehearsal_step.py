"""The step of the rehearsal: the release's command on made-up records, simulated."""

import asyncio
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiny import reactive, render, ui

from spdp.wizard.jobs import Job
from spdp.wizard.markup import framed, progress, unbroken, window
from spdp.wizard.messages import on_the_page
from spdp.wizard.recipe import Recipe
from spdp.wizard.refresh import look_again

if TYPE_CHECKING:
    from spdp.wizard.session import Answers

SIMULATED = "The page that would be published, simulated"


@dataclass
class Rehearsal:
    """A rehearsal that runs beside the page, and what it gave.

    Attributes
    ----------
    page : str
        The page that would be published; empty where there is none.
    told : str
        What it is made of, or why there is no page.
    bound : str
        What it states of the error, beside the wish.
    """

    recipe: Recipe
    job: Job
    page: str = ""
    told: str = ""
    bound: str = ""
    over: bool = False

    async def run(self, plan: Path, target: Path) -> None:
        """To its end; its folder is scratch."""
        await asyncio.to_thread(plan.write_text, self.recipe.yaml(), "utf-8")
        await self.job.run()
        if (target / "report.html").is_file():
            from spdp.wizard.guarantee import stated
            from spdp.wizard.rehearsal import said

            self.page = (target / "report.html").read_text("utf-8")
            self.told = await asyncio.to_thread(said, self.recipe)
            self.bound = await asyncio.to_thread(stated, self.recipe, target)
        else:
            self.told = on_the_page((self.job.messages or ["It was cancelled."])[-1])


async def begin(recipe: Recipe, folder: Path, made: list[Rehearsal]) -> None:
    """A rehearsal in a folder of its own, which is removed afterwards."""
    with tempfile.TemporaryDirectory(prefix="spdp-rehearsal-") as scratch:
        plan, target = Path(scratch) / "plan.yaml", Path(scratch) / "rehearsal"
        job = Job(["run", str(plan), "--rehearse", "--output", str(target)], folder)
        made.append(Rehearsal(recipe, job))
        try:
            await made[-1].run(plan, target)
        finally:
            made[-1].over = True


def rehearsals(answers: "Answers") -> None:
    """Rehearse, or cancel a rehearsal."""
    input = answers.input
    made: list[Rehearsal] = []
    tasks: list[asyncio.Task[None]] = []  # held until the page is closed
    shown: reactive.Value[int] = reactive.value(0)
    problem: reactive.Value[str] = reactive.value("")

    def running() -> Rehearsal | None:
        return made[-1] if made and not made[-1].over else None

    @answers.session.on_ended
    def _() -> None:
        for one in made:
            one.job.cancel()

    @reactive.effect
    @reactive.event(input.rehearse)
    async def _() -> None:
        now = running()
        if now is not None:
            now.job.cancel()
            return
        recipe = answers.recipe()
        found = {**(await answers.problems())}
        found.pop("ledger", None)
        problem.set(next(iter(found.values()), ""))
        if not found:
            count = len(made)
            task = asyncio.get_running_loop().create_task(begin(recipe, answers.folder, made))
            tasks.append(task)
            while len(made) == count and not task.done():
                await asyncio.sleep(0)
        shown.set(shown.get() + 1)

    @reactive.effect
    def _() -> None:
        shown.get()
        if running() is not None:
            look_again()
            ui.update_action_button("rehearse", label="Cancel the rehearsal")
        elif made:
            ui.update_action_button("rehearse", label="Rehearse again")

    @render.ui
    def rehearsed() -> Any:
        shown.get()
        now = running()
        if now is not None:
            look_again()
            return progress(now.job)
        if problem.get():
            return ui.div(problem.get(), class_="note no")
        if not made:
            return ""
        last = made[-1]
        if last.recipe != answers.recipe():
            return ui.div("What you entered has changed since: rehearse again.", class_="note")
        if not last.page:
            return ui.div(last.told, class_="note no")
        return ui.TagList(
            ui.div(unbroken(last.bound), class_="note") if last.bound else "",
            ui.div(
                ui.p(f"Simulation, not a release. {last.told}"),
                framed(last.page, SIMULATED, window(answers.session, "rehearsed", last.page)),
                class_="simulated",
            ),
        )
