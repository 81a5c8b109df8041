"""What the wizard asks, step by step: markup alone.

Everything that is asked stands on the page from the start; steps are shown and hidden,
so that what was entered stays. Scripts, styles and fonts come with the package.
"""

from collections.abc import Mapping
from importlib.resources import files
from math import log10
from typing import Any

from shiny import ui

from spdp.options import OnInvalid
from spdp.statistics import every
from spdp.wizard.instruments import KINDS, Instrument, Other
from spdp.wizard.recipe import WHOSE, Recipe

STEPS = {
    "records": "Whose records",
    "instrument": "Which instrument",
    "statistic": "Which statistic",
    "privacy": "How accurate, how private",
    "rehearsal": "Rehearsal",
    "ledger": "Ledger",
    "release": "Release",
    "results": "Results",
}
MODES = {
    "accuracy": "I say how accurate it must be, and ε follows",
    "epsilon": "I say ε, and the accuracy follows",
}
SPREADS = {
    "5%": "Very alike (5 % of the domain’s radius)",
    "10%": "Alike (10 %)",
    "20%": "Rather different (20 %)",
    "50%": "Very different (50 %)",
}
LEDGERS = {
    "create": "Create a ledger for these data",
    "choose": "They have a ledger already",
    "none": "No ledger: nobody keeps count of what was spent",
}
LOW, HIGH = log10(0.02), log10(30.0)  # ends of ε's slider


def page(recipe: Recipe, names: list[str]) -> Any:
    """The page, with what a recipe holds already; ``names`` are files to offer."""
    shared = files("spdp.rendering").joinpath("templates/style.css.j2").read_text("utf-8")
    own = files(__package__).joinpath("static/wizard.css").read_text("utf-8")
    return ui.TagList(
        ui.head_content(
            ui.tags.title("spdp wizard"),
            ui.tags.link(rel="icon", href="data:,"),
            ui.tags.meta(name="viewport", content="width=device-width, initial-scale=1"),
            ui.tags.meta(name="color-scheme", content="light dark"),
            ui.tags.style(shared + own),
            ui.tags.script(src="static/wizard.js", defer=""),
        ),
        ui.tags.header(
            ui.tags.h1("Publish a statistic, protect the people in it"),
            _soft(
                "Until you press “Release”, nothing is computed from your records. This page is "
                "served by your own machine and asks no other."
            ),
        ),
        ui.output_ui("news"),
        ui.tags.nav(_steps(), aria_label="Steps"),
        ui.tags.main(*_sections(recipe, names)),
    )


def _steps() -> Any:
    return ui.tags.ol(
        *(
            ui.tags.li(
                ui.tags.button(title, type="button", data_step=name, id=f"to-{name}"),
                id=f"item-{name}",
            )
            for name, title in STEPS.items()
        ),
        class_="steps",
    )


def _sections(recipe: Recipe, names: list[str]) -> list[Any]:
    made = {
        "records": _records(recipe, names),
        "instrument": _instrument(recipe),
        "statistic": _statistic(recipe),
        "privacy": _privacy(recipe),
        "rehearsal": _rehearsal(),
        "ledger": _ledger(recipe),
        "release": _release(),
        "results": [ui.output_ui("results")],
    }
    order = list(made)
    return [_section(name, i, order, parts) for i, (name, parts) in enumerate(made.items())]


def _section(name: str, i: int, order: list[str], parts: list[Any]) -> Any:
    back = ui.tags.button("Back", type="button", class_="plain", data_step=order[max(i - 1, 0)])
    onward = "" if name in ("release", "results") else f"Next: {STEPS[order[i + 1]].lower()}"
    return ui.tags.section(
        ui.tags.h2(f"{i + 1}. {STEPS[name]}", tabindex="-1", id=f"title-{name}"),
        *parts,
        ui.div(ui.output_ui(f"problem_{name}"), role="status"),
        ui.div(
            back if i else "",
            ui.tags.button(onward, type="button", class_="strong", data_step=order[i + 1])
            if onward
            else "",
            class_="moves between",
        ),
        id=f"step-{name}",
        aria_labelledby=f"title-{name}",
        hidden=None if i == 0 else "",
    )


def _soft(text: str) -> Any:
    return ui.tags.p(text, class_="soft")


def _some(key: str, *parts: Any) -> Any:
    """A part that is shown only where it is needed."""
    return ui.div(*parts, id=f"some-{key}", hidden="")


def _select(name: str, label: str, choices: Any, selected: str | None) -> Any:
    return ui.input_select(name, label, choices, selected=selected or "")


