"""Markup of work that runs, of its end, and of pages that are shown in the page."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shiny import Session, ui

from spdp.wizard.jobs import Job
from spdp.wizard.messages import on_the_page
from spdp.wizard.recipe import Recipe

UNBROKEN = re.compile(r"((?:[εδ] = )?[0-9.]+e-[0-9]+|[0-9.]+ %|--[a-z][a-z-]*)")
DATA_ERROR = 3  # exit code of errors that may describe records


@dataclass
class Asked:
    """A release that was asked for, as long as the wizard runs.

    ``told`` says whether a page was open when it ended.
    """

    recipe: Recipe
    job: Job
    told: bool = False


def framed(text: str, title: str, address: str | None = None) -> Any:
    """A page that can run nothing and load nothing, and its address, for a window."""
    link = ui.a("Open in a window", href=address, target="_blank", rel="noopener", class_="link")
    return ui.TagList(
        ui.p(link, class_="window") if address else "",
        ui.tags.iframe(srcdoc=text, sandbox="", title=title),
    )


def window(session: Session, name: str, text: str) -> str:
    """An address at which this visit can open a page, with the guard's headers."""
    from starlette.responses import HTMLResponse

    return session.dynamic_route(name, lambda request: HTMLResponse(text))


def unbroken(text: str) -> Any:
    """A text whose numbers such as 1e-06, and options, stay on one line."""
    parts = UNBROKEN.split(text)
    return ui.TagList(
        *(ui.span(part, class_="unbroken") if i % 2 else part for i, part in enumerate(parts))
    )


def progress(job: Job) -> Any:
    """What a command does now."""
    doing = job.doing or "reading and computing"
    stopping = "stopping: " if job.stopped else ""
    return ui.div(
        ui.tags.progress(aria_label="Work in progress"),
        ui.p(f"{stopping}{doing} ({job.lasted:.0f} s)", class_="soft"),
    )


def ended(asked: Asked) -> Any:
    """How a release ended, and what was charged."""
    job = asked.job
    if job.code == 0:
        return ui.div(f"Released, and written to {asked.recipe.output}.", class_="note good")
    told = on_the_page(job.messages[-1]) if job.messages else f"it ended with code {job.code}"
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


def news(asked: Asked) -> str:
    """What is said of a release that another visit of the page asked for."""
    recipe, job = asked.recipe, asked.job
    paid = f"charged to {recipe.ledger}" if recipe.ledger else "with no ledger that counts it"
    when = "before this page was opened" if asked.told else "while the page was closed"
    if job.running:
        return "A release that was asked for before this page was opened is still running."
    if job.code == 0:
        return (
            f"A release was finished {when}: {recipe.output}, ε = {recipe.epsilon:.4g} {paid}. "
            "Its page and its zip are at the step Results."
        )
    if job.code == DATA_ERROR:
        return f"A release ended {when}: nothing was released. The step Release says why."
    said = on_the_page(job.messages[-1]) if job.messages else f"it ended with code {job.code}"
    return f"A release ended {when}: nothing was released ({said})."


def page_again(folder: Path, output: str) -> str:
    """The page of a released folder, or how it is made."""
    file = folder / output / "report.html"
    if file.is_file():
        return file.read_text("utf-8")
    return f"<p>This folder has no page. In a terminal: spdp report {shlex.quote(output)}</p>"
