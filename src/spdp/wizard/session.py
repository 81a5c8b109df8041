"""What answers the page: inputs become a recipe, and a recipe is shown, run and handed out.

*Enforced.* Until the command of a release has ended, what is shown depends on what was
entered, on public facts of files (:mod:`.looking`), on public predictions and on the
ledger. A message about a record is for the holder of the data: it is folded away.
"""

import asyncio
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from shiny import App, Inputs, Outputs, Session, reactive, render, ui

from spdp.errors import ParameterError
from spdp.options import OnInvalid
from spdp.wizard.instruments import Connectomes, Diffusion, Images, Kind, Other, Signals
from spdp.wizard.page import CLASSIFIED, STEPS, page
from spdp.wizard.recipe import Recipe, Step, Wanted, Whose
from spdp.wizard.working import Job

STATIC = Path(__file__).parent / "static"
TICK = 0.4  # seconds between two looks at a job
DATA_ERROR = 3  # exit code of errors that may describe records


def app_of(folder: Path, recipe: Recipe) -> App:
    """The Shiny application; ``folder`` is where files are looked for and written."""

    def server(input: Inputs, output: Outputs, session: Session) -> None:
        Answers(input, session, folder, recipe).begin()

    from spdp.wizard.folder import offered

    return App(page(recipe, offered(folder)), server, static_assets={"/static": STATIC})


def _text(value: Any) -> str | None:
    """A text field, or None where nothing was entered."""
    text = str(value or "").strip()
    return text or None


def _number(value: Any, otherwise: float) -> float:
    return otherwise if value is None else float(value)


def instrument_of(input: Inputs) -> Kind:
    """The instrument that is entered."""
    kind = input.instrument()
    if kind == "diffusion":
        return Diffusion(input.d_unit())
    if kind == "signals":
        low, high = _number(input.s_low(), 0.0), _number(input.s_high(), 0.0)
        return Signals(low, high, input.s_unit(), input.s_data())
    if kind == "connectomes":
        return Connectomes(_number(input.c_shrinkage(), 0.0))
    if kind == "images":
        return Images(int(input.i_channels()), _number(input.i_eta(), 0.0))
    low, high = _number(input.o_low(), 0.0), _number(input.o_high(), 0.0)
    bound = input.o_bound()
    value: Any = (low, high) if bound in ("eigenvalues", "trace") else high
    return Other(**{bound: value, "distance": input.o_metric()})


