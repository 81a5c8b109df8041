"""A recipe as a command line, as a Python script and as a notebook.

All three ask for the same release: their certificates agree in all but noise, time and
identity.
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from spdp.domain.base import Domain
from spdp.domain.sets import Ball, CorrelationBounds, EigenvalueBounds, TraceBounds
from spdp.errors import ParameterError, named
from spdp.options import Adjacency, OnInvalid
from spdp.statistics import STATISTICS, find, module_of
from spdp.statistics.base import Statistic
from spdp.wizard.recipe import Recipe, Whose, listed

MEAN = "mean"


def asked(recipe: Recipe) -> Statistic:
    """The statistic with the recipe's options, or an error that names the option."""
    if recipe.statistic not in STATISTICS:
        names = ", ".join(STATISTICS)
        raise ParameterError(f"statistic must be one of {names}, got {recipe.statistic!r}")
    own = {field.name: field for field in _own(recipe.statistic)}
    for name in recipe.options:
        if name not in own:
            raise ParameterError(f"{named(name)} is not an option of {recipe.statistic}")
    for name, field in own.items():
        if field.metadata.get("required") and not recipe.options.get(name):
            raise ParameterError(f"{recipe.statistic} needs {named(name)}")
    given = {name: _value(own[name], value) for name, value in recipe.options.items()}
    statistic: Statistic = type(find(recipe.statistic))(**given)
    statistic.check_options({})
    return statistic


def _own(name: str) -> list[Any]:
    return [field for field in fields(find(name)) if "help" in field.metadata]


def _value(field: Any, value: Any) -> Any:
    """An option's value as Python's functions take it: what the command line reads.

    A class "1" is the number 1 to both, so that their certificates agree.
    """
    parse = field.metadata.get("parse")
    return value if parse is None else parse(_written(value))


# --- the command line


def command(recipe: Recipe) -> list[str]:
    """The words of the command that makes this release, after ``spdp``."""
    recipe.check()
    stats = [] if recipe.statistic == MEAN else ["stats"]
    words = [*stats, recipe.statistic, *map(_named_file, recipe.files)]
    for name, value in _reading(recipe).items():
        words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    words += ["--epsilon", repr(recipe.epsilon), "--delta", repr(recipe.delta)]
    words += _bounds(recipe.instrument.domain(recipe.k))
    if recipe.metric != "logeuclid":
        words += ["--metric", recipe.metric]
    for field in _own(recipe.statistic):
        if field.name in recipe.options:
            flag = field.metadata.get("flag", f"--{field.name.replace('_', '-')}")
            words += [flag, _written(recipe.options[field.name])]
    words += _policies(recipe)
    if recipe.ledger:
        words += ["--ledger", recipe.ledger]
    if recipe.label:
        words += ["--label", recipe.label]
    if recipe.names:
        words += ["--names", recipe.names]
    return [*words, "--output", recipe.output, "--report"]


def _named_file(file: str) -> str:
    """A file that is not taken for an option."""
    return f"./{file}" if file.startswith("-") else file


def _reading(recipe: Recipe) -> dict[str, Any]:
    """Options of the command about reading, those that were given."""
    names = ("key", "order", "mask", "groups", "groups_column", "label_column", "entries")
    given = {name: getattr(recipe, name) for name in (*names, "labels", "covariates")}
    given["per_file"] = recipe.whose is Whose.FILE or None
    # a record that is a voxel must be asked for; a record that is none must be said
    # where a folder of files leaves it open
    given["unit"] = recipe.whose.value if recipe.whose in (Whose.VOXEL, Whose.RECORD) else None
    return {name: value for name, value in given.items() if value is not None}


def _policies(recipe: Recipe) -> list[str]:
    words = []
    if recipe.adjacency is not Adjacency.REPLACE_ONE:
        words += ["--adjacency", recipe.adjacency.value]
    if recipe.on_invalid is not OnInvalid.RAISE:
        words += ["--on-invalid", recipe.on_invalid.value]
    return [*words, *(["--anyway"] if recipe.anyway else [])]


def _bounds(domain: Domain) -> list[str]:
    if isinstance(domain, EigenvalueBounds):
        return ["--eigenvalues", repr(domain.low), repr(domain.high)]
    if isinstance(domain, TraceBounds):
        return ["--trace", repr(domain.low), repr(domain.trace)]
    if isinstance(domain, CorrelationBounds):
        return ["--correlation", repr(domain.shrinkage)]
    assert isinstance(domain, Ball)
    return ["--radius", repr(domain.radius)]


