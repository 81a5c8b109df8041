"""The steps that run commands: rehearsal, ledger, release, and what is handed out.

*Enforced.* A message about a record is for the holder of the data: it is folded away.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shiny import reactive, render, ui

from spdp.wizard.counting import warning
from spdp.wizard.entries import number, text
from spdp.wizard.page import STEPS
from spdp.wizard.working import Job

if TYPE_CHECKING:
    from spdp.wizard.session import Answers


TICK = 0.4  # seconds between two looks at a job
DATA_ERROR = 3  # exit code of errors that may describe records


def rehearsals(answers: "Answers") -> None:
    """Rehearse, or cancel a rehearsal."""
    input = answers.input
    job: reactive.Value[Job | None] = reactive.value(None)
    shown: reactive.Value[tuple[str, str] | None] = reactive.value(None)

    @reactive.effect
    @reactive.event(input.rehearse)
    async def _() -> None:
        running = job.get()
        if running is not None and running.running:
            running.cancel()
            return
        recipe = answers.recipe()
        found = {**(await answers.problems())}
        found.pop("ledger", None)
        shown.set(None)
        if found:
            shown.set(("", next(iter(found.values()))))
            return
        with tempfile.TemporaryDirectory(prefix="spdp-rehearsal-") as scratch:
            plan = Path(scratch) / "plan.yaml"
            await asyncio.to_thread(plan.write_text, recipe.yaml(), "utf-8")
            target = Path(scratch) / "rehearsal"
            words = ["run", str(plan), "--rehearse", "--output", str(target)]
            made = Job(words, answers.folder)
            job.set(made)
            ui.update_action_button("rehearse", label="Cancel the rehearsal")
            await reactive.flush()
            await made.run()
            page_ = target / "report.html"
            text = page_.read_text("utf-8") if page_.is_file() else ""
            from spdp.wizard.rehearsal import said

            told = said(recipe) if text else (made.messages or ["It was cancelled."])[-1]
            shown.set((text, told))
        job.set(None)
        ui.update_action_button("rehearse", label="Rehearse again")

    @render.ui
    def rehearsed() -> Any:
        running = job.get()
        if running is not None and running.running:
            reactive.invalidate_later(TICK)
            return _progress(running)
        made = shown.get()
        if made is None:
            return ""
        text, told = made
        if not text:
            return ui.div(told, class_="note no")
        return ui.div(
            ui.p(f"Simulation, not a release. {told}"),
            _framed(text, "The page that would be published, simulated"),
            class_="simulated",
        )


def ledgers(answers: "Answers") -> None:
    """Show a ledger, or create it."""
    input = answers.input

    @reactive.calc
    def state() -> Any:
        """What a ledger says of itself, or why it cannot be used."""
        from spdp.wizard.words import ledger_state

        answers.ledgers.get()
        made = answers.recipe()
        if input.ledger_mode() == "none":
            return None
        return answers.there(ledger_state, made)

    answers.state = state

    @reactive.effect
    @reactive.event(input.create)
    def _() -> None:
        from spdp.wizard.words import create_ledger

        totals = number(input.total_epsilon(), 0.0), number(input.total_delta(), 0.0)
        file = answers.folder / (text(input.ledger()) or "")
        answers.said.set(create_ledger(file, *totals))
        answers.ledgers.set(answers.ledgers.get() + 1)

    @render.ui
    def ledger_state() -> Any:
        if input.ledger_mode() == "none":
            return ui.div(
                "Nobody keeps count: another release of the same people adds to what is known "
                "of them.",
                class_="note",
            )
        found, said = state(), answers.said.get()
        first = ui.div(said, class_="note") if said else ""
        if isinstance(found, str):
            return ui.TagList(first, ui.div(found, class_="note"))
        bar = ui.div(
            ui.div(style=f"width:{100 * found.share:.1f}%"),
            class_="bar",
            role="img",
            aria_label=found.text,
        )
        return ui.TagList(first, bar, ui.p(found.text))


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
            ui.div(ui.tags.dt(name), ui.tags.dd(value)) for name, value in facts(recipe).items()
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
        if job is not None and job.running:
            reactive.invalidate_later(TICK)
            busy = True
        else:
            busy = False
        done = job is not None and job.code == 0 and answers.asked.get() == answers.recipe()
        await session.send_custom_message("able", {"go": not busy and not found and not done})
        await session.send_custom_message("shown", {"stop": busy})

    @reactive.extended_task
    async def released(job: Job) -> int:
        return await asyncio.shield(job.start())

    @reactive.effect
    @reactive.event(input.go)
    async def _() -> None:
        from spdp.wizard.writing import command

        job = answers.job.get()
        if (job is not None and job.running) or await answers.problems():
            return
        recipe = answers.recipe()
        made = Job(command(recipe), answers.folder)
        answers.asked.set(recipe)
        answers.job.set(made)
        released(made)

    @reactive.effect
    @reactive.event(input.stop)
    def _() -> None:
        job = answers.job.get()
        if job is not None:
            job.cancel()

    @reactive.effect
    async def _() -> None:
        if released.status() != "success":
            return
        code = released.result()
        with reactive.isolate():
            answers.ledgers.set(answers.ledgers.get() + 1)
            if code == 0:
                answers.step.set("results")
                await session.send_custom_message("step", {"name": "results"})

    @render.ui
    def progress() -> Any:
        job = answers.job.get()
        if job is None:
            return ""
        if job.running:
            reactive.invalidate_later(TICK)
            return _progress(job)
        answers.ledgers.get()
        return _ended(job)

    @render.ui
    def results() -> Any:
        job, recipe = answers.job.get(), answers.asked.get()
        released.status()
        if job is None or recipe is None or job.code != 0:
            return ui.div("Nothing was released yet.", class_="note")
        where = answers.folder / recipe.output
        text = (where / "report.html").read_text("utf-8")
        return ui.TagList(
            ui.div(f"Released, and written to {recipe.output}.", class_="note good"),
            *(ui.div(m, class_="note no") for m in job.messages),
            ui.div(
                ui.download_link("zip", "Download everything (zip)", class_="link"),
                class_="moves",
            ),
            ui.div(_framed(text, "The page of the release"), class_="shown"),
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


def _framed(text: str, title: str) -> Any:
    """A page that can run nothing and load nothing."""
    return ui.tags.iframe(srcdoc=text, sandbox="", title=title)


def _progress(job: Job) -> Any:
    doing = job.doing or "reading and computing"
    stopping = "stopping: " if job.stopped else ""
    return ui.div(
        ui.tags.progress(aria_label="Work in progress"),
        ui.p(f"{stopping}{doing} ({job.lasted:.0f} s)", class_="soft"),
    )


def _ended(job: Job) -> Any:
    """How a release ended, and what was charged."""
    if job.code == 0:
        return ui.div("Released.", class_="note good")
    told = job.messages[-1] if job.messages else f"it ended with code {job.code}"
    if job.stopped:
        return ui.div(ui.tags.b("Cancelled: "), told, class_="note no")
    if job.code == DATA_ERROR:
        return ui.div(
            ui.p(ui.tags.b("Nothing was released: a file or a record cannot be used.")),
            ui.tags.details(
                ui.tags.summary("For the holder of the data: what was found"),
                ui.p("This may describe a record. Do not pass it on.", class_="soft"),
                ui.tags.pre(told),
            ),
            class_="note no",
        )
    return ui.div(ui.tags.b("Nothing was released: "), told, class_="note no")