@dataclass
class Answers:
    """One visit of the page."""

    input: Inputs
    session: Session
    folder: Path
    start: Recipe

    def begin(self) -> None:
        """Connect inputs and outputs."""
        self.job: reactive.Value[Job | None] = reactive.value(None)
        self.asked: reactive.Value[Recipe | None] = reactive.value(None)  # of the job
        self.step = reactive.value("records")
        self.tried: reactive.Value[frozenset[str]] = reactive.value(frozenset())
        self.ledgers = reactive.value(0)  # how often one was made or charged here
        self.said = reactive.value("")
        self._recipe()
        self._parts()
        self._moves()
        self._predictions()
        self._rehearsals()
        self._ledgers()
        self._releases()

    # --- what is entered

    def _recipe(self) -> None:
        input = self.input

        @reactive.calc
        def entered() -> Recipe:
            """Everything but ε where it follows from the accuracy."""
            whose = Whose(input.whose())
            column = input.groups_column() if whose is Whose.COLUMN else None
            column = input.groups_name() if whose is Whose.IDS else column
            classified = input.statistic() in CLASSIFIED
            names = [c.strip() for c in str(input.classes() or "").split(",") if c.strip()]
            seen_image = whose is Whose.VOXEL or _text(input.mask()) or _text(input.order())
            return msgspec.structs.replace(
                self.start,
                files=tuple(f.strip() for f in str(input.file() or "").split(",") if f.strip()),
                whose=whose,
                groups_column=_text(column),
                groups=_text(input.groups()) if whose is Whose.IDS else None,
                key=_text(input.key()),
                order=_text(input.order()) if seen_image else None,
                mask=_text(input.mask()) if seen_image else None,
                entries=_text(input.entries()),
                label_column=_text(input.label_column()) if classified else None,
                labels=_text(input.labels()) if classified else None,
                n=max(1, int(input.n() or 1)),
                k=max(1, int(input.k() or 1)),
                on_invalid=OnInvalid(input.on_invalid()),
                instrument=instrument_of(input),
                statistic=input.statistic(),
                options=self._options(names if classified else []),
                epsilon=_number(input.epsilon(), 0.0),
                delta=_number(input.delta(), 0.0),
                wanted=None,
                spread=input.spread(),
                ledger=None if input.ledger_mode() == "none" else (_text(input.ledger()) or ""),
                label=_text(input.label()),
                output=_text(input.output()) or "",
                names=_text(input.names()),
            )

        @reactive.calc
        def recipe() -> Recipe:
            made = entered()
            if input.mode() != "accuracy":
                return made
            term, within = _text(input.term()), _number(input.within(), 0.0)
            solved = self.solved()
            wanted = Wanted(term, within) if term else None
            return msgspec.structs.replace(made, epsilon=solved or made.epsilon, wanted=wanted)

        @reactive.calc
        async def seen() -> Any:
            from spdp.wizard.looking import look

            asks = ("files", "whose", "groups_column", "key", "order", "mask", "entries")
            made = entered()
            given = {name: getattr(made, name) for name in (*asks, "labels", "label_column")}
            return await asyncio.to_thread(self._there, look, Recipe(**given))

        self.entered, self.recipe, self.seen = entered, recipe, seen

    def _options(self, classes: list[str]) -> dict[str, Any]:
        same = self.start.statistic == self.input.statistic()
        kept = {n: v for n, v in self.start.options.items() if same and n != "classes"}
        return {**kept, "classes": classes} if classes else kept

    def _there(self, function: Callable[[Recipe], Any], recipe: Recipe) -> Any:
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
            parts = {
                f"some-{name}": name == kind
                for name in ("diffusion", "signals", "connectomes", "images", "other")
            }
            parts |= {
                "some-column": whose == Whose.COLUMN,
                "some-ids": whose == Whose.IDS,
                "some-key": len(made.arrays) > 1,
                "some-image": made.image,
                "some-table": made.table,
                "some-classes": input.statistic() in CLASSIFIED,
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
                for name in ("groups_column", "label_column"):
                    columns = {"": "(none)", **{c: c for c in made.columns}}
                    chosen = input[name]() or ""
                    ui.update_select(name, choices=columns, selected=chosen)
                arrays = {"": "(choose)", **{a: a for a in made.arrays}}
                ui.update_select("key", choices=arrays, selected=input.key() or "")
                if made.k is not None:
                    ui.update_numeric("k", value=made.k)
                counted = made.n if input.whose() in (Whose.RECORD, Whose.VOXEL) else made.persons
                if counted:
                    ui.update_numeric("n", value=counted)

        @render.ui
        async def seen() -> Any:
            made = await self.seen()
            if made.problem is not None:
                told = ui.div(self._shortly(made.problem), class_="note")
                return told if self.entered().files else ""
            how = f"{made.n:,} matrices, {made.k}×{made.k}"
            some = f" in {made.files:,} files" if made.files > 1 else ""
            return ui.div(f"Found {how}{some}.", class_="note good")

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
                    "The guarantee will be for a single voxel. It says little about a person, whose "
                    "image has many.",
                    class_="note no",
                )
            return ""

        @render.ui
        def domain() -> Any:
            from spdp.wizard.words import domain_in_words

            made = self.entered()
            problem = made.problems().get(Step.INSTRUMENT)
            if problem is not None:
                return ui.div(problem, class_="note no")
            return ui.div(
                ui.tags.b(domain_in_words(made)), " ", made.instrument.reason, class_="note"
            )

    # --- moving between steps

    def _moves(self) -> None:
        input, session = self.input, self.session

        @reactive.calc
        async def problems() -> dict[str, str]:
            found: dict[str, str] = {str(s): p for s, p in self.recipe().problems().items()}
            if input.mode() == "accuracy" and self.solved() is None:
                found["privacy"] = (
                    "ε is still being solved for"
                    if self.outlook() is None
                    else "no ε reaches the wanted accuracy: wish for less, or say ε yourself"
                )
            made = await self.seen()
            if made.problem is not None:
                found["records"] = self._shortly(made.problem)
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
            order = list(STEPS)
            found = await problems()
            if order.index(wish) > order.index(here):
                self.tried.set(self.tried.get() | {here})
                first = next((s for s in order[: order.index(wish)] if s in found), None)
                if first is not None:
                    wish = first
                    self.tried.set(self.tried.get() | {first})
            self.step.set(wish)
            await session.send_custom_message("step", wish)

        @reactive.effect
        async def _() -> None:
            found, order, here = await problems(), list(STEPS), self.step.get()
            reached = order[: order.index(here)]
            await session.send_custom_message("done", [s for s in reached if s not in found])

    def _problem(self, name: str) -> None:
        async def problem() -> Any:
            found = (await self.problems()).get(name)
            if found is None or name not in self.tried.get():
                return ""
            return ui.div(found[0].upper() + found[1:], class_="note no")

        problem.__name__ = f"problem_{name}"
        render.ui(problem)

    # --- predictions

    def _predictions(self) -> None:
        input = self.input

        @reactive.extended_task
        async def simulated(recipe: Recipe) -> Any:
            from spdp.wizard.words import Outlook

            return await asyncio.to_thread(self._there, Outlook.of, recipe)

        @reactive.calc
        def kind() -> Recipe:
            """What the curves depend on: not ε, and not what a release is called."""
            made = self.entered()
            blank = {"epsilon": 1.0, "label": None, "output": "published", "names": None}
            return msgspec.structs.replace(made, **blank, ledger=made.ledger and "one")

        @reactive.effect
        def _() -> None:
            made = kind()
            needed = (Step.INSTRUMENT, Step.STATISTIC)
            if self.step.get() in ("records", "instrument", "statistic"):
                return  # what is being entered is not simulated at every letter
            if not any(step in made.problems() for step in needed):
                simulated(made)

        @reactive.calc
        def outlook() -> Any:
            return simulated.result() if simulated.status() == "success" else None

        @reactive.calc
        def solved() -> float | None:
            made, term = outlook(), _text(input.term())
            if made is None or term is None or input.mode() != "accuracy":
                return None
            found: float | None = made.solve(self.entered(), term, _number(input.within(), 0.0))
            return found

        self.solved, self.outlook = solved, outlook

        @reactive.effect
        def _() -> None:
            from spdp.wizard.words import terms_of

            input.instrument()
            statistic = input.statistic()
            with reactive.isolate():
                terms = terms_of(instrument_of(input), statistic)
                chosen = input.term() if input.term() in terms else next(iter(terms))
                ui.update_select("term", choices=terms, selected=chosen)

        last = reactive.value("")

        @reactive.effect
        def _() -> None:
            from spdp.wizard.words import start_of, unit_of

            term = _text(input.term())
            with reactive.isolate():
                if term is None or term == last.get():
                    return
                wanted = self.start.wanted
                first = last.get() == "" and wanted is not None and wanted.term == term
                last.set(term)
                value = wanted.within if first and wanted else start_of(term)
                ui.update_numeric("within", label=f"Within {unit_of(term)}".strip(), value=value)

        @render.ui
        def verdict() -> Any:
            made = outlook()
            if made is None:
                return _waiting(simulated)
            recipe = self.recipe()
            notes = made.verdict(recipe, self.solved() if recipe.wanted else recipe.epsilon)
            return ui.TagList(*(ui.div(n.text, class_=f"note {n.kind}") for n in notes))

        @render.ui
        def curves() -> Any:
            made = outlook()
            if made is None:
                return ""
            recipe = self.recipe()
            pictures = made.pictures(recipe, self.solved() if recipe.wanted else recipe.epsilon)
            figures = [
                ui.tags.figure(ui.HTML(svg), ui.tags.figcaption(text)) for svg, text in pictures
            ]
            return ui.div(*figures, class_="curves")

    # --- rehearsal

    def _rehearsals(self) -> None:
        input = self.input
        job: reactive.Value[Job | None] = reactive.value(None)
        shown: reactive.Value[tuple[str, str] | None] = reactive.value(None)

        @reactive.effect
        @reactive.event(input.rehearse)
        async def _() -> None:
            running = job.get()
            if running is not None and running.running:
                running.cancel()
                return
            recipe = self.recipe()
            found = {**(await self.problems())}
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
                made = Job(words, self.folder)
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

    # --- ledger

    def _ledgers(self) -> None:
        input = self.input

        @reactive.calc
        def state() -> Any:
            """What a ledger says of itself, or why it cannot be used."""
            from spdp.wizard.words import ledger_state

            self.ledgers.get()
            made = self.recipe()
            if input.ledger_mode() == "none":
                return None
            return self._there(ledger_state, made)

        self.state = state

        @reactive.effect
        @reactive.event(input.create)
        def _() -> None:
            from spdp.wizard.words import create_ledger

            totals = _number(input.total_epsilon(), 0.0), _number(input.total_delta(), 0.0)
            file = self.folder / (_text(input.ledger()) or "")
            self.said.set(create_ledger(file, *totals))
            self.ledgers.set(self.ledgers.get() + 1)

        @render.ui
        def ledger_state() -> Any:
            if input.ledger_mode() == "none":
                return ui.div(
                    "Nobody keeps count: another release of the same people adds to what is known "
                    "of them.",
                    class_="note",
                )
            found, said = state(), self.said.get()
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

    # --- release

    def _releases(self) -> None:
        input, session = self.input, self.session

        @render.ui
        async def summary() -> Any:
            from spdp.wizard.words import facts
            from spdp.wizard.writing import shell

            recipe, found = self.recipe(), await self.problems()
            if found:
                text = "; ".join(f"{STEPS[s].lower()}: {p}" for s, p in found.items())
                return ui.div(f"Not ready. {text}", class_="note no")
            rows = [
                ui.div(ui.tags.dt(name), ui.tags.dd(value)) for name, value in facts(recipe).items()
            ]
            return ui.TagList(
                ui.tags.dl(*rows),
                ui.tags.details(
                    ui.tags.summary("The same as one command"), ui.tags.pre(shell(recipe))
                ),
            )

        @reactive.effect
        async def _() -> None:
            job, found = self.job.get(), await self.problems()
            if job is not None and job.running:
                reactive.invalidate_later(TICK)
                busy = True
            else:
                busy = False
            done = job is not None and job.code == 0 and self.asked.get() == self.recipe()
            await session.send_custom_message("able", {"go": not busy and not found and not done})
            await session.send_custom_message("shown", {"stop": busy})

        @reactive.extended_task
        async def released(job: Job) -> int:
            return await job.run()

        @reactive.effect
        @reactive.event(input.go)
        async def _() -> None:
            from spdp.wizard.writing import command

            job = self.job.get()
            if (job is not None and job.running) or await self.problems():
                return
            recipe = self.recipe()
            made = Job(command(recipe), self.folder)
            self.asked.set(recipe)
            self.job.set(made)
            released(made)

        @reactive.effect
        @reactive.event(input.stop)
        def _() -> None:
            job = self.job.get()
            if job is not None:
                job.cancel()

        @reactive.effect
        async def _() -> None:
            if released.status() != "success":
                return
            code = released.result()
            with reactive.isolate():
                self.ledgers.set(self.ledgers.get() + 1)
                if code == 0:
                    self.step.set("results")
                    await session.send_custom_message("step", "results")

        @render.ui
        def progress() -> Any:
            job = self.job.get()
            if job is None:
                return ""
            if job.running:
                reactive.invalidate_later(TICK)
                return _progress(job)
            self.ledgers.get()
            return _ended(job)

        @render.ui
        def results() -> Any:
            job, recipe = self.job.get(), self.asked.get()
            released.status()
            if job is None or recipe is None or job.code != 0:
                return ui.div("Nothing was released yet.", class_="note")
            where = self.folder / recipe.output
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
            yield self.recipe().yaml()

        @render.download_link(filename="release.zip", media_type="application/zip")
        def zip() -> Any:
            from spdp.wizard.bundle import bundle

            recipe = self.asked.get()
            assert recipe is not None
            yield bundle(self.folder / recipe.output, recipe)


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


def _waiting(task: Any) -> Any:
    if task.status() == "error":
        try:
            task.result()
        except ParameterError as error:
            return ui.div(str(error), class_="note no")
        except Exception as error:
            return ui.div(f"The prediction failed: {error}", class_="note no")
    return ui.div(
        ui.tags.progress(aria_label="Simulating"),
        ui.p("Simulating releases of such records …", class_="soft"),
    )