def _records(recipe: Recipe, names: list[str]) -> list[Any]:
    kept = [recipe.groups_column] if recipe.groups_column else []
    known: Any = recipe.n if recipe.files else None  # of a plan that was saved; else empty
    return [
        _soft(
            "The guarantee is for a person with all their records, if it is known whose they are."
        ),
        ui.input_text("file", "File, folder or pattern", ", ".join(recipe.files), width="100%"),
        ui.tags.datalist(*(ui.tags.option(value=name) for name in names), id="offered"),
        _soft(
            "From the folder in which the wizard was started: npy, npz, mat, HDF5, Zarr, NIfTI, "
            "CSV or Parquet. It is opened for its shape and the names of its columns only."
        ),
        ui.div(ui.output_ui("seen"), role="status"),
        ui.input_radio_buttons("whose", "Whose are they?", _texts(WHOSE), selected=recipe.whose),
        _some(
            "column",
            _select("groups_column", "Column of the persons", _named(kept), recipe.groups_column),
        ),
        _some(
            "ids",
            ui.input_text(
                "groups", "File of ids (npy, npz, or a text with one per line)", recipe.groups or ""
            ),
            ui.input_text(
                "groups_name", "Its array or column, if it has several", recipe.groups_column or ""
            ),
        ),
        _some("key", _select("key", "Which array holds the matrices?", {}, recipe.key)),
        _some(
            "image",
            _select(
                "order",
                "Order of the six components",
                {
                    "": "as the header says",
                    "nifti": "NIfTI, DIPY",
                    "fsl": "FSL",
                    "mrtrix": "MRtrix",
                },
                recipe.order,
            ),
            ui.input_text("mask", "Mask of the voxels that count (NIfTI)", recipe.mask or ""),
        ),
        _some(
            "table",
            _select(
                "entries",
                "Entries in a row",
                {"": "as names say", "upper": "upper triangle", "full": "whole matrix"},
                recipe.entries,
            ),
        ),
        ui.div(
            ui.input_numeric("n", "How many persons?", known, min=1, step=1),
            ui.input_numeric("k", "Rows of a matrix", recipe.k, min=1, step=1),
            class_="row",
        ),
        ui.output_ui("n_note"),
        ui.input_radio_buttons(
            "on_invalid",
            "If a record is no positive definite matrix",
            {
                OnInvalid.RAISE.value: "stop, and tell me (nothing is spent)",
                OnInvalid.CENTER.value: "put the domain’s centre in its place, and tell nobody",
            },
            selected=recipe.on_invalid.value,
        ),
    ]


def _instrument(recipe: Recipe) -> list[Any]:
    kind = recipe.instrument
    other = kind if isinstance(kind, Other) else Other(eigenvalues=(0.1, 10.0))
    bound = next(
        (n for n in ("eigenvalues", "trace", "correlation", "radius") if getattr(other, n)),
        "eigenvalues",
    )
    value = getattr(other, bound) or (0.1, 10.0)
    low, high = value if isinstance(value, tuple) else (0.1, value)
    titles = {name: made.title for name, made in KINDS.items()}
    tag = next(name for name, made in KINDS.items() if isinstance(kind, made))
    return [
        _soft(
            "The instrument says what a matrix can be at all. Every record is clipped to that "
            "public set, the domain, so that no single one can move the result far."
        ),
        ui.input_radio_buttons("instrument", "What measured them?", titles, selected=tag),
        *(
            _asked(name, kind if name == tag else made())
            for name, made in KINDS.items()
            if made is not Other
        ),
        _some(
            "other",
            ui.div(
                _select(
                    "other_bound",
                    "Public bound",
                    {
                        "eigenvalues": "eigenvalues between two limits",
                        "trace": "smallest eigenvalue, and trace",
                        "correlation": "correlations, shrunk",
                        "radius": "distance from the identity",
                    },
                    bound,
                ),
                ui.input_numeric("other_low", "Lower limit", low),
                ui.input_numeric("other_high", "Upper limit, shrinkage or radius", high),
                _select(
                    "other_metric",
                    "Metric",
                    {
                        "logeuclid": "log-Euclidean",
                        "logchol": "log-Cholesky",
                        "offlog": "off-log (correlations)",
                    },
                    other.distance,
                ),
                class_="row",
            ),
        ),
        ui.output_ui("domain"),
    ]


def _asked(name: str, kind: Instrument) -> Any:
    """The questions of an instrument, with its own answers."""
    fields = []
    for asked in kind.questions:
        field, shown = f"{name}_{asked.name}", asked.word(getattr(kind, asked.name))
        fields.append(
            _select(field, asked.text, _named(asked.choices), shown)
            if asked.choices
            else ui.input_numeric(field, asked.text, shown, min=0)
        )
    return _some(
        name,
        ui.div(*fields, class_="row"),
        ui.div(kind.before, class_="note") if kind.before else "",
    )