def _written(value: Any) -> str:
    """An option's value as it is typed."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ",".join(map(str, value))
    return str(value)


def shell(recipe: Recipe) -> str:
    """The command as it is typed in a terminal, an option a line."""
    lines = ["spdp"]
    for word in command(recipe):
        if word.startswith("--"):
            lines.append(f"    {word}")
        else:
            lines[-1] += f" {shlex.quote(word)}"
    return " \\\n".join(lines)


# --- Python

AGAIN = "Running this makes another release, and spends its budget again."


def cells(recipe: Recipe) -> list[str]:
    """The script in parts: imports, records, the release, what is written."""
    recipe.check()
    domain = recipe.instrument.domain(recipe.k)
    function = f"private_{module_of(recipe.statistic)}"
    public = {type(domain).__name__, function} | ({"Ledger"} if recipe.ledger else set())
    public |= {"Reference"} if "reference" in recipe.options else set()
    numpy = recipe.covariates or (recipe.labels or "").endswith((".npy", ".npz"))
    imports = [
        "from pathlib import Path",
        "",
        *(["import numpy as np", ""] if numpy else []),
        f"from spdp import {', '.join(sorted(public))}",
        "from spdp.data import open_records",
        "from spdp.release.report import html_report",
    ]
    given: dict[str, str] = {}
    if recipe.labels:
        given["y"] = _labels(recipe)
    if recipe.covariates:
        given["covariates"] = f"np.load({recipe.covariates!r})"
    given |= {"epsilon": repr(recipe.epsilon), "delta": repr(recipe.delta), "domain": repr(domain)}
    if recipe.metric != "logeuclid":
        given["metric"] = repr(recipe.metric)
    given |= _options(recipe)
    if recipe.adjacency is not Adjacency.REPLACE_ONE:
        given["adjacency"] = repr(recipe.adjacency.value)
    if recipe.on_invalid is not OnInvalid.RAISE:
        given["on_invalid"] = repr(recipe.on_invalid.value)
    if recipe.anyway:
        given["anyway"] = "True"
    if recipe.ledger:
        given["ledger"] = f"Ledger({recipe.ledger!r})"
    if recipe.label:
        given["label"] = repr(recipe.label)
    return [
        "\n".join(imports),
        _call("records = open_records", [repr(list(recipe.files))], _opening(recipe)),
        _call(f"release = {function}", ["records"], given),
        "\n".join(
            [
                f"folder = release.save({recipe.output!r})",
                f"page = html_report({', '.join(['release', *_row_names(recipe)])})",
                'Path(folder, "report.html").write_text(page, "utf-8")',
            ]
        ),
    ]


def _row_names(recipe: Recipe) -> list[str]:
    """Names of the rows, as an argument: a list, or the lines of a file."""
    if recipe.names is None:
        return []
    rows = listed(recipe.names, recipe.k)
    if rows is not None:
        return [f"names={rows!r}"]
    lines = f"Path({recipe.names!r}).read_text('utf-8-sig').splitlines()"
    return [f"names=[line.strip() for line in {lines} if line.strip()]"]


def _opening(recipe: Recipe) -> dict[str, str]:
    """Arguments of ``open_records``; labels of a file are passed to the function."""
    given = {n: v for n, v in _reading(recipe).items() if n not in ("unit", "labels", "covariates")}
    if recipe.labels:
        given.pop("label_column", None)
    return {name: repr(value) for name, value in given.items()}


def _options(recipe: Recipe) -> dict[str, str]:
    """The statistic's own options, as they are written in Python."""
    own = {field.name: field for field in _own(recipe.statistic)}
    given = {n: repr(_value(own[n], v)) for n, v in recipe.options.items() if n != "reference"}
    file = recipe.options.get("reference")
    return given if file is None else given | {"reference": f"Reference.load({file!r})"}


def _labels(recipe: Recipe) -> str:
    file = recipe.labels or ""
    if file.endswith(".npz"):
        return f"np.load({file!r})[{recipe.label_column!r}]"
    if file.endswith(".npy"):
        return f"np.load({file!r})"
    return f"Path({file!r}).read_text('utf-8').splitlines()"


def _call(what: str, first: list[str], given: dict[str, str]) -> str:
    lines = [*first, *(f"{name}={value}" for name, value in given.items())]
    return f"{what}(\n" + "".join(f"    {line},\n" for line in lines) + ")"


def script(recipe: Recipe) -> str:
    """A Python script that makes this release."""
    body = "\n\n".join(cells(recipe))
    return f'"""Made by spdp wizard. {AGAIN}"""\n\n{body}\nprint(release)\n'


def notebook(recipe: Recipe) -> str:
    """The same as a Jupyter notebook, which shows the release."""
    parts: list[dict[str, Any]] = [
        {"cell_type": "markdown", "source": f"# A private {recipe.statistic}\n\n{AGAIN}"},
        *(
            {"cell_type": "code", "source": code, "execution_count": None, "outputs": []}
            for code in [*cells(recipe), "release"]
        ),
    ]
    whole = {
        "cells": [{"id": f"cell-{i}", "metadata": {}, **part} for i, part in enumerate(parts)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"
