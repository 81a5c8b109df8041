"""What answers the page: inputs become a recipe, which other modules show and run.

*Enforced.* Until the command of a release has ended, what is shown depends on what was
entered, on public facts of files (:mod:`.headers`), on public predictions and on the
ledger.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from shiny import App, Inputs, Outputs, Session, reactive, render, ui

from spdp.options import OnInvalid
from spdp.wizard.entries import instrument_of, number, text, unchosen, unfilled
from spdp.wizard.headers import Seen
from spdp.wizard.instruments import KINDS
from spdp.wizard.jobs import Job
from spdp.wizard.markup import Asked, news
from spdp.wizard.navigation import always_open, destination, done, sentence
from spdp.wizard.page import STEPS, page
from spdp.wizard.persons import (
    label,
    likely,
    may_be_table,
    number_problem,
    rows_problem,
    warning,
    whole,
)
from spdp.wizard.predicting import predictions
from spdp.wizard.recipe import Recipe, Step, Wanted, Whose
from spdp.wizard.rehearsal_step import rehearsals
from spdp.wizard.releasing import ledgers, releases
from spdp.wizard.words import classified, domain_in_words

STATIC = Path(__file__).parent / "static"


def app_of(folder: Path, recipe: Recipe) -> App:
    """The Shiny application; ``folder`` is where files are looked for and written."""

    past: list[Asked] = []  # releases that were asked for here, whichever visit did

    def server(input: Inputs, output: Outputs, session: Session) -> None:
        Answers(input, session, folder, recipe, past).begin()

    from spdp.wizard.folder import offered

    return App(page(recipe, offered(folder)), server, static_assets={"/static": STATIC})


@dataclass
class Answers:
    """One visit of the page."""

    input: Inputs
    session: Session
    folder: Path
    start: Recipe
    past: list[Asked]  # of all visits
    own: dict[Path, tuple[float, float]] = field(default_factory=dict)  # ledgers made here
    known: dict[str, Any] = field(default_factory=dict)  # what was shown last
    solved: Callable[[], float | None] = field(init=False)  # ε, where it follows
    outlook: Callable[[], Any] = field(init=False)  # predictions, once they are there
    state: Callable[[], Any] = field(init=False)  # of the ledger

    def begin(self) -> None:
        """Connect inputs and outputs."""
        last = self.past[-1] if self.past else None
        self.found = last.job if last else None  # what an earlier visit asked for
        self.news = partial(news, replace(last)) if last else str
        self.job: reactive.Value[Job | None] = reactive.value(self.found)
        self.asked: reactive.Value[Recipe | None] = reactive.value(last.recipe if last else None)
        self.step = reactive.value("records")
        self.visited: reactive.Value[frozenset[str]] = reactive.value(frozenset({"records"}))
        self.tried: reactive.Value[frozenset[str]] = reactive.value(frozenset())
        self.ledgers = reactive.value(0)  # how often one was made or charged here
        self.said = reactive.value(("", ""))  # of which ledger, and what
        self._recipe()
        self._parts()
        self._moves()
        predictions(self)
        rehearsals(self)
        ledgers(self)
        releases(self)

    # --- what is entered

    def _recipe(self) -> None:
        input = self.input

        @reactive.calc
        def entered() -> Recipe:
            """Everything but ε where it follows from the accuracy."""
            whose = Whose(input.whose())
            column = input.groups_column() if whose is Whose.COLUMN else None
            column = input.groups_name() if whose is Whose.IDS else column
            with_classes = classified(input.statistic())
            files = tuple(f.strip() for f in str(input.file() or "").split(",") if f.strip())
            names = [c.strip() for c in str(input.classes() or "").split(",") if c.strip()]
            seen_image = whose is Whose.VOXEL or text(input.mask()) or text(input.order())
            return msgspec.structs.replace(
                self.start,
                files=files,
                whose=whose,
                groups_column=text(column),
                groups=text(input.groups()) if whose is Whose.IDS else None,
                key=text(input.key()),
                order=text(input.order()) if seen_image else None,
                mask=text(input.mask()) if seen_image else None,
                entries=text(input.entries()) if may_be_table(files) else None,
                label_column=text(input.label_column()) if with_classes else None,
                labels=text(input.labels()) if with_classes else None,
                n=whole(input.n()) or 0,
                k=whole(input.k()) or 1,
                on_invalid=OnInvalid(input.on_invalid()),
                instrument=instrument_of(input),
                statistic=input.statistic(),
                options=self._options(names if with_classes else []),
                epsilon=number(input.epsilon(), 0.0),
                delta=number(input.delta(), 0.0),
                wanted=None,
                spread=input.spread(),
                ledger=None if input.ledger_mode() == "none" else (text(input.ledger()) or ""),
                label=text(input.label()),
                output=text(input.output()) or "",
                names=text(input.names()),
            )

        @reactive.calc
        def recipe() -> Recipe:
            made = entered()
            if input.mode() != "accuracy":
                return made
            term, within = text(input.term()), number(input.within(), 0.0)
            solved = self.solved()
            wanted = Wanted(term, within) if term else None
            return msgspec.structs.replace(made, epsilon=solved or made.epsilon, wanted=wanted)

        @reactive.calc
        async def seen() -> Any:
            from spdp.wizard.headers import look

            asks = ("files", "whose", "groups_column", "key", "order", "mask", "entries")
            made = entered()
            given = {name: getattr(made, name) for name in (*asks, "labels", "label_column")}
            return await asyncio.to_thread(self.there, look, Recipe(**given))

        self.entered, self.recipe, self.seen = entered, recipe, seen

    def _options(self, classes: list[str]) -> dict[str, Any]:
        same = self.start.statistic == self.input.statistic()
        kept = {n: v for n, v in self.start.options.items() if same and n != "classes"}
        return {**kept, "classes": classes} if classes else kept

    def there(self, function: Callable[[Recipe], Any], recipe: Recipe) -> Any:
        """A function of a recipe whose relative files are below the wizard's folder."""
        return function(placed(recipe, self.folder))

    def _shortly(self, text: str) -> str:
        """A message without the folder that all files are in."""
        return text.replace(f"{self.folder}/", "")

    # --- which parts are needed

    def _parts(self) -> None:
        input, session = self.input, self.session

        @reactive.effect
        async def _() -> None:
            whose, kind = input.whose(), input.instrument()
            made = await self.seen()
            parts = {f"some-{name}": name == kind for name in KINDS}
            parts |= {
                "some-column": whose == Whose.COLUMN,
                "some-ids": whose == Whose.IDS,
                "some-key": len(made.arrays) > 1,
                "some-image": made.image,
                "some-table": made.table,
                "some-classes": classified(input.statistic()),
                "some-accuracy": input.mode() == "accuracy",
                "some-epsilon": input.mode() == "epsilon",
                "some-ledger": input.ledger_mode() != "none",
                "some-budget": input.ledger_mode() == "create",
            }
            await session.send_custom_message("shown", parts)

        @reactive.effect
        async def _() -> None:
            made = await self.seen()
            with reactive.isolate():
                self._offer("groups_column", "(none)", made.columns)
                self._offer("label_column", "(none)", made.columns)
                self._offer("key", "(choose)", made.arrays)
                self._suggest("k", made.k)
                own = not self._propose(made) and input.whose() in (Whose.RECORD, Whose.VOXEL)
                self._suggest("n", made.n if own else made.persons)

        @reactive.effect
        def _() -> None:
            ui.update_numeric("n", label=label(Recipe(whose=Whose(input.whose())).unit))

        @render.ui
        async def seen() -> Any:
            made = await self.seen()
            if made.problem is not None:
                told = ui.div(sentence(self._shortly(made.problem)), class_="note")
                return told if self.entered().files else ""
            how = f"{made.n:,} matrices, {made.k}×{made.k}"
            some = f" in {made.files:,} files" if made.files > 1 else ""
            column, risk = input.groups_column(), warning(self.entered(), made)
            chosen = column and column == likely(made.columns) and input.whose() == Whose.COLUMN
            return ui.TagList(
                ui.div(f"Found {how}{some}.", class_="note good"),
                ui.div(
                    f"The name of the column {column} says persons: several matrices per person, "
                    "one person for each of its values. Choose otherwise if that is wrong.",
                    class_="note",
                )
                if chosen
                else "",
                ui.div(risk, class_="note no", role="alert") if risk else "",
            )

        @render.ui
        def n_note() -> Any:
            whose = input.whose()
            if whose in (Whose.COLUMN, Whose.IDS):
                return ui.p(
                    "Enter the number of persons as it is publicly known (the protocol). It is for "
                    "predictions alone; ids are not read before the release.",
                    class_="soft",
                )
            if whose == Whose.VOXEL:
                return ui.div(
                    "The guarantee will be for a single voxel. It says little about a person, "
                    "whose image has many.",
                    class_="note no",
                )
            return ""

        @render.ui
        def domain() -> Any:
            made = self.entered()
            empty = unfilled(input.instrument(), lambda field: input[field]())
            problem = empty or made.problems().get(Step.INSTRUMENT)
            if problem is not None:
                return ui.div(sentence(problem), class_="note no")
            return ui.div(
                ui.tags.b(domain_in_words(made)), " ", made.instrument.reason, class_="note"
            )

    def _offer(self, name: str, nothing: str, names: tuple[str, ...]) -> None:
        """What can be chosen, once: a choice that was made meanwhile is not undone."""
        if self.known.get(name, ()) == names:
            return
        self.known[name] = names
        choices = {"": nothing, **{one: one for one in names}}
        ui.update_select(name, choices=choices, selected=self.input[name]() or "")

    def _suggest(self, name: str, value: int | None) -> None:
        """A number of the files, once: what was entered since then stays.

        Where the files tell none any more, a number that they told is taken back.
        """
        before = self.known.get(name)
        if before == value:
            return
        self.known[name] = value
        if value is not None:
            ui.update_numeric(name, value=value)
        elif self.input[name]() == before:
            self.session.send_input_message(name, {"value": ""})

    def _propose(self, seen: Seen) -> bool:
        """Whether several matrices per person were proposed: once per file.

        That is so where a column's name says persons.
        """
        files, column = self.input.file(), likely(seen.columns)
        if self.known.get("proposed", self.start.files and ", ".join(self.start.files)) == files:
            return False
        self.known["proposed"] = files
        if column is None or self.input.whose() != Whose.RECORD:
            return False
        choices = {"": "(none)", **{name: name for name in seen.columns}}
        ui.update_radio_buttons("whose", selected=Whose.COLUMN.value)
        ui.update_select("groups_column", choices=choices, selected=column)
        return True

    # --- moving between steps

    def _moves(self) -> None:
        input, session = self.input, self.session

        @reactive.calc
        async def problems() -> dict[str, str]:
            found: dict[str, str] = {str(s): p for s, p in self.recipe().problems().items()}
            empty = unfilled(input.instrument(), lambda field: input[field]())
            unknown = unchosen(input.mode(), lambda field: input[field]())
            if empty is not None:
                found["instrument"] = empty
            if unknown is not None:
                found["privacy"] = unknown
            elif input.mode() == "accuracy" and self.solved() is None:
                found["privacy"] = (
                    "ε is still being solved for"
                    if self.outlook() is None
                    else "no ε reaches the wanted accuracy: wish for less, or say ε yourself"
                )
            made = await self.seen()
            if self.entered().files:
                count = number_problem(input.n(), self.entered().unit, made.n)
                wrong = made.problem or count or rows_problem(input.k())
                if wrong is not None:
                    found["records"] = self._shortly(wrong)
            if input.ledger_mode() != "none" and "ledger" not in found:
                state = self.state()
                if isinstance(state, str):
                    found["ledger"] = state
            return found

        self.problems = problems
        for name in STEPS:
            self._problem(name)

        @reactive.effect
        @reactive.event(input.wish)
        async def _() -> None:
            wish, here = input.wish(), self.step.get()
            step, barred = destination(wish, here, await problems(), always_open(self.job.get()))
            self.tried.set(self.tried.get() | {here} | ({barred} if barred else set()))
            await self.go(step)

        @reactive.effect
        async def _() -> None:
            self.ledgers.get()
            names = done(self.visited.get(), self.step.get(), await problems(), self.job.get())
            await session.send_custom_message("done", {"names": names})

    async def go(self, step: str) -> None:
        """Show a step."""
        self.step.set(step)
        self.visited.set(self.visited.get() | {step})
        await self.session.send_custom_message("step", {"name": step})

    def _problem(self, name: str) -> None:
        async def problem() -> Any:
            found = (await self.problems()).get(name)
            if found is None or name not in self.tried.get():
                return ""
            return ui.div(sentence(found), class_="note no")

        problem.__name__ = f"problem_{name}"
        render.ui(problem)


def placed(recipe: Recipe, folder: Path) -> Recipe:
    """The recipe with its files below a folder, where they are not absolute."""

    def at(file: str | None) -> str | None:
        return None if not file else str(folder / file)

    return msgspec.structs.replace(
        recipe,
        files=tuple(str(folder / file) for file in recipe.files),
        mask=at(recipe.mask),
        labels=at(recipe.labels),
        groups=at(recipe.groups),
        ledger=at(recipe.ledger),
    )
