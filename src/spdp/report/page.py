"""Self-contained HTML pages about a release or a plan: no script, nothing is loaded.

All texts are escaped by the templates; only the pictures drawn here are markup.
"""

import json
import re
from collections.abc import Sequence
from html import unescape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spdp import cautions, words
from spdp.certificate import seal_of
from spdp.choices import counted
from spdp.errors import DataError, ParameterError
from spdp.pictures.painting import top_of
from spdp.pictures.panels import Panel, panels
from spdp.release import CERTIFICATE, Release
from spdp.report import figures
from spdp.statistics import plan_words
from spdp.statistics.prediction import Plan
from spdp.verification import NOT_PROVEN

__all__ = ["html_report", "plan_page", "says_the_same"]

Array = NDArray[np.float64]
Figure = tuple[str, str]  # SVG, caption

LEVELS = (5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 98, 99)  # of the curve, in percent
LONGEST = 8  # numbers of a row that are written out
# What a page says of a ledger's entry (`_entry`), which is not in the release.
LEDGER = re.compile(
    r"<p>Paid for in a ledger: entry \d+ of [^<]*, \d{4}-\d\d-\d\d \d\d:\d\d UTC, cost [με] = "
    r"[-+.e\d]+( per \w+)?\.</p>\n"
)


def html_report(
    release: Release, *, names: Sequence[str] | None = None, entry: dict[str, Any] | None = None
) -> str:
    """Pictures, the guarantee in plain words, the error's law and the certificate.

    ``names`` are those of the matrices' rows. ``entry`` is the entry of the ledger that
    paid, as in its history, with the ledger's name.
    """
    c = release.certificate
    rows = words.check_names(names, c["k"])
    return _rendered(
        "release.html.j2",
        heading=words.heading(c),
        subject=words.subject(c),
        misfit=cautions.outside(release.values, c),
        verdict=words.verdict(c),
        accuracy=words.accuracy(c),
        meaning=words.meaning(c),
        coverage=words.coverage(c),
        facts=words.facts(c) | {"created": c["created"]},
        numbers=_numbers(release),
        entry=None if entry is None else _entry(entry),
        names=rows,
        figures=_figures(release, rows),
        steps=[_step(step, c["mu"]) for step in c["steps"] or []],
        seal=seal_of(release.values, c),
        not_proven=NOT_PROVEN,
        file=CERTIFICATE,
        certificate=json.dumps(_folded(c), indent=2, ensure_ascii=False),
    )


def says_the_same(page: str, release: Release) -> bool:
    """Whether a page is that of a release: drawn anew, it is the same in every byte.

    Taken as stated: the names of rows, and the sentence on a ledger's entry. Words may
    differ between versions of spdp, pictures between versions of matplotlib.
    """
    try:
        again = html_report(release, names=_names_in(page))
    except (ParameterError, ValueError):
        return False
    return LEDGER.sub("", page, count=1) == again


def _names_in(page: str) -> list[str] | None:
    """The names of rows that a page was drawn with."""
    found = re.search(r'<h2 data-rows="([^"]*)">', page)
    return None if found is None else [str(name) for name in json.loads(unescape(found[1]))]


def plan_page(
    made: Plan, n_grid: Array, errors: dict[str, Array], answers: Sequence[str] = ()
) -> str:
    """What a release is predicted to reach; ``answers`` say what more would need."""
    curve = figures.plan_curves(n_grid, errors, made.n, made.distance, counted(made.unit))
    return _rendered(
        "plan.html.j2",
        heading=f"Plan of a private mean of {made.k}×{made.k} matrices",
        subject=f"{plan_words.title(made)}. Predicted from public numbers: no data were read.",
        hopeless=made.hopeless,
        notes=plan_words.notes(made),
        answers=answers,
        columns=plan_words.COLUMNS,
        rows=plan_words.rows(made),
        figures=[(curve, f"Root mean square error by the number of {counted}.")],
        facts=plan_words.facts(made),
    )