def _statistic(recipe: Recipe) -> list[Any]:
    classes = ", ".join(map(str, recipe.classes or ()))
    offered = {statistic.name: statistic.plain for statistic in every() if statistic.plain}
    chosen = recipe.statistic if recipe.statistic in offered else next(iter(offered))
    kept = [recipe.label_column] if recipe.label_column else []
    return [
        ui.input_radio_buttons("statistic", "What is to be published?", offered, selected=chosen),
        _some(
            "classes",
            ui.input_text("classes", "The classes, separated by commas", classes),
            _soft(
                "From the protocol, not from the data: which classes occur may tell on somebody."
            ),
            _select("label_column", "Column of the classes", _named(kept), recipe.label_column),
            ui.input_text(
                "labels",
                "Or a file of classes (npy, npz, or a text with one per line)",
                recipe.labels or "",
            ),
        ),
    ]


def _privacy(recipe: Recipe) -> list[Any]:
    mode = "accuracy" if recipe.wanted else "epsilon"
    wanted = recipe.wanted
    terms = {wanted.term: wanted.term} if wanted else {}
    return [
        _soft(
            "More privacy means more noise. Both are chosen from public numbers: these curves know "
            "nothing of your records."
        ),
        ui.input_radio_buttons("mode", "What do you start from?", MODES, selected=mode),
        ui.div(
            _some(
                "accuracy",
                ui.div(
                    _select("term", "Wanted, typically", terms, wanted.term if wanted else None),
                    ui.input_numeric("within", "Within", wanted.within if wanted else 5.0, min=0),
                    class_="row",
                ),
            ),
            _some(
                "epsilon",
                ui.tags.label("Privacy loss ε", for_="epsilon"),
                ui.div(
                    ui.tags.input(
                        type="range",
                        id="epsilon_slider",
                        min=f"{LOW:.3f}",
                        max=f"{HIGH:.3f}",
                        step="0.01",
                        value=f"{log10(recipe.epsilon):.3f}",
                        aria_label="Privacy loss ε, as a slider",
                    ),
                    ui.input_numeric("epsilon", None, recipe.epsilon, min=0.01, step=0.1),
                    class_="slide",
                ),
                _soft("Smaller is more private: 1 or less is strong, above 10 hardly protects."),
            ),
            class_="choice",
        ),
        ui.div(
            ui.output_ui("verdict"),
            ui.output_ui("curves"),
            aria_live="polite",
            id="predictions",
        ),
        ui.div(
            ui.input_numeric("delta", "δ, what ε may fall short by", recipe.delta, min=0),
            _select("spread", "How different are the records?", SPREADS, recipe.spread),
            class_="row",
        ),
        _soft(
            "How different they are is a guess from other studies. It changes the curves, not the "
            "guarantee."
        ),
    ]


def _rehearsal() -> list[Any]:
    return [
        _soft(
            "The whole release on made-up records: you see the page that would be published. Your "
            "records are not opened, and nothing is spent."
        ),
        ui.input_action_button("rehearse", "Rehearse", class_="strong"),
        ui.output_ui("rehearsed"),
    ]


def _ledger(recipe: Recipe) -> list[Any]:
    return [
        _soft(
            "Every release spends privacy. A ledger is a file that keeps count, and refuses what "
            "would exceed the total."
        ),
        ui.input_radio_buttons(
            "ledger_mode",
            "How is it counted?",
            LEDGERS,
            selected="choose" if recipe.ledger else "create",
        ),
        _some(
            "ledger", ui.input_text("ledger", "The ledger’s file", recipe.ledger or "study.ledger")
        ),
        _some(
            "budget",
            ui.div(
                ui.input_numeric("total_epsilon", "Total ε", 3.0, min=0),
                ui.input_numeric("total_delta", "Total δ", 1e-5, min=0),
                class_="row",
            ),
            ui.input_action_button("create", "Create this ledger", class_="strong"),
        ),
        ui.output_ui("ledger_state"),
        ui.input_text("output", "Folder for the release", recipe.output),
        ui.input_text("label", "Name of this release in the ledger (optional)", recipe.label or ""),
        ui.input_text(
            "names", "Names of the rows, separated by commas (optional)", recipe.names or ""
        ),
    ]


def _release() -> list[Any]:
    return [
        ui.output_ui("summary"),
        ui.div(
            ui.input_action_button("go", "Release", class_="strong"),
            ui.input_action_button("stop", "Cancel", class_="plain", hidden=""),
            ui.download_link("plan", "Save the plan (YAML)", class_="link"),
            class_="moves",
        ),
        ui.div(ui.output_ui("progress"), role="status"),
    ]


def _texts(choices: Mapping[Any, str]) -> dict[str, Any]:
    return {str(value): text for value, text in choices.items()}


def _named(values: Any) -> dict[str, str]:
    return {value: value for value in values}