def _rendered(template: str, **content: Any) -> str:
    try:
        from jinja2 import Environment, FunctionLoader, StrictUndefined
    except ImportError:
        raise DataError(
            "a report needs Jinja2; install it with: pip install 'spdp[report]'"
        ) from None
    folder = files(__package__).joinpath("templates")
    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text("utf-8")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return str(environment.get_template(template).render(**content))


def _figures(release: Release, names: list[str] | None) -> list[Figure]:
    c = release.certificate
    found = panels(release.values, c)
    drawn = [_drawn(panel, found, i, names) for i, panel in enumerate(found)]
    if c["error_bound"] is not None:
        bounds = {level: release.error_bound(level / 100) for level in LEVELS}
        curve = figures.error_curve(bounds, c["distance"])
        drawn.append((curve, "The error stays below a distance with at least this probability."))
    return drawn


def _drawn(panel: Panel, all_: list[Panel], i: int, names: list[str] | None) -> Figure:
    """A panel as SVG; those of one kind and scale can be compared."""
    alike = [p.data for p in all_ if (p.kind, p.scale) == (panel.kind, panel.scale)]
    name = f"{panel.kind}{i}"
    if panel.kind == "bars":
        return figures.bars(panel, name), f"{panel.title}."
    if panel.kind == "solid":
        reach = 1.1 * max(float(np.sqrt(np.diagonal(M).max())) for M in alike)
        seen = "" if len(panel.data) == 2 else ", seen along each axis"
        return figures.ellipses(panel.data, name, reach), f"{panel.title}{seen}."
    svg = figures.heat_map(panel.data, top_of(alike), names, name)
    shared = " All on one scale of colours." if len(alike) > 1 and panel.data is alike[0] else ""
    return svg, f"{panel.title}.{shared}"


def _numbers(release: Release) -> dict[str, str]:
    """Released numbers, and short rows of them, that are written out."""
    short = {name: a for name, a in release.values.items() if a.ndim < 2 and a.size <= LONGEST}
    return {
        name.replace("_", " "): ", ".join(f"{value:.4g}" for value in np.atleast_1d(array))
        for name, array in short.items()
    }


def _entry(entry: dict[str, Any]) -> str:
    label = f", “{entry['label']}”" if entry["label"] else ""
    unit = f" per {entry['unit']}" if entry["unit"] else ""
    cost = f"μ = {entry['mu']:.4g}" if entry["pure"] is None else f"ε = {entry['pure']:.4g}"
    when = entry["created"][:16].replace("T", " ")
    return f"entry {entry['id']} of {entry['ledger']}{label}, {when} UTC, cost {cost}{unit}"


def _step(step: dict[str, Any], total: float | None) -> dict[str, str]:
    """A row of the table of steps; shares are of μ², which is what adds up."""
    mu = step.get("mu")  # Laplace noise has none
    released = {name: value for name, value in step.items() if name not in ("step", "mu")}
    return {
        "name": step["step"],
        "mu": "" if mu is None else f"{mu:.4g}",
        "share": "" if mu is None or not total else f"{(mu / total) ** 2:.1%}",
        "released": ", ".join(f"{name}: {_brief(value)}" for name, value in released.items()),
    }


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return f"{len(value)} numbers"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _folded(content: Any) -> Any:
    """Plain data with long lists told by their length: the file has them in full."""
    if isinstance(content, dict):
        return {name: _folded(value) for name, value in content.items()}
    if not isinstance(content, list):
        return content
    long = _is_plain(content) and _count(content) > LONGEST
    return f"… {_count(content):,} numbers" if long else [_folded(part) for part in content]


def _count(content: Any) -> int:
    return sum(map(_count, content)) if isinstance(content, list) else 1


def _is_plain(content: Any) -> bool:
    """Whether a list holds nothing but numbers, or lists of them."""
    if isinstance(content, list):
        return all(map(_is_plain, content))
    return isinstance(content, int | float)
